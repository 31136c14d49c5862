// Where the rates of a processor come from: a file of earlier, or measured now and kept in one.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "runtime/costs/table.h"

namespace cairn::costs {

// One of these words, or the path of a file to take as it is.
inline constexpr std::string_view kRatesModel = "model";  // none: the analytic model's own
inline constexpr std::string_view kRatesCache =
    "cache";  // as kept by an earlier process, else measured and kept
inline constexpr std::string_view kRatesMeasure = "measure";  // measured again, and kept

struct RateRequest {
  Machine machine;  // all of it but the memory's size must be a file's, the library's version too
  std::string how{kRatesCache};
  // Of files that are kept; "": $XDG_CACHE_HOME/cairn or $HOME/.cache/cairn, or nowhere if neither is set.
  std::string directory = {};
  std::function<std::optional<Rates>()> measure;  // nothing: others' work disturbs it
};

// A table with rates and their origin; nullptr: the model. Asked again for the same machine in the same way, a process
// gets the same table, and nothing is measured twice. Processes that ask at the same time measure one after the other,
// so that the second one finds what the first one kept. Where others' work disturbs measuring, the table is the model's,
// for this process. A file that is broken or of another machine is measured over, and
// where nothing can be kept the rates are good for this process: the origin's notice says so. Any thread.
// kNotFound, kIo, kCorruptFile, kInvalidArgument (of another machine): a file that was asked for by its path.
std::shared_ptr<const Table> find_rates(const RateRequest& request);

// The name of a machine's file.
std::string rates_file_name(const Machine& machine);

}  // namespace cairn::costs
