-- T5 (Raffel et al., 2020) and T5 1.1: an encoder and a decoder that reads what it made, positions by distance alone,
-- scores that nothing divides, no biases. The first one's head is the token table, of rows divided by sqrt(d_model).
local config = require "families.parts.config"
local fail = require "cli.base.fail"
local NONE = config.NONE

-- What feed_forward_proj says, as "relu" or "gated-gelu", and older files once more in two keys.
local function feed_forward(c, a, architecture)
  local kind, word = c.feed_forward_proj:match("^([^-]*)-?([^-]*)$")
  if not kind or word ~= "" and kind ~= "gated" then
    fail.input(("%s: feed_forward_proj is '%s'; wanted: an activation, as relu, or gated-ACTIVATION"):format(a.where,
      config.shown(c.feed_forward_proj)))
  end
  a.gated = word ~= ""
  if not a.gated then word = kind end
  if c.feed_forward_proj == "gated-gelu" then word = "gelu_new" end
  for key, value in pairs { dense_act_fn = word, is_gated_act = a.gated } do
    if c[key] ~= nil and c[key] ~= value then
      fail.input(("%s: %s is %s, but feed_forward_proj is '%s'"):format(a.where, key, config.shown(c[key]),
        config.shown(c.feed_forward_proj)))
    end
  end
  a.activation = architecture.activation(word, a.where, "feed_forward_proj")
end

-- A token that begins, ends or fills up.
local function special(c, a, key, value)
  if type(value) ~= "number" or value ~= math.floor(value) or value < 0 or value >= c.vocab_size then
    fail.input(("%s: %s is %s; wanted: one of the %d tokens"):format(a.where, key, config.shown(value), c.vocab_size))
  end
  return value
end

return {
  words = "T5, T5 1.1, FLAN-T5 (an encoder and a decoder)",
  recipe = "seq2seq",
  learned = true,  -- positions: no keys of rotary ones
  spelled = { d_model = "hidden_size", d_kv = "head_dim", d_ff = "intermediate_size", num_layers = "num_hidden_layers",
              num_heads = "num_attention_heads" },
  defaults = {
    vocab_size = 32128, hidden_size = 512, head_dim = 64, intermediate_size = 2048, num_hidden_layers = 6,
    num_decoder_layers = NONE, num_attention_heads = 8, relative_attention_num_buckets = 32,
    relative_attention_max_distance = 128, layer_norm_epsilon = 1e-6, feed_forward_proj = "relu", dense_act_fn = NONE,
    is_gated_act = NONE, initializer_factor = 1.0, tie_word_embeddings = true, scale_decoder_outputs = NONE,
    decoder_start_token_id = NONE, pad_token_id = 0, eos_token_id = NONE,
  },
  fixed = { is_encoder_decoder = true, dropout_rate = "any", n_positions = "any", output_past = "any" },
  shape = function(c, a, architecture)
    a.head_dim, a.kv_heads = c.head_dim or 64, a.heads
    a.decoder_layers = c.num_decoder_layers or a.layers
    a.norm = { kind = "rms", eps = c.layer_norm_epsilon }
    a.buckets, a.farthest = c.relative_attention_num_buckets, c.relative_attention_max_distance
    if a.buckets < 4 or a.buckets > 512 or a.farthest <= math.floor(a.buckets / 2) then
      fail.input(("%s: relative_attention_num_buckets is %d and relative_attention_max_distance %d; wanted: 4 to " ..
        "512, and a distance of more than half of them"):format(a.where, a.buckets, a.farthest))
    end
    feed_forward(c, a, architecture)
    -- Transformers 5 writes scale_decoder_outputs, and that heads are tied, of all: it goes by the files.
    a.head_in_file = c.scale_decoder_outputs ~= nil
    local scaled = c.scale_decoder_outputs
    if scaled == nil then scaled = c.tie_word_embeddings end
    a.logits_scale = scaled and a.width ^ -0.5 or nil
    a.pad = special(c, a, "pad_token_id", c.pad_token_id)
    a.start = special(c, a, "decoder_start_token_id", c.decoder_start_token_id or a.pad)
    local last = c.eos_token_id or 1
    a.last = special(c, a, "eos_token_id", type(last) == "table" and last[1] or last)
    local factor = c.initializer_factor
    a.init = { table = factor, scale = factor * a.width ^ -0.5, residual = factor * a.hidden ^ -0.5,
               q = factor * (a.width * a.head_dim) ^ -0.5, o = factor * (a.heads * a.head_dim) ^ -0.5 }
    a.names = { tokens = "shared", head = "lm_head", gate = "wi_0", up = a.gated and "wi_1" or "wi", down = "wo" }
    a.bias, a.blocks = {}, "encoder.block."
    -- Copies of the table that old files hold, and distances that nothing reads.
    local same, advice = "shared.weight", "both sides have one table of tokens"
    a.unused = { { "^encoder%.embed_tokens%.weight$", same = same, advice = advice },
                 { "^decoder%.embed_tokens%.weight$", same = same, advice = advice },
                 "^decoder%.block%.0%.layer%.1%.EncDecAttention%.relative_attention_bias%.weight$" }
  end,
}
