// Why a value exists, and what becomes of its bytes: the rows of residents.def.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cairn::graph {

enum class Role : uint8_t {
#define KIND(id, ...) id,
#include "runtime/graph/residents.def"
#undef KIND
};

enum class Lifetime : uint8_t { kMicroBatch, kStep, kSession };
enum class Saved : uint8_t { kNever, kInStep, kAlways, kWithOwner };
enum class Counted : uint8_t { kParameters, kGradients, kOptimizer, kActivations };

enum KindTrait : uint32_t {
  PERSISTS = 1u << 0,  // its bytes are its own from run to run
  OWNED = 1u << 1,     // it belongs to a parameter
  SHARED = 1u << 2,    // programs on one store have one of the name; others have one each
  LEAVES = 1u << 3,    // may live in a tier below the device
  SPLITS = 1u << 4,    // an update that goes element by element may take it in parts
  WRITTEN = 1u << 5,   // the host writes it
  UPDATED = 1u << 6,   // updates read or change it
  DERIVED = 1u << 7,   // an op makes it of its owner, whenever that changed
  APPENDED = 1u << 8,  // ops of a micro-batch change it; what reads it is never recomputed
};

struct KindRow {
  std::string_view name;
  Lifetime lifetime;
  Saved saved;
  Counted counted;
  uint32_t traits;

  constexpr bool is(KindTrait trait) const { return (traits & trait) != 0; }
};

namespace residents {
constexpr Lifetime MICRO_BATCH = Lifetime::kMicroBatch, STEP = Lifetime::kStep, SESSION = Lifetime::kSession;
constexpr Saved NEVER = Saved::kNever, IN_STEP = Saved::kInStep, ALWAYS = Saved::kAlways,
                WITH_OWNER = Saved::kWithOwner;
constexpr Counted PARAMETERS = Counted::kParameters, GRADIENTS = Counted::kGradients,
                  OPTIMIZER = Counted::kOptimizer, ACTIVATIONS = Counted::kActivations;
constexpr KindRow kRows[] = {
#define KIND(id, ...) {__VA_ARGS__},
#include "runtime/graph/residents.def"
#undef KIND
};
}  // namespace residents

constexpr const KindRow& kind(Role role) { return residents::kRows[static_cast<size_t>(role)]; }

// A value that persists. How it is stored is the desc of the value.
struct Resident {
  std::string name;  // in checkpoints: "h0.w", "h0.w/m", "h0.w/gradient"
  int32_t value;
  Role role;
  int32_t owner = -1;  // index into JointGraph::parameters
  Lifetime lifetime = Lifetime::kSession;
  Saved saved = Saved::kNever;
  bool splits = false;          // its parts may be brought to the device, updated and taken away in turn
  int32_t phase = -1, op = -1;  // that makes it of its owner: index into JointGraph::phases, and into its ops
};

}  // namespace cairn::graph
