#include "runtime/io/safetensors/foreign.h"

#include <cstring>
#include <string_view>

namespace cairn::io {
namespace {

using namespace std::string_view_literals;

struct Row {
  std::string_view magic, what, remedy;
};
constexpr std::string_view kTorch =
    "in Python: safetensors.torch.save_file(torch.load(FILE), \"model.safetensors\")";
constexpr std::string_view kNumpy =
    "in Python: safetensors.numpy.save_file({name: array, ...}, \"model.safetensors\")";
constexpr std::string_view kUnpack = "unpack it";
constexpr Row kRows[] = {
    {"PK\x03\x04"sv, "a zip archive, as .pt, .pth and .bin files of PyTorch and .npz files of NumPy are",
     kTorch},
    {"\x80\x02"sv, "a pickle, as old .pt and .bin files of PyTorch are", kTorch},
    {"\x80\x03"sv, "a pickle, as old .pt and .bin files of PyTorch are", kTorch},
    {"\x80\x04"sv, "a pickle, as old .pt and .bin files of PyTorch are", kTorch},
    {"\x80\x05"sv, "a pickle, as old .pt and .bin files of PyTorch are", kTorch},
    {"\x93NUMPY"sv, "a NumPy array", kNumpy},
    {"\x89HDF\r\n\x1a\n"sv, "an HDF5 file", kNumpy},
    {"\x1f\x8b"sv, "a gzip archive", kUnpack},
    {"\x28\xb5\x2f\xfd"sv, "a zstd archive", kUnpack},
    {"\xfd"
     "7zXZ"sv,
     "an xz archive", kUnpack},
    {"BZh"sv, "a bzip2 archive", kUnpack},
};

}  // namespace

std::string foreign_file(std::span<const std::byte> head) {
  for (const Row& row : kRows)
    if (head.size() >= row.magic.size() && std::memcmp(head.data(), row.magic.data(), row.magic.size()) == 0)
      return std::string(row.what) + "; " + std::string(row.remedy);
  return "";
}

}  // namespace cairn::io
