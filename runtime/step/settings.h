// The numbers that a stepper takes. Rows are in settings.def.
#pragma once
#include <span>
#include <string_view>

#include "runtime/ops/ranges.h"

namespace cairn::step {

struct Setting {
  std::string_view name;
  char range;  // of runtime/ops/ranges.h
  double value;
  std::string_view description;
};

std::span<const Setting> settings();
// kInvalidArgument names the setting, the value and the range.
void check_setting(std::string_view name, double value);

}  // namespace cairn::step
