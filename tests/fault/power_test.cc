// Power that fails at any moment of saves, exports and removals: in every state that a file system may come
// up with, one whole checkpoint opens, old or new to the bit; what is somebody else's is there after the next
// save.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdio.h>

#include <iostream>

#include "runtime/io/checkpoint.h"
#include "runtime/io/safetensors/names.h"
#include "tests/fault/calls.h"
#include "tests/fault/disk.h"
#include "tests/fault/run.h"
#include "tests/support/seeds.h"

namespace cairn::io {
namespace {
namespace fs = std::filesystem;
using test::Under;

constexpr int64_t kOneIn = 60;  // by default

// Calls check(folder, where) for states that may be found after power fails in the recorded work.
void for_states(const test::Disk& disk, const char* what, int states, std::mt19937& random, int64_t& number,
                const std::function<void(const fs::path&, const std::string&)>& check) {
  const test::Scratch scratch;
  for (size_t moment = 0; moment <= disk.effects(); ++moment)
    for (int i = 0; i < states; ++i) {
      const uint32_t seed = random();
      if (!support::taken(number++, kOneIn)) continue;
      std::mt19937 mine(seed);
      fs::remove_all(scratch / "found");
      disk.crash(moment, mine, scratch / "found");
      check(scratch / "found", cat(what, ", moment ", moment, " of ", disk.effects(), ", seed ", seed));
    }
}

void report(int64_t number) {
  int64_t taken = 0;
  for (int64_t i = 0; i < number; ++i) taken += support::taken(i, kOneIn);
  std::cout << "[   STATES ] " << taken << " of " << number << std::endl;
}

class Power : public testing::Test {
 protected:
  Power() { rig_.train(0, test::kNew); }
  // The old checkpoint or the new one is there; a save then leaves nothing else.
  void check(const test::Stage& stage, const test::Scene& scene, const fs::path& found,
             const std::string& where) {
    uint64_t there = ~uint64_t{0};
    EXPECT_NO_THROW(there = stage.found(found, probe_, reference_)) << where;
    EXPECT_TRUE(there == test::kNew || there == (scene.older ? test::kOld : 0)) << where << ": " << there;
    const Under quick({});
    EXPECT_NO_THROW(stage.save(rig_, found)) << where;
    EXPECT_EQ(stage.found(found, probe_, reference_), test::kNew) << where;
    EXPECT_EQ(disorder(stage, found), "") << where;
  }
  // A file that the host added may lie in a leftover without the list that says so: then it stays there.
  static std::string disorder(const test::Stage& stage, const fs::path& found) {
    for (const auto& entry : fs::directory_iterator(stage.target(found).parent_path()))
      if (entry.path().filename().string().starts_with(".saved.tmp-")) {
        EXPECT_FALSE(fs::exists(entry.path() / "tensors.bin")) << entry.path();
        fs::remove(entry.path() / "tokenizer.model");
        fs::remove(entry.path());
      }
    return stage.disorder(found);
  }
  test::Rig rig_, probe_;
  test::Reference reference_;
  std::mt19937 random_{11};
  int64_t number_ = 0;
};

TEST_F(Power, ASaveIsThereOrTheOneBefore) {
  for (const test::Scene& scene : test::kScenes) {
    test::Stage stage(scene);
    stage.set();
    test::Disk disk(stage.root());
    {
      const Under recorded({.recorder = &disk});
      stage.save(rig_);
    }
    for_states(disk, scene.name, 6, random_, number_,
               [&](const fs::path& found, const std::string& where) { check(stage, scene, found, where); });
  }
  report(number_);
}

// A save that is cut off or fails, then one that sweeps up after it, and power fails in the one or the other.
TEST_F(Power, LeftoversAreSweptUpSafely) {
  for (const test::Scene& scene : test::kScenes) {
    if (!scene.older) continue;
    test::Stage stage(scene);
    stage.set();
    const long calls = [&] {
      const Under counted({});
      stage.save(rig_);
      return Under::made();
    }();
    for (const bool from_there_on : {false, true})
      for (long n = from_there_on ? 7 : 3; n < calls; n += 23 * support::stride(3)) {
        stage.set();
        test::Disk disk(stage.root());
        {
          const Under failing({.at = n, .from_there_on = from_there_on, .recorder = &disk});
          test::failure([&] { stage.save(rig_); });
        }
        {
          const Under recorded({.recorder = &disk});
          stage.save(rig_);
        }
        for_states(
            disk, cat(scene.name, ", call ", n, from_there_on ? " and on" : "").c_str(), 2, random_, number_,
            [&](const fs::path& found, const std::string& where) { check(stage, scene, found, where); });
      }
  }
  report(number_);
}

// A run's folder: a new checkpoint, then the oldest goes. The newest whole one is never older than what was
// there.
TEST_F(Power, ARunGoesOnFromTheNewest) {
  const test::Scratch scratch;
  const fs::path root = scratch / "root";
  fs::create_directory(root);
  test::Rig rig;
  std::vector<std::string> digests;
  const auto step = [&](uint64_t number) {
    rig.train(number - 1, number);
    save(*rig.stepper, root / cat("step-", number), {});
  };
  {
    const Under quick({});
    step(1);
    step(2);
  }
  test::Disk disk(root);
  {
    const Under recorded({.recorder = &disk});
    for (uint64_t number = 3; number < 6; ++number) {
      step(number);
      remove_checkpoint(root / cat("step-", number - 2));
    }
  }
  for_states(disk, "run", 6, random_, number_, [&](const fs::path& found, const std::string& where) {
    EXPECT_NO_THROW({
      Checkpoint(newest_checkpoint(found)).restore(*probe_.stepper);
      const step::State state = probe_.stepper->state();
      EXPECT_GE(state.step * 3 + state.micro, 2u) << where;
      EXPECT_EQ(probe_.digest(), reference_.after(state.step * 3 + state.micro)) << where;
    }) << where;
    // A checkpoint is there whole or not at all, while it is removed as well.
    for (const auto& entry : fs::directory_iterator(found))
      if (entry.path().filename().string().starts_with("step-")) {
        EXPECT_NO_THROW(Checkpoint(entry.path()).verify()) << where << ": " << entry.path();
      }
  });
  report(number_);
}

TEST_F(Power, AnExportIsTheOldFileOrTheNewOne) {
  const test::Scratch scratch;
  const fs::path root = scratch / "root";
  fs::create_directory(root);
  test::Rig old;
  const Under quick({});
  export_safetensors(*old.session, {}, root / "weights");
  const std::string before = test::slurp(root / "weights");
  test::Disk disk(root);
  {
    const Under recorded({.recorder = &disk});
    export_safetensors(*rig_.session, {}, root / "weights");
  }
  const Under again({});
  const std::string after = test::slurp(root / "weights");
  ASSERT_NE(before, after);
  for_states(disk, "export", 6, random_, number_, [&](const fs::path& found, const std::string& where) {
    const std::string there = test::slurp(found / "weights");
    EXPECT_TRUE(there == before || there == after) << where;
  });
  report(number_);
}

// The model loses what it should: a file that is renamed before it is flushed may be empty, or there and
// torn.
TEST_F(Power, TheModelSeesWhatIsNotFlushed) {
  const test::Scratch scratch;
  const fs::path root = scratch / "root";
  fs::create_directory(root);
  scratch.put("root/file", "old");
  int wrong[2] = {0, 0};
  for (const bool flushes : {false, true}) {
    test::Disk disk(root);
    {
      const Under recorded({.recorder = &disk});
      const Descriptor folder = open_directory(root),
                       file = open_at(folder.get(), "new", O_RDWR | O_CREAT | O_EXCL);
      write_all(file.get(), "new", 0, "whole", 5);
      if (flushes) sync_fd(file.get(), "new");
      ASSERT_EQ(::renameat(folder.get(), "new", folder.get(), "file"), 0);
    }
    for (int i = 0; i < 200; ++i) {
      disk.crash(disk.effects(), random_, scratch / "found");
      const std::string there = test::slurp(scratch / "found" / "file");
      wrong[flushes] += there != "old" && there != "whole";
      fs::remove_all(scratch / "found");
    }
    scratch.put("root/file", "old");
  }
  EXPECT_GT(wrong[0], 20);
  EXPECT_EQ(wrong[1], 0);
}

}  // namespace
}  // namespace cairn::io
