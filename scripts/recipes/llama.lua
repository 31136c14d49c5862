-- Llama: RMS norms, rotary positions, grouped-query attention, SwiGLU, no biases, a head of its own or tied to the
-- token table.
-- Parameters have Hugging Face's names; each block is a region with the regions attn and mlp inside.

local architecture = require "families.parts.architecture"
local language = require "families.parts.language"
local nn = require("cairn").nn

local function hidden_width(o) return o.hidden > 0 and o.hidden or math.ceil(8 * o.width / 3 / 64) * 64 end

return language.complete({
  options = language.options({
    { "layers", 4, "transformer blocks", whole = true, least = 1, most = 6000 },
    { "heads", 4, "query heads; divides width", whole = true, least = 1 },
    { "kv_heads", 2, "key and value heads; divides heads", whole = true, least = 1 },
    { "width", 256, "of the hidden state", whole = true, least = 1 },
    { "hidden", 0, "of the feed-forward layer; 0: 8/3 width, to a multiple of 64", whole = true, least = 0 },
    { "rope_base", 10000, "of the rotary positions", least = 1 },
    { "vocab", 256, "tokens of the vocabulary", whole = true, least = 2 },
  }, {
    { "eps", 1e-5, "of the norms", least = 0 },
    { "frozen", "", "parameters whose names match are not trained, as 'h.*'" },
    { "tied", false, "the head is the token table" },
  }),
  training = language.training(),

  check = function(o)
    if o.width % o.heads ~= 0 or o.width / o.heads % 2 ~= 0 then
      return ("heads=%d and width=%d: a head must have width/heads columns, an even whole number"):format(o.heads,
        o.width)
    end
    if o.heads % o.kv_heads ~= 0 then
      return ("kv_heads=%d does not divide heads=%d"):format(o.kv_heads, o.heads)
    end
    return select(2, nn.segment_size(o.segments, o.layers))
  end,

  blocks = "model.layers.",

  -- Frequencies that old files hold; of a tied model the head, too.
  unused = function(o)
    local head = { "^lm_head%.weight$", same = "model.embed_tokens.weight", advice = "tied=false keeps both" }
    return { "%.rotary_emb%.inv_freq$", o.tied and head or nil }
  end,

  -- What a file's shapes ask for.
  fit = function(shapes, o)
    local rows, layers = {}, 0
    while shapes[("model.layers.%d.input_layernorm.weight"):format(layers)] do layers = layers + 1 end
    if layers > 0 then rows[1] = { "layers", layers } end
    local tokens = shapes["model.embed_tokens.weight"]
    local gate, key = shapes["model.layers.0.mlp.gate_proj.weight"], shapes["model.layers.0.self_attn.k_proj.weight"]
    if tokens and #tokens == 2 then
      rows[#rows + 1], rows[#rows + 2] = { "vocab", tokens[1] }, { "width", tokens[2] }
    end
    if gate and gate[1] ~= hidden_width(o) then rows[#rows + 1] = { "hidden", gate[1] } end
    if tokens and key and key[1] * o.heads % tokens[2] == 0 then
      rows[#rows + 1] = { "kv_heads", key[1] * o.heads / tokens[2] }
    end
    rows[#rows + 1] = { "tied", shapes["lm_head.weight"] == nil }
    return rows
  end,

  hf_config = function(o)
    return {
      model_type = "llama", architectures = { "LlamaForCausalLM" }, num_hidden_layers = o.layers,
      num_attention_heads = o.heads, num_key_value_heads = o.kv_heads, hidden_size = o.width,
      head_dim = o.width / o.heads, vocab_size = o.vocab, intermediate_size = hidden_width(o),
      max_position_embeddings = o.seq, rms_norm_eps = o.eps, hidden_act = "silu", rope_theta = o.rope_base,
      rope_parameters = { rope_theta = o.rope_base, rope_type = "default" }, attention_bias = false, mlp_bias = false,
      tie_word_embeddings = o.tied,
    }
  end,

  -- What config.json must say.
  config = function(o)
    local head = o.width / o.heads
    local function family(name) return name == "llama" or name == "mistral" end
    local function whole(window) return type(window) == "number" and window >= o.seq end
    local function is_silu(name) return name == "silu" or name == "swish" end
    return {
      { "model_type", family, nil, "llama, or mistral, which is the same" },
      { "num_attention_heads", o.heads, "heads" }, { "num_key_value_heads", o.kv_heads, "kv_heads", default = o.heads },
      { "head_dim", head }, { "rms_norm_eps", o.eps, "eps", default = 1e-6 },
      { "rope_theta", o.rope_base, "rope_base", default = 10000, unless = "rope_parameters.rope_theta" },
      { "rope_parameters.rope_theta", o.rope_base, "rope_base" }, { "rope_parameters.rope_type", "default" },
      { "rope_parameters.type", "default" }, { "rope_parameters.partial_rotary_factor", 1 },
      { "rope_parameters.original_max_position_embeddings" },  -- which other types scale by
      { "rope_scaling.rope_type", "default" }, { "rope_scaling.type", "default" }, { "partial_rotary_factor", 1 },
      { "hidden_act", is_silu, nil, "silu" }, { "tie_word_embeddings", o.tied, "tied", default = false },
      { "attention_bias", false }, { "mlp_bias", false },
      { "sliding_window", whole, nil, ("at least seq=%d: attention sees full windows here"):format(o.seq) },
      -- Shapes show these.
      { "vocab_size" }, { "hidden_size" }, { "intermediate_size" }, { "num_hidden_layers" },
      { "max_position_embeddings" },
    }
  end,
}, function(o)
  return architecture.preset("llama", {
    vocab_size = o.vocab, hidden_size = o.width, intermediate_size = hidden_width(o), num_hidden_layers = o.layers,
    num_attention_heads = o.heads, num_key_value_heads = o.kv_heads, rms_norm_eps = o.eps, rope_theta = o.rope_base,
    tie_word_embeddings = o.tied,
  })
end)
