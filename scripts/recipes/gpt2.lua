-- GPT-2: pre-norm transformer blocks, learned positions, tanh GELU, head tied to the token table.
-- Parameters have Hugging Face's names; each block is a region with the regions attn and mlp inside.

local architecture = require "families.parts.architecture"
local language = require "families.parts.language"
local nn = require("cairn").nn

return language.complete({
  options = language.options({
    { "layers", 4, "transformer blocks", whole = true, least = 1, most = 6000 },
    { "heads", 4, "attention heads; divides width", whole = true, least = 1 },
    { "width", 256, "of the hidden state", whole = true, least = 1 },
    { "vocab", 256, "tokens of the vocabulary", whole = true, least = 2 },
  }, {
    { "dropout", 0, "share of activations dropped", least = 0, below = 1 },
    { "eps", 1e-5, "of the norms", least = 0 },
    { "frozen", "", "parameters whose names match are not trained, as 'h.*'" },
    { "positions", 0, "rows of the position table, for windows shorter than it; 0: seq", whole = true, least = 0 },
  }),
  training = language.training(),

  check = function(o)
    if o.width % o.heads ~= 0 then
      return ("heads=%d does not divide width=%d: each head has width/heads columns"):format(o.heads, o.width)
    end
    if o.positions > 0 and o.positions < o.seq then
      return ("positions=%d is less than seq=%d: each token of a window needs a position"):format(o.positions, o.seq)
    end
    return select(2, nn.segment_size(o.segments, o.layers))
  end,

  -- Hugging Face keeps these four as [in, out]; all other names and shapes are the same.
  names = function(o)
    local rows = {}
    for layer = 0, o.layers - 1 do
      for _, part in ipairs { "attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj" } do
        local name = ("h.%d.%s.weight"):format(layer, part)
        rows[#rows + 1] = { ours = name, theirs = name, transposed = true }
      end
    end
    return rows
  end,

  -- Masks that old files hold, and the head, which is the token table.
  unused = function()
    return { "%.attn%.bias$", "%.attn%.masked_bias$",
             { "^lm_head%.weight$", same = "wte.weight", advice = "this recipe ties the head to the token table" } }
  end,

  -- What a file's shapes ask for.
  fit = function(shapes, o)
    local rows, layers = {}, 0
    while shapes[("h.%d.ln_1.weight"):format(layers)] do layers = layers + 1 end
    if layers > 0 then rows[1] = { "layers", layers } end
    local wte, wpe = shapes["wte.weight"], shapes["wpe.weight"]
    if wte and #wte == 2 then
      rows[#rows + 1], rows[#rows + 2] = { "vocab", wte[1] }, { "width", wte[2] }
    end
    if wpe and wpe[1] < o.seq then rows[#rows + 1] = { "seq", wpe[1] } end
    if wpe and wpe[1] ~= o.seq then rows[#rows + 1] = { "positions", wpe[1] > o.seq and wpe[1] or 0 } end
    return rows
  end,

  hf_config = function(o)
    return {
      model_type = "gpt2", architectures = { "GPT2LMHeadModel" }, n_layer = o.layers, n_head = o.heads,
      n_embd = o.width, n_inner = 4 * o.width, n_positions = math.max(o.positions, o.seq), vocab_size = o.vocab,
      layer_norm_epsilon = o.eps, activation_function = "gelu_new", attn_pdrop = 0, embd_pdrop = o.dropout,
      resid_pdrop = o.dropout, scale_attn_weights = true, scale_attn_by_inverse_layer_idx = false,
      tie_word_embeddings = true,
    }
  end,

  -- What config.json must say.
  config = function(o)
    local function is_tanh_gelu(name) return name == "gelu_new" or name == "gelu_pytorch_tanh" end
    return {
      { "model_type", "gpt2" }, { "n_head", o.heads, "heads" },
      { "layer_norm_epsilon", o.eps, "eps", default = 1e-5 }, { "n_inner", 4 * o.width },
      { "activation_function", is_tanh_gelu, nil, "gelu_new" }, { "scale_attn_weights", true },
      { "scale_attn_by_inverse_layer_idx", false }, { "tie_word_embeddings", true },
      -- Of the order of sums alone; and what shapes show.
      { "reorder_and_upcast_attn" }, { "vocab_size" }, { "n_layer" }, { "n_embd" }, { "n_positions" }, { "n_ctx" },
    }
  end,
}, function(o)
  local a = architecture.preset("gpt2", {
    vocab_size = o.vocab, hidden_size = o.width, num_hidden_layers = o.layers, num_attention_heads = o.heads,
    max_position_embeddings = math.max(o.positions, o.seq), layer_norm_epsilon = o.eps,
  })
  a.dropout = o.dropout
  return a
end)
