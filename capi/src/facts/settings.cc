// Chapter 6: what the numbers of optimizers, schedules and steppers may be.
#include "runtime/step/settings.h"

#include <string>
#include <vector>

#include "capi/src/structs.h"
#include "runtime/ops/optimizers.h"
#include "runtime/ops/ranges.h"
#include "runtime/step/schedule.h"

using namespace cairn::capi;
using cairn::Code;
using cairn::require;
namespace ops = cairn::ops;
namespace step = cairn::step;

static_assert(CAIRN_SETTING_ABOVE == int{ops::RANGE_ABOVE} && CAIRN_SETTING_BELOW == int{ops::RANGE_BELOW} &&
              CAIRN_SETTING_INTEGER == int{ops::RANGE_INTEGER} &&
              CAIRN_SETTING_OR_ZERO == int{ops::RANGE_OR_ZERO} &&
              CAIRN_SETTING_LIST == int{ops::RANGE_LIST} && CAIRN_SETTING_SWITCH == int{ops::RANGE_SWITCH});

namespace {

struct Entry {
  std::string owner, name, description, words;
  const ops::Range* range;  // nullptr: it is one of `words`
  double value;
};
using Entries = std::vector<Entry>;

// The tables' texts are views; a host gets texts that end.
const Entries& entries_of(uint32_t kind) {
  static const auto all = [] {
    std::vector<Entries> lists(3);
    for (const ops::OptimizerRow& row : ops::optimizers())
      for (const ops::Hyper& h : row.hypers)
        lists[CAIRN_SETTINGS_OF_OPTIMIZER].push_back({std::string(row.name), std::string(h.name),
                                                      std::string(h.description), "", &ops::range(h.range),
                                                      h.value});
    for (const step::ScheduleRow& row : step::schedules())
      for (const step::ScheduleParameter& p : row.parameters) {
        Entry entry{std::string(row.name), std::string(p.name), "", "", nullptr, p.value};
        for (std::string_view word : p.words) entry.words += cairn::cat(entry.words.empty() ? "" : " ", word);
        if (p.words.empty()) entry.range = &ops::range(p.range);
        lists[CAIRN_SETTINGS_OF_SCHEDULE].push_back(std::move(entry));
      }
    for (const step::Setting& s : step::settings())
      lists[CAIRN_SETTINGS_OF_STEPPER].push_back(
          {"", std::string(s.name), std::string(s.description), "", &ops::range(s.range), s.value});
    return lists;
  }();
  return all[kind];
}

// kInvalidArgument: there is no such owner.
void check_owner(uint32_t kind, const char* owner) {
  if (kind == CAIRN_SETTINGS_OF_STEPPER) {
    require(owner == nullptr, Code::kInvalidArgument, "owner is '", owner,
            "'; a stepper has no name: give NULL");
    return;
  }
  not_null(owner, "owner");
  if (kind == CAIRN_SETTINGS_OF_OPTIMIZER) {
    ops::optimizer(owner);
  } else {
    step::schedule(owner);
  }
}

}  // namespace

cairn_status_t cairn_setting_describe(uint32_t kind, const char* owner, size_t index,
                                      cairn_setting_info_t* out_info, cairn_error_t* error) {
  return guard(error, [&] {
    in_enum(kind, CAIRN_SETTINGS_OF_STEPPER, "kind");
    check_owner(kind, owner);
    const OutStruct out(out_info, "out_info");
    size_t count = 0;
    for (const Entry& e : entries_of(kind)) {
      if ((owner != nullptr && e.owner != owner) || count++ != index) continue;
      cairn_setting_info_t info = CAIRN_SETTING_INFO_INIT;
      info.name = e.name.c_str();
      info.description = e.description.c_str();
      info.words = e.words.c_str();
      info.default_value = e.value;
      if (e.range != nullptr) {
        info.allowed = e.range->words.data();
        info.least = e.range->least;
        info.most = e.range->most;
        info.traits = e.range->traits;
      } else {
        info.allowed = "";
      }
      return out.write(info);
    }
    cairn::fail(Code::kNotFound, "there is no setting number ", index, "; there are ", count);
  });
}
