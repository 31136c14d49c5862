#include <algorithm>
#include <set>

#include "runtime/io/json.h"
#include "runtime/io/limits.h"
#include "runtime/io/safetensors/dtypes.h"
#include "runtime/io/safetensors/safetensors.h"

namespace cairn::io {
namespace {

struct NamedDType {
  std::string_view name;
  DType dtype;
};
constexpr NamedDType kNamedDTypes[] = {{"F64", DType::kF64},   {"F32", DType::kF32}, {"F16", DType::kF16},
                                       {"BF16", DType::kBF16}, {"I64", DType::kI64}, {"I32", DType::kI32},
                                       {"U8", DType::kU8}};

}  // namespace

std::optional<DType> safetensors_dtype(std::string_view name) {
  for (const NamedDType& row : kNamedDTypes)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

// Types of the format (safetensors 0.8) that cairn has none for.
int safetensors_bits(std::string_view name) {
  struct Row {
    std::string_view name;
    int bits;
  };
  constexpr Row kOthers[] = {
      {"BOOL", 8}, {"I8", 8},      {"I16", 16},    {"U16", 16},        {"U32", 32},
      {"U64", 64}, {"C64", 64},    {"F8_E4M3", 8}, {"F8_E5M2", 8},     {"F8_E8M0", 8},
      {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8},
  };
  if (const std::optional<DType> known = safetensors_dtype(name)) return format(*known).bits;
  for (const Row& row : kOthers)
    if (row.name == name) return row.bits;
  return 0;
}

std::string_view safetensors_name(DType dtype) {
  for (const NamedDType& row : kNamedDTypes)
    if (row.dtype == dtype) return row.name;
  fail(Code::kUnsupported, "safetensors has no dtype for ", dtype_name(dtype));
}

std::string safetensors_dtypes() {
  std::string all;
  for (const NamedDType& row : kNamedDTypes) all += (all.empty() ? "" : ", ") + std::string(row.name);
  return all;
}

namespace {

// The length of the header and the header, padded so that the data begin at a multiple of 8.
std::string head_of(const std::filesystem::path& path, std::span<const SafeTensorSource> tensors,
                    const std::map<std::string, std::string>& metadata) {
  Json header('{');
  if (!metadata.empty()) {
    Json entries('{');
    for (const auto& [key, value] : metadata) entries.add(key, json_text(value));
    header.add("__metadata__", entries.text());
  }
  std::set<std::string_view> names = {"__metadata__"};
  int64_t at = 0;
  for (const SafeTensorSource& tensor : tensors) {
    require(is_utf8(tensor.name), Code::kInvalidArgument, "cannot write '", path.string(),
            "': the name of tensor ", names.size(), " is not UTF-8");
    require(names.insert(tensor.name).second, Code::kInvalidArgument, "cannot write '", path.string(),
            "': two tensors are named '", tensor.name, "'");
    Json shape('['), range('[');
    for (int64_t d : tensor.desc.shape.span()) shape.add(std::to_string(d));
    const int64_t end = checked_add(at, tensor.desc.bytes());
    range.add(std::to_string(at)).add(std::to_string(end));
    header.add(tensor.name, Json('{')
                                .add("dtype", json_text(safetensors_name(tensor.desc.dtype)))
                                .add("shape", shape.text())
                                .add("data_offsets", range.text())
                                .text());
    at = end;
  }
  std::string text = header.text();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  require(text.size() <= kMaxSafetensorsHeader, Code::kInvalidArgument, "cannot write '", path.string(),
          "': its header of ", text.size(), " bytes is above ", kMaxSafetensorsHeader);
  const uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

template <class File>
void write(File& file, const std::string& head, std::span<const SafeTensorSource> tensors) {
  file.append(head.data(), head.size());
  int64_t largest = 0;
  for (const SafeTensorSource& tensor : tensors) largest = std::max(largest, tensor.desc.bytes());
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(largest));
  for (const SafeTensorSource& tensor : tensors) {
    tensor.read(buffer.get());
    file.append(buffer.get(), static_cast<uint64_t>(tensor.desc.bytes()));
  }
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const std::vector<SafeTensorSource>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::string head = head_of(path, tensors, metadata);
  DurableFile file(path);
  write(file, head, tensors);
  file.commit();
}

void write_safetensors(DurableDirectory& directory, const std::string& name,
                       std::span<const SafeTensorSource> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::string head = head_of(directory.path() / name, tensors, metadata);
  const auto file = directory.create(name);
  write(*file, head, tensors);
  file->close();
}

}  // namespace cairn::io
