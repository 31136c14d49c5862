-- A decoder of one of the families that `cairn models` lists, as its config.json describes it. A directory with that
-- file in the place of a recipe is this recipe with the directory's config, weights and tokenizer.
-- Parameters have Hugging Face's names; each block is a region with the regions attn and mlp inside.

local changed = require "cli.base.changed"
local decode = require "cli.base.json_decode"
local described = require "families.parts.described"
local experts = require "families.parts.experts"
local fail = require "cli.base.fail"
local json = require "cli.base.json"
local labels = require "families.parts.labels"
local labels_of = require("cli.data.labelled").labels
local language = require "families.parts.language"
local nn = require("cairn").nn
local objectives = require "families.parts.objectives"
local sequences = require "cli.data.sequences"

local LONGEST = 1024  -- of a window, where nobody says

local architecture_of = described.by("decoder", function(a, o)
  a.balance = tonumber(o.balance) or a.experts and a.experts.balance or 0
end)

-- The labels of a classifier: said, those of its own config.json, or those of the data.
local function settled_labels(o, a)
  local list = o.labels
  if list == "" and a.labels then list = json.encode(json.array(a.labels)) end
  if list == "" and o.data ~= "" and o.data ~= "random" then
    list = sequences.labels({ data = o.data, text = o.text, label = o.label, pair = "" }, { kind = "classify" })
  end
  if list ~= "" then labels_of(changed(o, { labels = list })) end
  return list
end

local function scores(o) return objectives[o.objective] and objectives[o.objective].scores end

local decoder
decoder = language.complete({
  options = language.options({
    described.MODEL,
  }, {
    { "objective", "auto", "next: the next token; dpo: to prefer one answer of a pair; reward: to score it higher; " ..
      "distill: what another model expects; classify: texts; auto: as config.json's architectures say, or next",
      choices = objectives.NAMES },
    { "beta", 0.1, "dpo: how far from the model as it began", above = 0 },
    { "dpo_loss", "sigmoid", "dpo: of a pair", choices = objectives.LOSSES },
    { "teacher", "", "distill: file of what another model expects (`cairn logits ... --top`)" },
    { "temperature", 1, "distill: of both models' probabilities", above = 0 },
    { "top", 32, "distill: likeliest tokens of each place that count", whole = true, least = 1, most = 1024 },
    { "text", "text", "classify: the column of texts" },
    { "label", "label", "classify: the column of labels" },
    { "labels", "", "classify: names of the labels, as spam,ham; else those of config.json or of the data" },
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
    found.objective = o.objective
    if o.objective == "auto" then
      found.objective = a.labels and (#a.labels == 1 and "reward" or "classify") or "next"
    end
    decoder.no_texts = scores(found) and "its head scores texts" or nil
    if found.objective == "classify" then found.labels = settled_labels(o, a) end
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
    if o.objective == "distill" and (o.teacher == "" or o.form ~= "rows") then
      return "objective=distill needs teacher=FILE, and data=FILE with rows (.jsonl, .csv, .tsv)"
    end
    if o.objective == "distill" and a.logits_softcap then
      return "objective=distill: the model's logits have a softcap, which does not go with it"
    end
    if o.objective ~= "next" and a.balance > 0 then return "balance: goes with objective=next alone" end
    if a.labels and not scores(o) then
      return ("the model has no head over its vocabulary, which objective=%s needs"):format(o.objective)
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
    if a.family == "gpt_oss" and not a.experts.gate_up then
      fail.input("a gpt-oss of a GGUF file has its experts in another form than Transformers'; it is exported as GGUF")
    end
    if not a.wrapped and not scores(o) then return o.model end
    local config = decode(o.model, json.raw("null"))
    if a.wrapped then
      config = config.text_config
      config.model_type, config.tie_word_embeddings = a.family, a.tied
    end
    if scores(o) then
      config.architectures = { (a.class or "") .. "ForSequenceClassification" }
      labels.put(config, o.objective == "classify" and labels_of(o) or { "LABEL_0" })
    end
    return config
  end,

  -- The head that scores, where files are of a model without one.
  fresh = function(o) return scores(o) and not architecture_of(o).labels and { objectives.HEAD } or {} end,

  unused = function(o)
    local a, rows = architecture_of(o), {}
    for i, pattern in ipairs(a.unused) do rows[i] = pattern end
    local head = a.names.head or a.untied_head
    if scores(o) then
      if head then rows[#rows + 1] = "^" .. head:gsub("%p", "%%%0") .. "%.weight$" end
    elseif a.tied then
      rows[#rows + 1] = { "^" .. a.names.head:gsub("%p", "%%%0") .. "%.weight$", same = a.names.tokens .. ".weight",
                          advice = "tied=false keeps both" }
    end
    return rows
  end,
}, architecture_of)
return decoder
