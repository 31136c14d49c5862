#include "runtime/ops/functions.h"

namespace cairn::ops {
namespace {

constexpr Function kFunctions[] = {
#define FUNCTION(name, op, choice) {#name, OpCode::k_##op, OpCode::k_##op##_grad, choice},
#include "runtime/base/elementwise.def"
};

std::string list_words() {
  std::string words;
  for (const Function& f : kFunctions) words += cat(words.empty() ? "" : ", ", f.name);
  return words;
}

}  // namespace

std::span<const Function> functions() { return kFunctions; }

const Function* find_function(std::string_view name) {
  for (const Function& f : kFunctions)
    if (f.name == name) return &f;
  return nullptr;
}

const Function* differentiated(OpCode gradient, const Attrs& attrs) {
  const Function* first = nullptr;
  for (const Function& f : kFunctions) {
    if (f.gradient != gradient) continue;
    if (first == nullptr) first = &f;
    if (attrs.word("approximate", std::string(first->choice)) == f.choice) return &f;
  }
  return first;
}

const std::string& activation_words() {
  static const std::string words = list_words();
  return words;
}

}  // namespace cairn::ops
