#include "bench/plan/irregular.h"

#include <algorithm>
#include <random>
#include <utility>

#include "bench/plan/tape.h"
#include "runtime/base/error.h"

namespace cairn::bench {
namespace {

constexpr Reads kInput{.input = true}, kOutput{.output = true}, kPassesOn{.only_passes_on = true};
constexpr Reads kBoth{.input = true, .output = true}, kStatistics{.input = true, .extra = true};
constexpr Reads kWithAll{.input = true, .output = true, .extra = true};

// A model that is written down op by op; rows of `width` elements of two bytes.
class Model {
 public:
  explicit Model(uint32_t seed) : random_(seed) {}

  int32_t value(const std::string& name, int64_t bytes) { return tape_.value(name, bytes, true); }
  void region(const std::string& name) { region_ = tape_.region(name); }
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

  // `passes`: how often the output's bytes are moved, forward and backward.
  int32_t moves(const std::string& name, std::vector<int32_t> inputs, int64_t bytes, Reads reads,
                double passes, double back_passes, int64_t extra = 0) {
    const auto moved = static_cast<double>(bytes);
    return add(name, std::move(inputs), bytes, reads, roofline(0, passes * moved),
               roofline(0, back_passes * moved), extra, 0);
  }
  int32_t multiplies(const std::string& name, std::vector<int32_t> inputs, int64_t bytes, double flops,
                     int64_t weight, Reads reads = kInput, int64_t extra = 0) {
    return add(name, std::move(inputs), bytes, reads, roofline(flops, 0), roofline(2 * flops, 0), extra,
               weight);
  }
  int32_t linear(const std::string& name, int32_t x, int64_t rows, int64_t inner, int64_t outer) {
    const double flops =
        2.0 * static_cast<double>(rows) * static_cast<double>(inner) * static_cast<double>(outer);
    return multiplies(name, {x}, 2 * rows * outer, flops, 2 * inner * outer);
  }
  int32_t norm(const std::string& name, int32_t x, int64_t bytes, int64_t rows) {
    return moves(name, {x}, bytes, kStatistics, 2, 4, 8 * rows);
  }
  int32_t sum(const std::string& name, int32_t a, int32_t b, int64_t bytes) {
    return moves(name, {a, b}, bytes, kPassesOn, 3, 0);
  }
  // Of `rows` queries to `keys` rows.
  int32_t attention(const std::string& name, std::vector<int32_t> inputs, int64_t rows, int64_t keys,
                    int64_t width) {
    const double flops =
        4.0 * static_cast<double>(rows) * static_cast<double>(keys) * static_cast<double>(width);
    return multiplies(name, std::move(inputs), 2 * rows * width, flops, 0, kWithAll, 4 * rows * 8);
  }
  Problem finish(const std::vector<int32_t>& last) {
    Forward f{"loss", last, 4, 0, 0, 0, 0, 1e-5, 1e-5, kInput, false, -1};
    tape_.add(std::move(f));
    return tape_.finish();
  }

 private:
  int32_t add(const std::string& name, std::vector<int32_t> inputs, int64_t bytes, Reads reads,
              double seconds, double back_seconds, int64_t extra, int64_t weight) {
    return tape_.add(
        {name, std::move(inputs), bytes, extra, weight, 0, 0, seconds, back_seconds, reads, true, region_});
  }

  Tape tape_;
  std::mt19937 random_;
  int32_t region_ = -1;
};

Problem unet_attention(int blocks, uint32_t seed) {
  Model m(seed);
  constexpr int kLevels = 5;
  constexpr int64_t kBatch = 4;
  int64_t side = 64, channels = 128;
  const auto bytes = [&](int64_t c) { return 2 * kBatch * c * side * side; };
  const auto convolution = [&](const std::string& name, int32_t x, int64_t inner, int64_t outer) {
    const double flops =
        18.0 * static_cast<double>(kBatch * side * side) * static_cast<double>(inner * outer);
    return m.multiplies(name, {x}, bytes(outer), flops, 18 * inner * outer);
  };
  const auto block = [&](const std::string& name, int32_t x, int64_t inner, int64_t outer, bool attends) {
    m.region(name);
    int32_t y = m.norm(name + ".norm1", x, bytes(inner), kBatch * 32);
    y = m.moves(name + ".silu1", {y}, bytes(inner), kInput, 2, 3);
    y = convolution(name + ".conv1", y, inner, outer);
    y = m.norm(name + ".norm2", y, bytes(outer), kBatch * 32);
    y = m.moves(name + ".silu2", {y}, bytes(outer), kInput, 2, 3);
    y = convolution(name + ".conv2", y, outer, outer);
    const int32_t around = inner == outer ? x : convolution(name + ".around", x, inner, outer);
    y = m.sum(name + ".sum", around, y, bytes(outer));
    if (!attends) return y;
    const int64_t rows = kBatch * side * side;
    const int32_t qkv =
        m.linear(name + ".qkv", m.norm(name + ".norm3", y, bytes(outer), rows), rows, outer, 3 * outer);
    const int32_t mixed = m.attention(name + ".attention", {qkv}, rows, side * side, outer);
    return m.sum(name + ".sum2", y, m.linear(name + ".proj", mixed, rows, outer, outer), bytes(outer));
  };
  const auto wide = [](int level) { return int64_t{128} << std::min(level, 2); };
  int32_t x = convolution("in", m.value("image", bytes(4)), 4, channels);
  std::vector<std::pair<int32_t, int64_t>> skips = {{x, channels}};
  for (int level = 0; level < kLevels; ++level) {
    for (int b = 0; b < blocks; ++b) {
      x = block(cat("down", level, "_", b), x, channels, wide(level), level >= kLevels - 2);
      channels = wide(level);
      skips.emplace_back(x, channels);
    }
    if (level + 1 == kLevels) break;
    side /= 2;
    x = m.moves(cat("pool", level), {x}, bytes(channels), {}, 5, 5);
  }
  x = block("middle", x, channels, channels, true);
  for (int level = kLevels; level-- > 0;) {
    for (int b = 0; b < blocks; ++b) {
      const auto [skip, more] = skips.back();
      skips.pop_back();
      const std::string name = cat("up", level, "_", b);
      x = m.moves(name + ".concat", {skip, x}, bytes(channels + more), {}, 2, 2);
      x = block(name, x, channels + more, wide(level), level >= kLevels - 2);
      channels = wide(level);
    }
    if (level == 0) break;
    side *= 2;
    x = m.moves(cat("upsample", level), {x}, bytes(channels), {}, 1.25, 1.25);
  }
  return m.finish({x});
}

Problem dense(int layers, uint32_t seed) {
  Model m(seed);
  constexpr int64_t kBatch = 32, kGrowth = 32;
  int64_t side = 56, channels = 64;
  const auto bytes = [&](int64_t c) { return 2 * kBatch * c * side * side; };
  const auto convolution = [&](const std::string& name, int32_t x, int64_t inner, int64_t outer,
                               int64_t taps) {
    const double flops =
        2.0 * static_cast<double>(taps * kBatch * side * side) * static_cast<double>(inner * outer);
    return m.multiplies(name, {x}, bytes(outer), flops, 2 * taps * inner * outer);
  };
  int32_t x = m.value("image", bytes(channels));
  for (int block = 0; block < 4; ++block) {
    std::vector<int32_t> made = {x};
    int64_t all = channels;
    for (int layer = 0; layer < layers; ++layer) {
      const std::string name = cat("block", block, "_", layer);
      m.region(name);
      int32_t y = m.moves(name + ".concat", made, bytes(all), {}, 2, 2);
      y = m.norm(name + ".norm1", y, bytes(all), 64);
      y = m.moves(name + ".relu1", {y}, bytes(all), kOutput, 2, 3);
      y = convolution(name + ".conv1", y, all, 4 * kGrowth, 1);
      y = m.norm(name + ".norm2", y, bytes(4 * kGrowth), 64);
      y = m.moves(name + ".relu2", {y}, bytes(4 * kGrowth), kOutput, 2, 3);
      made.push_back(convolution(name + ".conv2", y, 4 * kGrowth, kGrowth, 9));
      all += kGrowth;
    }
    x = m.moves(cat("concat", block), made, bytes(all), {}, 2, 2);
    x = convolution(cat("transition", block), x, all, all / 2, 1);
    channels = all / 2;
    if (block == 3) break;
    x = m.moves(cat("pool", block), {x}, bytes(channels) / 4, {}, 5, 5);
    side /= 2;
  }
  return m.finish({x});
}

// A layer of a transformer; `memory` is attended to besides, if there is one.
int32_t transformer_layer(Model& m, const std::string& name, int32_t x, int64_t rows, int64_t keys,
                          int64_t width, int32_t memory, int64_t memory_rows) {
  m.region(name);
  const int64_t row = 2 * rows * width;
  int32_t y = m.linear(name + ".qkv", m.norm(name + ".ln1", x, row, rows), rows, width, 3 * width);
  y = m.attention(name + ".attention", {y}, rows, keys, width);
  x = m.sum(name + ".sum1", x, m.linear(name + ".proj", y, rows, width, width), row);
  if (memory >= 0) {
    const int32_t q = m.linear(name + ".q", m.norm(name + ".ln2", x, row, rows), rows, width, width);
    const int32_t kv = m.linear(name + ".kv", memory, memory_rows, width, 2 * width);
    y = m.attention(name + ".cross", {q, kv}, rows, keys, width);
    x = m.sum(name + ".sum2", x, m.linear(name + ".proj2", y, rows, width, width), row);
  }
  y = m.linear(name + ".fc", m.norm(name + ".ln3", x, row, rows), rows, width, 4 * width);
  y = m.moves(name + ".gelu", {y}, 4 * row, kInput, 2, 3);
  return m.sum(name + ".sum3", x, m.linear(name + ".out", y, rows, 4 * width, width), row);
}

Problem encoder_decoder(int layers, uint32_t seed) {
  Model m(seed);
  constexpr int64_t kWidth = 768, kKeys = 512, kRows = 8 * kKeys, kRow = 2 * kRows * kWidth;
  int32_t x = m.moves("embedding", {m.value("tokens", 8 * kRows)}, kRow, {}, 2, 3);
  for (int i = 0; i < layers; ++i) x = transformer_layer(m, cat("e", i), x, kRows, kKeys, kWidth, -1, 0);
  const int32_t memory = m.norm("encoded", x, kRow, kRows);
  x = m.moves("embedding2", {m.value("targets", 8 * kRows)}, kRow, {}, 2, 3);
  for (int i = 0; i < layers; ++i)
    x = transformer_layer(m, cat("d", i), x, kRows, kKeys, kWidth, memory, kRows);
  return m.finish({x});
}

Problem experts(int layers, uint32_t seed) {
  Model m(seed);
  constexpr int64_t kWidth = 768, kKeys = 512, kRows = 8 * kKeys, kRow = 2 * kRows * kWidth;
  constexpr int kExperts = 8;
  int32_t x = m.moves("embedding", {m.value("tokens", 8 * kRows)}, kRow, {}, 2, 3);
  for (int i = 0; i < layers; ++i) {
    const std::string name = cat("h", i);
    m.region(name);
    int32_t y = m.linear(name + ".qkv", m.norm(name + ".ln1", x, kRow, kRows), kRows, kWidth, 3 * kWidth);
    y = m.attention(name + ".attention", {y}, kRows, kKeys, kWidth);
    x = m.sum(name + ".sum1", x, m.linear(name + ".proj", y, kRows, kWidth, kWidth), kRow);
    const int32_t normed = m.norm(name + ".ln2", x, kRow, kRows);
    const int32_t router = m.multiplies(name + ".router", {normed}, 4 * kRows * kExperts, 1e8, 4096, kBoth);
    std::vector<int32_t> outputs = {router};
    std::vector<int64_t> shares;
    int64_t sum = 0;
    for (int e = 0; e < kExperts; ++e) sum += shares.emplace_back(1 + m.below(12));
    for (int e = 0; e < kExperts; ++e) {
      const std::string expert = cat(name, ".e", e);
      const int64_t rows = 2 * kRows * shares[static_cast<size_t>(e)] / sum;
      int32_t z = m.moves(expert + ".gather", {normed, router}, 2 * rows * kWidth, {}, 2, 2);
      z = m.linear(expert + ".fc", z, rows, kWidth, 4 * kWidth);
      z = m.moves(expert + ".gelu", {z}, 8 * rows * kWidth, kInput, 2, 3);
      outputs.push_back(m.linear(expert + ".out", z, rows, 4 * kWidth, kWidth));
    }
    y = m.moves(name + ".combine", outputs, kRow, kInput, 4, 6);
    x = m.sum(name + ".sum2", x, y, kRow);
  }
  return m.finish({x});
}

Problem recurrent(int steps, uint32_t seed) {
  Model m(seed);
  constexpr int64_t kBatch = 64, kWidth = 1024, kState = 2 * kBatch * kWidth;
  const auto cell = [&](const std::string& name, int32_t x, int32_t state) {
    const double flops = 16.0 * static_cast<double>(kBatch) * kWidth * kWidth;
    const int32_t gates = m.multiplies(name + ".gates", {x, state}, 4 * kState, flops, 0);
    return m.moves(name + ".state", {gates, state}, kState, kBoth, 6, 8);
  };
  std::vector<int32_t> states;
  int32_t state = m.moves("start", {m.value("zero", kState)}, kState, {}, 2, 2);
  for (int i = 0; i < steps; ++i) {
    m.region(cat("e", i));
    const int32_t x = m.moves(cat("e", i, ".x"), {m.value(cat("token", i), 512)}, kState, {}, 2, 3);
    states.push_back(state = cell(cat("e", i), x, state));
  }
  const int32_t memory = m.moves("memory", states, steps * kState, {}, 2, 2);
  const int32_t keys = m.linear("keys", memory, steps * kBatch, kWidth, kWidth);
  for (int i = 0; i < steps; ++i) {
    m.region(cat("d", i));
    const int32_t read = m.attention(cat("d", i, ".attention"), {state, keys, memory}, kBatch, steps, kWidth);
    state = cell(cat("d", i), read, state);
    states.push_back(m.linear(cat("d", i, ".out"), state, kBatch, kWidth, kWidth));
  }
  return m.finish({states.begin() + steps, states.end()});
}

Problem inception(int modules, uint32_t seed) {
  Model m(seed);
  constexpr int64_t kBatch = 32;
  int64_t side = 35, channels = 192;
  const auto bytes = [&](int64_t c) { return 2 * kBatch * c * side * side; };
  const auto convolution = [&](const std::string& name, int32_t x, int64_t inner, int64_t outer,
                               int64_t taps) {
    const double flops =
        2.0 * static_cast<double>(taps * kBatch * side * side) * static_cast<double>(inner * outer);
    const int32_t y = m.multiplies(name, {x}, bytes(outer), flops, 2 * taps * inner * outer);
    return m.moves(name + ".relu", {m.norm(name + ".norm", y, bytes(outer), 64)}, bytes(outer), kOutput, 2,
                   3);
  };
  int32_t x = m.value("image", bytes(channels));
  for (int i = 0; i < modules; ++i) {
    const std::string name = cat("m", i);
    m.region(name);
    std::vector<int32_t> outputs;
    int64_t all = 0;
    for (int branch = 0; branch < 4; ++branch) {
      const std::string own = cat(name, ".b", branch);
      const int64_t outer = 32 * (1 + m.below(4));
      int32_t y = branch == 3 ? m.moves(own + ".pool", {x}, bytes(channels), {}, 3, 3) : x;
      y = convolution(own + "_0", y, channels, outer, 1);
      for (int deep = 1; deep <= branch % 3; ++deep) y = convolution(cat(own, "_", deep), y, outer, outer, 9);
      outputs.push_back(y);
      all += outer;
    }
    x = m.moves(name + ".concat", outputs, bytes(all), {}, 2, 2);
    channels = all;
    if (i % 8 == 7 && side > 8) {
      x = m.moves(name + ".pool", {x}, bytes(channels) / 4, {}, 5, 5);
      side = side / 2;
    }
  }
  return m.finish({x});
}

// Ops in layers, in order. No value is read by more than a few of the next layers.
Problem layered(int ops, uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  Problem p;
  std::vector<std::vector<int32_t>> layers;
  size_t wide = 1;
  while (4 * wide * wide < static_cast<size_t>(ops)) ++wide;
  std::vector<bool> read;
  while (static_cast<int>(p.ops.size()) + 1 < ops) {
    std::vector<int32_t> layer;
    const size_t count = 1 + below(2 * wide);
    for (size_t k = 0; k < count && static_cast<int>(p.ops.size()) + 1 < ops; ++k) {
      Op op;
      op.name = cat("op", p.ops.size());
      op.seconds = 1e-3 * static_cast<double>(1 + below(20));
      const size_t reads = layers.empty() ? 0 : 1 + below(3);
      // What nobody has read of the layer before is shared out.
      if (!layers.empty())
        for (size_t at = k; at < layers.back().size(); at += count)
          if (const int32_t v = layers.back()[at]; !read[static_cast<size_t>(v)]) op.inputs.push_back(v);
      for (size_t r = 0; r < reads; ++r) {
        const size_t back = below(10) < 7 ? 0 : below(4);
        const auto& from = layers[layers.size() - 1 - std::min(back, layers.size() - 1)];
        const int32_t v = from[below(from.size())];
        if (std::find(op.inputs.begin(), op.inputs.end(), v) == op.inputs.end()) op.inputs.push_back(v);
      }
      for (const int32_t v : op.inputs) read[static_cast<size_t>(v)] = true;
      op.outputs = {static_cast<int32_t>(p.values.size())};
      p.values.push_back({cat("v", p.values.size()), static_cast<int64_t>(1 + below(64)) * kMiB, false, -1});
      read.push_back(false);
      layer.push_back(op.outputs[0]);
      p.ops.push_back(std::move(op));
    }
    layers.push_back(std::move(layer));
  }
  Op last{"end", 1e-3, 0, {}, {static_cast<int32_t>(p.values.size())}, false, -1};
  for (size_t v = 0; v < read.size(); ++v)
    if (!read[v]) last.inputs.push_back(static_cast<int32_t>(v));
  p.values.push_back({"result", 4, false, -1});
  p.ops.push_back(std::move(last));
  p.backward_begin = static_cast<int32_t>(p.ops.size());
  check(p);
  return p;
}

struct Kind {
  const char* name;
  Problem (*make)(int size, uint32_t seed);
};
constexpr Kind kKinds[] = {{"unet_attention", unet_attention},
                           {"dense", dense},
                           {"encoder_decoder", encoder_decoder},
                           {"experts", experts},
                           {"recurrent", recurrent},
                           {"inception", inception},
                           {"layered", layered}};

}  // namespace

const std::vector<std::string>& irregular_kinds() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Kind& kind : kKinds) all.emplace_back(kind.name);
    return all;
  }();
  return names;
}

Problem irregular_problem(const std::string& kind, int size, uint32_t seed) {
  for (const Kind& k : kKinds)
    if (kind == k.name) return k.make(size, seed);
  fail(Code::kInvalidArgument, "no problems of kind '", kind, "'");
}

}  // namespace cairn::bench
