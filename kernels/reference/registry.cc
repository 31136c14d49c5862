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

std::unique_ptr<Kernel> Registry::find(const Signature& signature) const {
  if (!signature.choice.empty()) {
    const std::string_view chosen = signature.choice.substr(0, signature.choice.find('|'));
    for (const KernelRow& row : rows)
      if (row.op == signature.op && row.name == chosen)
        if (auto kernel = row.make(signature)) return kernel;
    Signature own = signature;
    own.choice = {};
    return find(own);
  }
  for (const KernelRow& row : rows)
    if (row.op == signature.op)
      if (auto kernel = row.make(signature)) return kernel;
  return nullptr;
}

bool Registry::supports(std::string_view op) const {
  for (const KernelRow& row : rows)
    if (row.op == op) return true;
  return false;
}

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
