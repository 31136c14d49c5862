#include "runtime/data/pictures/pictures.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <new>

#include "runtime/base/os/thread.h"
#include "runtime/data/pictures/job.h"

namespace cairn::data {
namespace {

constexpr int kMostPictureWorkers = 64, kMostPicturesAhead = 16;

class Loader final : public Pictures {
 public:
  explicit Loader(const PictureOptions& options) : rows_(options) {}
  ~Loader() override {
    {
      const std::lock_guard lock(lock_);
      stop_ = true;
      jobs_.clear();
    }
    changed_.notify_all();
    workers_.clear();
  }

  uint64_t count() const override { return rows_.count(); }
  const PictureSource& source() const override { return rows_.source(); }
  uint64_t bad() const override { return rows_.bad(); }

  int64_t batch(uint64_t number, int64_t rows, const PictureBatch& out) override {
    start();
    std::unique_lock lock(lock_);
    const Job job = asked(number, rows, out.masks != nullptr);
    for (int next = 1; next <= rows_.options().ahead && !workers_.empty(); ++next)
      if (jobs_.size() < static_cast<size_t>(next) + 1)
        push(number + static_cast<uint64_t>(next), rows, job->masks);
    changed_.notify_all();
    while (job->taken < job->real) run_row(job, lock);
    done_.wait(lock, [&] { return job->done == job->real; });
    jobs_.pop_front();
    lock.unlock();
    if (job->error) throw *job->error;  // asked for again, it is tried again
    rows_.finish(*job, out);
    const int64_t real = job->real;
    lock.lock();
    spare_.push_back(job);
    return real;
  }

 private:
  using Job = std::shared_ptr<PictureJob>;

  void start() {
    const int wanted = std::min(rows_.options().workers, kMostPictureWorkers);
    for (; started_ < wanted; ++started_) {
      auto thread = std::make_unique<Thread>();
      // A thread that cannot be had is done without: who asks makes the rows, too.
      if (thread->try_start(
              "cairn-pictures", [](void* self) { static_cast<Loader*>(self)->work(); }, this) == 0)
        workers_.push_back(std::move(thread));
    }
  }

  // The job in front: the one that was begun ahead, or one that begins now.
  Job asked(uint64_t number, int64_t rows, bool masks) {
    while (!jobs_.empty()) {
      const PictureJob& job = *jobs_.front();
      if (job.number == number && job.rows == rows && job.masks == masks) return jobs_.front();
      jobs_.pop_front();
    }
    push(number, rows, masks);
    return jobs_.front();
  }

  void push(uint64_t number, int64_t rows, bool masks) {
    Job job;
    if (!spare_.empty() && spare_.back().use_count() == 1) {
      job = std::move(spare_.back());
      spare_.pop_back();
    } else {
      spare_.clear();
      job = std::make_shared<PictureJob>();
    }
    rows_.begin(*job, number, rows, masks);
    jobs_.push_back(std::move(job));
  }

  void work() {
    std::unique_lock lock(lock_);
    while (!stop_) {
      const auto found =
          std::find_if(jobs_.begin(), jobs_.end(), [](const Job& job) { return job->taken < job->real; });
      if (found == jobs_.end()) {
        changed_.wait(lock);
        continue;
      }
      const Job job = *found;
      run_row(job, lock);
    }
  }

  // Takes one row of the job and makes it, without the lock.
  void run_row(const Job& job, std::unique_lock<std::mutex>& lock) {
    const int64_t row = job->taken++;
    lock.unlock();
    std::optional<Error> error;
    try {
      rows_.make(*job, row);
    } catch (const Error& raised) {
      error = raised;
    } catch (const std::bad_alloc&) {
      error = Error::of_literal(Code::kOutOfMemory, "the system gave no memory to decode a picture");
    } catch (const std::exception&) {
      error = Error::of_literal(Code::kInternal, "a picture could not be made");
    }
    lock.lock();
    if (error && (job->failed < 0 || row < job->failed)) {
      job->failed = row;
      job->error = error;
    }
    if (++job->done == job->real) done_.notify_all();
  }

  PictureRows rows_;
  std::mutex lock_;
  std::condition_variable changed_, done_;
  std::deque<Job> jobs_;    // in the order in which they are asked for
  std::vector<Job> spare_;  // their memory is used again
  bool stop_ = false;
  int started_ = 0;
  std::vector<std::unique_ptr<Thread>> workers_;  // joined first
};

}  // namespace

std::unique_ptr<Pictures> Pictures::open(const PictureOptions& options) {
  require(options.workers >= 0 && options.workers <= kMostPictureWorkers, Code::kInvalidArgument,
          "workers is ", options.workers, "; wanted: 0 to ", kMostPictureWorkers);
  require(options.ahead >= 0 && options.ahead <= kMostPicturesAhead, Code::kInvalidArgument, "ahead is ",
          options.ahead, "; wanted: 0 to ", kMostPicturesAhead);
  return std::make_unique<Loader>(options);
}

}  // namespace cairn::data
