#include "runtime/costs/disk_rates.h"

#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <mutex>

#include "runtime/base/os/file.h"
#include "runtime/costs/disk_probe.h"
#include "runtime/costs/json_parts.h"
#include "runtime/costs/kept.h"

namespace cairn::costs {
namespace {

constexpr std::string_view kDiskRatesForm = "cairn.disk-rates/1";
constexpr uint64_t kMostDiskRates = uint64_t{1} << 16;

struct Place {
  std::string directory;
  uint64_t file_system = 0;
};

std::optional<Place> place_of(const std::string& directory) {
  std::error_code failed;
  const std::filesystem::path whole = std::filesystem::canonical(directory, failed);
  struct stat about = {};
  if (failed || ::stat(whole.c_str(), &about) != 0) return std::nullopt;
  return Place{whole.string(), static_cast<uint64_t>(about.st_dev)};
}

std::string to_json(const Place& place, const plan::Link& link) {
  std::string directory;
  plan::append_string(directory, place.directory);
  return cat("{\"format\": \"", kDiskRatesForm, "\",\n\"file_system\": \"", place.file_system,
             "\",\n\"measured_in\": ", directory,
             ",\n\"link\": ", JsonRow().text("tier", link.tier).link(link).take(), "}\n");
}

// What was kept, if it is there, and sound.
std::optional<plan::Link> recall(const std::string& path, const Place& place) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  try {
    const FileContent content(path, kMostDiskRates);
    const plan::JsonText json(
        "disk rates", {reinterpret_cast<const char*>(content.bytes().data()), content.bytes().size()});
    const plan::JsonNode& root = json.root();
    if (root.at("format").name() != kDiskRatesForm ||
        root.at("file_system").name() != std::to_string(place.file_system))
      return std::nullopt;
    plan::Link link = read_link(root.at("link"));
    if (link.tier != "disk") return std::nullopt;
    return link;
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::optional<plan::Link> find(const DiskRequest& request) {
  const std::optional<Place> place = place_of(request.directory);
  if (!place) return std::nullopt;
  const std::string directory = kept_directory(request.kept_in);
  if (directory.empty()) return probe_disk(request.directory);
  const std::string path = cat(directory, '/', kept_name("disk", std::to_string(place->file_system)));
  const bool anew = request.how == kRatesMeasure;
  if (!anew)
    if (auto kept = recall(path, *place)) return kept;
  const MeasuringTurn turn(directory);
  if (!anew)
    if (auto kept = recall(path, *place)) return kept;
  const std::optional<plan::Link> link = probe_disk(request.directory);
  if (link) keep(path, to_json(*place, *link));  // else it is good for this process
  return link;
}

}  // namespace

std::optional<plan::Link> find_disk_link(const DiskRequest& request) {
  if (request.how == kRatesModel) return std::nullopt;
  static std::mutex mutex;
  static std::map<std::string, plan::Link> found;
  const std::lock_guard lock(mutex);
  const std::string asked = cat(request.directory, '|', request.kept_in, '|', request.how);
  if (const auto known = found.find(asked); known != found.end()) return known->second;
  const std::optional<plan::Link> link = find(request);
  if (link) found.emplace(asked, *link);  // else room may be made
  return link;
}

}  // namespace cairn::costs
