// A model of a file system that loses power: what lay there, what was done to it since, and what may be left.
// The rules are the weakest that are told of real ones. Data of a file is on the disk once that file is
// flushed; until then each write may be there, be missing (zeros, where the file has grown), or be torn.
// Entries of a directory come to the disk in their order, but as few of them as you like, until that
// directory is flushed. Renaming between two directories is one change of both. Flushing a file says nothing
// of its name.
#pragma once
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/fault/calls.h"

namespace cairn::test {

class Disk final : public Recorder {
 public:
  explicit Disk(const std::filesystem::path& root);  // as stored there, all of it on the disk
  void add(Effect effect) override;
  size_t effects() const { return effects_.size(); }
  // What may be found after a power failure that comes after the first `count` effects, written to `to`,
  // which must not exist.
  void crash(size_t count, std::mt19937& random, const std::filesystem::path& to) const;

 private:
  struct Node {
    enum Kind { kFile, kDirectory, kLink } kind = kFile;
    std::string content;  // of a link: what it names
    std::map<std::string, int> entries;
  };
  struct Change {
    Effect effect;
    int directory = -1, other_directory = -1, node = -1;
  };
  int take(const std::filesystem::path& path);
  std::vector<bool> kept(size_t count, std::mt19937& random) const;
  void write(const std::vector<Node>& nodes, int node, const std::filesystem::path& to,
             std::map<int, std::filesystem::path>& written) const;

  std::vector<Node> nodes_;  // the first is the root
  std::map<ino_t, int> numbers_;
  std::vector<Change> effects_;
};

}  // namespace cairn::test
