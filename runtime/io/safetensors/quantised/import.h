// Quantised matrices into the parameters of a session.
#pragma once
#include "runtime/io/safetensors/mapped.h"
#include "runtime/io/safetensors/quantised/quantised.h"

namespace cairn::io {

// Takes those parameters out of `mapped` that quantised matrices make. kInvalidArgument: one of another shape, or of which
// some parts are quantised and others not.
std::vector<Mapped> take_quantised(std::vector<Mapped>& mapped, const QuantisedTensors& quantised,
                                   const std::filesystem::path& path);
// The blocks as they are where the parameter is stored so; else their numbers, as it is stored.
void import_quantised(engine::Session& session, const Mapped& m, const QuantisedTensors& quantised);

}  // namespace cairn::io
