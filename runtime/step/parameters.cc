// Parameters as a whole: how they start, and their digest.
#include <xxhash.h>

#include <cmath>
#include <cstdio>
#include <numbers>

#include "runtime/base/os/thread.h"
#include "runtime/step/stepper.h"

namespace cairn::step {
namespace {

constexpr int64_t kPiece = 1 << 18;  // elements of one thread; numbers depend on the element alone
constexpr int64_t kBlock = 1 << 10;  // drawn at once

// Two normal numbers from two uniform ones (Box and Muller, 1958); u1 is moved off zero.
std::pair<double, double> normal_pair(uint32_t a, uint32_t b) {
  const double u1 = (static_cast<double>(a) + 0.5) * 0x1p-32, u2 = static_cast<double>(b) * 0x1p-32;
  const double radius = std::sqrt(-2.0 * std::log(u1)), angle = 2.0 * std::numbers::pi * u2;
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

// Elements [begin, begin + count) of a parameter; begin is a multiple of 4.
void draw(const graph::ParameterOptions& options, const RandomKey& key, int64_t begin, int64_t count,
          double* out) {
  for (int64_t i = 0; i < count; i += 4) {
    double four[4] = {options.init_scale, options.init_scale, options.init_scale, options.init_scale};
    if (options.init != graph::Init::kConstant) {
      const PhiloxBlock bits = random_block(key, static_cast<uint64_t>((begin + i) / 4));
      if (options.init == graph::Init::kNormal) {
        std::tie(four[0], four[1]) = normal_pair(bits[0], bits[1]);
        std::tie(four[2], four[3]) = normal_pair(bits[2], bits[3]);
        for (double& v : four) v *= options.init_scale;
      } else {
        for (int k = 0; k < 4; ++k) four[k] = options.init_scale * (2.0 * uniform(bits[k]) - 1.0);
      }
    }
    for (int64_t k = 0; k < std::min<int64_t>(4, count - i); ++k) out[i + k] = four[k];
  }
}

// Elements [begin, begin + count) in the type that the parameter is saved as.
void fill(const graph::ParameterOptions& options, DType dtype, const RandomKey& key, int64_t begin,
          int64_t count, char* out) {
  double wide[kBlock];
  for (int64_t i = 0; i < count; i += kBlock) {
    const int64_t here = std::min(kBlock, count - i);
    draw(options, key, begin + i, here, wide);
    if (dtype == DType::kF32) {
      for (int64_t k = 0; k < here; ++k) reinterpret_cast<float*>(out)[i + k] = static_cast<float>(wide[k]);
    } else if (dtype == DType::kBF16) {
      for (int64_t k = 0; k < here; ++k)
        reinterpret_cast<bf16*>(out)[i + k] = to_bf16(static_cast<float>(wide[k]));
    } else {
      std::memcpy(out + i * dtype_bytes(dtype), wide, static_cast<size_t>(here) * sizeof(double));
    }
  }
}

// A device of its own has no processors, so the machine's are free.
int threads_for(const device::DeviceInfo& info) {
  return info.host_reaches ? std::max(1, info.threads) : usable_processors();
}

}  // namespace

void initialise(engine::Session& session, uint64_t seed) {
  const graph::JointGraph& joint = *session.plan().joint;
  const int threads = threads_for(session.device().info());
  int64_t most = 0;  // bytes: all memory is there before anything is written
  for (const graph::ParameterSlot& slot : joint.parameters) {
    const TensorDesc desc = session.saved(slot.value);
    most = std::max(most, std::min(kPiece * threads, desc.shape.elements()) * dtype_bytes(desc.dtype));
  }
  std::vector<double> storage(static_cast<size_t>((most + 7) / 8));  // aligned for all types
  char* const out = reinterpret_cast<char*>(storage.data());
  uint32_t index = 0;
  for (const graph::ParameterSlot& slot : joint.parameters) {
    const graph::Value& source = joint.forward->values()[slot.source];
    const TensorDesc desc = session.saved(slot.value);
    const RandomKey key{seed, ~uint64_t{0}, 0, index++};
    const int64_t elements = desc.shape.elements(), width = dtype_bytes(desc.dtype);
    for (int64_t begin = 0, count = 0; begin < elements; begin += count) {
      count = std::min(kPiece * threads, elements - begin);
      spread("cairn/init", (count + kPiece - 1) / kPiece, threads, [&](int64_t i) {
        const int64_t at = i * kPiece;
        fill(source.parameter, desc.dtype, key, begin + at, std::min(kPiece, count - at), out + at * width);
      });
      session.write_saved(slot.value, begin * width, out, count * width);
    }
  }
  session.parameters_changed();
}

std::string parameter_digest(const engine::Session& session) {
  const graph::JointGraph& joint = *session.plan().joint;
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  if (state == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state.get());
  constexpr int64_t kPiece = 1 << 20;
  const auto piece = std::make_unique_for_overwrite<char[]>(kPiece);
  for (const graph::State& stored : joint.states) {
    if (joint.values[stored.value].role != graph::Role::kParameter) continue;
    const int64_t bytes = session.saved(stored.value).bytes();
    for (int64_t begin = 0; begin < bytes; begin += kPiece) {
      const int64_t count = std::min(kPiece, bytes - begin);
      session.read_saved(stored.value, begin, piece.get(), count);
      XXH3_128bits_update(state.get(), piece.get(), static_cast<size_t>(count));
    }
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  char hex[33];
  std::snprintf(hex, sizeof hex, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return hex;
}

}  // namespace cairn::step
