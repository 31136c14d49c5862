// Table lookup and its gradient, for a table or a part of one.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/simd/blocks.h"
#include "kernels/cpu/simd/long_sums.h"
#include "kernels/cpu/support.h"
#include "kernels/cpu/workspace.h"

namespace cairn::kernels::cpu {
namespace {

bool integer_ids(const TensorDesc& d) { return d.dtype == DType::kI32; }

int64_t first_row(const Signature& s) { return s.attrs != nullptr ? s.attrs->integer("first") : 0; }

// Lookup in a part of a table, which begins at row `first` of it. The rows of ids outside of the part are copied from `before`, or
// zero.
std::unique_ptr<Kernel> make_lookup(const Signature& s) {
  const bool blocks = in_blocks(s.in[0]);
  if ((!blocks && !fast_float(s.in[0])) || !integer_ids(s.in[1]) || !fast_float(s.out[0])) return nullptr;
  const int64_t rows = s.in[0].shape[0], columns = s.in[0].shape.last(), count = s.in[1].shape.elements(),
                first = first_row(s);
  const DType table_type = s.in[0].dtype, y_type = s.out[0].dtype;
  const int64_t table_bytes = blocks ? 0 : columns * dtype_bytes(table_type),
                y_bytes = columns * dtype_bytes(y_type);
  return make_kernel([=](const Call& call) {
    const char *table = input<const char>(call, 0), *before = input<const char>(call, 2);
    const int32_t* ids = input<const int32_t>(call, 1);
    char* y = output<char>(call, 0);
    parallel_for(count, row_grain(columns), [&](int64_t b, int64_t e, int) {
      for (int64_t i = b; i < e; ++i) {
        const int64_t row = ids[i] - first;
        if (row >= 0 && row < rows && blocks)
          decode_values(table_type, table, row * columns, columns, y_type, y + i * y_bytes);
        else if (row >= 0 && row < rows)
          convert(table_type, y_type, false, table + row * table_bytes, y + i * y_bytes, columns);
        else if (before != nullptr)
          std::memcpy(y + i * y_bytes, before + i * y_bytes, static_cast<size_t>(y_bytes));
        else
          std::memset(y + i * y_bytes, 0, static_cast<size_t>(y_bytes));
      }
    });
  });
}

// Rows of the table whose gradient is a sum over so many tokens that one chain of float32 additions would be inexact. They
// are summed in blocks, in the workspace. There are few, as each takes many of the tokens.
class FrequentRows {
 public:
  FrequentRows(int64_t rows, int64_t columns, int64_t tokens, int threads, Workspace* space)
      : rows_(rows), columns_(columns), most_(tokens / (kChain + 1)) {
    if (most_ == 0) return;
    place_at_ = space->add(rows * 4);
    row_at_ = space->add(most_ * 4);
    taken_at_ = space->add(threads * most_ * 4);
    sums_at_ = space->add(3 * most_ * columns * 4);
  }

  // Counts the tokens of each row. row(i) is the row of token i; one outside of 0 .. rows belongs to another part of the table.
  template <class Row>
  void find(void* workspace, int64_t tokens, const Row& row) {
    if (most_ == 0) return;
    place_ = Workspace::at<int32_t>(workspace, place_at_);
    row_ = Workspace::at<int32_t>(workspace, row_at_);
    taken_ = Workspace::at<int32_t>(workspace, taken_at_);
    sums_ = Workspace::at<float>(workspace, sums_at_);
    std::fill_n(place_, rows_, 0);
    for (int64_t i = 0; i < tokens; ++i)
      if (const int64_t r = row(i); r >= 0 && r < rows_) ++place_[r];
    count_ = 0;
    for (int64_t r = 0; r < rows_; ++r) {
      const bool frequent = sums_by_blocks(place_[r]);
      if (frequent) row_[count_] = static_cast<int32_t>(r);
      place_[r] = frequent ? static_cast<int32_t>(count_++) : -1;
    }
    std::fill_n(sums_, 3 * count_ * columns_, 0.0f);
  }

  // What a thread does with columns [begin, end) of all tokens: asks where each is added, then finishes.
  struct Share {
    const FrequentRows& of;
    float* const table;
    const int64_t begin, end;
    int32_t* const taken;  // for each row, how many tokens of its current block were added so far

    float* add_to(int64_t row) const {
      const int32_t place = of.count_ > 0 ? of.place_[row] : -1;
      if (place < 0) return table + row * of.columns_ + begin;
      if (taken[place]++ == kSumBlock) {
        taken[place] = 1;
        of.end(place, begin, end);
      }
      return of.sums(place, 0) + begin;
    }
    void finish() const {
      for (int64_t place = 0; place < of.count_; ++place) {
        of.end(place, begin, end);
        float *total = of.sums(place, 0) + begin, *to = table + of.row_[place] * of.columns_ + begin;
        end_totals(total, of.sums(place, 1) + begin, of.sums(place, 2) + begin, end - begin);
        for (int64_t i = 0; i < end - begin; ++i) to[i] += total[i];
      }
    }
  };
  Share share(int thread, float* table, int64_t begin, int64_t end) const {
    int32_t* const taken = count_ > 0 ? taken_ + thread * most_ : nullptr;
    std::fill_n(taken, count_, 0);
    return {*this, table, begin, end, taken};
  }

 private:
  float* sums(int64_t place, int64_t which) const { return sums_ + (3 * place + which) * columns_; }
  void end(int64_t place, int64_t begin, int64_t end) const {
    end_block(sums(place, 0) + begin, sums(place, 1) + begin, sums(place, 2) + begin, end - begin);
  }

  int64_t rows_, columns_, most_, count_ = 0;
  int64_t place_at_ = 0, row_at_ = 0, taken_at_ = 0, sums_at_ = 0;
  int32_t *place_ = nullptr, *row_ = nullptr,
          *taken_ = nullptr;  // place_[row]: among the frequent ones, or -1
  float* sums_ = nullptr;     // [place][sums of a block, high, low][column]
};

// Threads own columns, so every row of the table is summed in token order at any thread count.
std::unique_ptr<Kernel> make_lookup_grad(const Signature& s) {
  if (!integer_ids(s.in[0]) || !fast_float(s.in[1]) || !plain_f32(s.out[0])) return nullptr;
  const int64_t rows = s.out[0].shape[0], columns = s.out[0].shape.last(), count = s.in[0].shape.elements(),
                first = first_row(s);
  const DType type = s.in[1].dtype;
  const int64_t bytes = dtype_bytes(type);
  Workspace space;
  const FrequentRows frequent_rows(rows, columns, count, s.threads, &space);
  const auto run = [=](const Call& call) {
    const int32_t* ids = input<const int32_t>(call, 0);
    const char* dy = input<const char>(call, 1);
    float* table = output<float>(call, 0);
    if (!accumulates(call, 0))
      parallel_for(rows * columns, kGrain,
                   [&](int64_t b, int64_t e, int) { std::fill(table + b, table + e, 0.0f); });
    FrequentRows frequent = frequent_rows;
    frequent.find(call.workspace, count, [&](int64_t i) { return ids[i] - first; });
    parallel_for(columns, 16, [&](int64_t b, int64_t e, int thread) {
      const FrequentRows::Share share = frequent.share(thread, table, b, e);
      for (int64_t i = 0; i < count; ++i)
        if (const int64_t row = ids[i] - first; row >= 0 && row < rows)
          convert(type, DType::kF32, true, dy + (i * columns + b) * bytes, share.add_to(row), e - b);
      share.finish();
    });
  };
  return make_kernel(run, space.bytes());
}

}  // namespace

std::unique_ptr<Kernel> make_embedding(const Signature& s) { return make_lookup(s); }
std::unique_ptr<Kernel> make_embedding_part(const Signature& s) { return make_lookup(s); }
std::unique_ptr<Kernel> make_embedding_grad(const Signature& s) { return make_lookup_grad(s); }
std::unique_ptr<Kernel> make_embedding_part_grad(const Signature& s) { return make_lookup_grad(s); }

}  // namespace cairn::kernels::cpu
