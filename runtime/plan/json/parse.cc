#include "runtime/plan/json/parse.h"

#include <atomic>
#include <memory>
#include <new>

namespace cairn::plan {
namespace {

std::atomic<bool> implementation_chosen{false};

// When simdjson parses for the first time, it chooses the instructions that it uses. It allocates memory for their
// names in functions that may not throw, so a failed allocation ends the process. So it chooses as soon as the
// library is loaded. If there was too little memory then, it chooses before a text is parsed, and only with memory to
// spare.
void choose() {
  if (implementation_chosen.load(std::memory_order_acquire)) return;
  constexpr size_t kMoreThanItTakes = 4096;
  *const_cast<volatile char*>(std::make_unique<char[]>(kMoreThanItTakes).get()) =
      0;  // volatile: the compiler must not remove the allocation
  simdjson::get_active_implementation()->name();
  implementation_chosen.store(true, std::memory_order_release);
}

[[maybe_unused]] const bool at_load = [] {
  try {
    choose();
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}();

}  // namespace

simdjson::error_code parse_json(simdjson::dom::parser& parser, std::string& padded, std::string_view text,
                                simdjson::dom::element& root) {
  choose();
  padded.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  padded = text;
  padded.append(simdjson::SIMDJSON_PADDING, '\0');
  const simdjson::error_code error = parser.parse(padded.data(), text.size(), false).get(root);
  if (error == simdjson::MEMALLOC) throw std::bad_alloc();
  return error;
}

}  // namespace cairn::plan
