// Blocks and events come back to the device that made them; what another one made is an error.
#pragma once
#include "runtime/device/device.h"

namespace cairn::device {

// kInvalidArgument if the object is none of this device's kind.
template <class Kind, class Base>
Kind& own(Base& object, std::string_view what) {
  auto* mine = dynamic_cast<Kind*>(&object);
  require(mine != nullptr, Code::kInvalidArgument, "the ", what, " belongs to another device");
  return *mine;
}

// The block, if the bytes lie inside it.
template <class OwnBlock>
const OwnBlock& own_range(const Location& at, int64_t bytes) {
  require(at.block != nullptr, Code::kInvalidArgument, "a copy without a block");
  require(bytes > 0 && at.offset >= 0 && at.offset <= at.block->bytes() - bytes, Code::kInvalidArgument,
          "a copy of ", bytes, " bytes at ", at.offset, " leaves its block of ", at.block->bytes(), " bytes");
  return own<OwnBlock>(*at.block, "block");
}

// kInvalidArgument unless the parts are between the same two blocks of this device, and inside them.
template <class OwnBlock>
void check_parts(std::span<const Copy> parts) {
  require(!parts.empty(), Code::kInvalidArgument, "a copy without parts");
  for (const Copy& part : parts) {
    own_range<OwnBlock>(part.to, part.bytes);
    own_range<OwnBlock>(part.from, part.bytes);
    require(part.to.block == parts[0].to.block && part.from.block == parts[0].from.block,
            Code::kInvalidArgument, "the parts of one copy are between different blocks");
  }
}

}  // namespace cairn::device
