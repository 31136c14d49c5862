#include "kernels/cpu/gemm/bf16/gemm.h"

#include <algorithm>

#include "kernels/cpu/gemm/bf16/block.h"
#include "kernels/cpu/simd/isa.h"

namespace cairn::kernels::cpu {
namespace {

// By Bf16Products; who has none makes no product of these.
constexpr const Bf16Blocks* kBlocks[] = {nullptr, &kDotBlocks, &kAmxBlocks, &kMatrixBlocks};
const Bf16Blocks& blocks_in_use() { return *kBlocks[static_cast<size_t>(isa_row(isa()).products)]; }

int64_t k_share(int64_t max_share, int64_t k) {
  const int64_t parts = (k + max_share - 1) / max_share;
  return round_up((k + parts - 1) / parts, kTileK);
}

// Rows of A for which panels of B are read once more.
int64_t row_share(const Bf16Blocks& blocks, int64_t k, const Epilogue& epilogue) {
  return std::clamp(blocks.near_bytes / (2 * k) / kGemmRows * kGemmRows, kGemmRows, epilogue.most_rows());
}

}  // namespace

int64_t fetched_panels(int64_t m, int64_t k) {
  constexpr int64_t kFewRows = 128, kMost = 8;  // products of few rows are over before much is fetched
  const int64_t bytes = blocks_in_use().fetched_bytes;
  return m < kFewRows ? 0 : std::clamp<int64_t>(bytes / packed_b_bytes(kPanel, k), bytes > 0 ? 1 : 0, kMost);
}

bool blocks_of_pairs() { return blocks_in_use().pairs; }

GemmOperands in_blocks(const bf16* a, const bf16* b, int64_t k) {
  const bool pairs = blocks_of_pairs();
  return {a, pairs ? 4 : 64, 1024, k * 32, pairs, b, k, kPanel * k};
}

void bf16_gemm(const GemmOperands& g, int64_t m0, int64_t m1, int64_t n, int64_t p0, int64_t p1,
               float* scratch, const Epilogue& epilogue) {
  const Bf16Blocks& blocks = blocks_in_use();
  const int64_t share = k_share(blocks.near_share, g.k);
  const int64_t near_rows = row_share(blocks, g.k, epilogue);
  const Epilogue::Target target = epilogue.target();
  GemmOperands mine = g;
  mine.target_row = target.row;
  blocks.begin();
  for (int64_t near = m0; near < m1; near += near_rows) {
    const int64_t near_end = std::min(m1, near + near_rows);
    for (int64_t p = p0; p < p1; ++p) {
      if (target.at != nullptr) mine.target = target.at + p * kPanel * 2;
      for (int64_t m = near; m < near_end; m += kGemmRows) {
        const int64_t m_end = std::min(near_end, m + kGemmRows);
        for (int64_t k = 0; k < g.k; k += share)
          blocks.column(mine, m, m_end, p, k, std::min(g.k, k + share), scratch, kPanel * 4, k > 0);
        epilogue.block(scratch, m, m_end - m, p * kPanel, std::min(kPanel, n - p * kPanel));
      }
    }
    epilogue.finished(near, near_end - near, p0 * kPanel, std::min(n, p1 * kPanel));
  }
  blocks.end();
}

void bf16_gemm_f32(const GemmOperands& g, int64_t m0, int64_t m1, int64_t n, int64_t p0, int64_t p1,
                   float* scratch, float* c, int64_t ldc, bool add, int64_t whole_k) {
  const Bf16Blocks& blocks = blocks_in_use();
  const int64_t share = k_share(blocks.max_share, whole_k > 0 ? whole_k : g.k);
  blocks.begin();
  for (int64_t k = 0; k < g.k; k += share) {
    const int64_t k_end = std::min(g.k, k + share);
    const bool keep = add || k > 0;
    for (int64_t m = m0; m < m1; m += kSumRows) {
      const int64_t m_end = std::min(m1, m + kSumRows);
      for (int64_t p = p0; p < p1; ++p) {
        float* to = c + m * ldc + p * kPanel;
        const int64_t columns = std::min(kPanel, n - p * kPanel);
        if (columns == kPanel) {
          blocks.column(g, m, m_end, p, k, k_end, to, ldc * 4, keep);
          continue;
        }
        blocks.column(g, m, m_end, p, k, k_end, scratch, kPanel * 4, false);
        for (int64_t r = 0; r < m_end - m; ++r)
          for (int64_t j = 0; j < columns; ++j)
            to[r * ldc + j] = keep ? to[r * ldc + j] + scratch[r * kPanel + j] : scratch[r * kPanel + j];
      }
    }
  }
  blocks.end();
}

int64_t bf16_block_depth(int64_t whole_k, int64_t n) {
  const Bf16Blocks& blocks = blocks_in_use();
  const bool continues = n % kPanel == 0 && &blocks != &kMatrixBlocks;
  return continues ? kTileK : k_share(blocks.max_share, round_up(whole_k, kTileK));
}

void bf16_grad_weight(const bf16* dy, int64_t ld_dy, const bf16* x, int64_t rows, int64_t n0, int64_t n1,
                      int64_t k, float* dw, bool add, void* space, int64_t whole_rows) {
  bf16* block = static_cast<bf16*>(space);
  float* scratch = reinterpret_cast<float*>(static_cast<char*>(space) + packed_a_bytes(kGradRows, rows));
  const GemmOperands g = in_blocks(block, x, round_up(rows, kTileK));
  for (int64_t n = n0; n < n1; n += kGradRows) {
    const int64_t m = std::min(kGradRows, n1 - n);
    pack_a_transposed(dy + n, ld_dy, m, rows, block, 0, blocks_of_a(m));
    bf16_gemm_f32(g, 0, m, k, 0, panels(k), scratch, dw + n * k, k, add, round_up(whole_rows, kTileK));
  }
}

}  // namespace cairn::kernels::cpu
