// Choices, counted and sorted by expert. They are cut into segments, a warp each: the warps count how often each expert
// is in their segment; one block turns counts[expert][segment] into places, which are the sums of all counts before;
// the warps then hand out the places of their segment, in order.
#include "kernels/cuda/common/workspace.h"
#include "kernels/cuda/experts/experts.h"
#include "kernels/cuda/rows.h"
#include "runtime/base/experts.h"

namespace cairn::kernels::cuda {
namespace {

constexpr int kMostSegments = 128, kLeastChoices = 256;  // of a segment
constexpr int kPlaceThreads = 512;
constexpr int kEach = 4;  // counts that a thread adds up in one go

struct Segments {
  int choices, experts, count, length;  // of a segment

  Segments(const TensorDesc& chosen, int64_t experts)
      : choices(static_cast<int>(chosen.shape.elements())), experts(static_cast<int>(experts)) {
    const int most = (choices - 1) / kMostSegments / kWarp * kWarp + kWarp;
    length = most < kLeastChoices ? kLeastChoices : most;
    count = (choices - 1) / length + 1;
  }
  int64_t counts() const { return int64_t{experts} * count; }
};

// Among the choices of a warp's lanes: how many of the lane's expert stand before it, and how many there are.
struct Rank {
  int before = 0, all = 0;

  __device__ __forceinline__ explicit Rank(int expert) {
    const int lane = lane_of_row();
    CAIRN_UNROLL
    for (int l = 0; l < kWarp; ++l) {
      const bool same = __shfl_sync(kAllLanes, expert, l) == expert;
      before += same && l < lane;
      all += same;
    }
  }
};

// body(choice, its expert, where the expert's number of this segment is, Rank) for every choice of the warp's segment.
// A lane without a choice has expert -1.
template <class Body>
__device__ __forceinline__ void each_choice(const int32_t* chosen, const Segments& s, int64_t segment,
                                            int* numbers, const Body& body) {
  const int64_t begin = segment * s.length, end = begin + s.length < s.choices ? begin + s.length : s.choices;
  for (int64_t from = begin; from < end; from += kWarp) {
    const int64_t i = from + lane_of_row();
    const int expert = i < end ? static_cast<int>(experts::nearest(chosen[i], s.experts)) : -1;
    body(static_cast<int>(i), expert, numbers + static_cast<int64_t>(expert) * s.count + segment,
         Rank(expert));
  }
}

__global__ void __launch_bounds__(kRowsThreads)
    count_segments(const int32_t* chosen, Segments s, int* counts) {
  const int64_t segment = row_of_warp();
  if (segment >= s.count) return;
  for (int64_t e = lane_of_row(); e < s.experts; e += kWarp) counts[e * s.count + segment] = 0;
  __syncwarp();
  each_choice(chosen, s, segment, counts, [](int, int expert, int* count, const Rank& rank) {
    if (expert >= 0 && rank.before == 0) *count += rank.all;
    __syncwarp();
  });
}

__global__ void __launch_bounds__(kPlaceThreads) place_segments(Segments s, int* counts, int32_t* starts) {
  CAIRN_SHARED int scratch[kWarp];
  const int64_t all = static_cast<int64_t>(s.experts) * s.count;
  int before = 0;
  for (int64_t from = 0; from < all; from += kPlaceThreads * kEach) {
    const int64_t first = from + static_cast<int>(threadIdx.x) * kEach;
    int own[kEach], sum = 0, total;
    for (int j = 0; j < kEach; ++j) {
      own[j] = first + j < all ? counts[first + j] : 0;
      sum += own[j];
    }
    int at = before + sum_before<kPlaceThreads>(sum, scratch, &total);
    for (int j = 0; j < kEach && first + j < all; ++j) {
      counts[first + j] = at;
      if ((first + j) % s.count == 0) starts[(first + j) / s.count] = at;
      at += own[j];
    }
    before += total;
  }
  if (threadIdx.x == 0) starts[s.experts] = before;
}

__global__ void __launch_bounds__(kRowsThreads)
    place_choices(const int32_t* chosen, Segments s, int* next, int32_t* order, int32_t* places) {
  const int64_t segment = row_of_warp();
  if (segment >= s.count) return;
  each_choice(chosen, s, segment, next, [&](int i, int expert, int* first, const Rank& rank) {
    const int at = expert >= 0 ? *first : 0;
    __syncwarp();
    if (expert >= 0) {
      order[at + rank.before] = i;
      places[i] = at + rank.before;
      if (rank.before == 0) *first = at + rank.all;
    }
    __syncwarp();
  });
}

// A warp has an expert.
__global__ void __launch_bounds__(kRowsThreads) sum_segments(Segments s, const int* counts, float* to) {
  const int64_t expert = row_of_warp();
  if (expert >= s.experts) return;
  int sum = 0;
  for (int i = lane_of_row(); i < s.count; i += kWarp) sum += counts[expert * s.count + i];
  sum = warp_sum(sum);
  if (lane_of_row() == 0) to[expert] = static_cast<float>(sum);
}

}  // namespace

std::unique_ptr<Kernel> make_group_rows(const Signature& s) {
  if (!plain_i32(s.in[0])) return nullptr;
  const Segments segments(s.in[0], s.attrs->integer("experts"));
  return make_kernel(
      [=](const Call& call) {
        const cudaStream_t stream = stream_of(call);
        const auto* chosen = input<const int32_t>(call, 0);
        int* const counts = Workspace::at<int>(call, 0);
        launch(stream, count_segments, size_of_rows(segments.count), chosen, segments, counts);
        launch(stream, place_segments, {.threads = kPlaceThreads}, segments, counts,
               output<int32_t>(call, 2));
        launch(stream, place_choices, size_of_rows(segments.count), chosen, segments, counts,
               output<int32_t>(call, 0), output<int32_t>(call, 1));
      },
      segments.counts() * 4);
}

std::unique_ptr<Kernel> make_count_choices(const Signature& s) {
  if (!plain_i32(s.in[0]) || !plain_f32(s.out[0])) return nullptr;
  const Segments segments(s.in[0], s.attrs->integer("experts"));
  return make_kernel(
      [=](const Call& call) {
        const cudaStream_t stream = stream_of(call);
        int* const counts = Workspace::at<int>(call, 0);
        launch(stream, count_segments, size_of_rows(segments.count), input<const int32_t>(call, 0), segments,
               counts);
        launch(stream, sum_segments, size_of_rows(segments.experts), segments, counts,
               output<float>(call, 0));
      },
      segments.counts() * 4);
}

}  // namespace cairn::kernels::cuda
