// A host program with habits: host MODE [ARGUMENT...] trains as tests/embedding/trainer.h does, and prints
// what came of it on one line, "STATUS DIGEST MESSAGE". What it finds wrong itself it says on stderr, and
// exits 1.
#include "tests/embedding/host.h"

#include <dirent.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <clocale>
#include <csignal>
#include <cstring>
#include <fstream>
#include <locale>
#include <thread>
#include <vector>

namespace {

Result trained(unsigned threads = 2, bool disk = false, unsigned steps = 3, void (*during)() = nullptr) {
  Result result;
  result.status = embedded_run(threads, disk, steps, during, result.digest, result.message);
  return result;
}

int simply(int count, char** arguments) {
  return print(
      trained(static_cast<unsigned>(number(count, arguments, 0, 2)), number(count, arguments, 1, 0) != 0));
}

// ---- threads and signals

// The line "KEY:" of a thread's status file.
std::string status_of(const std::string& task, const std::string& key) {
  std::ifstream file("/proc/self/task/" + task + "/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(key + ":", 0) == 0) return line.substr(line.find_first_not_of(" \t", key.size() + 1));
  return {};
}

void list_threads() {
  DIR* const folder = opendir("/proc/self/task");
  for (const dirent* entry = readdir(folder); entry != nullptr; entry = readdir(folder)) {
    if (entry->d_name[0] == '.') continue;
    std::printf("thread %s blocks %s\n", status_of(entry->d_name, "Name").c_str(),
                status_of(entry->d_name, "SigBlk").c_str());
  }
  closedir(folder);
}

int threads(int, char**) { return print(trained(3, true, 2, list_threads)); }

std::atomic<long> signals{0}, elsewhere{0};

int storm(int, char**) {
  struct sigaction action = {};
  action.sa_handler = [](int) {  // interrupts system calls: no SA_RESTART
    ++signals;
    if (syscall(SYS_gettid) != getpid()) ++elsewhere;
  };
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 300}, {0, 300}}, never{};
  setitimer(ITIMER_REAL, &often, nullptr);
  Result result;
  for (int round = 0; round < 10; ++round) {
    result = trained(2, round % 2 == 1, 3);
    if (result.status != 0) break;
  }
  setitimer(ITIMER_REAL, &never, nullptr);
  require(signals > 20, "%ld signals: that was no storm", signals.load());
  require(elsewhere == 0, "%ld of %ld signals came to threads that are not the host's", elsewhere.load(),
          signals.load());
  return print(result);
}

// ---- locale

struct Comma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

int locale(int count, char** arguments) {
  if (number(count, arguments, 0, 0) != 0) {
    const char* const name = setlocale(LC_ALL, "");
    require(name != nullptr, "the locale of the environment is not there");
    std::locale::global(std::locale(std::locale::classic(), new Comma));
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", 0.5);
    std::fprintf(stderr, "half is %s\n", text);
  }
  char* const plan = embedded_plan();
  require(plan != nullptr, "no plan");
  std::printf("plan %s\n", plan);
  std::free(plan);
  return print(trained());
}

// ---- two at once

int two(int, char**) {
  Result results[2];
  std::vector<std::thread> hosts;
  for (Result& result : results)
    hosts.emplace_back([&result] {
      for (int round = 0; round < 5; ++round) {
        const Result now = trained(2, round % 2 == 1, 3);
        require(round == 0 || std::strcmp(now.digest, result.digest) == 0, "round %d: other bits", round);
        result = now;
      }
    });
  for (std::thread& host : hosts) host.join();
  require(std::strcmp(results[0].digest, results[1].digest) == 0, "the two differ");
  return print(results[0]);
}

// ---- limits

void limit(__rlimit_resource what, rlim_t most) {
  const rlimit both{most, most};
  require(setrlimit(what, &both) == 0, "setrlimit: %s", std::strerror(errno));
}

// The superuser is not limited: somebody else, who has no processes but this.
int processes(int count, char** arguments) {
  limit(RLIMIT_NPROC, static_cast<rlim_t>(number(count, arguments, 0, 1)));
  require(getuid() != 0 || setresuid(64321, 64321, 64321) == 0, "setresuid: %s", std::strerror(errno));
  return print(trained(static_cast<unsigned>(number(count, arguments, 1, 4))));
}

int memory(int count, char** arguments) {
  std::ifstream file("/proc/self/statm");
  long pages = 0;
  file >> pages;
  limit(RLIMIT_AS, static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + number(count, arguments, 0, 1 << 20)));
  return print(trained(4));
}

}  // namespace

int main(int count, char** arguments) {
  return dispatch(count, arguments,
                  {{"train", simply},
                   {"threads", threads},
                   {"storm", storm},
                   {"locale", locale},
                   {"two", two},
                   {"processes", processes},
                   {"memory", memory}});
}
