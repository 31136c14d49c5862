#include "runtime/base/listing.h"

#include <dirent.h>

#include <cerrno>
#include <memory>
#include <system_error>

#include "runtime/base/error.h"

namespace cairn {

std::vector<std::string> names_in(const std::filesystem::path& directory) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(directory.empty() ? "." : directory.c_str()),
                                                 ::closedir);
  const auto check = [&](bool fine) {
    const int number = errno;
    if (!fine)
      fail(code_of_errno(number), "cannot list '", directory.string(),
           "': ", std::generic_category().message(number));
  };
  check(open != nullptr);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* const entry = ::readdir(open.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  check(errno == 0);
  return names;
}

}  // namespace cairn
