// Streams as threads, events as points in them, and what a capture collects in place of running it.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/cuda/emulated/runtime.h"

namespace cairn::kernels::cuda::emulated {

using Clock = std::chrono::steady_clock;

// A point in a stream: reached once everything before it is done.
struct Point {
  std::mutex mutex;
  std::condition_variable changed;
  bool reached = false;
  Clock::time_point when;

  void reach() {
    std::lock_guard lock(mutex);
    reached = true;
    when = Clock::now();
    changed.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return reached; });
  }
};

// Nodes and what each must wait for. A node's closure runs on the thread that runs the graph.
struct Graph {
  struct Node {
    std::function<void()> work;
    std::vector<size_t> after;
  };
  std::vector<Node> nodes;
};

struct Executable {
  Graph graph;
};

struct Capture {
  Graph graph;
  Stream* origin = nullptr;      // nullptr: over
  std::vector<Stream*> streams;  // that joined it
};

struct Event {
  std::mutex mutex;
  std::shared_ptr<Point> point;  // of the last record, not captured
  // Captured: the capture, and the nodes that a waiter comes after.
  std::shared_ptr<Capture> capture;
  std::vector<size_t> frontier;
};

struct Stream {
  Stream() : thread([this] { loop(); }) {}
  ~Stream() {
    {
      std::lock_guard lock(mutex);
      ending = true;
    }
    changed.notify_all();
    thread.join();
  }

  void push(std::function<void()> work) {
    if (capture) {
      capture->graph.nodes.push_back({std::move(work), frontier});
      frontier = {capture->graph.nodes.size() - 1};
      return;
    }
    {
      std::lock_guard lock(mutex);
      inbox.push_back(std::move(work));
    }
    changed.notify_all();
  }

  void loop() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return !inbox.empty() || ending; });
      if (inbox.empty()) return;
      const std::function<void()> work = std::move(inbox.front());
      inbox.pop_front();
      lock.unlock();
      work();
      lock.lock();
    }
  }

  std::shared_ptr<Capture> capture;  // the submitting thread's, as `frontier`
  std::vector<size_t> frontier;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> inbox;
  bool ending = false;
  std::thread thread;
};

// In some order that the graph allows, another one each time.
void run_graph(const Graph&);
// Does every node lead to the frontier?
bool joined(const Graph&, const std::vector<size_t>& frontier);

}  // namespace cairn::kernels::cuda::emulated
