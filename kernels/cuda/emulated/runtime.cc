#include "kernels/cuda/emulated/simt.h"

namespace cairn::kernels::cuda::emulated {

void submit(Stream*, std::function<void()> work) { work(); }

}  // namespace cairn::kernels::cuda::emulated
