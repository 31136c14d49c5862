// Memory refused in the first call of its kind that a process makes: what libraries set up once, in functions that may not
// throw, ends the process where nobody saw to it before.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "cairn/cairn.h"
#include "tests/fault/memory/heap.h"
#include "tests/support/campaign.h"

namespace fault {
namespace {

constexpr char kModel[] = R"({"format": "cairn.device-model/1", "name": "x"})";
constexpr char kProblem[] =
    R"({"format": "cairn.problem/1", "values": [], "ops": [], "links": [], "turnaround": 0, "budget_bytes": 0})";
constexpr int kWhole = 7, kRefused = 0, kOther = 8;  // exit codes of a child

// What the calls are made on. Nothing of it has parsed a text.
struct Host {
  Host() {
    std::ofstream(rates) << "{}";
    const uint64_t length = 2;
    std::ofstream(weights).write(reinterpret_cast<const char*>(&length), sizeof length) << "{}";
    if (cairn_instance_create(nullptr, &instance, error) != 0) ::_exit(kOther);
  }
  void open() {
    cairn_device_options_t options = CAIRN_DEVICE_OPTIONS_INIT;
    options.threads = 1;
    options.rates = rates.c_str();
    const int64_t four[] = {4};
    const cairn_tensor_desc_t desc = {"x", four, 1, CAIRN_F32};
    cairn_value_t x = 0, y = 0;
    cairn_freeze_options_t freeze = CAIRN_FREEZE_OPTIONS_INIT;
    freeze.outputs = &y;
    freeze.output_count = 1;
    if (cairn_device_open(instance, "cpu", &options, &device, error) != 0 ||
        cairn_graph_create(instance, &graph, error) != 0 || cairn_graph_input(graph, &desc, &x, error) != 0 ||
        cairn_graph_op(graph, "relu", &x, 1, nullptr, 0, &y, 1, error) != 0 ||
        cairn_graph_freeze(graph, &freeze, error) != 0)
      ::_exit(kOther);
  }
  const std::string rates = (std::filesystem::temp_directory_path() / "cairn-first.json").string();
  const std::string weights = (std::filesystem::temp_directory_path() / "cairn-first.safetensors").string();
  cairn_error_t* const error = cairn_error_create();
  cairn_instance_t* instance = nullptr;
  cairn_device_t* device = nullptr;
  cairn_graph_t* graph = nullptr;
};

struct First {
  const char* name;
  bool opens;      // needs a device and a graph
  int64_t one_in;  // of the allocations, where not all are wanted
  cairn_status_t (*call)(Host&);
};
const First kFirst[] = {
    {"costs read", false, 1,
     [](Host& h) {
       cairn_costs_t* costs = nullptr;
       return cairn_costs_read(h.instance, kModel, sizeof kModel - 1, &costs, h.error);
     }},
    {"problem solve", false, 1,
     [](Host& h) {
       cairn_text_t* text = nullptr;
       return cairn_problem_solve(h.instance, kProblem, sizeof kProblem - 1, 0, CAIRN_RENDER_PLAN_JSON, &text,
                                  h.error);
     }},
    {"inspect", false, 1,
     [](Host& h) {
       cairn_text_t* text = nullptr;
       return cairn_inspect(h.instance, h.weights.c_str(), &text, h.error);
     }},
    {"plan with a file of rates", true, 3,
     [](Host& h) {
       cairn_plan_t* plan = nullptr;
       return cairn_plan_create(h.graph, h.device, nullptr, &plan, h.error);
     }},
    {"open a device", false, 8,
     [](Host& h) { return cairn_device_open(h.instance, "cpu", nullptr, &h.device, h.error); }},
    {"list devices", false, 8,
     [](Host& h) {
       cairn_device_info_t info = CAIRN_DEVICE_INFO_INIT;
       return cairn_instance_device(h.instance, 0, &info, h.error);
     }},
    {"describe an op", false, 8,
     [](Host& h) {
       cairn_op_info_t info = CAIRN_OP_INFO_INIT;
       return cairn_op_describe(0, &info, h.error);
     }},
    {"open a tokenizer", false, 1,
     [](Host& h) {
       cairn_tokenizer_t* tokenizer = nullptr;
       return cairn_tokenizer_open(h.instance, "bytes", nullptr, &tokenizer, h.error);
     }},
};

// Runs `work` in a child process, which ends with what it returns. -signal: it was ended.
int in_child(const std::function<int()>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(work());
  int status = 0;
  if (pid < 0 || ::waitpid(pid, &status, 0) != pid) return kOther;
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(FirstUse, WithoutMemoryIsAnErrorAndNoEnd) {
  for (const First& first : kFirst)
    for (const heap::Failing failing : {heap::Failing::kOne, heap::Failing::kRest}) {
      SCOPED_TRACE(first.name);
      int refused = 0;
      for (long at = 0;; ++at) {
        if (!cairn::support::taken(at,
                                   failing == heap::Failing::kOne || first.one_in == 1 ? first.one_in : 8))
          continue;
        const int ended = in_child([&] {
          Host host;
          if (first.opens) host.open();
          heap::arm(at, failing);
          first.call(host);
          return heap::disarm().failed_at >= 0 ? kRefused : kWhole;
        });
        if (ended == kWhole) break;
        ASSERT_EQ(ended, kRefused) << "allocation " << at << (ended < 0 ? ": ended by a signal" : "");
        ++refused;
      }
      EXPECT_GT(refused, 0);
    }
}

// What is made once and was refused is made whole by the next call, and leaves no block behind.
TEST(FirstUse, RefusedLeavesNothing) {
  const First& first = *std::find_if(std::begin(kFirst), std::end(kFirst),
                                     [&](const First& f) { return std::string(f.name) == "describe an op"; });
  long wanted = -1;
  for (long at = -1; at < 400; at += at < 0 ? 1 : 3) {
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    ASSERT_EQ(in_child([&] {
                Host host;
                heap::arm(at, heap::Failing::kOne);
                first.call(host);
                const bool failed = heap::disarm().failed_at >= 0;
                if (first.call(host) != 0) return kOther;
                const std::array<long, 2> told = {heap::live(), failed};
                return ::write(pipe[1], told.data(), sizeof told) == sizeof told ? kWhole : kOther;
              }),
              kWhole);
    std::array<long, 2> told{};
    ASSERT_EQ(::read(pipe[0], told.data(), sizeof told), static_cast<ssize_t>(sizeof told));
    ::close(pipe[0]);
    ::close(pipe[1]);
    if (at < 0) wanted = told[0];
    ASSERT_EQ(told[0], wanted) << "allocation " << at;
    if (at >= 0 && told[1] == 0) break;
  }
}

}  // namespace
}  // namespace fault
