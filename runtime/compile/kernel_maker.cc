#include "runtime/compile/kernel_maker.h"

#include "kernels/registry.h"
#include "runtime/compile/cost_query.h"
#include "runtime/compile/custom.h"

namespace cairn::engine {
namespace {

void add_list(std::string& key, const std::vector<TensorDesc>& list, uint32_t present) {
  for (size_t i = 0; i < list.size(); ++i)
    key += present >> i & 1u ? cat(';', to_string(list[i]), ':', list[i].packed_bytes) : ";-";
  key += '|';
}

struct AttrKey {
  std::string& out;
  void operator()(const std::vector<int64_t>& list) const {
    for (int64_t i : list) {
      append_text(out, i);
      out += ',';
    }
  }
  // Exact, as rates that differ in the last bit are different kernels.
  void operator()(double v) const { append_text(out, __builtin_bit_cast(uint64_t, v)); }
  void operator()(const std::vector<double>& list) const {
    for (double v : list) out += cat(__builtin_bit_cast(uint64_t, v), ',');
  }
  template <class T>
  void operator()(const T& v) const {
    append_text(out, v);
  }
};

std::string signature_key(const graph::JointOp& op, const Operands& operands) {
  std::string key = cat(ops::name(op.code), '|');
  add_list(key, operands.in, operands.in_present);
  add_list(key, operands.out, operands.out_present);
  for (const auto& [name, value] : op.attrs.items()) {
    key += cat(name, '=', value.index(), ':');
    std::visit(AttrKey{key}, value);
    key += ';';
  }
  return key;
}

bool is_part_of_loss(ops::OpCode code) {
  return code == ops::OpCode::k_linear_cross_entropy_max || code == ops::OpCode::k_linear_cross_entropy_sum ||
         code == ops::OpCode::k_linear_cross_entropy_part;
}

// Parts of a vocabulary are multiplied in the way that was chosen for the vocabulary in one piece, so that they make
// its bits.
using Choices = std::map<std::string, costs::KernelChoice>;
Choices::const_iterator choice_of_whole_loss(const graph::JointGraph& joint, const graph::JointOp& part,
                                             const Operands& operands, const Choices& choices) {
  bool trains = false;
  for (const graph::JointOp& op : joint.ops())
    trains = trains || op.code == ops::OpCode::k_linear_cross_entropy_part;
  const ops::OpCode whole =
      trains ? ops::OpCode::k_linear_cross_entropy_grad : ops::OpCode::k_linear_cross_entropy;
  const std::string before = cat(ops::name(whole), '(', to_string(operands.in[0]), ", ");
  const std::string weight = to_string(Shape{part.attrs.integer("vocab"), operands.in[1].shape[1]});
  for (auto at = choices.lower_bound(before); at != choices.end() && at->first.starts_with(before); ++at) {
    const std::string_view rest = std::string_view(at->first).substr(before.size());
    if (const size_t shape = rest.find('['); shape != rest.npos && rest.substr(shape).starts_with(weight))
      return at;
  }
  return choices.end();
}

}  // namespace

Operands::Operands(const graph::JointGraph& joint, const graph::JointOp& op) {
  const ops::OpRow& row = ops::row(op.code);
  const auto fill = [&](const std::vector<int32_t>& ids, size_t slots, std::vector<TensorDesc>& descs,
                        uint32_t& present) {
    descs.resize(std::max(slots, ids.size()));
    for (size_t i = 0; i < ids.size(); ++i)
      if (ids[i] >= 0) {
        descs[i] = joint.values[static_cast<size_t>(ids[i])].desc;
        present |= 1u << i;
      }
  };
  fill(op.in, row.inputs.size(), in, in_present);
  fill(op.out, row.outputs.size(), out, out_present);
}

Operands::Operands(const std::vector<Operand>& in_operands, const std::vector<Operand>& out_operands) {
  const auto fill = [](const std::vector<Operand>& from, std::vector<TensorDesc>& descs, uint32_t& present) {
    for (size_t i = 0; i < from.size(); ++i) {
      descs.push_back(from[i].desc);
      if (from[i].offset >= 0) present |= 1u << i;
    }
  };
  fill(in_operands, in, in_present);
  fill(out_operands, out, out_present);
}

int32_t KernelMaker::make(const graph::JointOp& op) { return make(op, Operands(*plan_.joint, op)); }

int32_t KernelMaker::make(const graph::JointOp& op, const Operands& operands) {
  const auto [found, fresh] =
      made_.emplace(signature_key(op, operands), static_cast<int32_t>(kernels_.size()));
  if (!fresh) return found->second;
  const bool custom = op.code == ops::OpCode::k_custom || op.code == ops::OpCode::k_custom_grad;
  require(!custom || device_.info().host_reaches, Code::kUnsupported, "custom ops run on the host; '",
          device_.info().name, "' keeps its values where the host does not reach");
  kernels_.push_back(custom ? make_custom_kernel(plan_.joint->forward, op.code, signature(op, operands))
                            : kernels::select(*plan_.registry, signature(op, operands)));
  return found->second;
}

int32_t KernelMaker::make_on_host(const graph::JointOp& op, const Operands& operands) {
  const auto [found, fresh] =
      made_.emplace("host|" + signature_key(op, operands), static_cast<int32_t>(kernels_.size()));
  if (!fresh) return found->second;
  host_kernels_.insert(found->second);
  kernels_.push_back(kernels::cpu_registry().find(signature_of(op, operands, device_.info().host_threads)));
  require(kernels_.back() != nullptr, Code::kInternal, "no kernel of the host's for '", op.name, "'");
  return found->second;
}

int32_t KernelMaker::make_batch(std::span<const BatchedOp> ops) {
  if (plan_.registry->batch == nullptr || ops.empty()) return -1;
  std::string key = "batch";
  std::vector<kernels::Signature> signatures;
  for (const BatchedOp& op : ops) {
    key += '\n' + signature_key(*op.op, op.operands);
    signatures.push_back(signature(*op.op, op.operands));
  }
  if (const auto found = made_.find(key); found != made_.end()) return found->second;
  auto kernel = plan_.registry->batch(signatures);
  const int32_t index = kernel == nullptr ? -1 : static_cast<int32_t>(kernels_.size());
  if (kernel != nullptr) kernels_.push_back(std::move(kernel));
  return made_[key] = index;
}

kernels::Signature KernelMaker::signature(const graph::JointOp& op, const Operands& operands) const {
  kernels::Signature s = signature_of(op, operands, plan_.threads);
  if (!plan_.registry->choices || plan_.costs == nullptr || !plan_.costs->profile) return s;
  const auto& choices = plan_.costs->profile->choices;
  if (choices.empty()) return s;
  const auto found = is_part_of_loss(op.code) ? choice_of_whole_loss(*plan_.joint, op, operands, choices)
                                              : choices.find(query_of(*plan_.joint, op, operands).signature);
  if (found != choices.end()) s.choice = found->second.choice;
  return s;
}

kernels::Signature signature_of(const graph::JointOp& op, const Operands& operands, int threads) {
  return {.op = ops::name(op.code),
          .in = operands.in,
          .out = operands.out,
          .in_present = operands.in_present,
          .out_present = operands.out_present,
          .attrs = &op.attrs,
          .threads = threads};
}

}  // namespace cairn::engine
