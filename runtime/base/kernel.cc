#include "runtime/base/kernel.h"

namespace cairn::kernels {

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

}  // namespace cairn::kernels
