// What the kernels of the op `update` share on every backend: which signatures are sound, and how a backend's
// optimizer is found. A backend lists its optimizers as an UpdateList of structs, each with
//   kName     as in optimizers.def
//   kStates   how many states it reads and writes; one that has a state only sometimes is listed once for
//   each count
//   takes_states(signature, dtype)  where its states are other tensors than the parameter's shape and type
// and the factors of a step, made from the op's hyper-parameters and the gradient's factor.
#pragma once
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "runtime/base/kernel_closure.h"
#include "runtime/base/optimizers/update_operands.h"

namespace cairn::kernels {

template <class... Optimizers>
struct UpdateList {};

// The optimizer's place in the list.
template <class Optimizer, class... Optimizers>
constexpr size_t index_of(UpdateList<Optimizers...>) {
  size_t index = 0;
  ((!std::is_same_v<Optimizer, Optimizers> && (++index, true)) && ...);
  return index;
}

// An array of one thing per state may have no element in C++.
constexpr int array_of(int states) { return states > 0 ? states : 1; }

inline int update_states(const Signature& s) {
  int states = 0;
  for (size_t k = 0; k < update_op::kMaxStates; ++k) states += s.has_out(update_op::kFirstState + k) ? 1 : 0;
  return states;
}

// What the parameter is stored as: a plain tensor of the gradient's type; bfloat16, rounded stochastically from
// what the update makes of it; or bfloat16 and the 16 bits below it (split.h), which are the last state.
enum class Stored : uint8_t { kPlain, kRounded, kSplit };
inline Stored stored(const Signature& s) {
  return s.attrs->has("rng") ? Stored::kRounded : s.attrs->has("split") ? Stored::kSplit : Stored::kPlain;
}

// Of the optimizer's own.
inline int optimizer_states(const Signature& s) {
  return update_states(s) - (stored(s) == Stored::kSplit ? 1 : 0);
}

// Where an update that rounds is in its stream of random numbers.
struct RandomPlace {
  uint32_t stream = 0;
  int64_t first = 0;  // of the parameter's elements

  explicit RandomPlace(const Signature& s)
      : stream(static_cast<uint32_t>(s.attrs->integer("rng"))), first(s.attrs->integer("first", 0)) {}
};

// How the parameter is stored, as a kernel of an update needs it.
struct ParameterForm {
  std::optional<RandomPlace> random;  // for a parameter that is rounded stochastically
  size_t low = 0;                     // the output with the lower half of a split parameter; 0: not split
  DType packed_type = DType::kBF16;   // of its copy of 16 bits, where it has one

  explicit ParameterForm(const Signature& s) {
    if (stored(s) == Stored::kRounded) random.emplace(s);
    if (stored(s) == Stored::kSplit) low = static_cast<size_t>(update_op::kFirstState + optimizer_states(s));
    if (const std::string word = s.attrs->word("packed_dtype"); !word.empty())
      packed_type = dtype_from_name(word);
  }
};

// True if the packed weight is a copy of 16 bits in the same order, or if there is none.
inline bool packs_by_copy(const Signature& s) {
  return !s.has_out(update_op::kPacked) ||
         s.out[update_op::kPacked].packed_bytes == 2 * s.in[update_op::kGrad].shape.elements();
}

// The parameter is of the gradient's type, or the gradient is float32 and the parameter has one of the other forms.
inline bool takes_parameter(const Signature& s, DType dtype) {
  const TensorDesc& p = s.out[update_op::kParameter];
  if (p.packed_bytes != 0) return false;
  if (stored(s) == Stored::kPlain) return p.dtype == dtype;
  if (dtype != DType::kF32 || p.dtype != DType::kBF16 || s.has_out(update_op::kPacked)) return false;
  if (stored(s) == Stored::kRounded) return true;
  if (update_states(s) == 0) return false;
  const TensorDesc& low = s.out[ParameterForm(s).low];
  return low.dtype == DType::kSplit && low.packed_bytes == 0 && low.shape == p.shape;
}

// Gradient and parameter are what kernels compute with; the states are the first ones of the row; the numbers are
// float64; total and grad_scale are both there or both left out.
inline bool takes_update(const Signature& s, DType dtype) {
  const auto plain = [dtype](const TensorDesc& d) { return d.dtype == dtype && d.packed_bytes == 0; };
  const auto number = [](const TensorDesc& d) { return d.dtype == DType::kF64; };
  if (s.attrs == nullptr || !s.has_in(update_op::kGrad) || !s.has_in(update_op::kHyper) ||
      !s.has_out(update_op::kParameter))
    return false;
  if (!plain(s.in[update_op::kGrad]) || !number(s.in[update_op::kHyper])) return false;
  for (size_t k = 0; k < static_cast<size_t>(update_states(s)); ++k)
    if (!s.has_out(update_op::kFirstState + k)) return false;
  if (!takes_parameter(s, dtype)) return false;
  if (s.has_in(update_op::kTotal) != s.has_out(update_op::kGradScale)) return false;
  return !s.has_in(update_op::kTotal) ||
         (number(s.in[update_op::kTotal]) && number(s.out[update_op::kGradScale]));
}

// Whether the states are what the optimizer computes with: as it says, or plain tensors like the gradient.
template <class Optimizer>
bool takes_states(const Signature& s) {
  const TensorDesc& grad = s.in[update_op::kGrad];
  if constexpr (requires { Optimizer::takes_states(s, grad.dtype); }) {
    return Optimizer::takes_states(s, grad.dtype);
  } else {
    for (int k = 0; k < Optimizer::kStates; ++k) {
      const TensorDesc& state = s.out[static_cast<size_t>(update_op::kFirstState + k)];
      if (state.dtype != grad.dtype || state.packed_bytes != 0) return false;
    }
    return true;
  }
}

// Optimizers whose states are blocks of a format say so with kFormats, one for each; all others take plain ones.
template <class Optimizer>
concept InBlocks = requires {
  Optimizer::kFormats;
};

// Of an optimizer with kFormats, for its takes_states().
template <size_t kStates>
bool takes_formats(const Signature& s, const DType (&formats)[kStates]) {
  for (size_t k = 0; k < kStates; ++k) {
    const TensorDesc& state = s.out[update_op::kFirstState + k];
    if (state.dtype != formats[k] || state.packed_bytes != 0 ||
        state.shape != s.out[update_op::kParameter].shape)
      return false;
  }
  return true;
}

// make(std::type_identity<Optimizer>()) of the one that the signature asks for; nullptr: the list has none.
template <class... Optimizers, class Make>
std::unique_ptr<Kernel> with_optimizer(UpdateList<Optimizers...>, const Signature& s, const Make& make) {
  const std::string name = s.attrs->word("optimizer");
  const int states = optimizer_states(s);
  std::unique_ptr<Kernel> kernel;
  const auto is = [&]<class Optimizer>(std::type_identity<Optimizer> type) {
    if (Optimizer::kName != name || Optimizer::kStates != states || !takes_states<Optimizer>(s)) return false;
    kernel = make(type);
    return true;
  };
  (is(std::type_identity<Optimizers>()) || ...);
  return kernel;
}

// Of a run on the host: what the gradient is multiplied by, grad_scale or the hyper-parameters' factor;
// nothing where an infinity or NaN was found, as it is for good once the total is not finite.
inline std::optional<double> gradient_factor(const Call& call) {
  const auto* const total = input<const double>(call, update_op::kTotal);
  if (total == nullptr) return input<const double>(call, update_op::kHyper)[update_op::kFactorSlot];
  auto* const grad_scale = output<double>(call, update_op::kGradScale);
  if (!std::isfinite(*total)) *grad_scale = std::numeric_limits<double>::quiet_NaN();
  return std::isfinite(*grad_scale) ? std::optional(*grad_scale) : std::nullopt;
}

}  // namespace cairn::kernels
