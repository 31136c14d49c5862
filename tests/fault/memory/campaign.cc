#include "tests/fault/memory/campaign.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "tests/support/campaign.h"

namespace fault {
namespace {
namespace fs = std::filesystem;

constexpr int kMaxCalls = 256, kMaxFindings = 64, kMaxDeaths = 32;

// What parent and child share: where the child is, so that its death is known by place, and what it found.
struct Progress {
  int call;  // -1: between calls
  char name[64];
  int64_t allocation;
  int64_t next[kMaxCalls];  // per call: the next allocation to fail; -1: all have
  int64_t points, refused, absorbed;
  int findings;
  char finding[kMaxFindings][400];
  bool finished;

  template <class... Parts>
  void found(const char* form, Parts... parts) {
    if (findings < kMaxFindings) std::snprintf(finding[findings++], sizeof finding[0], form, parts...);
  }
};

class Child {
 public:
  Child(Progress& progress, const MakeScript& make, heap::Failing failing, int64_t one_in)
      : progress_(progress), make_(make), failing_(failing), one_in_(one_in) {}

  // Until every call has seen every allocation fail.
  void run() {
    // What libraries set up once is set up by the first run, and what lives after the second one is what
    // always does.
    const Results wanted = once(false);
    for (int round = 0; !complete_; ++round) {
      const long before = heap::live();
      compare(wanted, once(round > 0));
      if (const long left = heap::live() - before; left != 0)
        progress_.found("%ld blocks are left of run %d; runs after the first have failures", left, round);
    }
    progress_.finished = true;
  }

 private:
  using Results = std::map<std::string, std::string>;

  static std::string difference(const Results& wanted, const Results& got) {
    for (const auto& [name, text] : wanted) {
      const auto found = got.find(name);
      if (found == got.end()) return "there is no '" + name + "'";
      if (found->second == text) continue;
      size_t at = 0;
      while (at < text.size() && at < found->second.size() && text[at] == found->second[at]) ++at;
      const size_t from = at < 20 ? 0 : at - 20;
      return "'" + name + "' differs at byte " + std::to_string(at) + ": '" + text.substr(from, 60) +
             "' and '" + found->second.substr(from, 60) + "'";
    }
    return "there is more";
  }

  void compare(const Results& wanted, const Results& got) {
    if (got.empty() || got == wanted) return;  // empty: given up, and said why
    progress_.found("other results than of a run without failures: %s", difference(wanted, got).c_str());
  }

  Results once(bool with_failures) {
    const fs::path folder = fs::temp_directory_path() / ("cairn-heap-" + std::to_string(::getpid()));
    fs::remove_all(folder);
    fs::create_directories(folder);
    Results results;
    {
      const std::unique_ptr<Script> script = make_(folder);
      std::unique_ptr<cairn_error_t, void (*)(cairn_error_t*)> error(cairn_error_create(),
                                                                     cairn_error_release);
      complete_ = with_failures;
      bool whole = true;
      for (size_t c = 0; whole && c < script->calls().size(); ++c)
        whole = make(static_cast<int>(c), script->calls()[c], error.get(), with_failures);
      if (whole) results = script->results();
    }
    std::string files;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const std::string name = entry.path().lexically_relative(folder).string();
      if (!name.starts_with(".")) files += name + "\n";  // else it is what the next save beside it removes
    }
    if (!results.empty()) results["files"] = sorted(files);
    fs::remove_all(folder);
    return results;
  }

  static std::string sorted(const std::string& lines) {
    std::vector<std::string> list;
    for (size_t at = 0, end; (end = lines.find('\n', at)) != std::string::npos; at = end + 1)
      list.push_back(lines.substr(at, end - at + 1));
    std::sort(list.begin(), list.end());
    std::string all;
    for (const std::string& line : list) all += line;
    return all;
  }

  // False: it never succeeds. What comes after it is then for the next round.
  bool make(int number, const Script::Call& call, cairn_error_t* error, bool with_failures) {
    progress_.call = number;
    std::snprintf(progress_.name, sizeof progress_.name, "%s", call.name.c_str());
    int64_t& next = progress_.next[number];
    cairn_status_t status = CAIRN_STATUS_OUT_OF_MEMORY;
    while (with_failures && next >= 0 && status != CAIRN_STATUS_OK) {
      while (!is_taken(number, next)) ++next;
      progress_.allocation = next;
      heap::arm(next, failing_);
      status = call.work(error);
      const heap::Outcome outcome = heap::disarm();
      if (outcome.failed_at < 0 && is_lost(status) && call.mend) {  // by the last one
        if (call.mend(error) == CAIRN_STATUS_OK) continue;
        progress_.found("%s: cannot be mended: %s", call.name.c_str(), cairn_error_message(error));
        return false;
      }
      if (outcome.failed_at < 0) {  // it never came so far
        next = -1;
        if (status != CAIRN_STATUS_OK) {
          progress_.found("%s: made again after failures it ends in %s: %s", call.name.c_str(),
                          cairn_status_name(status), cairn_error_message(error));
          complete_ = false;
          return false;
        }
        break;
      }
      ++progress_.points;
      next = outcome.failed_at + 1;
      if (status == CAIRN_STATUS_OK) {
        ++progress_.absorbed;
        complete_ = false;
      } else if (status == CAIRN_STATUS_OUT_OF_MEMORY) {
        ++progress_.refused;
        if (call.refused) call.refused(error);
      } else {
        progress_.found("%s, allocation %ld: %s, not OUT_OF_MEMORY: %s", call.name.c_str(), outcome.failed_at,
                        cairn_status_name(status), cairn_error_message(error));
      }
    }
    if (status != CAIRN_STATUS_OK) status = call.work(error);
    if (is_lost(status) && call.mend && call.mend(error) == CAIRN_STATUS_OK) status = call.work(error);
    if (status != CAIRN_STATUS_OK) {
      progress_.found("%s: after failures in other calls it ends in %s: %s", call.name.c_str(),
                      cairn_status_name(status), cairn_error_message(error));
      return false;
    }
    if (call.after) call.after();
    progress_.call = -1;
    return true;
  }

  // What a call says of an object that was lost where memory was refused before.
  static bool is_lost(cairn_status_t status) {
    return status == CAIRN_STATUS_OUT_OF_MEMORY || status == CAIRN_STATUS_WRONG_STATE;
  }

  bool is_taken(int number, int64_t allocation) const {
    return cairn::support::taken(allocation * kMaxCalls + number, one_in_);
  }

  Progress& progress_;
  const MakeScript& make_;
  const heap::Failing failing_;
  const int64_t one_in_;
  bool complete_ = false;  // no call of this run has allocations left that have not failed
};

}  // namespace

Tally run_campaign(const MakeScript& make, heap::Failing failing, int64_t one_in) {
  void* const shared =
      ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  Tally tally;
  if (shared == MAP_FAILED) {
    tally.findings.push_back("no memory to share with child processes");
    return tally;
  }
  auto& progress = *new (shared) Progress{};
  progress.call = -1;
  for (int deaths = 0; !progress.finished && deaths < kMaxDeaths; ++deaths) {
    std::fflush(nullptr);
    const pid_t pid = ::fork();
    if (pid == 0) {
      Child(progress, make, failing, one_in).run();
      ::_exit(0);
    }
    int status = 0;
    if (pid < 0 || ::waitpid(pid, &status, 0) != pid) {
      progress.found("no child process");
      break;
    }
    if (progress.finished) break;
    const int at = progress.call;
    progress.found("%s, allocation %ld: the process %s %d", at < 0 ? "between calls" : progress.name,
                   static_cast<long>(progress.allocation),
                   WIFSIGNALED(status) ? "is ended by signal" : "exits with",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    if (at < 0) break;
    ++progress.points;
    progress.next[at] = progress.allocation + 1;
  }
  tally.points = progress.points;
  tally.refused = progress.refused;
  tally.absorbed = progress.absorbed;
  for (int i = 0; i < progress.findings; ++i) tally.findings.emplace_back(progress.finding[i]);
  ::munmap(shared, sizeof(Progress));
  return tally;
}

}  // namespace fault
