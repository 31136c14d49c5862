-- GPT-2: layer norms, learned positions, biases everywhere, and matrices that files have as [in, out].
local NONE = require("families.parts.config").NONE

return {
  words = "GPT-2",
  learned = true,  -- positions: no keys of rotary ones
  defaults = {
    vocab_size = 50257, hidden_size = 768, intermediate_size = NONE, num_hidden_layers = 12, num_attention_heads = 12,
    hidden_act = "gelu_new", max_position_embeddings = 1024, layer_norm_epsilon = 1e-5, tie_word_embeddings = true,
    scale_attn_weights = true, scale_attn_by_inverse_layer_idx = false,
  },
  spelled = { n_embd = "hidden_size", n_inner = "intermediate_size", n_layer = "num_hidden_layers",
              n_head = "num_attention_heads", n_positions = "max_position_embeddings",
              activation_function = "hidden_act" },
  fixed = { n_ctx = "any", reorder_and_upcast_attn = "any" },  -- the order of sums alone
  shape = function(c, a)
    a.norm = { kind = "layer", eps = c.layer_norm_epsilon, bias = true }
    a.norms = { before_attention = "ln_1", before_mlp = "ln_2" }
    a.bias = { q = true, o = true, up = true, down = true }
    a.hidden = a.hidden or 4 * a.width
    a.fused_qkv, a.gated, a.blocks = "packed", false, nil
    a.init.residual = a.init.scale / math.sqrt(2 * a.layers)  -- so that the sum over blocks keeps its size
    for i = 1, a.layers do
      local scale = c.scale_attn_weights and a.head_dim ^ -0.5 or 1
      if c.scale_attn_by_inverse_layer_idx then scale = scale / i end
      a.attention_scales[i] = scale ~= a.head_dim ^ -0.5 and scale or nil
    end
    a.names = { tokens = "wte", positions = "wpe", block = "h.%d", final = "ln_f", head = "lm_head",
                attention = "attn", qkv = "c_attn", o = "c_proj", mlp = "mlp", up = "c_fc", down = "c_proj" }
    a.transposed = { "attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj" }
    a.unused = { "%.attn%.bias$", "%.attn%.masked_bias$" }  -- masks that old files hold
  end,
}
