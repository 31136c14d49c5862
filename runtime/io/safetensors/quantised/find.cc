// Which tensors of a model are parts of quantised matrices, by their names.
#include <algorithm>
#include <cstring>
#include <set>

#include "runtime/formats/codecs.h"
#include "runtime/formats/fp8.h"
#include "runtime/io/convert.h"
#include "runtime/io/safetensors/quantised/kinds.h"
#include "runtime/plan/json/parse.h"

namespace cairn::io {
namespace quantised {
namespace {

// A tensor whose name ends with `mark` belongs to a matrix: its name with `becomes` in the place of the mark, if there is
// a tensor whose name has `beside` in that place.
struct QuantisedKind {
  std::string_view mark, becomes, beside, words;
  std::unique_ptr<Quantised> (*open)(Group& group);
};
constexpr QuantisedKind kQuantisedKinds[] = {
    {".weight.absmax", ".weight", ".weight", "4 bits of bitsandbytes", open_nf4},
    {".weight.quant_state.bitsandbytes__nf4", ".weight", ".weight", "4 bits of bitsandbytes", open_nf4},
    {".weight.quant_state.bitsandbytes__fp4", ".weight", ".weight", "4 bits of bitsandbytes", open_nf4},
    {".SCB", ".weight", ".weight", "LLM.int8", open_llm_int8},
    {".weight_scale_inv", ".weight", ".weight", "FP8", open_fp8},
    {".weight_scale", ".weight", ".weight", "FP8", open_fp8},
    {"_scales", "", "_blocks", "MXFP4", open_mxfp4},
    {"_blocks", "", "_scales", "MXFP4", open_mxfp4},
    {".qweight", ".weight", ".qweight", "GPTQ or AWQ", open_packed},
};

constexpr uint64_t kMostConfig = 16 << 20;

}  // namespace

const ModelFiles::Found* Group::find(const std::string& tensor) const {
  const auto found = files_.tensors().find(tensor);
  return found == files_.tensors().end() ? nullptr : &found->second;
}

const ModelFiles::Found* Group::take_if(const std::string& tensor, std::string_view types) {
  const ModelFiles::Found* const found = find(tensor);
  if (found == nullptr) return nullptr;
  const bool known = cat('|', types, '|').find(cat('|', found->tensor->dtype, '|')) != std::string::npos;
  if (!known)
    refuse(Code::kCorruptFile, "'", tensor, "' is ", shown(*found), "; wanted: one of the types ", types);
  taken_.push_back(found);
  return found;
}

const ModelFiles::Found& Group::take(const std::string& tensor, std::string_view types) {
  const ModelFiles::Found* const found = take_if(tensor, types);
  if (found == nullptr) refuse(Code::kCorruptFile, "there is no tensor '", tensor, "'");
  return *found;
}

void Group::expect(const ModelFiles::Found& found, uint64_t bytes) const {
  if (found.tensor->bytes == bytes) return;
  refuse(Code::kCorruptFile, "'", found.tensor->name, "' is ", shown(found), ", ", found.tensor->bytes,
         " bytes; wanted: ", bytes);
}

std::string Group::config(std::string_view key) const {
  const std::filesystem::path path =
      files_.tensors().begin()->second.file->path().parent_path() / "config.json";
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return "";
  const InputFile file(path);
  if (file.size() > kMostConfig) return "";
  std::string text(file.size(), '\0'), padded;
  file.read(0, text.data(), text.size());
  simdjson::dom::parser parser(kMostConfig);
  simdjson::dom::element root;
  if (plan::parse_json(parser, padded, text, root)) return "";
  simdjson::dom::element value;
  if (root["quantization_config"][key].get(value)) return "";
  std::string_view word;
  return value.get_string().get(word) ? simdjson::to_string(value) : std::string(word);
}

void Group::finish(Quantised& made) const {
  for (const ModelFiles::Found* found : taken_) {
    made.tensors.push_back(found->tensor->name);
    made.bytes += found->tensor->bytes;
  }
}

std::vector<int64_t> dims_of(const ModelFiles::Found& found) {
  return {found.tensor->shape.begin(), found.tensor->shape.end()};
}

std::string shown(const ModelFiles::Found& found) {
  std::string text = found.tensor->dtype + "[";
  for (const uint64_t dim : found.tensor->shape)
    text += (text.back() == '[' ? "" : ", ") + std::to_string(dim);
  return text + "]";
}

std::vector<float> floats_of(const ModelFiles::Found& found) {
  const auto bytes = all_of<std::byte>(found);
  const bool exponents = found.tensor->dtype == "F8_E8M0";
  std::vector<float> values;
  const size_t count = exponents ? bytes.size() : static_cast<size_t>(found.tensor->desc.shape.elements());
  for (size_t i = 0; i < count; ++i)
    values.push_back(exponents ? formats::Mxfp4::scale(static_cast<uint8_t>(bytes[i]))
                               : static_cast<float>(load_float(bytes.data(), found.tensor->desc.dtype,
                                                               static_cast<int64_t>(i))));
  return values;
}

}  // namespace quantised

void Quantised::read_floats(int64_t first, std::span<float> to) const {
  const formats::Codec& codec = formats::codec(format);
  // Complete blocks, but for the matrix's last one.
  const int64_t lead = first % codec.block, wanted = lead + static_cast<int64_t>(to.size());
  const int64_t count =
      std::min((wanted + codec.block - 1) / codec.block * codec.block, shape.elements() - (first - lead));
  std::vector<std::byte> blocks(
      static_cast<size_t>((count + codec.block - 1) / codec.block * codec.block_bytes));
  read(first - lead, count, blocks.data());
  if (lead == 0) return codec.decode(blocks.data(), wanted, to.data());
  std::vector<float> more(static_cast<size_t>(wanted));
  codec.decode(blocks.data(), wanted, more.data());
  std::copy(more.begin() + lead, more.end(), to.begin());
}

QuantisedTensors find_quantised(const ModelFiles& files) {
  QuantisedTensors made;
  for (const auto& [name, found] : files.tensors())
    for (const quantised::QuantisedKind& kind : quantised::kQuantisedKinds) {
      if (!name.ends_with(kind.mark) || name.size() == kind.mark.size()) continue;
      const std::string before(name.substr(0, name.size() - kind.mark.size()));
      const std::string matrix = cat(before, kind.becomes);
      if (made.contains(matrix) || !files.tensors().contains(cat(before, kind.beside))) continue;
      quantised::Group group(files, matrix, kind.words);
      try {
        auto opened = kind.open(group);
        group.finish(*opened);
        made.emplace(matrix, std::move(opened));
      } catch (const Error& error) {
        if (error.code() != Code::kInvalidArgument) throw;
        fail_as(Code::kCorruptFile, error, "'", matrix, "' (", kind.words, "): ");
      }
    }
  return made;
}

}  // namespace cairn::io
