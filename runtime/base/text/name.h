// Names: of parameters, inputs, values, regions and ops. One rule, checked where a host gives a name, so that
// whatever can be built can be saved, written as JSON and safetensors, and opened again.
#pragma once
#include <cstdint>
#include <string_view>

namespace cairn {

// Limit of every name, and of a region's full path.
inline constexpr uint64_t kMaxNameBytes = 4096;

// Limit of the names that cairn makes from given ones. The longest are made of a region's path, an op's name and suffixes,
// "PATH/OP_12.grad.dx.bf16/packed.layout"; "PARAMETER/gradient" is shorter.
inline constexpr uint64_t kMaxMadeNameBytes = 4 * kMaxNameBytes;

// What is added to a parameter's name to name what belongs to it.
inline constexpr std::string_view kStateSuffixes[] = {"/m", "/v", "/momentum", "/gradient", "/ema"};

// kInvalidArgument: `name` is empty, longer than kMaxNameBytes, no UTF-8, holds a control character (below
// U+0020), or is a word of the safetensors format ("__metadata__"). `what` is it the name of: "parameter".
void check_name(std::string_view name, std::string_view what);

}  // namespace cairn
