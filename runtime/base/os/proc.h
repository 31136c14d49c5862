// Small text files by which the system tells of itself (/proc, /sys). Not through streams: those swallow a
// failed allocation, and half a file would pass for a complete one.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cairn {

// All of it; "" if it cannot be read.
std::string read_system_file(const char* path);

// The next word of `text`, between blanks and ends of lines, and the next line without its end; both are
// taken off the text. "" at the end of it.
std::string_view take_word(std::string_view& text);
std::string_view take_line(std::string_view& text);

// The whole number that `word` is.
std::optional<int64_t> number_of(std::string_view word);

// What the system calls this machine's processor.
std::string processor_name();

// Seconds that the threads of this process, all together, were ready to run and did not, since each began; 0 where the
// system does not say.
double waited_seconds();

}  // namespace cairn
