#include "runtime/base/os/cgroup.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/base/os/proc.h"
#include "runtime/base/text/cat.h"

namespace cairn {
namespace {

// What a version of control groups calls its files, and what in memory.stat can be given back.
struct Version {
  std::string_view file_system;  // of its mount point
  std::array<const char*, 2> limits;
  const char* used;
  std::initializer_list<std::string_view> cached;
};
const Version kVersions[] = {
    {"cgroup2", {"memory.max", "memory.high"}, "memory.current", {"active_file", "inactive_file"}},
    {"cgroup",
     {"memory.limit_in_bytes", nullptr},
     "memory.usage_in_bytes",
     {"total_active_file", "total_inactive_file"}},
};
constexpr std::string_view kLimitAbove =
    "hierarchical_memory_limit";  // version 1 says it of groups out of sight

struct Group {
  const Version* version;
  std::string folder;
};

// The number that a file consists of; "max" and what is no file are none.
std::optional<int64_t> number_in(const std::string& path) {
  const std::string whole = read_system_file(path.c_str());
  std::string_view text = whole;
  return number_of(take_word(text));
}

// Sum of the numbers of these names in a file with a name and a number on each line.
std::optional<int64_t> numbers_in(const std::string& path, std::initializer_list<std::string_view> names) {
  const std::string whole = read_system_file(path.c_str());
  std::optional<int64_t> sum;
  for (std::string_view text = whole; !text.empty();) {
    std::string_view line = take_line(text);
    const std::string_view name = take_word(line);
    const std::optional<int64_t> number = number_of(take_word(line));
    if (number && std::find(names.begin(), names.end(), name) != names.end()) sum = sum.value_or(0) + *number;
  }
  return sum;
}

// Whether `list`, words between commas, holds `word`.
bool lists(std::string_view list, std::string_view word) {
  for (;;) {
    const size_t comma = list.find(',');
    if (list.substr(0, comma) == word) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
}

// Mount points are written with blanks and backslashes as \ and three octal digits.
std::string unescaped(std::string_view text) {
  std::string out;
  const auto digit = [](char c) { return c >= '0' && c <= '7'; };
  while (!text.empty()) {
    if (text.size() >= 4 && text[0] == '\\' && digit(text[1]) && digit(text[2]) && digit(text[3])) {
      out += static_cast<char>((text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0'));
      text.remove_prefix(4);
    } else {
      out += text[0];
      text.remove_prefix(1);
    }
  }
  return out;
}

// Path of this process's group: of the hierarchy with the memory controller, or the one of version 2.
std::optional<std::string> own_path(const std::string& root, const Version& version) {
  const std::string whole = read_system_file((root + "/proc/self/cgroup").c_str());
  for (std::string_view text = whole; !text.empty();) {
    const std::string_view line = take_line(text);  // number:controllers:path
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second >= line.size()) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool mine = version.file_system == "cgroup2" ? controllers.empty() : lists(controllers, "memory");
    if (mine) return std::string(line.substr(second + 1));
  }
  return {};
}

// The folders of the own group and of those above it, the own one first.
void add_groups(const std::string& root, const Version& version, std::vector<Group>& groups) {
  const std::optional<std::string> path = own_path(root, version);
  if (!path) return;
  const std::string whole = read_system_file((root + "/proc/self/mountinfo").c_str());
  for (std::string_view text = whole; !text.empty();) {
    std::string_view line =
        take_line(text);  // number parent device root point options... - type source options
    for (int skipped = 0; skipped < 3; ++skipped) take_word(line);
    const std::string shown = unescaped(take_word(line)), point = root + unescaped(take_word(line));
    std::string_view word = take_word(line);
    while (!word.empty() && word != "-") word = take_word(line);
    if (take_word(line) != version.file_system) continue;
    take_word(line);
    if (version.file_system == "cgroup" && !lists(take_word(line), "memory")) continue;
    // Below `shown` the mount point has the group's folder; of a group elsewhere, as another namespace counts, it is all
    // that can be seen.
    std::string below;
    const std::string top = shown == "/" ? "" : shown;
    if (path->starts_with(top + "/")) below = path->substr(top.size());
    while (below.ends_with('/')) below.pop_back();
    for (;; below.erase(below.rfind('/'))) {
      groups.push_back({&version, point + below});
      if (below.empty()) break;
    }
    return;
  }
}

std::vector<Group> own_groups(const std::string& root) {
  std::vector<Group> groups;
  for (const Version& version : kVersions) add_groups(root, version, groups);
  return groups;
}

}  // namespace

MemoryLimit memory_limit(const std::string& root) {
  MemoryLimit least{static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE), ""};
  const auto bound = [&](std::optional<int64_t> bytes, const std::string& by) {
    if (bytes && *bytes >= 0 && *bytes < least.bytes) least = {*bytes, by};
  };
  for (const Group& group : own_groups(root)) {
    for (const char* name : group.version->limits)
      if (name != nullptr) bound(number_in(cat(group.folder, "/", name)), cat(group.folder, "/", name));
    const std::string about = group.folder + "/memory.stat";
    bound(numbers_in(about, {kLimitAbove}), cat(about, " (", kLimitAbove, ")"));
  }
  const std::pair<int, const char*> own[] = {{RLIMIT_AS, "RLIMIT_AS"}, {RLIMIT_DATA, "RLIMIT_DATA"}};
  for (const auto& [which, name] : own) {
    rlimit found = {};
    if (getrlimit(static_cast<__rlimit_resource_t>(which), &found) == 0 && found.rlim_cur != RLIM_INFINITY)
      bound(static_cast<int64_t>(std::min<rlim_t>(found.rlim_cur, kNoMemoryLimit)), name);
  }
  return least;
}

int64_t available_memory(const std::string& root) {
  int64_t least = kNoMemoryLimit;
  if (const auto kilobytes = numbers_in(root + "/proc/meminfo", {"MemAvailable:"})) least = *kilobytes * 1024;
  for (const Group& group : own_groups(root)) {
    const auto used = number_in(cat(group.folder, "/", group.version->used));
    if (!used) continue;
    const int64_t cached = numbers_in(group.folder + "/memory.stat", group.version->cached).value_or(0);
    for (const char* name : group.version->limits)
      if (const auto most = name != nullptr ? number_in(cat(group.folder, "/", name)) : std::nullopt)
        least = std::min(least, std::max<int64_t>(0, *most - *used + std::min(cached, *used)));
  }
  return least;
}

}  // namespace cairn
