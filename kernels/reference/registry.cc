#include "kernels/registry.h"

#include "kernels/reference/rows.h"
#include "runtime/base/error.h"

namespace cairn::kernels {
namespace {

constexpr KernelRow kRows[] = {
#define KERNEL(op, name, isa, make) {#op, name, Isa::isa, reference::make},
#include "kernels/reference/kernels.def"
#undef KERNEL
};

int64_t nothing_is_packed(const TensorDesc&, std::string_view, int64_t, DType, int) { return 0; }

// "linear(f32[4, 8], f32[10, 8], -)"
std::string describe(const Signature& s) {
  std::string text = cat(s.op, '(');
  for (size_t i = 0; i < s.in.size(); ++i)
    text +=
        cat(i ? ", " : "", s.has_in(i) ? to_string(s.in[i]) + (s.in[i].packed_bytes ? " packed" : "") : "-");
  return text + ")";
}

}  // namespace

const Registry& reference_registry() {
  static const Registry registry{"reference", kRows, nothing_is_packed};
  return registry;
}

std::unique_ptr<Kernel> select(const Registry& registry, const Signature& signature) {
  if (auto kernel = registry.find(signature)) return kernel;
  if (registry.gaps_filled)
    if (auto kernel = reference_registry().find(signature)) return kernel;
  fail(Code::kUnsupported, "no kernel of backend '", registry.backend,
       registry.gaps_filled ? "' or 'reference" : "", "' takes ", describe(signature));
}

}  // namespace cairn::kernels
