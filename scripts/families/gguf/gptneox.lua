-- GPT-NeoX and Pythia. The product for queries, keys and values has them one after the other there.
return {
  families = { "gpt_neox" },
  keys = {
    { "attention.layer_norm_epsilon", "layer_norm_eps", "f32" }, { "attention.layer_norm_rms_epsilon" },
    { "attention.head_count_kv" },
    { "use_parallel_residual", "use_parallel_residual", "bool" },
  },
  more = function(put, _, a) put("rope.dimension_count", "u32", a.ropes.all.dim) end,
}
