-- What GGUF files of all architectures share: keys of metadata, without the architecture in front, and names of
-- tensors, by what a decoder (families.parts.architecture) calls the part. A file of this folder is an architecture:
--   families   ours that such a file may be, the usual one first
--   family(m)  which of them a file is (optional); m: see cli.model.gguf
--   keys       rows {key, config's key, type} besides these or in their place; {key} alone: passed over
--   permuted   rows of queries and keys lie as llama.cpp's rotary positions want them: neighbours turn
--   turns_all  rope.dimension_count is the size of a head
--   norms      other names of norms
--   complete(config, m, head_dim)  what else a file says, or leaves to its architecture
--   more(put, c, a)                more metadata, when a file is written: put(key, type, value). What a reader makes of
--                                  them is compared with the model, so that nothing is lost
local keys = {}

keys.COMMON = {
  { "context_length", "max_position_embeddings", "u32" },
  { "embedding_length", "hidden_size", "u32" },
  { "block_count", "num_hidden_layers", "u32" },
  { "feed_forward_length", "intermediate_size", "u32" },
  { "attention.head_count", "num_attention_heads", "u32" },
  { "attention.head_count_kv", "num_key_value_heads", "u32" },
  { "attention.layer_norm_rms_epsilon", "rms_norm_eps", "f32" },
  { "rope.freq_base", "rope_theta", "f32" },
  { "vocab_size", "vocab_size", "u32" },
}

-- Rows of an architecture: its own in the place of common ones of the same key.
function keys.of(rows)
  local own, list = {}, {}
  for _, row in ipairs(rows.keys or {}) do own[row[1]] = true end
  for _, row in ipairs(keys.COMMON) do
    if not own[row[1]] then list[#list + 1] = row end
  end
  for _, row in ipairs(rows.keys or {}) do list[#list + 1] = row end
  return list
end

-- Of rotary positions that reach further.
keys.SCALING = { factor = "rope.scaling.factor", attention_factor = "rope.scaling.yarn_attn_factor",
                 beta_fast = "rope.scaling.yarn_beta_fast", beta_slow = "rope.scaling.yarn_beta_slow",
                 original_max_position_embeddings = "rope.scaling.original_context_length" }

-- Keys that change nothing, or say again what others say.
keys.HARMLESS = {}
for name in ([[attention.value_length rope.scaling.finetuned rope.scaling.attn_factor attention.causal
  tensor_data_layout expert_count expert_used_count rope.scaling.original_context_length
  expert_gating_func expert_weights_norm]]):gmatch("%S+") do keys.HARMLESS[name] = true end

keys.NORMS = { before_attention = "attn_norm", after_attention = "post_attention_norm", before_mlp = "ffn_norm",
               after_mlp = "post_ffw_norm" }
keys.ATTENTION = { q = "attn_q", k = "attn_k", v = "attn_v", qkv = "attn_qkv", o = "attn_output",
                   q_norm = "attn_q_norm", k_norm = "attn_k_norm" }
keys.MLP = { gate = "ffn_gate", up = "ffn_up", gate_up = "ffn_up", down = "ffn_down" }
keys.EXPERTS = { gate = "ffn_gate_exps", up = "ffn_up_exps", down = "ffn_down_exps" }

-- layer_types as a list of bools, or every how many layers one has no window, says it.
function keys.layer_types(config, m, otherwise)
  local pattern = m.key("attention.sliding_window_pattern")
  if config.sliding_window == 0 then config.sliding_window = nil end
  if not config.sliding_window then return false end
  if type(pattern) == "table" then
    local types = {}
    for i = 1, config.num_hidden_layers do types[i] = pattern[i] and "sliding_attention" or "full_attention" end
    config.layer_types = types
    return true
  end
  local n = tonumber(pattern) or otherwise
  local types = {}
  for i = 1, config.num_hidden_layers do types[i] = i % n ~= 0 and "sliding_attention" or "full_attention" end
  config.layer_types = types
  return true
end

-- And back: put(key, type, value).
function keys.put_layer_types(put, c, a)
  if not c.sliding_window then return end
  put("attention.sliding_window", "u32", c.sliding_window)
  local list = {}
  for i = 1, a.layers do list[i] = a.windows[i] ~= nil end
  put("attention.sliding_window_pattern", "bool", list)
end

function keys.root() return debug.getinfo(1, "S").source:match("^@(.*)/keys%.lua$") end

return keys
