// Parameters as a whole: how they, statistics and caches start, and the digest of parameters.
#include <xxhash.h>

#include <cmath>
#include <cstdio>
#include <numbers>

#include "runtime/base/os/thread.h"
#include "runtime/exec/adapter_start.h"
#include "runtime/exec/encoded.h"
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

// What a normal number is below which a share p of them lies (Wichura, 1988, AS 241), to 1e-16 for p of [0.02, 0.98].
double normal_quantile(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q *
           (((((((2509.0809287301226727 * r + 33430.575583588128105) * r + 67265.770927008700853) * r +
                45921.953931549871457) *
                   r +
               13731.693765509461125) *
                  r +
              1971.5909503065514427) *
                 r +
             133.14166789178437745) *
                r +
            3.387132872796366608) /
           (((((((5226.495278852545925 * r + 28729.085735721942674) * r + 39307.89580009271061) * r +
                21213.794301586595867) *
                   r +
               5394.1960214247511077) *
                  r +
              687.1870074920579083) *
                 r +
             42.313330701600911252) *
                r +
            1.0);
  }
  const double r = std::sqrt(-std::log(q < 0 ? p : 1 - p)) - 1.6;
  const double size =
      (((((((7.7454501427834140764e-4 * r + 0.0227238449892691845833) * r + 0.24178072517745061177) * r +
           1.27045825245236838258) *
              r +
          3.64784832476320460504) *
             r +
         5.7694972214606914055) *
            r +
        4.6303378461565452959) *
           r +
       1.42343711074968357734) /
      (((((((1.05075007164441684324e-9 * r + 5.475938084995344946e-4) * r + 0.0151986665636164571966) * r +
           0.14810397642748007459) *
              r +
          0.68976733498510000455) *
             r +
         1.6763848301838038494) *
            r +
        2.05319162663775882187) *
           r +
       1.0);
  return q < 0 ? -size : size;
}

constexpr double kBelowMinusTwo = 0.022750131948179207;  // the share of normal numbers below -2

// Elements [begin, begin + count) of a parameter; begin is a multiple of 4.
void draw(const graph::ParameterOptions& options, const RandomKey& key, int64_t begin, int64_t count,
          double* out) {
  for (int64_t i = 0; i < count; i += 4) {
    double four[4] = {options.init_scale, options.init_scale, options.init_scale, options.init_scale};
    if (options.init != graph::Init::kConstant && options.init <= graph::kLastGivenInit) {
      const PhiloxBlock bits = random_block(key, static_cast<uint64_t>((begin + i) / 4));
      if (options.init == graph::Init::kNormal) {
        std::tie(four[0], four[1]) = normal_pair(bits[0], bits[1]);
        std::tie(four[2], four[3]) = normal_pair(bits[2], bits[3]);
        for (double& v : four) v *= options.init_scale;
      } else if (options.init == graph::Init::kTruncatedNormal) {
        for (int k = 0; k < 4; ++k) {
          const double p = (static_cast<double>(bits[k]) + 0.5) * 0x1p-32;
          four[k] = options.init_scale * normal_quantile(kBelowMinusTwo + p * (1 - 2 * kBelowMinusTwo));
        }
      } else {
        for (int k = 0; k < 4; ++k) four[k] = options.init_scale * (2.0 * uniform(bits[k]) - 1.0);
      }
    }
    for (int64_t k = 0; k < std::min<int64_t>(4, count - i); ++k) out[i + k] = four[k];
  }
}

// `count` numbers, in the type that the parameter is declared as, to elements `at` and on of `out`.
void store(const double* wide, int64_t count, DType dtype, int64_t at, char* out) {
  if (dtype == DType::kF32) {
    for (int64_t k = 0; k < count; ++k) reinterpret_cast<float*>(out)[at + k] = static_cast<float>(wide[k]);
  } else if (dtype == DType::kBF16) {
    for (int64_t k = 0; k < count; ++k)
      reinterpret_cast<bf16*>(out)[at + k] = to_bf16(static_cast<float>(wide[k]));
  } else if (dtype == DType::kF16) {
    for (int64_t k = 0; k < count; ++k)
      reinterpret_cast<f16*>(out)[at + k] = to_f16(static_cast<float>(wide[k]));
  } else {
    std::memcpy(out + at * dtype_bytes(dtype), wide, static_cast<size_t>(count) * sizeof(double));
  }
}

// Elements [begin, begin + count) in the type that the parameter is declared as.
void fill(const graph::ParameterOptions& options, DType dtype, const RandomKey& key, int64_t begin,
          int64_t count, char* out) {
  double wide[kBlock];
  for (int64_t i = 0; i < count; i += kBlock) {
    const int64_t here = std::min(kBlock, count - i);
    draw(options, key, begin + i, here, wide);
    store(wide, here, dtype, i, out);
  }
}

// Vectors as long as `length`, one after the other, made orthonormal in their order (Gram and Schmidt, modified): what
// QR gives whose R has a positive diagonal, so that normal numbers end evenly distributed over all such matrices. Each
// vector is changed by one thread at a time, and so to the same bits by any number of them.
void orthonormalise(double* vectors, int64_t count, int64_t length, int threads) {
  for (int64_t i = 0; i < count; ++i) {
    double* const unit = vectors + i * length;
    double squares = 0;
    for (int64_t k = 0; k < length; ++k) squares += unit[k] * unit[k];
    const double factor = squares > 0 ? 1 / std::sqrt(squares) : 0;
    for (int64_t k = 0; k < length; ++k) unit[k] *= factor;
    const auto project = [&](int64_t j) {
      double* const other = vectors + (i + 1 + j) * length;
      double along = 0;
      for (int64_t k = 0; k < length; ++k) along += unit[k] * other[k];
      for (int64_t k = 0; k < length; ++k) other[k] -= along * unit[k];
    };
    if ((count - i) * length < kPiece) {  // threads would take longer to start than to work
      for (int64_t j = 0; j < count - i - 1; ++j) project(j);
    } else {
      spread("cairn/init", count - i - 1, threads, project);
    }
  }
}

// All of a parameter that starts orthogonal, as [rows, columns] in the type that it is declared as.
std::vector<char> orthogonal(const graph::ParameterOptions& options, const TensorDesc& desc,
                             const RandomKey& key, int threads) {
  const int64_t elements = desc.shape.elements(), rows = desc.shape.rank > 0 ? desc.shape[0] : 1,
                columns = elements / rows, count = std::min(rows, columns), length = std::max(rows, columns);
  std::vector<double> vectors(static_cast<size_t>(elements));
  const graph::ParameterOptions normal{.init = graph::Init::kNormal, .init_scale = 1};
  draw(normal, key, 0, elements, vectors.data());
  orthonormalise(vectors.data(), count, length, threads);
  std::vector<char> out(static_cast<size_t>(elements * dtype_bytes(desc.dtype)));
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column) {
      const double value = options.init_scale * (rows <= columns ? vectors[row * length + column]
                                                                 : vectors[column * length + row]);
      store(&value, 1, desc.dtype, row * columns + column, out.data());
    }
  return out;
}

// Elements from `first` on; `from` has them in the type that the parameter is declared as.
void write(engine::Session& session, int32_t value, int64_t first, const char* from, int64_t count,
           const formats::Encoder& encoder) {
  const TensorDesc desc = session.declared(value);
  if (desc.dtype == DType::kF32)
    return engine::write_part(session, value, first,
                              {reinterpret_cast<const float*>(from), static_cast<size_t>(count)}, encoder);
  const int64_t width = dtype_bytes(desc.dtype);
  session.write_saved(value, first * width, from, count * width);
}

// Threads for work on the host. With a device with memory of its own all processors of the machine are free.
int threads_for(const device::DeviceInfo& info) {
  return info.host_reaches ? std::max(1, info.threads) : usable_processors();
}

// Values that have numbers before the first run and keep them: of the kinds that the host writes, those that outlive a
// micro-batch. Parameters come first, in the order of the graph.
std::vector<int32_t> started(const graph::JointGraph& joint) {
  std::vector<int32_t> values;
  for (const graph::Resident& resident : joint.residents)
    if (graph::kind(resident.role).is(graph::WRITTEN) && resident.lifetime == graph::Lifetime::kSession)
      values.push_back(resident.value);
  return values;
}

}  // namespace

void initialise(engine::Session& session, uint64_t seed) {
  const graph::JointGraph& joint = *session.plan().joint;
  const int threads = threads_for(session.device().info());
  int64_t most = 0;  // bytes: all memory is there before anything is written
  for (const int32_t value : started(joint)) {
    const TensorDesc desc = session.declared(value);
    most = std::max(most, std::min(kPiece * threads, desc.shape.elements()) * dtype_bytes(desc.dtype));
  }
  std::vector<double> storage(static_cast<size_t>((most + 7) / 8));  // aligned for all types
  char* const out = reinterpret_cast<char*>(storage.data());
  uint32_t index = 0;
  for (const int32_t value : started(joint)) {
    const graph::Value& source = joint.forward->values()[joint.values[value].source];
    const TensorDesc desc = session.declared(value);
    const RandomKey key{seed, ~uint64_t{0}, 0, index++};
    formats::Encoder encoder = engine::encoder_of(session, value);
    if (source.parameter.init == graph::Init::kOrthogonal) {
      const std::vector<char> whole = orthogonal(source.parameter, desc, key, threads);
      if (encoder.measures())
        encoder.measure(
            0, {reinterpret_cast<const float*>(whole.data()), static_cast<size_t>(desc.shape.elements())});
      write(session, value, 0, whole.data(), desc.shape.elements(), encoder);
      continue;
    }
    const int64_t elements = desc.shape.elements(), width = dtype_bytes(desc.dtype);
    const auto in_pieces = [&](const auto& use) {
      for (int64_t begin = 0, count = 0; begin < elements; begin += count) {
        count = std::min(kPiece * threads, elements - begin);
        spread("cairn/init", (count + kPiece - 1) / kPiece, threads, [&](int64_t i) {
          const int64_t at = i * kPiece;
          fill(source.parameter, desc.dtype, key, begin + at, std::min(kPiece, count - at), out + at * width);
        });
        use(begin, count);
      }
    };
    if (encoder.measures())
      in_pieces([&](int64_t begin, int64_t count) {
        encoder.measure(begin, {reinterpret_cast<const float*>(out), static_cast<size_t>(count)});
      });
    in_pieces([&](int64_t begin, int64_t count) { write(session, value, begin, out, count, encoder); });
  }
  engine::AdapterStarts(session).all_stored();
  session.parameters_changed();
}

std::string parameter_digest(const engine::Session& session) {
  const graph::JointGraph& joint = *session.plan().joint;
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  if (state == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state.get());
  constexpr int64_t kPiece = 1 << 20;
  const auto piece = std::make_unique_for_overwrite<char[]>(kPiece);
  for (const graph::Resident& stored : joint.residents) {
    if (stored.role != graph::Role::kParameter) continue;
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
