#include "runtime/costs/probe/host_memory.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/base/os/clock.h"
#include "runtime/base/os/file.h"
#include "runtime/base/os/proc.h"
#include "runtime/base/parallel.h"
#include "runtime/costs/json_parts.h"
#include "runtime/costs/kept.h"

namespace cairn::costs {
namespace {

constexpr std::string_view kHostMemoryForm = "cairn.host-memory/1";
constexpr uint64_t kMostHostMemory = uint64_t{1} << 16;
constexpr int64_t kElements = int64_t{40} << 20;  // of each array: more than caches hold
constexpr int64_t kGrain = 4096;
constexpr int kPasses = 4;  // the first touches the memory; of the others the fastest counts

double measure(int threads) {
  std::vector<float> from, over;
  try {
    from.resize(kElements);
    over.resize(kElements);
  } catch (const std::bad_alloc&) {
    return 0;
  }
  ThreadTeam team(threads);
  const int before = thread_count();
  set_thread_team(&team);
  set_thread_count(threads);
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const double began = now();
    parallel_for(kElements, kGrain, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i)
        over[static_cast<size_t>(i)] += 0.5f * from[static_cast<size_t>(i)];
    });
    const double rate = 3.0 * sizeof(float) * static_cast<double>(kElements) / (now() - began);
    if (pass > 0) best = std::max(best, rate);
  }
  set_thread_team(nullptr);
  set_thread_count(before);
  return best;
}

std::string text_of(double rate) {
  return JsonRow().text("format", kHostMemoryForm).number("bytes_per_second", rate).take() + "\n";
}

// What was kept, if it is there, and sound.
std::optional<double> recalled(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  try {
    const FileContent content(path, kMostHostMemory);
    const plan::JsonText json(
        "host memory", {reinterpret_cast<const char*>(content.bytes().data()), content.bytes().size()});
    if (json.root().at("format").name() != kHostMemoryForm) return std::nullopt;
    return positive(json.root().at("bytes_per_second"));
  } catch (const Error&) {
    return std::nullopt;
  }
}

double find_kept(const HostMemoryRequest& request) {
  const std::string directory = kept_directory(request.kept_in);
  if (directory.empty()) return measure(request.threads);
  const std::string path =
      cat(directory, '/', kept_name("host-memory", cat(processor_name(), '|', request.threads)));
  const bool anew = request.how == kRatesMeasure;
  if (!anew)
    if (const auto kept = recalled(path)) return *kept;
  const MeasuringTurn turn(directory);
  if (!anew)
    if (const auto kept = recalled(path)) return *kept;
  const double rate = measure(request.threads);
  if (rate > 0) keep(path, text_of(rate));  // else it is good for this process
  return rate;
}

}  // namespace

double find_host_memory_rate(const HostMemoryRequest& request) {
  if (request.how == kRatesModel) return 0;
  static std::mutex mutex;
  static std::map<std::string, double> found;
  const std::lock_guard lock(mutex);
  const std::string asked = cat(request.threads, '|', request.kept_in, '|', request.how);
  if (const auto known = found.find(asked); known != found.end()) return known->second;
  return found[asked] = find_kept(request);
}

}  // namespace cairn::costs
