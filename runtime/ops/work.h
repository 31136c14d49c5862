// The work rules that ops.def names: operations and bytes of one run where they are not simply so many per
// element.
#pragma once
#include "runtime/ops/ops.h"

namespace cairn::ops {

using Descs = std::span<const TensorDesc>;

Work work_lookup(const OpRow& row, Descs in, Descs out, const Attrs* attrs);
Work work_append(const OpRow& row, Descs in, Descs out, const Attrs* attrs);
Work work_linear(const OpRow& row, Descs in, Descs out, const Attrs* attrs);
Work work_matmul(const OpRow& row, Descs in, Descs out, const Attrs* attrs);
Work work_linear_grad_input(const OpRow& row, Descs in, Descs out, const Attrs* attrs);
Work work_linear_grad_weight(const OpRow& row, Descs in, Descs out, const Attrs* attrs);
Work work_head(const OpRow& row, Descs in, Descs out, const Attrs* attrs);
Work work_head_grad(const OpRow& row, Descs in, Descs out, const Attrs* attrs);
Work work_head_part(const OpRow& row, Descs in, Descs out, const Attrs* attrs);
Work work_attention(const OpRow& row, Descs in, Descs out, const Attrs* attrs);
Work work_attention_grad(const OpRow& row, Descs in, Descs out, const Attrs* attrs);
Work work_conv(const OpRow& row, Descs in, Descs out, const Attrs* attrs);
Work work_conv_transpose(const OpRow& row, Descs in, Descs out, const Attrs* attrs);
Work work_conv_grad_weight(const OpRow& row, Descs in, Descs out, const Attrs* attrs);
Work work_recurrent(const OpRow& row, Descs in, Descs out, const Attrs* attrs);
Work work_pair_loss(const OpRow& row, Descs in, Descs out, const Attrs* attrs);
Work work_pair_loss_grad(const OpRow& row, Descs in, Descs out, const Attrs* attrs);
Work work_update(const OpRow& row, Descs in, Descs out, const Attrs* attrs);

}  // namespace cairn::ops
