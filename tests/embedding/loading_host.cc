// A host that loads cairn as a part of a plugin and unloads it, again and again.
#include <dirent.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "tests/embedding/host.h"

namespace {

int threads_here() {
  int count = 0;
  DIR* const folder = opendir("/proc/self/task");
  for (const dirent* entry = readdir(folder); entry != nullptr; entry = readdir(folder))
    count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

long resident_kib() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("VmRSS:", 0) == 0) return std::stol(line.substr(6));
  return 0;
}

Result trained(const char* plugin) {
  void* const library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  require(library != nullptr, "%s", library == nullptr ? dlerror() : "");
  const auto run = reinterpret_cast<decltype(&embedded_run)>(dlsym(library, "embedded_run"));
  Result result;
  result.status = run(3, 0, 2, nullptr, result.digest, result.message);
  require(dlclose(library) == 0, "dlclose failed");
  return result;
}

int again(int count, char** arguments) {
  require(count == 2, "again PLUGIN ROUNDS");
  const long rounds = number(count, arguments, 1, 10);
  Result first;
  long resident = 0;
  for (long round = 0; round < rounds; ++round) {
    const Result result = trained(arguments[0]);
    if (result.status != 0) return print(result);
    if (round == 0) first = result;
    require(std::strcmp(first.digest, result.digest) == 0, "round %ld: other bits", round);
    // The system lists a thread for a moment after its end.
    for (int look = 0; look < 1000 && threads_here() > 1; ++look) usleep(1000);
    require(threads_here() == 1, "round %ld: %d threads are left", round, threads_here());
    if (round == rounds / 2) resident = resident_kib();
  }
  const long grown = resident_kib() - resident;
  require(grown < 8 * 1024, "%ld KiB more after the second half of %ld rounds", grown, rounds);
  return print(first);
}

}  // namespace

int main(int count, char** arguments) { return dispatch(count, arguments, {{"again", again}}); }
