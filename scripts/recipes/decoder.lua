-- A decoder of one of the families that `cairn models` lists, as its config.json describes it. A directory with that
-- file in the place of a recipe is this recipe with the directory's config, weights and tokenizer.
-- Parameters have Hugging Face's names; each block is a region with the regions attn and mlp inside.

local decode = require "cli.base.json_decode"
local described = require "families.parts.described"
local experts = require "families.parts.experts"
local json = require "cli.base.json"
local language = require "families.parts.language"
local nn = require("cairn").nn

local LONGEST = 1024  -- of a window, where nobody says

local architecture_of = described.by("decoder", function(a, o)
  a.balance = tonumber(o.balance) or a.experts and a.experts.balance or 0
end)

local decoder
decoder = language.complete({
  options = language.options({
    described.MODEL,
  }, {
    { "vocab", 0, "tokens that data=random draws from; 0: the model's", whole = true, least = 0 },
    { "dropout", 0, "share of activations dropped", least = 0, below = 1 },
    { "frozen", "", "parameters whose names match are not trained, as 'h.*'" },
    described.TIED,
    { "balance", "auto", "coefficient of the auxiliary loss for equal use of experts; auto: router_aux_loss_coef if " ..
      "config.json says output_router_logits, else 0" },
    described.MODEL_NAME,
  }, { seq = 0, seq_words = "tokens of a window; 0: max_position_embeddings, at most " .. LONGEST, batch = 1,
       tokens = { "auto", "bytes", "bpe" } }),
  training = { steps = 100, rate = 1e-5, weight_decay = 0.1, beta1 = 0.9, beta2 = 0.95, clip = 1.0 },

  settle = function(o)
    local found, a = described.settled(o, architecture_of)
    decoder.blocks = a.blocks
    found.seq = o.seq > 0 and o.seq or math.min(a.positions, LONGEST)
    return found
  end,

  check = function(o)
    local a = architecture_of(o)
    if a.names.positions and o.seq > a.positions then
      return ("seq=%d is more than the model's %d positions"):format(o.seq, a.positions)
    end
    if o.balance ~= "auto" and not (a.balance >= 0 and a.balance < math.huge and tonumber(o.balance)) then
      return ("balance=%s; wanted: auto, or a number of at least 0"):format(o.balance)
    end
    if a.balance > 0 and not a.experts then return "balance: the model has no experts" end
    if o.vocab > a.vocab then return ("vocab=%d is more than the model's %d tokens"):format(o.vocab, a.vocab) end
    return select(2, nn.segment_size(o.segments, a.layers))
  end,

  -- Matrices that files have as [in, out], and those that they have for each expert.
  names = function(o)
    local a, rows = architecture_of(o), {}
    for layer = 0, a.layers - 1 do
      for _, part in ipairs(a.transposed or {}) do
        local name = ("%s.%s.weight"):format(a.names.block:format(layer), part)
        rows[#rows + 1] = { ours = name, theirs = name, transposed = true }
      end
    end
    return experts.names(a, rows)
  end,

  -- Of a model that saw pictures, what it does with text.
  hf_config = function(o)
    local a = architecture_of(o)
    if not a.wrapped then return o.model end
    local inner = decode(o.model, json.raw("null")).text_config
    inner.model_type, inner.tie_word_embeddings = a.family, a.tied
    return inner
  end,

  unused = function(o)
    local a, rows = architecture_of(o), {}
    for i, pattern in ipairs(a.unused) do rows[i] = pattern end
    if a.tied then
      rows[#rows + 1] = { "^" .. a.names.head:gsub("%p", "%%%0") .. "%.weight$", same = a.names.tokens .. ".weight",
                          advice = "tied=false keeps both" }
    end
    return rows
  end,
}, architecture_of)
return decoder
