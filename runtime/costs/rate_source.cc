#include "runtime/costs/rate_source.h"

#include <sys/file.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>

#include "runtime/base/os/file.h"

namespace cairn::costs {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 20;
// Another process measures for a second, on a busy machine for some: longer than that it hangs.
constexpr int kLooks = 500;
constexpr useconds_t kBetweenLooks = 20'000;

std::string own_directory() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') return cat(cache, "/cairn");
  const char* const home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? cat(home, "/.cache/cairn") : "";
}

std::string text_of(const Machine& m) {
  return cat(m.processor, '|', m.isa, '|', m.device, '|', m.threads, '|', m.cairn);
}

// FNV-1a: the name of a file, nothing that must withstand an attack.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

Rates read(const std::string& path, const Machine& here) {
  const FileContent content(path, kMostBytes);
  Rates rates =
      rates_from_json({reinterpret_cast<const char*>(content.bytes().data()), content.bytes().size()});
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
    table.origin.notice = cat("rates were measured anew, what was kept is not used: ", error.what());
    return false;
  }
}

// Held while one process measures. Without it all of them do, which costs time and nothing else.
class Turn {
 public:
  explicit Turn(const std::string& directory) {
    std::error_code failed;
    std::filesystem::create_directories(directory, failed);
    if (failed) return;
    try {
      lock_ = open_directory(directory);
    } catch (const Error&) {
      return;
    }
    for (int look = 0; look < kLooks && ::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0; ++look)
      ::usleep(kBetweenLooks);
  }

 private:
  Descriptor lock_;
};

void keep(Table& table, const std::string& path) {
  const std::string text = to_json(*table.rates);
  try {
    write_file_durably(path, std::as_bytes(std::span(text)));
    table.origin.path = path;
  } catch (const Error& error) {
    table.origin.notice = cat("the measured rates are for this process only: ", error.what(),
                              "; set XDG_CACHE_HOME to a directory that can be written");
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
  const std::string directory = request.directory.empty() ? own_directory() : request.directory;
  const std::string path = directory.empty() ? "" : cat(directory, '/', rates_file_name(request.machine));
  if (!anew && !path.empty() && recall(*table, path, request.machine)) return table;
  std::optional<Turn> turn;
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
  if (path.empty())
    table->origin.notice =
        "the measured rates are for this process only: neither XDG_CACHE_HOME nor HOME names a directory to "
        "keep them in";
  else
    keep(*table, path);
  return table;
}

}  // namespace

std::string rates_file_name(const Machine& machine) {
  std::string digits;
  for (uint64_t hash = hash_of(text_of(machine)), i = 0; i < 16; ++i, hash >>= 4)
    digits.insert(digits.begin(), "0123456789abcdef"[hash & 15]);
  return cat("rates-", digits, ".json");
}

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
