// A model as a file of its own (model.cairn). Of custom ops it holds names and sizes: Graph::bind() gives their callbacks.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "runtime/graph/graph.h"

namespace cairn::io {

std::vector<std::byte> encode_graph(const graph::Graph& graph);
std::shared_ptr<graph::Graph> decode_graph(std::span<const std::byte> bytes);  // frozen as it was

}  // namespace cairn::io
