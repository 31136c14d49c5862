// Numbers of a parameter that are written in parts, in a format whose blocks depend on more of them than their own.
#pragma once
#include <span>

#include "runtime/exec/session.h"
#include "runtime/formats/encoder.h"

namespace cairn::engine {

// Of what a parameter is stored as.
formats::Encoder encoder_of(const Session& session, int32_t value);
// Session::write_floats of a part. encoder: has measured all parts, if it has to.
void write_part(Session& session, int32_t value, int64_t first, std::span<const float> from,
                const formats::Encoder& encoder);

}  // namespace cairn::engine
