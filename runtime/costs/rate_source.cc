#include "runtime/costs/rate_source.h"

#include <filesystem>
#include <map>
#include <mutex>

#include "runtime/base/os/file.h"
#include "runtime/costs/kept.h"

namespace cairn::costs {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 20;
std::string text_of(const Machine& m) {
  return cat(m.processor, '|', m.isa, '|', m.device, '|', m.threads, '|', m.cairn);
}

Rates read(const std::string& path, const Machine& here) {
  const FileContent content(path, kMostBytes);
  const std::string_view text(reinterpret_cast<const char*>(content.bytes().data()), content.bytes().size());
  Rates rates;
  try {
    rates = rates_from_json(text);
  } catch (const Error& error) {
    fail(error.code(), path, ": ", error.what());
  }
  const std::string differs = difference(rates.machine, here);
  require(differs.empty(), Code::kInvalidArgument, path, ": measured on another machine: ", differs);
  require(rates.machine.cairn == here.cairn, Code::kInvalidArgument, path, ": measured by version ",
          rates.machine.cairn, ", this is ", here.cairn);
  return rates;
}

// What was kept, if it is there and sound.
bool recall(Table& table, const std::string& path, const Machine& here) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return false;
  try {
    table.rates = read(path, here);
    table.origin.source = kRatesCached;
    table.origin.path = path;
    return true;
  } catch (const Error& error) {
    table.origin.notice = cat("rates were measured again, what was kept is not used: ", error.what());
    return false;
  }
}

std::shared_ptr<Table> find(const RateRequest& request) {
  auto table = std::make_shared<Table>();
  const bool anew = request.how == kRatesMeasure;
  if (!anew && request.how != kRatesCache) {
    table->rates = read(request.how, request.machine);
    table->origin = {std::string(kRatesFile), request.how, ""};
    return table;
  }
  const std::string directory = kept_directory(request.directory);
  const std::string path = directory.empty() ? "" : cat(directory, '/', rates_file_name(request.machine));
  if (!anew && !path.empty() && recall(*table, path, request.machine)) return table;
  std::optional<MeasuringTurn> turn;
  if (!path.empty()) turn.emplace(directory);
  if (!anew && !path.empty() && recall(*table, path, request.machine)) {
    table->origin.notice.clear();  // of what stood there before
    return table;
  }
  table->rates = request.measure();
  if (!table->rates) {
    table->origin = {std::string(kRatesModel), "",
                     "other programs keep the processors busy, so that rates cannot be measured now: "
                     "predicted seconds are "
                     "the model's; CAIRN_RATES=model says that this is meant"};
    return table;
  }
  table->rates->machine = request.machine;
  table->origin.source = kRatesMeasured;
  const std::string failed = path.empty()
                                 ? "neither $XDG_CACHE_HOME nor $HOME names a directory to keep them in"
                                 : keep(path, to_json(*table->rates));
  if (failed.empty())
    table->origin.path = path;
  else
    table->origin.notice = cat("the measured rates are for this process only: ", failed,
                               path.empty() ? "" : "; set XDG_CACHE_HOME to a directory that can be written");
  return table;
}

}  // namespace

std::string rates_file_name(const Machine& machine) { return kept_name("rates", text_of(machine)); }

std::shared_ptr<const Table> find_rates(const RateRequest& request) {
  if (request.how == kRatesModel) return nullptr;
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const Table>> found;
  const std::lock_guard lock(mutex);
  std::shared_ptr<const Table>& table =
      found[cat(request.how, '|', request.directory, '|', text_of(request.machine))];
  if (table == nullptr) table = find(request);
  return table;
}

}  // namespace cairn::costs
