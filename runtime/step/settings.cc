#include "runtime/step/settings.h"

#include "runtime/base/error.h"

namespace cairn::step {
namespace {

constexpr Setting kSettings[] = {
#define SETTING(name, range, value, description) {#name, range, value, description},
#include "runtime/step/settings.def"
};

}  // namespace

std::span<const Setting> settings() { return kSettings; }

void check_setting(std::string_view name, double value) {
  for (const Setting& setting : kSettings) {
    if (setting.name != name) continue;
    const ops::Range& range = ops::range(setting.range);
    require(range.holds(value), Code::kInvalidArgument, name, " is ", value, "; it must be ", range.words);
  }
}

}  // namespace cairn::step
