#include "runtime/base/os/proc.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>

#include "runtime/base/text/cat.h"

namespace cairn {

std::string read_system_file(const char* path) {
  constexpr size_t kPiece = size_t{1} << 16;
  std::string text;
  struct File {
    int descriptor;
    ~File() {
      if (descriptor >= 0) ::close(descriptor);
    }
  } const file{::open(path, O_RDONLY | O_CLOEXEC)};
  if (file.descriptor < 0) return text;
  for (size_t size = 0;;) {
    text.resize(size + kPiece);
    const ssize_t n = ::read(file.descriptor, text.data() + size, kPiece);
    if (n < 0 && errno == EINTR) continue;
    size += n > 0 ? static_cast<size_t>(n) : 0;
    text.resize(size);
    if (n <= 0) return text;
  }
}

std::string_view take_word(std::string_view& text) {
  constexpr std::string_view kBlanks = " \t\n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const std::string_view word = text.substr(0, text.find_first_of(kBlanks));
  text.remove_prefix(word.size());
  return word;
}

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

std::optional<int64_t> number_of(std::string_view word) {
  int64_t number = 0;
  const char* const last = word.data() + word.size();
  const auto parsed = std::from_chars(word.data(), last, number);
  if (parsed.ec != std::errc() || parsed.ptr != last) return {};
  return number;
}

namespace {

// What the first processor's line of that name says; "": there is none.
std::string_view said_of(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const size_t colon = line.find(':');
    if (line.starts_with(name) && colon != std::string_view::npos && colon + 2 <= line.size())
      return line.substr(colon + 2);
  }
  return {};
}

}  // namespace

// Kernels for AArch64 give numbers in place of a name.
std::string processor_name() {
  const std::string whole = read_system_file("/proc/cpuinfo");
  if (const std::string_view name = said_of(whole, "model name"); !name.empty()) return std::string(name);
  const std::string_view maker = said_of(whole, "CPU implementer"), part = said_of(whole, "CPU part");
  if (!maker.empty() && !part.empty()) return cat("processor ", part, " of implementer ", maker);
  return "unknown processor";
}

double waited_seconds() {
  double sum = 0;
  std::error_code failed;
  for (std::filesystem::directory_iterator task("/proc/self/task", failed), end; !failed && task != end;
       task.increment(failed)) {
    const std::string text = read_system_file((task->path() / "schedstat").c_str());
    std::string_view rest = text;
    take_word(rest);  // that it ran
    if (const auto nanoseconds = number_of(take_word(rest))) sum += 1e-9 * static_cast<double>(*nanoseconds);
  }
  return sum;
}

}  // namespace cairn
