#include "bench/plan/problems.h"

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "bench/plan/irregular.h"
#include "bench/plan/tape.h"
#include "runtime/base/error.h"

namespace cairn::bench {
Problem chain_problem(int length, uint32_t seed) {
  std::mt19937 random(seed);
  const auto share = [&] { return static_cast<double>(random()) / 4294967296.0; };
  Tape tape;
  int32_t last = tape.value("input", kMiB, true);
  for (int i = 1; i <= length; ++i) {
    Forward f;
    f.name = "layer" + std::to_string(i);
    f.inputs = {last};
    f.bytes = (1 + random() % 20) * kMiB;
    f.weight = kMiB;
    f.seconds = 1e-3 * (0.1 + 0.9 * share());
    f.back_seconds = f.seconds * (1 + 1.5 * share());
    const uint32_t what = random() % 3;
    f.reads.input = what != 1;
    f.reads.output = what != 0;
    f.region = tape.region(f.name);
    last = tape.add(f);
  }
  tape.add({"loss", {last}, 4, 0, 0, 0, 0, 1e-4, 1e-4, {.input = true}, false});
  return tape.finish();
}

Problem transformer_problem(const TransformerShape& s) {
  Tape tape;
  const int64_t rows = s.batch * s.sequence, row = rows * s.width * s.element_bytes;
  int32_t region = -1;
  const auto pointwise = [&](const std::string& name, std::vector<int32_t> inputs, int64_t wide, Reads reads,
                             double passes, double back_passes, int64_t extra = 0, int64_t weight = 0) {
    const auto moved = static_cast<double>(wide * row);
    return tape.add({name, std::move(inputs), wide * row, extra, weight, 0, 0, roofline(0, passes * moved),
                     roofline(0, back_passes * moved), reads, true, region});
  };
  const auto linear = [&](const std::string& name, int32_t input, int64_t inner, int64_t outer) {
    const double flops =
        2.0 * static_cast<double>(rows) * static_cast<double>(inner) * static_cast<double>(outer);
    return tape.add({name,
                     {input},
                     rows * outer * s.element_bytes,
                     0,
                     inner * outer * s.element_bytes,
                     0,
                     0,
                     roofline(flops, 0),
                     roofline(2 * flops, 0),
                     {.input = true},
                     true,
                     region});
  };
  const auto norm = [&](const std::string& name, int32_t input) {
    return pointwise(name, {input}, 1, {.input = true, .extra = true}, 2, 4, 8 * rows,
                     s.width * s.element_bytes);
  };
  const int32_t tokens = tape.value("tokens", 8 * rows, true);
  int32_t x = pointwise("embedding", {tokens}, 1, {}, 2, 3, 0, s.vocabulary * s.width * s.element_bytes);
  for (int i = 0; i < s.layers; ++i) {
    const std::string h = "h" + std::to_string(i) + ".";
    region = tape.region("h" + std::to_string(i));
    const int32_t qkv = linear(h + "qkv", norm(h + "ln1", x), s.width, 3 * s.width);
    const double causal = 2.0 * static_cast<double>(rows * s.sequence) * static_cast<double>(s.width);
    const int32_t mixed = tape.add({h + "attention",
                                    {qkv},
                                    row,
                                    4 * rows * s.heads,
                                    0,
                                    0,
                                    4 * rows * s.heads,
                                    roofline(causal, 0),
                                    roofline(2.5 * causal, 0),
                                    {.input = true, .output = true, .extra = true},
                                    true,
                                    region});
    const int32_t projected = linear(h + "proj", mixed, s.width, s.width);
    x = pointwise(h + "residual1", {x, projected}, 1, {.only_passes_on = true}, 3, 0);
    int32_t hidden = linear(h + "fc", norm(h + "ln2", x), s.width, 4 * s.width);
    hidden = pointwise(h + "gelu", {hidden}, 4, {.input = true}, 2, 3);
    const int32_t out = linear(h + "out", hidden, 4 * s.width, s.width);
    x = pointwise(h + "residual2", {x, out}, 1, {.only_passes_on = true}, 3, 0);
  }
  region = -1;
  x = norm("norm", x);
  const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(s.width * s.vocabulary);
  const int64_t logits = 4 * std::min<int64_t>(rows, 128) * s.vocabulary;
  tape.add({"loss",
            {x, tokens},
            4,
            4 * rows,
            s.vocabulary * s.width * s.element_bytes,
            logits,
            logits,
            roofline(flops, 0),
            roofline(3 * flops, 0),
            {.input = true, .extra = true},
            false});
  tape.value("optimizer.state", tape.weights() / s.element_bytes * 12, true);
  return tape.finish();
}

Problem unet_problem(int levels, int64_t side, int64_t batch) {
  Tape tape;
  constexpr int64_t kElement = 2, kWidth = 64;
  int64_t channels = 3;
  int32_t region = -1;
  const auto planes = [&](int64_t count) { return batch * count * side * side * kElement; };
  const auto moving = [&](const std::string& name, std::vector<int32_t> inputs, int64_t bytes, double moved,
                          double back_moved, Reads reads) {
    return tape.add({name, std::move(inputs), bytes, 0, 0, 0, 0, roofline(0, moved), roofline(0, back_moved),
                     reads, true, region});
  };
  const auto convolution = [&](const std::string& name, int32_t x, int64_t inner, int64_t outer) {
    const double flops = 18.0 * static_cast<double>(batch * side * side) * static_cast<double>(inner * outer);
    x = tape.add({name,
                  {x},
                  planes(outer),
                  0,
                  9 * inner * outer * kElement,
                  0,
                  0,
                  roofline(flops, 0),
                  roofline(2 * flops, 0),
                  {.input = true},
                  true,
                  region});
    const auto moved = static_cast<double>(planes(outer));
    return moving(name + ".relu", {x}, planes(outer), 2 * moved, 3 * moved, {.output = true});
  };
  std::vector<int32_t> skips;
  int32_t x = tape.value("image", planes(channels), true);
  for (int level = 0; level < levels; ++level) {
    const std::string down = "down" + std::to_string(level);
    region = tape.region(down);
    const int64_t outer = kWidth << level;
    x = convolution(down + ".conv1", x, channels, outer);
    x = convolution(down + ".conv2", x, outer, outer);
    channels = outer;
    if (level == levels - 1) break;
    skips.push_back(x);
    const auto moved = static_cast<double>(planes(channels));
    side /= 2;
    x = moving(down + ".pool", {x}, planes(channels), 1.25 * moved, 2.5 * moved,
               {.input = true, .output = true});
  }
  for (int level = levels - 1; level-- > 0;) {
    const std::string up = "up" + std::to_string(level);
    region = tape.region(up);
    const int64_t outer = kWidth << level;
    side *= 2;
    const auto moved = static_cast<double>(planes(channels)),
               both = static_cast<double>(planes(channels + outer));
    x = moving(up + ".upsample", {x}, planes(channels), 1.25 * moved, 1.25 * moved, {});
    x = moving(up + ".concat", {skips.back(), x}, planes(channels + outer), 2 * both, 2 * both, {});
    skips.pop_back();
    x = convolution(up + ".conv1", x, channels + outer, outer);
    x = convolution(up + ".conv2", x, outer, outer);
    channels = outer;
  }
  const auto moved = static_cast<double>(planes(channels));
  tape.add({"loss", {x}, 4, 0, 0, 0, 0, roofline(0, moved), roofline(0, 2 * moved), {.input = true}, false});
  return tape.finish();
}

Problem random_problem(int ops, uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](uint32_t n) { return static_cast<int>(random() % n); };
  const auto share = [&] { return static_cast<double>(random()) / 4294967296.0; };
  Tape tape;
  std::vector<int32_t> made = {tape.value("input", kMiB, true)}, unread;
  for (int i = 1; i < ops; ++i) {
    Forward f;
    f.name = "op" + std::to_string(i);
    for (int k = std::max(1, below(6) - 2); k-- > 0;) {  // mostly one, near the end
      size_t back = 0;
      while (back + 1 < made.size() && below(100) < 55) ++back;
      const int32_t v = made[made.size() - 1 - back];
      if (std::find(f.inputs.begin(), f.inputs.end(), v) == f.inputs.end()) f.inputs.push_back(v);
    }
    for (int32_t v : f.inputs) std::erase(unread, v);
    f.bytes = (1 + below(16)) * kMiB / 4;
    f.seconds = 1e-3 * (0.05 + 0.95 * share());
    f.back_seconds = f.seconds * (1 + 1.5 * share());
    const int what = below(6);
    f.reads = {.input = what > 0 && what != 2, .output = what == 2 || what == 3, .extra = what == 4};
    if (f.inputs.size() > 1 && f.inputs[0] != made[0] && below(10) < 3) f.reads = {.only_passes_on = true};
    f.extra = f.reads.extra ? kMiB / 8 : 0;
    f.weight = below(2) * kMiB / 4;
    f.workspace = below(4) ? 0 : kMiB / 2;
    f.back_workspace = below(3) ? 0 : kMiB / 2;
    f.recomputable = below(100) >= 7;
    made.push_back(tape.add(f));
    unread.push_back(made.back());
  }
  if (unread.empty()) unread = {made[0]};
  tape.add({"loss", unread, 4, 0, 0, 0, 0, 1e-4, 1e-4, {.input = true}, false});
  return tape.finish();
}

Problem make_problem(const std::string& kind, int size) {
  if (kind == "chain") return chain_problem(size);
  if (kind == "transformer") return transformer_problem({.layers = size});
  if (kind == "unet") return unet_problem(size);
  if (kind == "random") return random_problem(size, 1);
  return irregular_problem(kind, size, 1);
}

}  // namespace cairn::bench
