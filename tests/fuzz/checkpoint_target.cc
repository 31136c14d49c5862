// A whole checkpoint: opened, inspected, every tensor read, restored, and trained on.
#include <optional>

#include "runtime/io/checkpoint.h"
#include "runtime/io/inspect.h"
#include "runtime/io/manifest.h"
#include "tests/fuzz/families.h"
#include "tests/fuzz/tools.h"
#include "tests/runtime/io/rig.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::fuzz {
namespace {

std::string joined(const std::string& manifest, const std::string& tensors) {
  const auto size = static_cast<uint32_t>(manifest.size());
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + manifest + tensors;
}

test::Rig new_rig() { return test::Rig(test::sample_graph(), 7, {}); }

// A run that a checkpoint is restored into. A run that a failed restore has spoilt is replaced.
void restore(const io::Checkpoint& opened) {
  static std::optional<test::Rig> rig;
  if (!rig) rig.emplace(new_rig());
  try {
    opened.restore(*rig->stepper);
    rig->train(0, 1);
  } catch (const Error& error) {
    if (error.code() != Code::kInvalidArgument) rig.reset();
    if (error.code() == Code::kInternal) throw std::logic_error(cat("a bug of ours: ", error.what()));
  }
}

void open(const test::Scratch& scratch) {
  const std::initializer_list<Code> kDeclared = {Code::kCorruptFile, Code::kUnsupported};
  expect_declared([&] { io::inspect(scratch.path()); }, kDeclared);
  expect_declared(
      [&] {
        const io::Checkpoint opened(io::newest_checkpoint(scratch.path()));
        for (const auto& tensor : opened.tensors()) {
          std::vector<std::byte> bytes(static_cast<size_t>(tensor.desc.bytes()));
          expect_declared([&] { opened.read(tensor, bytes.data()); }, kDeclared);
        }
        restore(opened);
      },
      {Code::kCorruptFile, Code::kUnsupported, Code::kNotFound});
}

// Makes the digests of the tensors those of the bytes that are there, so that what lies behind them is
// reached.
std::optional<std::string> with_digests(const std::string& manifest, const std::string& tensors) {
  try {
    io::Manifest m = io::decode_manifest(test::bytes_of(manifest));
    for (auto& tensor : m.tensors) {
      const auto size = static_cast<uint64_t>(tensor.desc.bytes());
      if (tensor.offset > tensors.size() || size > tensors.size() - tensor.offset) return std::nullopt;
      const XXH128_hash_t digest = XXH3_128bits(tensors.data() + tensor.offset, size);
      tensor.digest_low = digest.low64;
      tensor.digest_high = digest.high64;
    }
    return test::text_of(io::encode_manifest(m));
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

void checkpoint(std::span<const std::byte> input) {
  static const test::Scratch scratch;
  const std::string bytes = text(input);
  uint32_t size = 0;
  if (bytes.size() < sizeof size) return;
  std::memcpy(&size, bytes.data(), sizeof size);
  size = static_cast<uint32_t>(std::min<size_t>(size, bytes.size() - sizeof size));
  const std::string manifest = sealed(input.subspan(sizeof size, size)),
                    tensors = bytes.substr(sizeof size + size);
  scratch.put(io::kManifestName, manifest);
  scratch.put(io::kTensorsName, tensors);
  open(scratch);
  if (const auto right = with_digests(manifest, tensors)) {
    scratch.put(io::kManifestName, *right);
    open(scratch);
  }
}

std::vector<std::string> checkpoint_seeds() {
  std::vector<std::string> seeds;
  for (const uint64_t micro_batches : {1u, 3u}) {
    const test::Scratch scratch;
    test::Rig rig = new_rig();
    rig.train(0, micro_batches);
    io::save(*rig.stepper, scratch / "step-1", {{{"recipe", "gpt2"}, {"tokens", "bytes"}}, {}});
    const std::string manifest = test::slurp(scratch / "step-1" / io::kManifestName);
    seeds.push_back(
        joined(unsealed(test::bytes_of(manifest)), test::slurp(scratch / "step-1" / io::kTensorsName)));
  }
  return seeds;
}

}  // namespace cairn::fuzz
