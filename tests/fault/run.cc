#include "tests/fault/run.h"

#include <gtest/gtest.h>

#include <set>

#include "runtime/io/checkpoint.h"
#include "tests/fault/calls.h"

namespace cairn::test {
namespace fs = std::filesystem;

const std::string& Reference::after(uint64_t micro_batches) {
  while (digests_.size() <= micro_batches) {
    rig_.train(digests_.size() - 1, digests_.size());
    digests_.push_back(rig_.digest());
  }
  return digests_[micro_batches];
}

Stage::Stage(const Scene& scene) : scene_(scene), root_(scratch_ / "root"), pristine_(scratch_ / "pristine") {
  tokenizer_ = scratch_.put("tokenizer.model", "the pieces");
  fs::create_directory(pristine_);
  if (scene.older) {
    Rig rig;
    rig.train(0, kOld);
    const Under quick({});
    save(rig, pristine_);
  }
  if (!scene.foreign) return;
  std::ofstream(target(pristine_) / "notes") << "mine";
  fs::create_symlink("/nowhere", target(pristine_) / "link");
  fs::create_directories(target(pristine_) / "folder" / "deep");
  std::ofstream(target(pristine_) / "folder" / "deep" / "file") << "mine, too";
}

fs::path Stage::target(const fs::path& root) const {
  return scene_.below ? root / "runs" / "saved" : root / "saved";
}

void Stage::set() {
  fs::remove_all(root_);
  fs::copy(pristine_, root_, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
}

void Stage::save(Rig& rig, const fs::path& root) const {
  io::Extras extras;
  if (scene_.files) extras.files.push_back(tokenizer_);
  io::save(*rig.stepper, target(root), extras);
}

uint64_t Stage::found(const fs::path& root, Rig& probe, Reference& reference) const {
  if (!fs::exists(target(root))) return 0;
  io::Checkpoint(target(root)).restore(*probe.stepper);
  const step::State state = probe.stepper->state();
  const uint64_t micro_batches = state.step * 3 + state.micro;
  EXPECT_EQ(probe.digest(), reference.after(micro_batches));
  return micro_batches;
}

std::string Stage::disorder(const fs::path& root) const {
  std::set<std::string> wanted = {"manifest.cairn", "tensors.bin"}, there, outside;
  if (scene_.files) wanted.insert("tokenizer.model");
  if (scene_.foreign) wanted.insert({"notes", "link", "folder", "folder/deep", "folder/deep/file"});
  for (const auto& entry : fs::recursive_directory_iterator(target(root)))
    there.insert(entry.path().lexically_relative(target(root)).string());
  std::string wrong;
  for (const std::string& name : wanted)
    if (!there.contains(name)) wrong += " lacks " + name;
  for (const std::string& name : there)
    if (!wanted.contains(name)) wrong += " has " + name;
  for (const auto& entry : fs::directory_iterator(target(root).parent_path()))
    if (entry.path() != target(root)) wrong += " beside: " + entry.path().filename().string();
  if (scene_.foreign &&
      (slurp(target(root) / "notes") != "mine" || fs::read_symlink(target(root) / "link") != "/nowhere" ||
       slurp(target(root) / "folder/deep/file") != "mine, too"))
    wrong += " changed files of others";
  return wrong;
}

}  // namespace cairn::test
