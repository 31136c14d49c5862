-- An encoder and a decoder of one of the families that `cairn models` lists, as its config.json describes it. A
-- directory with that file in the place of a recipe is this recipe with the directory's config, weights and tokenizer.
-- Learns from a table with a column of texts to read and one of texts to write. Parameters have Hugging Face's names.

local described = require "families.parts.described"
local network = require "families.parts.network"
local nn = require("cairn").nn
local seq2seq = require "families.parts.seq2seq"


local architecture_of = described.by("seq2seq")

-- Option values with the tokens that data are built with.
local function with_tokens(o)
  local a, own = architecture_of(o), {}
  for key, value in pairs(o) do own[key] = value end
  own.pad, own.start, own.last = a.pad, a.start, a.last
  return own
end

return {
  options = {
    described.MODEL,
    { "seq", 512, "most tokens of a text that is read; of longer ones the first count", whole = true, least = 1 },
    { "target_seq", 128, "the same of a text that is written", whole = true, least = 1 },
    { "batch", 1, "pairs of texts of a micro-batch", whole = true, least = 1 },
    { "segments", "auto", "checkpointed by hand: block, sqrt, or blocks of a segment; auto: the planner decides" },
    { "data", "", "table of pairs: .csv, .tsv or .jsonl; or random" },
    { "source", "source", "its column of texts to read" },
    { "target", "target", "its column of texts to write" },
    { "remainder", "pad", "an epoch's last micro-batch, too small: padded, of its own size, dropped",
      choices = { "pad", "own", "drop" } },
    { "metrics", "none", "accuracy: measured in training, too, as in evaluation", choices = { "none", "accuracy" } },
    { "eval_data", "", "table to evaluate with" },
    { "eval_fraction", 0, "or this share of data, drawn from all of it, which is not trained with", least = 0,
      below = 1 },
    { "tokens", "auto", "kind of tokens; auto: those of the model's tokenizer", choices = { "auto", "bytes" } },
    { "vocab", 0, "tokens that data=random draws from; 0: the model's", whole = true, least = 0 },
    { "dropout", 0, "share of activations dropped", least = 0, below = 1 },
    { "frozen", "", "parameters whose names match are not trained, as 'encoder.*'" },
    described.TIED,
    described.MODEL_NAME,
  },
  training = { steps = 100, rate = 1e-4, weight_decay = 0.01, clip = 1.0 },

  settle = function(o) return (described.settled(o, architecture_of)) end,

  check = function(o)
    local a = architecture_of(o)
    if o.vocab > a.vocab then return ("vocab=%d is more than the model's %d tokens"):format(o.vocab, a.vocab) end
    return select(2, nn.segment_size(o.segments, math.min(a.layers, a.decoder_layers)))
  end,

  model = function(o, graph, purpose)
    local a = architecture_of(o)
    local hidden, head = seq2seq.body(a, graph, true, o, o.segments)
    local targets = graph:input("targets", { o.batch, o.target_seq }, "i32")
    local measured = purpose == "evaluation" or o.metrics == "accuracy"
    local loss, weight, hits, count = graph:op("linear_cross_entropy", hidden, head, targets,
      { accuracy = measured and 1 or nil, scale = a.logits_scale })
    local metrics = hits and { accuracy = nn.accuracy(hits, count) } or {}
    metrics.perplexity = { of = "loss", apply = math.exp, better = "lower" }
    return { loss = loss, weight = weight, metrics = metrics }
  end,

  -- Logits of the tokens that follow those numbered position[count] of tokens[1, target_seq], for source[1, seq].
  generator = function(o, graph, count)
    local a = architecture_of(o)
    local shape = { batch = 1, seq = o.seq, target_seq = o.target_seq }
    local hidden, head = seq2seq.body(a, graph, false, shape, o.segments)
    local position = graph:input("position", { count or 1 }, "i32")
    local rows = graph:op("reshape", hidden, { shape = { o.target_seq, a.width } })
    rows = graph:op("embedding", rows, position)
    return { outputs = { graph:name(network.logits(a, graph, rows, head), "logits") } }
  end,

  begins = function(o)
    local a = architecture_of(o)
    return { first = a.start, last = a.last }
  end,

  hf_config = function(o) return o.model end,

  unused = function(o)
    local a, rows = architecture_of(o), {}
    for i, pattern in ipairs(a.unused) do rows[i] = pattern end
    if a.tied then
      rows[#rows + 1] = { "^lm_head%.weight$", same = a.names.tokens .. ".weight", advice = "tied=false keeps both" }
    end
    return rows
  end,

  frozen = function(o) return o.frozen end,
  dataset = function(o, run) return run.pairs.dataset(with_tokens(o)) end,
  evaluation = function(o, run) return run.pairs.evaluation(with_tokens(o)) end,
}
