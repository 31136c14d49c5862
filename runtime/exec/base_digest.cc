#include "runtime/exec/base_digest.h"

#include <xxhash.h>

#include <algorithm>
#include <cstdio>

#include "runtime/exec/loaded.h"

namespace cairn::engine {
namespace {

constexpr int64_t kDigestedAtOnce = int64_t{1} << 20;
using Hash = std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)>;

Hash make_hash() {
  Hash hash(XXH3_createState(), XXH3_freeState);
  require(hash != nullptr, Code::kOutOfMemory, "no memory for a digest");
  XXH3_128bits_reset(hash.get());
  return hash;
}

}  // namespace

std::string BaseDigest::hex() const {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return text;
}

bool Session::is_frozen(int32_t value) const {
  const graph::JointGraph& joint = *plan().joint;
  const graph::JointValue& known = joint.values[static_cast<size_t>(value)];
  return known.role == graph::Role::kParameter &&
         joint.forward->values()[static_cast<size_t>(known.source)].parameter.frozen;
}

const BaseDigest& Session::base_digest() const {
  LoadedPlan& own = mine();
  if (own.base != nullptr && own.base_writes == store_->frozen_writes && !store_->shows_frozen)
    return *own.base;
  auto made = std::make_unique<BaseDigest>();
  const uint64_t writes = store_->frozen_writes;
  const Hash all = make_hash(), one = make_hash();
  const auto piece = std::make_unique_for_overwrite<char[]>(kDigestedAtOnce);
  for (const graph::Resident& stored : plan().joint->residents) {
    if (stored.role != graph::Role::kParameter || !is_frozen(stored.value)) continue;
    BaseDigest::Part part{stored.name, saved(stored.value), 0, 0};
    XXH3_128bits_reset(one.get());
    const int64_t bytes = part.desc.bytes();
    for (int64_t at = 0; at < bytes; at += kDigestedAtOnce) {
      const int64_t count = std::min(kDigestedAtOnce, bytes - at);
      read_saved(stored.value, at, piece.get(), count);
      for (const Hash* hash : {&all, &one})
        XXH3_128bits_update(hash->get(), piece.get(), static_cast<size_t>(count));
    }
    const XXH128_hash_t hash = XXH3_128bits_digest(one.get());
    part.low = hash.low64, part.high = hash.high64;
    made->parts.push_back(std::move(part));
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(all.get());
  made->low = hash.low64, made->high = hash.high64;
  own.base = std::move(made);
  own.base_writes = writes;
  return *own.base;
}

}  // namespace cairn::engine
