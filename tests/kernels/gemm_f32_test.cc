// float32 products: against sums in double, on operands that end where memory ends, with any number of
// threads and at any address.
#include "kernels/cpu/gemm/gemm_f32.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <random>

#include "runtime/base/parallel.h"

namespace cairn::kernels::cpu {
namespace {

// Numbers that end at a page which nobody may touch, and begin at no special address.
class Fenced {
 public:
  explicit Fenced(int64_t count) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    const size_t bytes = static_cast<size_t>(count) * 4;
    size_ = (bytes + page - 1) / page * page + page;
    base_ =
        static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(base_, MAP_FAILED);
    EXPECT_EQ(mprotect(base_ + size_ - page, page, PROT_NONE), 0);
    data_ = reinterpret_cast<float*>(base_ + size_ - page - bytes);
  }
  ~Fenced() { munmap(base_, size_); }
  Fenced(const Fenced&) = delete;
  float* data() const { return data_; }

 private:
  char* base_;
  size_t size_;
  float* data_;
};

void draw(float* to, int64_t n, std::mt19937& random) {
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < n; ++i) to[i] = normal(random);
}

// Elements that a stored matrix spans.
int64_t span(int64_t rows, int64_t columns, int64_t ld) { return (rows - 1) * ld + columns; }

std::vector<float> run(const ProductShape& s, int threads, const float* a, const float* b, const float* bias,
                       const std::vector<float>& c) {
  const Product product(s, threads);
  Fenced to(static_cast<int64_t>(c.size())), scratch((product.scratch_bytes() + 63) / 64 * 16);
  std::copy(c.begin(), c.end(), to.data());
  set_thread_count(threads);
  product.run(a, b, to.data(), scratch.data(), bias);
  set_thread_count(1);
  return {to.data(), to.data() + c.size()};
}

struct Case {
  int64_t m, n, k, pad;
};
constexpr Case kCases[] = {
    {1, 1, 1, 0},      {1, 7, 300, 0},    {3, 49, 65, 2},   {8, 48, 64, 0},     {16, 33, 1000, 1},
    {17, 97, 5, 3},    {24, 64, 800, 0},  {70, 45, 100, 0}, {33, 200, 1600, 0}, {200, 64, 33, 5},
    {530, 51, 40, 0},  {64, 300, 390, 1}, {9, 1, 200, 0},   {1, 5, 700, 0},     {1000, 3, 17, 0},
    {37, 403, 301, 0}, {1030, 400, 9, 2},  // so many columns that rows of A are packed where that pays
};

// A wrong index is wrong by a lot; sums of k products of normal numbers round within a few units of sqrt(k).
TEST(Product, AgreesWithSumsInDoubleAndTouchesNothingElse) {
  std::mt19937 random(1);
  for (const Case& c : kCases)
    for (int kind = 0; kind < 16; ++kind) {
      ProductShape s{.m = c.m, .n = c.n, .k = c.k};
      s.transpose_a = kind & 1, s.transpose_b = kind & 2, s.bias = kind & 4, s.add = kind & 8;
      const int64_t a_rows = s.transpose_a ? s.k : s.m, a_columns = s.transpose_a ? s.m : s.k;
      const int64_t b_rows = s.transpose_b ? s.n : s.k, b_columns = s.transpose_b ? s.k : s.n;
      if (c.pad != 0) s.lda = a_columns + c.pad, s.ldb = b_columns + c.pad, s.ldc = s.n + c.pad;
      const int64_t lda = a_columns + c.pad, ldb = b_columns + c.pad, ldc = s.n + c.pad;
      Fenced a(span(a_rows, a_columns, lda)), b(span(b_rows, b_columns, ldb)), bias(s.n);
      draw(a.data(), span(a_rows, a_columns, lda), random);
      draw(b.data(), span(b_rows, b_columns, ldb), random);
      draw(bias.data(), s.n, random);
      std::vector<float> before(static_cast<size_t>(span(s.m, s.n, ldc)));
      draw(before.data(), static_cast<int64_t>(before.size()), random);
      const float* with = s.bias ? bias.data() : nullptr;
      const auto after = run(s, 1, a.data(), b.data(), with, before);
      const double bound = 1e-6 * std::sqrt(static_cast<double>(s.k)) * 4 + 1e-6;
      for (int64_t i = 0; i < s.m; ++i)
        for (int64_t j = 0; j < ldc && i * ldc + j < static_cast<int64_t>(after.size()); ++j) {
          const auto at = static_cast<size_t>(i * ldc + j);
          if (j >= s.n) {
            ASSERT_EQ(after[at], before[at]) << "written between rows";
            continue;
          }
          double exact = (s.bias ? bias.data()[j] : 0) + (s.add ? before[at] : 0);
          for (int64_t x = 0; x < s.k; ++x)
            exact += static_cast<double>(a.data()[s.transpose_a ? x * lda + i : i * lda + x]) *
                     b.data()[s.transpose_b ? j * ldb + x : x * ldb + j];
          ASSERT_NEAR(after[at], exact, bound)
              << c.m << 'x' << c.n << 'x' << c.k << " kind " << kind << " at " << i << ", " << j;
        }
      // Every number of threads, and every address.
      for (const int threads : {2, 3, 7, 64}) {
        const auto other = run(s, threads, a.data(), b.data(), with, before);
        ASSERT_EQ(std::memcmp(after.data(), other.data(), after.size() * 4), 0)
            << c.m << 'x' << c.n << 'x' << c.k << " kind " << kind << ": other bits with " << threads
            << " threads";
      }
      std::vector<float> moved(static_cast<size_t>(span(a_rows, a_columns, lda)) + 3);
      std::copy(a.data(), a.data() + moved.size() - 3, moved.begin() + 3);
      const auto elsewhere = run(s, 2, moved.data() + 3, b.data(), with, before);
      ASSERT_EQ(std::memcmp(after.data(), elsewhere.data(), after.size() * 4), 0)
          << "other bits at another address";
    }
}

// Large enough that one thread is not enough for it: the threads share the work by rows, columns or both.
TEST(Product, LargeOnesHaveTheSameBitsWithAnyNumberOfThreads) {
  std::mt19937 random(2);
  for (const ProductShape& s :
       {ProductShape{.m = 700, .n = 130, .k = 800, .transpose_b = true, .bias = true},
        ProductShape{.m = 130, .n = 700, .k = 900},
        // Two threads get 512 and 520 rows: one block of the second cache, and two.
        ProductShape{.m = 1032, .n = 40, .k = 800, .transpose_a = true},
        // Rows that are packed for many columns: more than one thread's share of them is enough for.
        ProductShape{.m = 1032, .n = 500, .k = 300, .transpose_b = true},
        ProductShape{.m = 600, .n = 200, .k = 800, .transpose_a = true, .add = true}}) {
    std::vector<float> a(static_cast<size_t>(s.m * s.k)), b(static_cast<size_t>(s.k * s.n)),
        bias(static_cast<size_t>(s.n)), c(static_cast<size_t>(s.m * s.n));
    for (auto* v : {&a, &b, &bias, &c}) draw(v->data(), static_cast<int64_t>(v->size()), random);
    const auto one = run(s, 1, a.data(), b.data(), s.bias ? bias.data() : nullptr, c);
    for (const int threads : {2, 3, 5, 16})
      ASSERT_EQ(std::memcmp(one.data(),
                            run(s, threads, a.data(), b.data(), s.bias ? bias.data() : nullptr, c).data(),
                            one.size() * 4),
                0)
          << threads << " threads";
  }
}

// What the planner pays for: blocks of the caches' size for each thread, however large the matrices are.
TEST(Product, ScratchIsBounded) {
  const ProductShape head{.m = 50304, .n = 768, .k = 1024, .transpose_a = true, .add = true};
  EXPECT_LE(Product(head, 2).scratch_bytes(), 2 << 20);
  EXPECT_LE(Product({.m = 1024, .n = 50304, .k = 768, .transpose_b = true}, 2).scratch_bytes(), 2 << 20);
  EXPECT_LE(Product({.m = 4, .n = 4, .k = 4}, 64).scratch_bytes(), 1024);
}

// NaN and infinity are not lost in padding, and padding brings none.
TEST(Product, SpecialNumbersStayInTheirRowAndColumn) {
  const int64_t m = 21, n = 50, k = 70;
  std::vector<float> a(static_cast<size_t>(m * k), 1.0f), b(static_cast<size_t>(n * k), 1.0f);
  a[static_cast<size_t>(5 * k + 69)] = NAN;
  b[static_cast<size_t>(49 * k)] = INFINITY;
  const ProductShape s{.m = m, .n = n, .k = k, .transpose_b = true};
  const auto c = run(s, 2, a.data(), b.data(), nullptr, std::vector<float>(static_cast<size_t>(m * n)));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const float value = c[static_cast<size_t>(i * n + j)];
      if (i == 5)
        EXPECT_TRUE(std::isnan(value));
      else
        EXPECT_EQ(value, j == 49 ? INFINITY : 70.0f);
    }
}

}  // namespace
}  // namespace cairn::kernels::cpu
