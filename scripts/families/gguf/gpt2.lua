-- GPT-2. Its matrices are [out, in] there.
return {
  families = { "gpt2" },
  keys = {
    { "attention.layer_norm_epsilon", "layer_norm_epsilon", "f32" },
    { "attention.layer_norm_rms_epsilon" }, { "attention.head_count_kv" }, { "rope.freq_base" },
  },
}
