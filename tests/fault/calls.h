// The system calls under files, as the library under test makes them: counted, failed, cut short, recorded,
// or the last thing that the process does. They are replaced in the whole program (calls.cc); what is asked
// for here holds for the thread that asks.
#pragma once
#include <sys/types.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

namespace cairn::test {

// What a call that succeeded did to the file system; inode numbers are those of the real one.
struct Effect {
  enum Kind { kCreate, kMakeDirectory, kLink, kRename, kExchange, kUnlink, kWrite, kTruncate, kSync } kind;
  ino_t directory = 0, other_directory = 0;  // of name and other_name
  std::string name, other_name;
  ino_t node = 0;  // the file or directory itself
  uint64_t offset = 0;
  std::string data;
};
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void add(Effect effect) = 0;
};

struct Calls {
  long at = -1;  // the number of the call that fails; -1: none
  int error = EIO;
  bool from_there_on = false;    // all after it fail, too
  bool cut = false;              // it does not fail: if it reads or writes, it does so for half of the bytes
  bool kill = false;             // it does not fail: the process is killed instead
  size_t longest = ~size_t{0};   // reads and writes come back after so many bytes
  bool interrupt = false;        // every second call that can be interrupted is, first
  Recorder* recorder = nullptr;  // told of what succeeded
};

// For as long as it lives, in this thread. Flushing (fsync) does nothing then: no test here can lose the
// machine's power, and recorded effects say what would be lost.
class Under {
 public:
  explicit Under(const Calls& calls);
  ~Under();
  Under(const Under&) = delete;
  Under& operator=(const Under&) = delete;
  static long made();  // calls since the last one began

 private:
  Calls before_;
  bool was_armed_;
};

}  // namespace cairn::test
