// Pictures, norms by channel, layers that step through time, and losses of pairs: small cases, whose gradients are compared with
// differences, and sizes at which backends' kernels go other ways.
#pragma once
#include "tests/conformance/cases.h"

namespace cairn::conformance {

using Sizes = std::vector<int64_t>;

// Attributes of windows; what is empty is left out.
struct WindowAttrs {
  Sizes stride = {}, padding = {}, dilation = {};
  int64_t groups = 0;
  Attrs of(Attrs attrs = {}) const {
    for (const auto& [name, list] :
         {std::pair{"stride", &stride}, {"padding", &padding}, {"dilation", &dilation}})
      if (!list->empty()) attrs.set(name, *list);
    if (groups > 0) attrs.set("groups", groups);
    return attrs;
  }
};

// x[n, sizes.., channels], w[outputs, kernel.., channels / groups].
inline void add_conv(std::vector<Case>& to, const Sizes& x, int64_t outputs, const Sizes& kernel,
                     const WindowAttrs& attrs, bool half_weight = false) {
  Sizes w{outputs};
  w.insert(w.end(), kernel.begin(), kernel.end());
  w.push_back(x.back() / std::max<int64_t>(1, attrs.groups));
  const Operand weight = half_weight ? T(w) : P(w);
  to.push_back({"conv", {T(x), weight, P({outputs})}, attrs.of()});
  if (outputs < 16) to.push_back({"conv", {T(x), weight}, attrs.of()});
}

// x[n, sizes.., w's outputs], w[outputs, kernel.., C / groups]; size: of y, or the smallest.
inline void add_conv_transpose(std::vector<Case>& to, const Sizes& x, const Sizes& w, const Sizes& size,
                               const WindowAttrs& attrs) {
  Attrs all = attrs.of();
  if (!size.empty()) all.set("size", size);
  to.push_back({"conv_transpose", {T(x), P(w)}, all});
}

inline void add_convolutions(std::vector<Case>& to) {
  add_conv(to, {2, 5, 3}, 4, {3}, {});
  add_conv(to, {2, 6, 3}, 2, {3}, {.padding = {2, 0}});                   // causal
  add_conv(to, {1, 7, 2}, 2, {3}, {.padding = {4, 0}, .dilation = {2}});  // causal, with holes
  add_conv(to, {2, 7, 4}, 6, {2}, {.stride = {2}, .padding = {1}, .groups = 2});
  add_conv(to, {2, 4, 5, 3}, 4, {1, 1}, {});
  add_conv(to, {2, 4, 5, 3}, 2, {3, 3}, {.padding = {1}}, true);
  add_conv(to, {1, 5, 6, 2}, 3, {3, 2}, {.stride = {2, 1}, .padding = {1, 0}});
  add_conv(to, {1, 6, 5, 2}, 2, {2, 3}, {.stride = {2}, .padding = {1, 0, 2, 1}, .dilation = {1, 2}});
  add_conv(to, {2, 4, 4, 4}, 4, {3, 3}, {.padding = {1}, .groups = 4});  // depthwise
  add_conv(to, {1, 4, 4, 2}, 6, {3, 3}, {.stride = {2}, .padding = {1}, .groups = 2});
  add_conv(to, {2, 4, 6, 1}, 3, {2, 3}, {.stride = {2, 3}});  // patches that do not overlap
  add_conv_transpose(to, {2, 3, 4}, {4, 3, 2}, {}, {.stride = {2}});
  add_conv_transpose(to, {2, 3, 4}, {4, 3, 2}, {6}, {.stride = {2}, .padding = {1}});
  add_conv_transpose(to, {1, 2, 3, 2}, {2, 2, 2, 3}, {}, {.stride = {2}});
  add_conv_transpose(to, {1, 3, 2, 4}, {4, 3, 3, 1}, {6, 4}, {.stride = {2}, .padding = {1}, .groups = 2});
  add_conv_transpose(to, {2, 2, 3, 2}, {2, 2, 3, 2}, {}, {.padding = {0, 1}, .dilation = {2, 1}});
}

inline void add_pool(std::vector<Case>& to, const Sizes& x, const Sizes& window, const WindowAttrs& attrs) {
  to.push_back({"max_pool", {T(x)}, attrs.of({{"kernel", window}})});
  for (const int64_t count : {1, 0})
    to.push_back({"average_pool", {T(x)}, attrs.of({{"kernel", window}, {"count_padding", count}})});
}

inline void add_adaptive(std::vector<Case>& to, const Sizes& x, const Sizes& size) {
  for (const char* op : {"max_pool", "average_pool"}) to.push_back({op, {T(x)}, {{"size", size}}});
}

inline void add_resize(std::vector<Case>& to, const Sizes& x, const Sizes& size) {
  const std::string bilinear = "bilinear";
  to.push_back({"resize", {T(x)}, {{"size", size}}});
  to.push_back({"resize", {T(x)}, {{"size", size}, {"mode", bilinear}}});
  to.push_back({"resize", {T(x)}, {{"size", size}, {"mode", bilinear}, {"align_corners", int64_t{1}}}});
}

inline void add_patches(std::vector<Case>& to, const Sizes& x, const Sizes& window,
                        const WindowAttrs& attrs) {
  to.push_back({"patches", {T(x)}, attrs.of({{"kernel", window}})});
}

inline void add_pools(std::vector<Case>& to) {
  add_pool(to, {2, 6, 3}, {2}, {});
  add_pool(to, {1, 7, 2}, {3}, {.stride = {2}, .padding = {1}});
  add_pool(to, {2, 4, 6, 2}, {2}, {});
  add_pool(to, {1, 5, 6, 3}, {3, 2}, {.stride = {2, 1}, .padding = {1, 0}});
  add_pool(to, {1, 4, 5, 1}, {2, 3}, {.stride = {1}, .padding = {1, 0, 2, 1}});
  add_adaptive(to, {2, 7, 2}, {3});
  add_adaptive(to, {2, 5, 4, 2}, {1});
  add_adaptive(to, {1, 5, 7, 2}, {3, 4});
  add_adaptive(to, {1, 2, 3, 2}, {4, 3});
  add_resize(to, {2, 4, 3}, {7});
  add_resize(to, {1, 3, 4, 2}, {6, 8});
  add_resize(to, {1, 5, 4, 2}, {3, 7});
  add_resize(to, {2, 3, 3, 1}, {1});
  add_patches(to, {2, 6, 3}, {2}, {.stride = {2}});
  add_patches(to, {1, 5, 4, 2}, {3, 2}, {.stride = {2, 1}, .padding = {1, 0}});
  add_patches(to, {1, 5, 6, 1}, {2}, {.padding = {0, 1, 1, 0}, .dilation = {2}});
  to.push_back({"pad", {T({2, 3, 2})}, {{"before", Sizes{0, 2, 0}}, {"after", Sizes{0, 1, 0}}}});
  to.push_back({"pad", {T({3})}, {{"before", Sizes{1}}, {"after", Sizes{0}}, {"value", 2.5}}});
  to.push_back({"pad",
                {T({2, 3, 2, 2})},
                {{"before", Sizes{1, 0, 1, 0}}, {"after", Sizes{0, 2, 0, 1}}, {"value", -1.0}}});
}

// With gamma and beta, each alone, and without.
inline void add_affine(std::vector<Case>& to, const std::string& op, const std::vector<Operand>& first,
                       const Attrs& attrs) {
  const int64_t channels = first[0].shape.back();
  const Operand gamma = P({channels}, 0.5, 1.5), beta = P({channels});
  for (const std::vector<Operand>& more :
       {std::vector<Operand>{gamma, beta}, {gamma}, {kNoOperand, beta}, {}}) {
    std::vector<Operand> in = first;
    in.insert(in.end(), more.begin(), more.end());
    to.push_back({op, in, attrs});
  }
}

inline void add_channel_norms(std::vector<Case>& to, const Sizes& x, const Sizes& groups) {
  const int64_t channels = x.back();
  for (const double eps : {1e-5, 0.1}) {
    add_affine(to, "batchnorm", {T(x)}, {{"eps", eps}});
    add_affine(to, "normalize", {T(x), P({channels}), P({channels}, 0.3, 2)}, {{"eps", eps}});
    for (const int64_t each : groups) add_affine(to, "groupnorm", {T(x)}, {{"groups", each}, {"eps", eps}});
  }
}

inline void add_l2_normalize(std::vector<Case>& to, const Sizes& x) {
  to.push_back({"l2_normalize", {T(x)}, {}});
  to.push_back({"l2_normalize", {T(x, -1e-3, 1e-3)}, {{"eps", 10.0}}});  // all shorter than eps
}

inline void add_recurrent(std::vector<Case>& to, int64_t batch, int64_t time, int64_t hidden,
                          bool half_weight = false) {
  const double most = 1 / std::sqrt(static_cast<double>(hidden));
  const auto weight = [&](int64_t gates) {
    const Sizes shape{gates * hidden, hidden};
    return half_weight ? T(shape, -most, most) : P(shape, -most, most);
  };
  const Operand h0 = T({batch, hidden}), c0 = P({batch, hidden}), bias = P({3 * hidden});
  for (const int64_t reverse : {0, 1}) {
    const Attrs attrs{{"reverse", reverse}};
    const Operand four = T({batch, time, 4 * hidden}, -2, 2), three = T({batch, time, 3 * hidden}, -2, 2);
    to.push_back({"lstm", {four, weight(4), h0, c0}, attrs});
    to.push_back({"lstm", {four, weight(4)}, attrs});
    to.push_back({"gru", {three, weight(3), bias, h0}, attrs});
    to.push_back({"gru", {three, weight(3)}, attrs});
  }
  to.push_back({"lstm", {T({batch, time, 4 * hidden}), weight(4), kNoOperand, c0}, {}});
  to.push_back({"gru", {T({batch, time, 3 * hidden}), weight(3), bias}, {}});
}

inline void add_pairs(std::vector<Case>& to, int64_t rows, int64_t width) {
  const double most = 1 / std::sqrt(static_cast<double>(width));
  const Operand a = T({rows, width}, -most, most), scale = P({1}, 2, 3), bias = P({1}, -2, 0);
  for (const char* kind : {"sigmoid", "triplet"}) {
    to.push_back({"pair_loss", {a, a, scale, bias}, {{"kind", std::string(kind)}}});
    to.push_back({"pair_loss", {a, a, scale}, {{"kind", std::string(kind)}, {"margin", 0.7}}});
  }
}

inline void add_pictures(std::vector<Case>& to) {
  add_convolutions(to);
  add_pools(to);
  add_channel_norms(to, {4, 3}, {});
  add_channel_norms(to, {2, 3, 4}, {1, 2, 4});
  add_channel_norms(to, {2, 2, 3, 6}, {3});
  for (const Sizes& x : {Sizes{3}, Sizes{4, 5}, Sizes{2, 3, 2}}) add_l2_normalize(to, x);
  add_recurrent(to, 2, 4, 3);
  add_recurrent(to, 3, 1, 2, true);
  add_pairs(to, 2, 3);
  add_pairs(to, 5, 4);
}

// Sizes around tiles and vectors, and those where a backend may have a way of its own: kernels of 1, depthwise ones, patches
// that do not overlap, few channels of many pixels, many channels of few pixels.
inline void add_backend_pictures(std::vector<Case>& to) {
  add_conv(to, {2, 33, 17}, 33, {5}, {.padding = {2}});
  add_conv(to, {1, 129, 24}, 32, {4}, {.padding = {3, 0}});
  add_conv(to, {2, 40, 24}, 24, {3}, {.padding = {4, 0}, .dilation = {2}, .groups = 24});
  add_conv(to, {2, 9, 11, 3}, 16, {7, 7}, {.stride = {2}, .padding = {3}});
  add_conv(to, {1, 6, 8, 64}, 64, {3, 3}, {.padding = {1}});
  add_conv(to, {1, 9, 7, 33}, 65, {3, 3}, {.padding = {1}});
  add_conv(to, {2, 5, 7, 129}, 40, {1, 1}, {});
  add_conv(to, {2, 9, 7, 32}, 48, {1, 1}, {.stride = {2}});
  add_conv(to, {1, 16, 16, 3}, 64, {4, 4}, {.stride = {4}});
  add_conv(to, {2, 9, 10, 48}, 48, {7, 7}, {.padding = {3}, .groups = 48});
  add_conv(to, {1, 8, 9, 32}, 64, {3, 3}, {.stride = {2}, .padding = {1}, .groups = 4});
  add_conv(to, {1, 12, 11, 16}, 32, {3, 3}, {.padding = {2}, .dilation = {2}}, true);
  add_conv(to, {1, 1, 1, 1}, 1, {3, 3}, {.padding = {1}});
  add_conv_transpose(to, {2, 17, 24}, {24, 4, 12}, {}, {.stride = {2}, .padding = {1}});
  add_conv_transpose(to, {1, 7, 6, 32}, {32, 2, 2, 48}, {}, {.stride = {2}});
  add_conv_transpose(to, {1, 5, 6, 33}, {33, 3, 3, 17}, {10, 12}, {.stride = {2}, .padding = {1}});
  add_conv_transpose(to, {1, 6, 5, 16}, {16, 3, 3, 4}, {}, {.padding = {1}, .groups = 4});
  add_pool(to, {2, 33, 17}, {3}, {.stride = {2}, .padding = {1}});
  add_pool(to, {2, 14, 13, 64}, {3}, {.stride = {2}, .padding = {1}});
  add_pool(to, {1, 8, 10, 33}, {2}, {});
  to.push_back({"max_pool", {whole(T({2, 9, 8, 17}))}, {{"kernel", Sizes{3}}, {"stride", Sizes{1}}}});
  add_adaptive(to, {2, 7, 7, 129}, {1});
  add_adaptive(to, {1, 13, 10, 16}, {6, 3});
  add_resize(to, {1, 7, 9, 33}, {14, 18});
  add_resize(to, {2, 12, 8, 16}, {5, 11});
  add_resize(to, {2, 33, 7}, {65});
  add_patches(to, {1, 16, 16, 3}, {4}, {.stride = {4}});
  add_patches(to, {1, 9, 8, 17}, {3}, {.stride = {2}, .padding = {1}});
  to.push_back({"pad",
                {T({2, 7, 9, 33})},
                {{"before", Sizes{0, 1, 2, 0}}, {"after", Sizes{0, 2, 1, 0}}, {"value", 0.5}}});
  to.push_back({"pad", {T({33, 65})}, {{"before", Sizes{1, 3}}, {"after", Sizes{0, 4}}}});
  add_channel_norms(to, {3, 1}, {1});  // of 2 rows dx is the difference of equal numbers
  add_channel_norms(to, {2, 7, 6, 32}, {1, 8, 32});
  add_channel_norms(to, {129, 65}, {5});
  add_channel_norms(to, {3, 33, 17}, {17});
  to.push_back({"batchnorm", {T({4, 12, 11, 24}, 30, 31)}, {}});  // a mean that is large beside the deviation
  for (const Sizes& x : {Sizes{33, 7}, Sizes{2, 7, 129}, Sizes{5, 768}}) add_l2_normalize(to, x);
  add_recurrent(to, 1, 5, 1);
  add_recurrent(to, 3, 7, 17);
  add_recurrent(to, 9, 5, 32, true);
  add_recurrent(to, 19, 3, 65);
  add_pairs(to, 33, 17);
  add_pairs(to, 130, 20);
}

}  // namespace cairn::conformance
