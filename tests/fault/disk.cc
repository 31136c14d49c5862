#include "tests/fault/disk.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "tests/runtime/io/scratch.h"

namespace cairn::test {
namespace fs = std::filesystem;

Disk::Disk(const fs::path& root) { take(root); }

int Disk::take(const fs::path& path) {
  const auto number = static_cast<int>(nodes_.size());
  nodes_.emplace_back();
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) throw std::runtime_error("cannot see " + path.string());
  numbers_[info.st_ino] = number;
  if (S_ISLNK(info.st_mode)) {
    nodes_[number].kind = Node::kLink;
    nodes_[number].content = fs::read_symlink(path).string();
  } else if (S_ISREG(info.st_mode)) {
    nodes_[number].content = slurp(path);
  } else {
    nodes_[number].kind = Node::kDirectory;
    for (const auto& entry : fs::directory_iterator(path)) {
      const int child = take(entry.path());
      nodes_[number].entries[entry.path().filename().string()] = child;
    }
  }
  return number;
}

void Disk::add(Effect effect) {
  const auto number = [&](ino_t inode) {
    const auto found = numbers_.find(inode);
    return found == numbers_.end() ? -1 : found->second;
  };
  Change change;
  if (effect.kind == Effect::kCreate || effect.kind == Effect::kMakeDirectory) {
    numbers_[effect.node] =
        static_cast<int>(nodes_.size());  // the system uses the numbers of deleted files again
    nodes_.emplace_back();
    nodes_.back().kind = effect.kind == Effect::kCreate ? Node::kFile : Node::kDirectory;
  }
  change.directory = number(effect.directory);
  change.other_directory = number(effect.other_directory);
  change.node = number(effect.node);
  const bool entry =
      effect.kind != Effect::kWrite && effect.kind != Effect::kTruncate && effect.kind != Effect::kSync;
  if (entry ? change.directory < 0 : change.node < 0) return;  // elsewhere
  change.effect = std::move(effect);
  effects_.push_back(std::move(change));
}

// Which of the first `count` changes of directories are on the disk.
std::vector<bool> Disk::kept(size_t count, std::mt19937& random) const {
  std::vector<size_t> flushed(nodes_.size(), 0);  // changes before that one are
  for (size_t i = 0; i < count; ++i)
    if (effects_[i].effect.kind == Effect::kSync) flushed[effects_[i].node] = i;
  // A change that is there brings all earlier ones of both of its directories.
  std::vector<bool> kept(count), needed(nodes_.size());
  for (size_t i = count; i-- > 0;) {
    const Change& c = effects_[i];
    if (c.directory < 0) continue;
    const int other = c.other_directory < 0 ? c.directory : c.other_directory;
    kept[i] = needed[c.directory] || needed[other] || i < flushed[c.directory] || i < flushed[other];
    if (kept[i]) needed[c.directory] = needed[other] = true;
  }
  static constexpr unsigned kChances[] = {0, 10, 50, 90, 100};
  const unsigned chance = kChances[random() % std::size(kChances)];
  std::vector<bool> ended(nodes_.size());
  for (size_t i = 0; i < count; ++i) {
    const Change& c = effects_[i];
    if (c.directory < 0 || kept[i]) continue;
    const int other = c.other_directory < 0 ? c.directory : c.other_directory;
    if (!ended[c.directory] && !ended[other] && random() % 100 < chance)
      kept[i] = true;
    else
      ended[c.directory] = ended[other] = true;
  }
  return kept;
}

void Disk::crash(size_t count, std::mt19937& random, const fs::path& to) const {
  std::vector<Node> nodes = nodes_;
  const std::vector<bool> kept = this->kept(count, random);
  std::vector<size_t> flushed(nodes.size(), 0);
  for (size_t i = 0; i < count; ++i)
    if (effects_[i].effect.kind == Effect::kSync) flushed[effects_[i].node] = i;
  for (size_t i = 0; i < count; ++i) {
    const Change& c = effects_[i];
    const Effect& e = c.effect;
    if (c.directory < 0) {
      std::string& content = nodes[c.node].content;
      const bool sure = i < flushed[c.node];
      const unsigned fate = sure ? 0 : random() % 4;  // there, zeros, torn, missing
      if (e.kind == Effect::kTruncate && fate < 2) content.resize(e.offset);
      if (e.kind != Effect::kWrite || fate == 3) continue;
      const size_t size = fate == 2 ? random() % (e.data.size() + 1) : e.data.size();
      if (content.size() < e.offset + size) content.resize(e.offset + size);
      if (fate != 1) content.replace(e.offset, size, e.data, 0, size);
      continue;
    }
    if (!kept[i]) continue;
    auto& entries = nodes[c.directory].entries;
    switch (e.kind) {
      case Effect::kCreate:
      case Effect::kMakeDirectory:
      case Effect::kLink:
        entries[e.name] = c.node;
        break;
      case Effect::kUnlink:
        entries.erase(e.name);
        break;
      case Effect::kExchange:
        std::swap(entries.at(e.name), nodes[c.other_directory].entries.at(e.other_name));
        break;
      default:
        nodes[c.other_directory].entries[e.other_name] = entries.at(e.name);
        entries.erase(e.name);
    }
  }
  std::map<int, fs::path> written;
  write(nodes, 0, to, written);
}

void Disk::write(const std::vector<Node>& nodes, int node, const fs::path& to,
                 std::map<int, fs::path>& written) const {
  const Node& n = nodes[node];
  const auto [first, fresh] = written.emplace(node, to);
  if (!fresh) {  // another name of the same file
    if (::link(first->second.c_str(), to.c_str()) != 0)
      throw std::runtime_error("cannot link " + to.string());
  } else if (n.kind == Node::kLink) {
    fs::create_symlink(n.content, to);
  } else if (n.kind == Node::kFile) {
    std::ofstream(to, std::ios::binary) << n.content;
  } else {
    fs::create_directory(to);
    for (const auto& [name, child] : n.entries) write(nodes, child, to / name, written);
  }
}

}  // namespace cairn::test
