-- A decoder of image tokens after text (Ramesh et al., 2021): a transformer goes through a text's tokens and then a
-- picture's, each of which it learns to tell from those before. A picture's tokens are the colours of its patches, in
-- steps.
local changed = require "cli.base.changed"
local ffi = require "ffi"
local nn = require("cairn").nn
local pictured = require "families.parts.pictured"
local pictures = require "cli.data.pictures"
local tower = require "families.parts.tower"

local IGNORED = -100  -- a target that does not count
local FARTHEST = 2  -- the colours beyond which there is no further step, in deviations from the mean

local NAMES = { block = "h.%d", before = "norm1", after = "norm2", q = "attn.query", k = "attn.key", v = "attn.value",
                o = "attn.out", up = "mlp.fc", down = "mlp.proj" }

local function rows_of(o) return (o.image / o.patch) ^ 2 end
local function codes_of(o) return o.levels ^ o.channels end

-- The token of the patch whose upper left pixel is number `first` of a picture: its mean colour.
local function code_of(o, pixels, first)
  local code = 0
  for channel = 0, o.channels - 1 do
    local sum = 0
    for row = 0, o.patch - 1 do
      for column = 0, o.patch - 1 do
        sum = sum + pixels[(first + row * o.image + column) * o.channels + channel]
      end
    end
    local share = (sum / o.patch ^ 2 + FARTHEST) / (2 * FARTHEST)
    code = code * o.levels + math.max(0, math.min(o.levels - 1, math.floor(share * o.levels)))
  end
  return code
end

-- A dataset of texts with pictures as one of tokens, each position with the token after it as its target. Those that
-- fill up a text are no targets.
local function as_tokens(o, data)
  if not data then return nil end
  local batch, side = data.batch, o.image / o.patch
  local length = o.seq + rows_of(o)
  return changed(data, { batch = function(index)
    local arrays, _, which, samples = batch(index)
    local tokens, targets = ffi.new("int32_t[?]", o.batch * length), ffi.new("int32_t[?]", o.batch * length)
    for i = 0, o.batch - 1 do
      local at = i * length
      for t = 0, o.seq - 1 do tokens[at + t] = arrays.text[i * o.seq + t] end
      for row = 0, side - 1 do
        for column = 0, side - 1 do
          local first = (i * o.image + row * o.patch) * o.image + column * o.patch
          tokens[at + o.seq + row * side + column] = o.vocab + code_of(o, arrays.input, first)
        end
      end
      for t = 0, length - 1 do
        local fills = t + 1 >= arrays.text_length[i] and t + 1 < o.seq or t + 1 == length
        targets[at + t] = fills and IGNORED or tokens[at + t + 1]
      end
    end
    return { tokens = tokens, targets = targets }, o.batch * length, which, samples
  end })
end

return {
  options = pictured.options({
    { "width", 192, "of the hidden state", whole = true, least = 1 },
    { "layers", 6, "transformer blocks", whole = true, least = 1, most = 6000 },
    { "heads", 3, "attention heads; divides width", whole = true, least = 1 },
    { "patch", 4, "side of a patch, which is one token; divides image", whole = true, least = 1 },
    { "levels", 8, "steps of each colour, of which tokens are", whole = true, least = 2, most = 64 },
    { "vocab", 0, "tokens of texts; 0: those of the data", whole = true, least = 0 },
    { "dropout", 0, "share of activations dropped", least = 0, below = 1 },
    { "segments", "auto", "checkpointed by hand: block, sqrt, or blocks of a segment; auto: the planner decides" },
    { "metrics", "none", "accuracy: measured in training, too, as in evaluation", choices = { "none", "accuracy" } },
  }, { image = 32, augment = "none" }, pictures.text_options()),
  unit = "images", no_texts = "what it makes is a picture",
  training = { steps = 2000, rate = 1e-3, warmup = 100, schedule = "cosine", weight_decay = 0.05 },

  settle = function(o, run) return pictured.settled(o, "text", run) end,
  check = function(o)
    if o.image % o.patch ~= 0 then return ("patch=%d does not divide image=%d"):format(o.patch, o.image) end
    if o.width % o.heads ~= 0 then return ("heads=%d does not divide width=%d"):format(o.heads, o.width) end
    return select(2, nn.segment_size(o.segments, o.layers)) or pictured.check(o, "text")
  end,

  model = function(o, graph, purpose)
    local context, length = nn.context(graph, purpose ~= "evaluation"), o.seq + rows_of(o)
    local total = o.vocab + codes_of(o)
    local table_of = nn.Embedding(total, o.width)
    local net = nn.Sequential():add(table_of, "token"):add(nn.Positions(length, o.width), "place")
      :add(nn.Dropout(o.dropout))
    tower.add(net, { width = o.width, layers = o.layers, heads = o.heads, hidden = 4 * o.width, eps = 1e-5,
                     activation = "gelu_tanh", causal = true, dropout = o.dropout, names = NAMES }, o.segments)
    local y = net:add(nn.LayerNorm(o.width), "norm"):build(context, graph:input("tokens", { o.batch, length }, "i32"))
    local criterion = nn.LinearCrossEntropyCriterion(o.width, total, table_of,
      { accuracy = purpose == "evaluation" or o.metrics == "accuracy" })
    local loss, weight, metrics = criterion:build(context, y, graph:input("targets", { o.batch, length }, "i32"))
    metrics = metrics or {}
    metrics.perplexity = { of = "loss", apply = math.exp, better = "lower" }
    return { loss = loss, weight = weight, metrics = metrics }
  end,

  dataset = function(o, run) return as_tokens(o, pictures.dataset(o, run, "text")) end,
  evaluation = function(o, run)
    local made = pictures.evaluation(o, run, "text")
    return made and changed(made, { data = function() return as_tokens(made.o or o, made.data()) end })
  end,
}
