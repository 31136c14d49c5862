-- Tells texts apart: a transformer that reads a text in both directions, the mean of what it made of the text's tokens,
-- and a layer that scores labels. Learns from a table with a column of texts and one of labels.

local nn = require("cairn").nn
local labels_of = require("cli.data.labelled").labels

-- A token's row plus its position's.
local Tokens = nn.define("Tokens", function(self, o)
  self.modules = { nn.Embedding(o.vocab, o.width), nn.Positions(o.seq, o.width) }
end, function(self, context, tokens)
  return context:child("place", self.modules[2], context:child("token", self.modules[1], tokens))
end)

-- One value behind itself, `count` times, along the third of four dimensions: concat takes eight at a time.
local function repeated(context, x, count)
  if count == 1 then return x end
  local parts, left = {}, count
  while left > 0 do
    local many = math.min(left, 8)
    local same = {}
    for i = 1, many do same[i] = x end
    same[#same + 1] = { axis = 2 }
    parts[#parts + 1] = many == 1 and x or (context:op("concat", unpack(same)))
    left = left - many
  end
  while #parts > 1 do
    local joined = {}
    for first = 1, #parts, 8 do
      local group = { unpack(parts, first, math.min(first + 7, #parts)) }
      group[#group + 1] = { axis = 2 }
      joined[#joined + 1] = #group == 2 and group[1] or (context:op("concat", unpack(group)))
    end
    parts = joined
  end
  return parts[1]
end

-- Attention in both directions, in which what fills up short texts has no part: one column of each head's queries and
-- keys says where a text has a token. It is 1 in queries of tokens, 0 in keys of tokens and -30000 in keys of padding,
-- whose scores are then so low that their weights are 0, exactly.
local Attention = nn.define("Attention", function(self, o)
  self.heads, self.columns, self.dims = o.heads, o.width / o.heads, { o.batch, o.seq }
  local narrow = o.heads * (self.columns - 1)
  self.modules = { nn.Linear(o.width, narrow), nn.Linear(o.width, narrow), nn.Linear(o.width, o.width),
                   nn.Linear(o.width, o.width) }
end, function(self, context, x)
  local batch, seq, heads = self.dims[1], self.dims[2], self.heads
  local function widened(name, module, column)
    local y = context:child(name, module, x)
    y = context:op("reshape", y, { shape = { batch, seq, heads, self.columns - 1 } })
    local one = context:op("reshape", column, { shape = { batch, seq, 1, 1 } })
    y = context:op("concat", y, repeated(context, one, heads), { axis = 3 })
    return (context:op("reshape", y, { shape = { batch, seq, heads * self.columns } }))
  end
  local q = widened("query", self.modules[1], context.real)
  local k = widened("key", self.modules[2], context.padding)
  local v = context:child("value", self.modules[3], x)
  local y = context:op("attention", q, k, v, { heads = heads, causal = 0, scale = 1 / math.sqrt(self.columns - 1) })
  return context:child("out", self.modules[4], y)
end)

local function block(o)
  local mlp = nn.Sequential():add(nn.Linear(o.width, 4 * o.width), "fc"):add(nn.GELU(false))
    :add(nn.Linear(4 * o.width, o.width), "proj")
  local function part(name, inner)
    local path = nn.Sequential():add(nn.LayerNorm(o.width), "norm"):add(inner, name):add(nn.Dropout(o.dropout))
    return nn.Region(name, nil, nn.Residual(path))
  end
  return nn.Sequential():add(part("attn", Attention(o)), "attn"):add(part("mlp", mlp), "mlp")
end

-- The sum of x[batch, seq, width] over the tokens that are there, brought to one size: a mean but for its scale.
local Pool = nn.define("Pool", function(self, width) self.modules = { nn.LayerNorm(width) } end,
  function(self, context, x)
    local there = context:op("transpose", x, { perm = { 2, 0, 1 } }) * context.real
    local sum = context:op("reduce_sum", there, { axes = { 2 } })
    return context:child("norm", self.modules[1], (context:op("transpose", sum, { perm = { 1, 0 } })))
  end)

-- The scores of all labels [batch, labels] of a graph with inputs tokens, real and padding.
local function scores(o, graph, training)
  local context = nn.context(graph, training)
  local tokens = graph:input("tokens", { o.batch, o.seq }, "i32")
  context.real = graph:input("real", { o.batch, o.seq })
  context.padding = graph:input("padding", { o.batch, o.seq })
  local net = nn.Sequential():add(Tokens(o), ""):add(nn.Dropout(o.dropout))
  nn.add_blocks(net, o.layers, o.segments, function(layer) return block(o), "h." .. layer end)
  net:add(Pool(o.width), "pool"):add(nn.Dropout(o.dropout)):add(nn.Linear(o.width, #labels_of(o)), "head")
  return net:build(context, tokens), context
end

return {
  options = {
    { "data", "", "table of texts and labels: .csv, .tsv or .jsonl; or random" },
    { "text", "text", "its column of texts" },
    { "label", "label", "its column of labels" },
    { "labels", "", "names of the labels, as spam,ham; those of the data if there are none" },
    { "layers", 2, "transformer blocks", whole = true, least = 1, most = 6000 },
    { "heads", 4, "attention heads; divides width", whole = true, least = 1 },
    { "width", 128, "of the hidden state", whole = true, least = 2 },
    { "vocab", 256, "tokens of the vocabulary", whole = true, least = 2 },
    { "seq", 128, "most tokens of a text; of longer ones the first count", whole = true, least = 1 },
    { "batch", 32, "texts of a micro-batch", whole = true, least = 1 },
    { "segments", "auto", "checkpointed by hand: block, sqrt, or blocks of a segment; auto: the planner decides" },
    { "remainder", "pad", "an epoch's last micro-batch, too small: padded, of its own size, dropped",
      choices = { "pad", "own", "drop" } },
    { "metrics", "none", "accuracy: measured in training, too, as in evaluation", choices = { "none", "accuracy" } },
    { "eval_data", "", "table to evaluate with" },
    { "eval_fraction", 0, "or this share of data, drawn from all of it, which is not trained with", least = 0,
      below = 1 },
    { "tokens", "bytes", "kind of tokens", choices = { "bytes", "bpe" } },
    { "dropout", 0, "share of activations dropped", least = 0, below = 1 },
  },
  training = { steps = 300, rate = 1e-3, warmup = 20, weight_decay = 0.01, beta2 = 0.99 },

  check = function(o)
    if o.width % o.heads ~= 0 or o.width / o.heads < 2 then
      return ("heads=%d and width=%d: each head has width/heads columns, a whole number of at least 2"):format(o.heads,
        o.width)
    end
    if o.tokens == "bytes" and o.vocab < 256 then return ("vocab=%d: there are 256 bytes"):format(o.vocab) end
    return select(2, nn.segment_size(o.segments, o.layers))
  end,

  settle = function(o, run) return run.labelled.settle(o) end,

  model = function(o, graph, purpose)
    local y, context = scores(o, graph, true)
    local target = graph:input("target", { o.batch }, "i32")
    local measures = purpose == "evaluation" or o.metrics == "accuracy"
    local loss, weight, metrics = nn.CrossEntropyCriterion({ accuracy = measures }):build(context, y, target)
    return { loss = loss, weight = weight, metrics = metrics }
  end,

  predictor = function(o, graph)
    local y, context = scores(o, graph, false)
    return {
      outputs = { probabilities = context:op("softmax", y) },
      inputs = { { kind = "text", field = o.text, tokens = "tokens", real = "real", padding = "padding" } },
      answers = { { kind = "label", field = "label", probabilities = "probabilities", output = "probabilities",
                    labels = labels_of(o) } },
    }
  end,

  dataset = function(o, run) return run.labelled.dataset(o) end,

  evaluation = function(o, run) return run.labelled.evaluation(o) end,
}
