#include "runtime/exec/encoded.h"

#include <algorithm>
#include <vector>

namespace cairn::engine {

formats::Encoder encoder_of(const Session& session, int32_t value) {
  const TensorDesc desc = session.saved(value);
  return {desc.dtype, desc.shape.last()};
}

void write_part(Session& session, int32_t value, int64_t first, std::span<const float> from,
                const formats::Encoder& encoder) {
  if (!encoder.measures()) return session.write_floats(value, first, from);
  constexpr int64_t kMost = 1 << 16;  // values at once
  const Format& row = format(session.saved(value).dtype);
  const auto count = static_cast<int64_t>(from.size());
  std::vector<std::byte> blocks(static_cast<size_t>(row.bytes(std::min(kMost, count))));
  for (int64_t at = 0, here = 0; at < count; at += here) {
    here = std::min(kMost, count - at);
    require(encoder.encode(first + at, from.subspan(static_cast<size_t>(at), static_cast<size_t>(here)),
                           blocks.data()),
            Code::kInvalidArgument, "parameter '",
            session.plan().joint->values[static_cast<size_t>(value)].name,
            "' is given a number that is not finite, which ", row.name, " cannot store");
    session.write_saved(value, row.bytes(first + at), blocks.data(), row.bytes(here));
  }
}

}  // namespace cairn::engine
