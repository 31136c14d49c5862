#include "runtime/step/inputs.h"

#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <set>

namespace cairn::step {
namespace {

constexpr int64_t kPieceBytes = 1 << 16;

}  // namespace

InputDigest digest_of_inputs(const engine::Session& session) {
  const graph::JointGraph& joint = *session.plan().joint;
  std::set<int32_t> inputs;
  for (const graph::JointOp& op : joint.ops())
    if (op.part == graph::Part::kGather)
      for (const int32_t v : op.in)
        if (v >= 0 && joint.values[static_cast<size_t>(joint.storage(v))].role == graph::Role::kInput)
          inputs.insert(joint.storage(v));
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> digest(XXH3_createState(), XXH3_freeState);
  if (digest == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(digest.get());
  std::array<std::byte, kPieceBytes> piece;
  for (const int32_t v : inputs) {
    const int64_t bytes = joint.values[static_cast<size_t>(v)].desc.bytes();
    for (int64_t at = 0; at < bytes; at += kPieceBytes) {
      const int64_t n = std::min(kPieceBytes, bytes - at);
      session.read_at(v, at, piece.data(), n);
      XXH3_128bits_update(digest.get(), piece.data(), static_cast<size_t>(n));
    }
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(digest.get());
  return {hash.low64, hash.high64};
}

}  // namespace cairn::step
