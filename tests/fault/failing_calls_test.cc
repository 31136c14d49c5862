// A file system that fails: every system call of saving, loading and exporting, one by one and all from one
// on. Whatever happens, it is an error with a cause, the older file or checkpoint is whole, and the next save
// sweeps up.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <iostream>

#include "runtime/base/os/file.h"
#include "runtime/data/data.h"
#include "runtime/io/checkpoint.h"
#include "runtime/io/graph_file.h"
#include "runtime/io/inspect.h"
#include "runtime/io/manifest.h"
#include "runtime/io/safetensors/names.h"
#include "tests/fault/calls.h"
#include "tests/fault/run.h"
#include "tests/support/seeds.h"

namespace cairn::io {
namespace {
namespace fs = std::filesystem;
using test::Calls;
using test::Under;

// The ways in which a call may go wrong.
struct Way {
  const char* name;
  Calls calls;
};
const Way kWays[] = {
    {"EIO", {.error = EIO}},
    {"ENOSPC", {.error = ENOSPC}},
    {"EACCES", {.error = EACCES}},
    {"EMFILE", {.error = EMFILE}},
    {"short", {.cut = true}},
    {"interrupted", {.error = EINTR}},
    {"EIO from there on", {.error = EIO, .from_there_on = true}},
    {"EROFS from there on", {.error = EROFS, .from_there_on = true}},
    {"ENOSPC from there on", {.error = ENOSPC, .from_there_on = true}},
};

size_t entries(const fs::path& path) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
}

// How many calls an action makes when nothing fails.
long calls_of(const std::function<void()>& action) {
  const Under counted({});
  action();
  return Under::made();
}

// A message for people: none of the library's own mistakes, and it says where.
void expect_cause(const test::Failure& result, const std::string& where) {
  EXPECT_TRUE(result.code == Code::kIo || result.code == Code::kNotFound ||
              result.code == Code::kCorruptFile || result.code == Code::kInvalidArgument)
      << where << ": " << static_cast<int>(result.code) << " " << result.message;
  EXPECT_FALSE(result.message.empty());
}

class Points {
 public:
  ~Points() { std::cout << "[   POINTS ] " << taken_ << " of " << all_ << std::endl; }
  bool take(int64_t one_in) {
    const bool is = support::taken(all_++, one_in * support::stride(3));
    taken_ += is;
    return is;
  }

 private:
  int64_t all_ = 0, taken_ = 0;
};

TEST(FailingCalls, ASaveReplacesWhollyOrNotAtAll) {
  test::Rig rig, probe;
  rig.train(0, test::kNew);
  test::Reference reference;
  Points points;
  for (const test::Scene& scene : test::kScenes) {
    test::Stage stage(scene);
    stage.set();
    const long calls = calls_of([&] { stage.save(rig); });
    ASSERT_EQ(stage.disorder(stage.root()), "") << scene.name;
    bool fresh = false;
    for (const Way& way : kWays)
      for (long n = 0; n < calls; ++n) {
        if (!points.take(48)) continue;
        const std::string where = cat(scene.name, ", ", way.name, ", call ", n);
        if (!fresh) stage.set();
        Calls failing = way.calls;
        failing.at = n;
        const auto result = [&] {
          const Under under(failing);
          return test::failure([&] { stage.save(rig); });
        }();
        const uint64_t found = stage.found(stage.root(), probe, reference);
        if (result.code == Code::kOk) {
          EXPECT_EQ(found, test::kNew) << where;
        } else {
          expect_cause(result, where);
          // With all calls failing there is no way back after the exchange.
          EXPECT_TRUE(found == (scene.older ? test::kOld : 0) ||
                      (way.calls.from_there_on && found == test::kNew))
              << where << ": " << found << " " << result.message;
        }
        const Under quick({});
        stage.save(rig);
        EXPECT_EQ(stage.found(stage.root(), probe, reference), test::kNew) << where;
        EXPECT_EQ(stage.disorder(stage.root()), "") << where << ": " << result.message;
        fresh = false;
      }
  }
}

TEST(FailingCalls, LoadingFailsOrGivesEverything) {
  const test::Scratch scratch;
  test::Rig rig;
  rig.train(0, test::kNew);
  const auto text = scratch.put("text", "the way back\nis marked by stones\n");
  const Under quick({});
  save(*rig.stepper, scratch / "runs" / "step-1", {{}, {text}});
  export_safetensors(*rig.session, {}, scratch / "weights");
  data::write_tokens(text, *data::bytes_tokenizer(), scratch / "tokens");
  write_file_durably(scratch / "model", encode_graph(*test::sample_graph()));
  const std::string digest = rig.digest();

  test::Rig target(test::sample_graph(), 99);
  const std::string untouched = target.digest();
  struct Load {
    const char* name;
    std::function<void()> run;
    std::function<std::string()> got = [] { return std::string(); };
  };
  std::string read;
  const Load kLoads[] = {
      {"restore", [&] { Checkpoint(newest_checkpoint(scratch / "runs")).restore(*target.stepper); },
       [&] { return target.digest(); }},
      {"parameters", [&] { Checkpoint(scratch / "runs" / "step-1").load_parameters(*target.session); },
       [&] { return target.digest(); }},
      {"import", [&] { import_safetensors(*target.session, {}, scratch / "weights"); },
       [&] { return target.digest(); }},
      {"model", [&] { read = decode_graph(FileContent(scratch / "model").bytes())->digest(); },
       [&] { return read; }},
      {"tokens",
       [&] {
         const auto set = data::Dataset::open(scratch / "tokens", 4);
         std::vector<int32_t> in(4), out(4);
         read.clear();
         for (int64_t i = 0; i < set->windows(); ++i) {
           set->window(1, 0, i, in.data(), out.data());
           for (int32_t token : in) read += static_cast<char>(token);
         }
       },
       [&] { return read; }},
      {"inspect", [&] { read = inspect(scratch / "runs"); }, [&] { return read; }},
      {"inspect weights", [&] { read = inspect(scratch / "weights"); }, [&] { return read; }},
  };
  Points points;
  for (const Load& load : kLoads) {
    target = test::Rig(test::sample_graph(), 99);
    read.clear();
    const long calls = calls_of(load.run);
    const std::string right = load.got();
    ASSERT_NE(right, untouched);
    target = test::Rig(test::sample_graph(), 99);
    for (const Way& way : kWays)
      for (long n = 0; n < calls; ++n) {
        if (!points.take(8)) continue;
        const std::string where = cat(load.name, ", ", way.name, ", call ", n);
        Calls failing = way.calls;
        failing.at = n;
        read.clear();
        const auto result = [&] {
          const Under under(failing);
          return test::failure(load.run);
        }();
        if (result.code == Code::kOk) {
          EXPECT_EQ(load.got(), right) << where;
          if (target.digest() != untouched) target = test::Rig(test::sample_graph(), 99);
          continue;
        }
        expect_cause(result, where);
        // A session is as before, or says that it is not.
        const bool poisoned = target.session->poisoned();
        EXPECT_TRUE(poisoned || target.digest() == untouched) << where;
        if (!poisoned) continue;
        EXPECT_NE(result.message.find("make a new session"), std::string::npos)
            << where << ": " << result.message;
        target = test::Rig(test::sample_graph(), 99);
      }
  }
}

TEST(FailingCalls, SingleFilesAreWholeOrUntouched) {
  const test::Scratch scratch;
  test::Rig rig;
  const auto text = scratch.put("text", "the way back");
  const std::function<void(const fs::path&)> kWriters[] = {
      [&](const fs::path& path) { export_safetensors(*rig.session, {}, path); },
      [&](const fs::path& path) { data::write_tokens(text, *data::bytes_tokenizer(), path); },
      [&](const fs::path& path) { write_file_durably(path, encode_graph(*test::sample_graph())); },
  };
  Points points;
  for (const auto& write : kWriters) {
    const long calls = calls_of([&] { write(scratch / "file"); });
    const std::string after = test::slurp(scratch / "file");
    for (const Way& way : kWays)
      for (long n = 0; n < calls; ++n) {
        if (!points.take(8)) continue;
        scratch.put("file", "old");
        Calls failing = way.calls;
        failing.at = n;
        const auto result = [&] {
          const Under under(failing);
          return test::failure([&] { write(scratch / "file"); });
        }();
        const std::string now = test::slurp(scratch / "file");
        if (result.code == Code::kOk) {
          EXPECT_EQ(now, after) << way.name << " " << n;
        } else {
          expect_cause(result, cat(way.name, ", call ", n));
          EXPECT_TRUE(now == "old" || now == after) << way.name << " " << n;
        }
        const Under quick({});
        write(scratch / "file");  // sweeps up
        EXPECT_EQ(entries(scratch.path()), 2u) << way.name << " " << n;
      }
  }
}

TEST(FailingCalls, ARemovalIsWholeOrRepeated) {
  const test::Scratch scratch;
  test::Rig rig, probe;
  Points points;
  const Under quick({});
  for (const bool foreign : {false, true}) {
    const auto make = [&] {
      fs::remove_all(scratch / "runs");
      save(*rig.stepper, scratch / "runs" / "step-1", {});
      save(*rig.stepper, scratch / "runs" / "step-2", {});
      if (foreign) scratch.put("runs/step-1/notes", "mine");
    };
    make();
    const long calls = calls_of([&] { remove_checkpoint(scratch / "runs" / "step-1"); });
    EXPECT_EQ(fs::exists(scratch / "runs" / "step-1"), foreign);
    for (const Way& way : kWays)
      for (long n = 0; n < calls; ++n) {
        if (!points.take(8)) continue;
        const std::string where = cat(way.name, ", call ", n);
        make();
        Calls failing = way.calls;
        failing.at = n;
        const auto result = [&] {
          const Under under(failing);
          return test::failure([&] { remove_checkpoint(scratch / "runs" / "step-1"); });
        }();
        const bool there = fs::exists(scratch / "runs" / "step-1" / kManifestName);
        if (result.code == Code::kOk) {
          EXPECT_FALSE(there) << where;
        } else {
          expect_cause(result, where);
          if (there && !foreign) Checkpoint(scratch / "runs" / "step-1").restore(*probe.stepper);
        }
        if (there) remove_checkpoint(scratch / "runs" / "step-1");
        save(*rig.stepper, scratch / "runs" / "step-2", {});
        EXPECT_EQ(entries(scratch / "runs"), foreign ? 2u : 1u) << where;
        if (foreign) {
          EXPECT_EQ(test::slurp(scratch / "runs" / "step-1" / "notes"), "mine") << where;
          EXPECT_EQ(entries(scratch / "runs" / "step-1"), 1u) << where;
        }
      }
  }
}

TEST(FailingCalls, ShortAndInterruptedCallsAreContinued) {
  const test::Scratch scratch;
  test::Rig rig, probe;
  rig.train(0, 4);
  for (const size_t longest : {size_t{1}, size_t{7}, ~size_t{0}}) {
    const Under under({.longest = longest, .interrupt = true});
    save(*rig.stepper, scratch / "saved", {});
    Checkpoint(scratch / "saved").restore(*probe.stepper);
    EXPECT_EQ(probe.stepper->state().step, 1u);
    EXPECT_EQ(probe.digest(), rig.digest());
  }
}

// Flips a bit of a file right after it was flushed: a disk or a memory that does not keep what it was given.
class Forgetful final : public test::Recorder {
 public:
  Forgetful(fs::path folder, std::string name, long offset)
      : folder_(std::move(folder)), name_(std::move(name)), offset_(offset) {}
  void add(test::Effect effect) override {
    if (done_ || effect.kind != test::Effect::kSync) return;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      if (!entry.path().filename().string().starts_with(".saved.tmp-")) continue;
      struct stat info;
      if (::stat((entry.path() / name_).c_str(), &info) != 0 || info.st_ino != effect.node) continue;
      std::string content = test::slurp(entry.path() / name_);
      content[offset_ < 0 ? content.size() - 1 : static_cast<size_t>(offset_)] ^= 4;
      std::fstream(entry.path() / name_, std::ios::in | std::ios::out | std::ios::binary) << content;
      done_ = true;
    }
  }
  bool done() const { return done_; }

 private:
  fs::path folder_;
  std::string name_;
  long offset_;
  bool done_ = false;
};

TEST(FailingCalls, ASaveThatReadsBackOtherwiseReplacesNothing) {
  test::Rig rig, probe;
  rig.train(0, test::kNew);
  test::Reference reference;
  for (const test::Scene& scene : test::kScenes) {
    if (scene.below) continue;
    test::Stage stage(scene);
    for (const char* name : {"tensors.bin", "manifest.cairn.new", "tokenizer.model"})
      for (const long offset : {0L, 9L, -1L}) {
        if (!scene.files && std::string_view(name) == "tokenizer.model") continue;
        stage.set();
        Forgetful forgetful(stage.root(), name, offset);
        const auto result = [&] {
          const Under under({.recorder = &forgetful});
          return test::failure([&] { stage.save(rig); });
        }();
        ASSERT_TRUE(forgetful.done());
        EXPECT_EQ(result.code, Code::kCorruptFile) << name << ": " << result.message;
        EXPECT_NE(result.message.find("cannot be read back, and replaced nothing"), std::string::npos)
            << result.message;
        EXPECT_EQ(stage.found(stage.root(), probe, reference), scene.older ? test::kOld : 0);
        EXPECT_EQ(entries(stage.root()), scene.older ? 1u : 0u) << name;
      }
  }
}

}  // namespace
}  // namespace cairn::io
