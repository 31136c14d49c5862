// Command lines of programs that measure. `--help` prints the usage and ends the program with 0; what is not understood is
// named on stderr and ends it with 2, before anything is measured.
#pragma once
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace cairn::bench {

class Arguments {
 public:
  // more: prints what else `--help` tells, as benchmark::PrintDefaultHelp.
  Arguments(int argc, char** argv, std::string usage, void (*more)() = nullptr)
      : name_(argc > 0 ? argv[0] : ""), usage_(std::move(usage)) {
    name_ = name_.substr(name_.rfind('/') + 1);
    for (int i = 1; i < argc; ++i) {
      words_.emplace_back(argv[i]);
      if (words_.back() != "--help" && words_.back() != "-h") continue;
      std::printf("usage: %s\n", usage_.c_str());
      if (more != nullptr) more();
      std::exit(0);
    }
  }

  // The value of `--name=VALUE`, which is taken out; `otherwise` where there is none. The last one given counts.
  std::string text(const std::string& name, std::string otherwise) {
    const std::string begin = "--" + name + "=";
    std::erase_if(words_, [&](const std::string& word) {
      if (!word.starts_with(begin)) return false;
      otherwise = word.substr(begin.size());
      return true;
    });
    return otherwise;
  }
  int whole(const std::string& name, int otherwise) {
    return whole_of("--" + name, text(name, std::to_string(otherwise)));
  }
  double real(const std::string& name, double otherwise) {
    const std::string given = text(name, "");
    return given.empty() ? otherwise : real_of("--" + name, given);
  }
  bool flag(const std::string& name) { return std::erase(words_, "--" + name) > 0; }

  // A whole number of at least 1, and a number above 0, from a word that is called `what`.
  int whole_of(const std::string& what, const std::string& word) const {
    const double value = real_of(what, word);
    if (value != std::floor(value) || value > 1e9) refuse(what, word, "a whole number of at least 1");
    return static_cast<int>(value);
  }
  double real_of(const std::string& what, const std::string& word) const {
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    if (word.empty() || *end != '\0' || !(value > 0) || !std::isfinite(value))
      refuse(what, word, "a number above 0");
    return value;
  }

  // What is left, at most `most` words, of which none is an option.
  const std::vector<std::string>& words(size_t most) const {
    for (const std::string& word : words_)
      if (word.starts_with("-")) end("unknown option '" + word + "'");
    if (words_.size() > most) end("'" + words_[most] + "' is one word too many");
    return words_;
  }
  // What is left goes to a library that takes out options of its own, as main() has it.
  template <class Take>
  void pass_to(Take take) {
    std::vector<char*> all = {name_.data()};
    for (std::string& word : words_) all.push_back(word.data());
    int count = static_cast<int>(all.size());
    take(&count, all.data());
    words_ = std::vector<std::string>(all.begin() + 1, all.begin() + count);
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& word,
                           const std::string& wanted) const {
    end(what + ": '" + word + "' is not " + wanted);
  }

 private:
  [[noreturn]] void end(const std::string& message) const {
    std::fprintf(stderr, "%s: %s\nusage: %s\n", name_.c_str(), message.c_str(), usage_.c_str());
    std::exit(2);
  }

  std::string name_, usage_;
  std::vector<std::string> words_;
};

}  // namespace cairn::bench
