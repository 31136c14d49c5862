// Random programs of launches and copies over three queues and three tiers, ordered by random but sufficient
// events, against a serial model that does the same one after the other.
#include <random>

#include "tests/runtime/device/support.h"
#include "tests/support/seeds.h"

namespace cairn::device {
namespace {

using kernels::Call;

constexpr int kCells = 12;
constexpr int64_t kCell = 4096;

// out = out * 3 + in, byte by byte.
void mix(const Call& call) {
  auto* out = static_cast<unsigned char*>(call.out[0].data);
  const auto* in = static_cast<const unsigned char*>(call.in[0].data);
  for (int64_t i = 0; i < kCell; ++i) out[i] = static_cast<unsigned char>(out[i] * 3 + in[i] + 1);
}

struct Model {
  std::vector<unsigned char> memory[3] = {std::vector<unsigned char>(kCells * kCell),
                                          std::vector<unsigned char>(kCells* kCell),
                                          std::vector<unsigned char>(kCells* kCell)};
  unsigned char* at(int tier, int cell) { return memory[tier].data() + cell * kCell; }
};

void random_program(uint32_t seed, const std::shared_ptr<Device>& device) {
  std::mt19937 random(seed);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  std::unique_ptr<Block> block[3];
  for (int t = 0; t < 3; ++t) block[t] = device->allocate(static_cast<Tier>(t), kCells * kCell);
  std::unique_ptr<Queue> queue[3];
  for (int q = 0; q < 3; ++q) queue[q] = device->create_queue(static_cast<Lane>(q));
  Model model;
  for (int64_t i = 0; i < kCells * kCell; ++i)
    model.memory[0][i] = static_cast<unsigned char*>(block[0]->address())[i] =
        static_cast<unsigned char>(random());
  const FunctionKernel kernel(mix);
  std::vector<std::unique_ptr<std::array<Tensor, 2>>> operands;
  std::vector<std::unique_ptr<Event>> events;
  for (int i = 0; i < 6; ++i) events.push_back(device->create_event());  // reused over and over

  // Per cell: which queues have touched it since they were last ordered before the others (a bit per queue).
  int writer[3][kCells], readers[3][kCells];
  for (auto& w : writer) std::fill(w, w + kCells, -1);
  for (auto& r : readers) std::fill(r, r + kCells, 0);
  const auto order = [&](int first, int then) {
    if (first < 0 || first == then) return;
    Event& event = *events[pick(6)];
    queue[first]->record(event);
    queue[then]->wait(event);
  };
  const auto use = [&](int q, int tier, int cell, bool write) {
    order(writer[tier][cell], q);
    if (!write) {
      readers[tier][cell] |= 1 << q;
      return;
    }
    for (int other = 0; other < 3; ++other)
      if (readers[tier][cell] >> other & 1) order(other, q);
    readers[tier][cell] = 0;
    writer[tier][cell] = q;
  };
  for (int step = 0; step < 200; ++step) {
    const int kind = pick(3), a = pick(kCells), b = pick(kCells);
    if (kind == 0) {
      if (a == b) continue;
      use(0, 0, a, false);
      use(0, 0, b, true);
      operands.push_back(std::make_unique<std::array<Tensor, 2>>(
          std::array{bytes_at(*block[0], a * kCell, kCell), bytes_at(*block[0], b * kCell, kCell)}));
      Call call;
      call.in = {operands.back()->data(), 1};
      call.out = {operands.back()->data() + 1, 1};
      queue[0]->launch(kernel, call);
      for (int64_t i = 0; i < kCell; ++i)
        model.at(0, b)[i] = static_cast<unsigned char>(model.at(0, b)[i] * 3 + model.at(0, a)[i] + 1);
    } else {
      const int tier = 1 + pick(2), from = kind == 1 ? 0 : tier, to = kind == 1 ? tier : 0;
      use(kind, from, a, false);
      use(kind, to, b, true);
      queue[kind]->copy({block[to].get(), b * kCell}, {block[from].get(), a * kCell}, kCell);
      std::memcpy(model.at(to, b), model.at(from, a), kCell);
    }
  }
  for (auto& q : queue) q->synchronize();
  for (int t = 0; t < 2; ++t)
    ASSERT_EQ(std::memcmp(block[t]->address(), model.memory[t].data(), kCells * kCell), 0)
        << "seed " << seed << " tier " << t;
  queue[2]->copy({block[0].get(), 0}, {block[2].get(), 0}, kCells * kCell);
  queue[2]->synchronize();
  ASSERT_EQ(std::memcmp(block[0]->address(), model.memory[2].data(), kCells * kCell), 0)
      << "seed " << seed << " disk";
}

TEST(Stress, RandomProgramsMatchTheSerialModel) {
  const auto device = open_cpu();
  for (const uint32_t seed : support::seeds(40)) random_program(seed + 1, device);
}

TEST(Stress, TheCheckAcceptsThem) {
  const auto device = checked(open_cpu());
  for (const uint32_t seed : support::seeds(20)) random_program(seed + 1, device);
}

}  // namespace
}  // namespace cairn::device
