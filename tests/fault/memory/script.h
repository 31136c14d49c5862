// A host's run as a list of calls to the C ABI that can be made one by one, with whatever failing in between.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cairn/cairn.h"

namespace fault {

class Script {
 public:
  struct Call {
    std::string name;
    // Nothing but the call itself: what this allocates is the library's.
    std::function<cairn_status_t(cairn_error_t* error)> work;
    std::function<void()> after;  // once it has succeeded; may be empty
    // For calls that may say that their object is lost (the system gave a lane no memory in the midst of a
    // run): makes what the host has to make, so that the call can be made again. Without failures.
    std::function<cairn_status_t(cairn_error_t* error)> mend;
    // What the host does after each refusal, without failures; may be empty.
    std::function<void(cairn_error_t* error)> refused;
  };

  explicit Script(std::filesystem::path folder) : folder_(std::move(folder)) {}
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;
  ~Script();  // releases all handles, latest first

  const std::vector<Call>& calls() const { return calls_; }
  // What the calls gave that two runs must agree on: digests, texts, files. By name.
  const std::map<std::string, std::string>& results() const { return results_; }

 protected:
  template <class T>
  using Slot = std::shared_ptr<T*>;
  using Value = std::shared_ptr<cairn_value_t>;

  void call(std::string name, std::function<cairn_status_t(cairn_error_t*)> work,
            std::function<void()> after = {}, std::function<cairn_status_t(cairn_error_t*)> mend = {},
            std::function<void(cairn_error_t*)> refused = {}) {
    calls_.push_back(
        {std::move(name), std::move(work), std::move(after), std::move(mend), std::move(refused)});
  }
  // A handle that some call will make; it lives as long as the script.
  template <class T>
  Slot<T> slot(void (*release)(T*)) {
    auto made = std::make_shared<T*>(nullptr);
    releases_.push_back([made, release] { release(*made); });
    return made;
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void result(const std::string& name, std::string text) { results_[name] = std::move(text); }
  void result_of_file(const std::string& name, const std::string& path);

  // ---- parts of scripts: each makes one or more calls
  void open(uint32_t threads, double link_bytes_per_second = 0);
  void begin_graph();
  Value input(std::string name, std::vector<int64_t> dims, uint32_t dtype);
  Value parameter(std::string name, std::vector<int64_t> dims, double scale);
  Value op(std::string op, std::vector<Value> in, std::vector<cairn_attr_t> attrs = {}, size_t outputs = 1);
  void name(const Value& value, std::string name);
  void begin(std::string region, uint32_t policy = CAIRN_REGION_PLANNER_DECIDES);
  void end();
  void freeze(Value loss, std::vector<Value> outputs);
  void save_graph();  // as the file "graph"
  Slot<cairn_plan_t> plan(const cairn_plan_options_t& options);
  Slot<cairn_session_t> session(const Slot<cairn_plan_t>& plan);
  Slot<cairn_stepper_t> stepper(const Slot<cairn_session_t>& session, uint32_t micro_steps);
  // Mends a call after whose failure the session (and its stepper, where there is one) has to be made anew.
  std::function<cairn_status_t(cairn_error_t*)> renew(const Slot<cairn_plan_t>& plan,
                                                      const Slot<cairn_session_t>& session,
                                                      const Slot<cairn_stepper_t>& stepper = {},
                                                      uint32_t micro_steps = 0);
  template <class T>
  void write(const Slot<cairn_session_t>& session, std::string name, std::vector<T> numbers) {
    const auto work = [session, name, numbers](cairn_error_t* error) {
      return cairn_session_write(*session, name.c_str(), numbers.data(), numbers.size() * sizeof(T), error);
    };
    call("write " + name, work);
    inputs_.push_back({session, work});
  }
  // One micro-batch. Before it everything is saved, for a session that has to be made again.
  void micro_batch(const Slot<cairn_plan_t>& plan, const Slot<cairn_session_t>& session,
                   const Slot<cairn_stepper_t>& stepper, uint32_t micro_steps, const std::string& name);
  void digest(const Slot<cairn_session_t>& session, std::string name);
  void render(const Slot<cairn_plan_t>& plan, uint32_t kind, std::string name);
  // A text that `make` gives becomes the result called `name`.
  Slot<cairn_text_t> text(std::string name,
                          std::function<cairn_status_t(cairn_text_t**, cairn_error_t*)> make);

  Slot<cairn_instance_t> instance_;
  Slot<cairn_device_t> device_;
  Slot<cairn_graph_t> graph_;
  std::vector<std::shared_ptr<cairn_region_t>> regions_;

 private:
  struct Input {
    Slot<cairn_session_t> session;
    std::function<cairn_status_t(cairn_error_t*)> write;
  };
  std::vector<Input> inputs_;
  std::filesystem::path folder_;
  std::vector<Call> calls_;
  std::map<std::string, std::string> results_;
  std::vector<std::function<void()>> releases_;
};

// Dense layers in regions of fixed policies, two micro-batches to a step; saved, opened, restored, exported,
// imported.
struct Perceptron : Script {
  explicit Perceptron(const std::filesystem::path& folder);
};
// A transformer block in nested regions, some of it offloaded, some computed again.
struct Transformer : Script {
  explicit Transformer(const std::filesystem::path& folder);
};
// What does not train: an op of the host's run forward, tokenizers, data sets, costs, plans as texts.
struct Readings : Script {
  explicit Readings(const std::filesystem::path& folder);
};

}  // namespace fault
