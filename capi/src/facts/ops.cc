// Chapter 3: the ops by which graphs are built, from the op table.
#include "runtime/ops/ops.h"

#include <string>
#include <vector>

#include "capi/src/structs.h"

using namespace cairn::capi;
using cairn::Code;
namespace ops = cairn::ops;

namespace {

struct OpEntry {
  std::string name, inputs, outputs, attributes, description;
  const char* amp_class;
};

void append(std::string& text, std::string_view word, std::string_view mark) {
  if (!text.empty()) text += ' ';
  text += word;
  text += mark;
}

std::string names(const std::vector<ops::Operand>& operands) {
  std::string text;
  for (const ops::Operand& o : operands) append(text, o.name, o.optional ? "?" : "");
  return text;
}

std::string names(const std::vector<ops::AttrSchema>& attributes) {
  std::string text;
  for (const ops::AttrSchema& a : attributes) {
    append(text, a.name, ":");
    text += a.type;
    if (a.required) text += '!';
  }
  return text;
}

// What a host can add by name: not what autodiff and lowering make, and not the host's own ops.
std::vector<OpEntry> make_op_entries() {
  std::vector<OpEntry> list;
  for (const ops::OpRow& row : ops::all())
    if (!row.is(ops::INTERNAL) && row.code != ops::OpCode::k_custom)
      list.push_back({std::string(row.name), names(row.inputs), names(row.outputs), names(row.attrs),
                      std::string(row.description), ops::name(row.amp).data()});
  return list;
}

const std::vector<OpEntry>& op_entries() {
  static const std::vector<OpEntry> list = make_op_entries();
  return list;
}

}  // namespace

cairn_status_t cairn_op_describe(size_t index, cairn_op_info_t* out_info, cairn_error_t* error) {
  return guard(error, [&] {
    const OutStruct out(out_info, "out_info");
    cairn::require(index < op_entries().size(), Code::kNotFound, "there is no op number ", index,
                   "; there are ", op_entries().size());
    const OpEntry& e = op_entries()[index];
    cairn_op_info_t info = CAIRN_OP_INFO_INIT;
    info.name = e.name.c_str();
    info.inputs = e.inputs.c_str();
    info.outputs = e.outputs.c_str();
    info.attributes = e.attributes.c_str();
    info.description = e.description.c_str();
    info.amp_class = e.amp_class;
    out.write(info);
  });
}

cairn_status_t cairn_format_describe(size_t index, cairn_format_info_t* out_info, cairn_error_t* error) {
  return guard(error, [&] {
    static constexpr const char* kReads[] = {"as stored", "dequantised", "by updates"};
    const OutStruct out(out_info, "out_info");
    cairn::require(index < static_cast<size_t>(cairn::kDTypeCount), Code::kNotFound,
                   "there is no format number ", index, "; there are ", cairn::kDTypeCount);
    const cairn::Format& row = cairn::format(static_cast<cairn::DType>(index));
    cairn_format_info_t info = CAIRN_FORMAT_INFO_INIT;
    info.name = row.name.data();
    info.computed_as = cairn::dtype_name(row.computed_as).data();
    info.read = kReads[static_cast<size_t>(row.read)];
    info.bits = static_cast<uint32_t>(row.bits);
    info.block = static_cast<uint32_t>(row.block);
    info.scale_bytes = static_cast<uint32_t>(row.scale_bytes);
    info.trains = row.trains ? 1 : 0;
    info.row = static_cast<uint32_t>(row.row);
    out.write(info);
  });
}

cairn_status_t cairn_amp_class_describe(size_t index, cairn_amp_class_info_t* out_info,
                                        cairn_error_t* error) {
  return guard(error, [&] {
    const OutStruct out(out_info, "out_info");
    const auto classes = ops::amp_classes();
    cairn::require(index < classes.size(), Code::kNotFound, "there is no AMP class number ", index,
                   "; there are ", classes.size());
    cairn_amp_class_info_t info = CAIRN_AMP_CLASS_INFO_INIT;
    info.name = classes[index].name.data();
    info.description = classes[index].description.data();
    info.by_rule = classes[index].by_rule ? 1 : 0;
    out.write(info);
  });
}
