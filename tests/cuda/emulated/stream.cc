#include "tests/cuda/emulated/stream.h"

#include <cstdio>
#include <random>

#include "tests/cuda/emulated/world.h"

namespace cairn::kernels::cuda::emulated {

void run_graph(const Graph& graph) {
  static thread_local std::minstd_rand random(1);
  std::vector<size_t> waits(graph.nodes.size()), ready;
  std::vector<std::vector<size_t>> next(graph.nodes.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    waits[n] = graph.nodes[n].after.size();
    for (const size_t before : graph.nodes[n].after) next[before].push_back(n);
    if (waits[n] == 0) ready.push_back(n);
  }
  while (!ready.empty()) {
    const size_t pick = random() % ready.size();
    const size_t node = ready[pick];
    ready[pick] = ready.back();
    ready.pop_back();
    if (world().sticky == cudaSuccess) graph.nodes[node].work();
    for (const size_t after : next[node])
      if (--waits[after] == 0) ready.push_back(after);
  }
}

bool joined(const Graph& graph, const std::vector<size_t>& frontier) {
  std::vector<bool> seen(graph.nodes.size());
  std::vector<size_t> open = frontier;
  for (const size_t n : open) seen[n] = true;
  while (!open.empty()) {
    const size_t node = open.back();
    open.pop_back();
    for (const size_t before : graph.nodes[node].after)
      if (!seen[before]) seen[before] = true, open.push_back(before);
  }
  return std::find(seen.begin(), seen.end(), false) == seen.end();
}

void submit(Stream* stream, std::function<void()> work) {
  if (stream == nullptr) return work();
  auto guarded = [work = std::move(work)] {
    try {
      if (world().sticky == cudaSuccess) work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "emulated kernel: %s\n", error.what());
      stick(cudaErrorLaunchFailure);
    }
  };
  stream->push(std::move(guarded));
}

}  // namespace cairn::kernels::cuda::emulated
