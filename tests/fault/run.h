// What the tests of this folder save, and how they tell that it is whole: folders with a checkpoint before
// and after, things of somebody else's beside and in it, and the same run without faults.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/runtime/io/rig.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::test {

// The same run without faults: the digest of its parameters after each micro-batch.
class Reference {
 public:
  const std::string& after(uint64_t micro_batches);

 private:
  Rig rig_;
  std::vector<std::string> digests_ = {rig_.digest()};
};

// A save over an older checkpoint, or as the first one.
struct Scene {
  const char* name;
  bool older = false;    // a checkpoint is there, of the run's first kOld micro-batches
  bool files = false;    // saves bring a tokenizer
  bool foreign = false;  // somebody has put a file, a link and a folder into the older checkpoint
  bool below = false;    // the folder above is missing, too
};
inline constexpr uint64_t kOld = 2, kNew = 5;
inline constexpr Scene kScenes[] = {{"first", false},
                                    {"first below a folder", false, true, false, true},
                                    {"over an older one", true},
                                    {"with files", true, true},
                                    {"with files of others", true, true, true}};

class Stage {
 public:
  explicit Stage(const Scene& scene);
  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path target(const std::filesystem::path& root) const;
  std::filesystem::path target() const { return target(root_); }
  // The folder as it is before the save.
  void set();
  void save(Rig& rig) const { save(rig, root_); }
  void save(Rig& rig, const std::filesystem::path& root) const;  // another copy of the folder
  // Micro-batches of the checkpoint that is there; 0: there is none. Restores it into `probe`, which compares
  // every digest, and compares the parameters with the reference.
  uint64_t found(const std::filesystem::path& root, Rig& probe, Reference& reference) const;
  // What is there that should not be, or is missing; "" if all is well.
  std::string disorder(const std::filesystem::path& root) const;

 private:
  Scene scene_;
  Scratch scratch_;
  std::filesystem::path root_, pristine_, tokenizer_;
};

}  // namespace cairn::test
