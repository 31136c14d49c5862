// Layers that step through time, lstm (Hochreiter and Schmidhuber, 1997) and gru (Cho et al., 2014), and their gradients. What
// a step's products read of the step before is y, as it is stored; what is added up from step to step is double.
#include "kernels/reference/common.h"
#include "kernels/reference/rows.h"

namespace cairn::kernels::reference {
namespace {

struct Steps {
  int64_t batch, time, hidden;
  bool reverse;

  Steps(const Shape& gates, int64_t each, const Attrs& attrs)
      : batch(gates[0]), time(gates[1]), hidden(gates[2] / each), reverse(attrs.integer("reverse") != 0) {}
  int64_t first() const { return reverse ? time - 1 : 0; }
  int64_t last() const { return time - 1 - first(); }
  int64_t before(int64_t t) const { return reverse ? t + 1 : t - 1; }
  int64_t after(int64_t t) const { return reverse ? t - 1 : t + 1; }
  bool inside(int64_t t) const { return t >= 0 && t < time; }
  // Gate k, of `each`, of unit h at step t.
  int64_t at(int64_t b, int64_t t, int64_t h, int64_t k = 0, int64_t each = 1) const {
    return ((b * time + t) * each + k) * hidden + h;
  }
  // Element h of the state [B, T, H] after the step before t: `start`, or 0, before the first.
  template <class S>
  double state(const S* states, const S* start, int64_t b, int64_t t, int64_t h) const {
    if (t != first()) return load(states[at(b, before(t), h)]);
    return start != nullptr ? load(start[b * hidden + h]) : 0.0;
  }
};

template <class T>
T* operand(std::span<const Tensor> list, size_t i) {
  return i < list.size() ? list[i].as<T>() : nullptr;
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

// sum over h of w[row, h] y of the step before.
template <class T>
double recurrent_product(const Steps& z, const Weight<T>& w, int64_t row, const T* y, const T* h0, int64_t b,
                         int64_t t) {
  double sum = 0;
  for (int64_t h = 0; h < z.hidden; ++h) sum += w[row * z.hidden + h] * z.state(y, h0, b, t, h);
  return sum;
}

// What reaches y at step t from the products of the step after it: sum over `gates` rows of w[row, h] of their gradient, as stored.
template <class T>
double from_products(const Steps& z, const Weight<T>& w, int64_t gates, const T* dgates, int64_t b, int64_t t,
                     int64_t h) {
  if (!z.inside(t)) return 0;
  double sum = 0;
  for (int64_t row = 0; row < gates * z.hidden; ++row)
    sum += w[row * z.hidden + h] * load(dgates[z.at(b, t, 0, 0, gates) + row]);
  return sum;
}

template <class T>
class Lstm : public Kernel {
 public:
  explicit Lstm(const Signature& s) : z_(s.in[0].shape, 4, *s.attrs) {}
  int64_t workspace_bytes() const override { return z_.hidden * 8; }
  void run(const Call& c) const override {
    const Weight<T> w(c.in[1]);
    const T *gates = c.in[0].as<T>(), *h0 = operand<T>(c.in, 2);
    const auto* c0 = operand<Wide<T>>(c.in, 3);
    T* y = c.out[0].as<T>();
    auto* cells = operand<Wide<T>>(c.out, 1);
    T* saved = operand<T>(c.out, 2);
    auto* cell = static_cast<double*>(c.workspace);
    for (int64_t b = 0; b < z_.batch; ++b) {
      for (int64_t h = 0; h < z_.hidden; ++h) cell[h] = c0 != nullptr ? load(c0[b * z_.hidden + h]) : 0.0;
      for (int64_t t = z_.first(); z_.inside(t); t = z_.after(t))
        for (int64_t h = 0; h < z_.hidden; ++h) {
          double of[4];
          for (int64_t k = 0; k < 4; ++k) {
            const double sum =
                load(gates[z_.at(b, t, h, k, 4)]) + recurrent_product(z_, w, k * z_.hidden + h, y, h0, b, t);
            of[k] = k == 2 ? std::tanh(sum) : sigmoid_of(sum);
            if (saved != nullptr) saved[z_.at(b, t, h, k, 4)] = store<T>(of[k]);
          }
          cell[h] = of[1] * cell[h] + of[0] * of[2];
          if (cells != nullptr) cells[z_.at(b, t, h)] = store<Wide<T>>(cell[h]);
          y[z_.at(b, t, h)] = store<T>(of[3] * std::tanh(cell[h]));
        }
    }
  }

 private:
  Steps z_;
};

template <class T>
class LstmGrad : public Kernel {
 public:
  explicit LstmGrad(const Signature& s) : z_(s.out[0].shape, 4, *s.attrs) {}
  int64_t workspace_bytes() const override { return z_.hidden * 8; }
  void run(const Call& c) const override {
    const Weight<T> w(c.in[4]);
    const T *dy = c.in[0].as<T>(), *saved = c.in[2].as<T>();
    const auto *dc = c.in[1].as<Wide<T>>(), *cells = c.in[3].as<Wide<T>>(), *c0 = operand<Wide<T>>(c.in, 5);
    T *dgates = c.out[0].as<T>(), *dh0 = operand<T>(c.out, 1);
    auto* dc0 = operand<Wide<T>>(c.out, 2);
    auto* dcell = static_cast<double*>(c.workspace);
    for (int64_t b = 0; b < z_.batch; ++b) {
      std::fill_n(dcell, z_.hidden, 0.0);
      for (int64_t t = z_.last(); z_.inside(t); t = z_.before(t))
        for (int64_t h = 0; h < z_.hidden; ++h) {
          const auto gate = [&](int64_t k) { return load(saved[z_.at(b, t, h, k, 4)]); };
          const double i = gate(0), f = gate(1), g = gate(2), o = gate(3);
          const double tanh_c = std::tanh(load(cells[z_.at(b, t, h)]));
          const double dh = (dy != nullptr ? load(dy[z_.at(b, t, h)]) : 0.0) +
                            from_products(z_, w, 4, dgates, b, z_.after(t), h);
          dcell[h] += (dc != nullptr ? load(dc[z_.at(b, t, h)]) : 0.0) + dh * o * (1 - tanh_c * tanh_c);
          const double d[4] = {dcell[h] * g * i * (1 - i),
                               dcell[h] * z_.state(cells, c0, b, t, h) * f * (1 - f),
                               dcell[h] * i * (1 - g * g), dh * tanh_c * o * (1 - o)};
          for (int64_t k = 0; k < 4; ++k) dgates[z_.at(b, t, h, k, 4)] = store<T>(d[k]);
          dcell[h] *= f;
        }
      for (int64_t h = 0; h < z_.hidden; ++h) {
        const int64_t at = b * z_.hidden + h;
        if (dh0 != nullptr) dh0[at] = store<T>(from_products(z_, w, 4, dgates, b, z_.first(), h));
        if (dc0 != nullptr) dc0[at] = store<Wide<T>>(dcell[h]);
      }
    }
  }

 private:
  Steps z_;
};

template <class T>
class Gru : public Kernel {
 public:
  explicit Gru(const Signature& s) : z_(s.in[0].shape, 3, *s.attrs) {}
  int64_t workspace_bytes() const override { return z_.hidden * 8; }
  void run(const Call& c) const override {
    const Weight<T> w(c.in[1]);
    const T *gates = c.in[0].as<T>(), *h0 = operand<T>(c.in, 3);
    const auto* bias = operand<Wide<T>>(c.in, 2);
    T *y = c.out[0].as<T>(), *saved = operand<T>(c.out, 1);
    auto* state = static_cast<double*>(c.workspace);
    for (int64_t b = 0; b < z_.batch; ++b) {
      for (int64_t h = 0; h < z_.hidden; ++h) state[h] = h0 != nullptr ? load(h0[b * z_.hidden + h]) : 0.0;
      for (int64_t t = z_.first(); z_.inside(t); t = z_.after(t))
        for (int64_t h = 0; h < z_.hidden; ++h) {
          const auto of_state = [&](int64_t k) {
            const int64_t row = k * z_.hidden + h;
            return recurrent_product(z_, w, row, y, h0, b, t) + (bias != nullptr ? load(bias[row]) : 0.0);
          };
          const auto of_input = [&](int64_t k) { return load(gates[z_.at(b, t, h, k, 3)]); };
          const double r = sigmoid_of(of_input(0) + of_state(0)), z = sigmoid_of(of_input(1) + of_state(1));
          const double hidden = of_state(2), n = std::tanh(of_input(2) + r * hidden);
          state[h] = (1 - z) * n + z * state[h];
          y[z_.at(b, t, h)] = store<T>(state[h]);
          const double all[4] = {r, z, n, hidden};
          for (int64_t k = 0; k < 4 && saved != nullptr; ++k) saved[z_.at(b, t, h, k, 4)] = store<T>(all[k]);
        }
    }
  }

 private:
  Steps z_;
};

template <class T>
class GruGrad : public Kernel {
 public:
  explicit GruGrad(const Signature& s) : z_(s.in[1].shape, 4, *s.attrs) {}
  int64_t workspace_bytes() const override { return z_.hidden * 8; }
  void run(const Call& c) const override {
    const Weight<T> w(c.in[3]);
    const T *dy = c.in[0].as<T>(), *saved = c.in[1].as<T>(), *y = c.in[2].as<T>(), *h0 = operand<T>(c.in, 4);
    T *dgates = c.out[0].as<T>(), *dhidden = c.out[1].as<T>(), *dh0 = operand<T>(c.out, 2);
    auto* dstate = static_cast<double*>(c.workspace);  // what reaches a state by z
    for (int64_t b = 0; b < z_.batch; ++b) {
      std::fill_n(dstate, z_.hidden, 0.0);
      for (int64_t t = z_.last(); z_.inside(t); t = z_.before(t))
        for (int64_t h = 0; h < z_.hidden; ++h) {
          const auto gate = [&](int64_t k) { return load(saved[z_.at(b, t, h, k, 4)]); };
          const double r = gate(0), z = gate(1), n = gate(2), hidden = gate(3);
          const double dh =
              load(dy[z_.at(b, t, h)]) + dstate[h] + from_products(z_, w, 3, dhidden, b, z_.after(t), h);
          const double dn = dh * (1 - z) * (1 - n * n);
          const double d[3] = {dn * hidden * r * (1 - r), dh * (z_.state(y, h0, b, t, h) - n) * z * (1 - z),
                               dn};
          for (int64_t k = 0; k < 3; ++k) {
            dgates[z_.at(b, t, h, k, 3)] = store<T>(d[k]);
            dhidden[z_.at(b, t, h, k, 3)] = store<T>(k == 2 ? dn * r : d[k]);
          }
          dstate[h] = dh * z;
        }
      for (int64_t h = 0; h < z_.hidden && dh0 != nullptr; ++h)
        dh0[b * z_.hidden + h] = store<T>(dstate[h] + from_products(z_, w, 3, dhidden, b, z_.first(), h));
    }
  }

 private:
  Steps z_;
};

}  // namespace

std::unique_ptr<Kernel> make_lstm(const Signature& s) { return make<Lstm>(s, "TWTP", "TPT"); }
std::unique_ptr<Kernel> make_lstm_grad(const Signature& s) { return make<LstmGrad>(s, "TPTPWP", "TTP"); }
std::unique_ptr<Kernel> make_gru(const Signature& s) { return make<Gru>(s, "TWPT", "TT"); }
std::unique_ptr<Kernel> make_gru_grad(const Signature& s) { return make<GruGrad>(s, "TTTWT", "TTT"); }

}  // namespace cairn::kernels::reference
