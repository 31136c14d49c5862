-- GPT-2: pre-norm transformer blocks, learned positions, tanh GELU, head tied to the token table.
-- Parameters have Hugging Face's names; each block is a region with the regions attn and mlp inside.

local nn = require("cairn").nn

local EPS = 1e-5  -- the op's own, which is not written into graphs

-- A table of rows that start normal: building it gives the table itself.
local Table = nn.define("Table", function(self, rows, width) self.dims = { rows, width } end, function(self, context)
  return context:parameter(self, "weight", self.dims, { init = "normal", scale = 0.02 })
end)

-- A token's row plus its position's. The head's weights are the token table, too.
local Tokens = nn.define("Tokens", function(self, o)
  self.seq, self.positions = o.seq, math.max(o.positions, o.seq)
  self.modules = { Table(o.vocab, o.width), Table(self.positions, o.width) }
end, function(self, context, tokens)
  self.wte = context:child("wte", self.modules[1])
  local wpe = context:child("wpe", self.modules[2])
  if self.positions > self.seq then
    wpe = context:op("slice", wpe, { axis = 0, begin = 0, ["end"] = self.seq })
  end
  return context:op("embedding", self.wte, tokens) + wpe
end)

-- Queries, keys and values come of one product.
local Attention = nn.define("Attention", function(self, width, heads, scale)
  self.heads = heads
  self.modules = { nn.Linear(width, 3 * width, { scale = 0.02 }), nn.Linear(width, width, { scale = scale }) }
end, function(self, context, x)
  local y = context:child("c_attn", self.modules[1], x)
  return context:child("c_proj", self.modules[2], (context:op("attention", y, { heads = self.heads })))
end)

local function layer_norm(o) return nn.LayerNorm(o.width, o.eps ~= EPS and o.eps) end

local function block(o)
  local scale = 0.02 / math.sqrt(2 * o.layers)  -- so that the sum over blocks keeps its size
  local mlp = nn.Sequential():add(nn.Linear(o.width, 4 * o.width, { scale = 0.02 }), "c_fc")
    :add(nn.GELU(false))  -- an op of its own: the planner may compute it again without the product
    :add(nn.Linear(4 * o.width, o.width, { scale = scale }), "c_proj")
  local function part(name, norm, inner)
    local path = nn.Sequential():add(layer_norm(o), norm):add(inner, name):add(nn.Dropout(o.dropout))
    return nn.Region(name, nil, nn.Residual(path))
  end
  return nn.Sequential():add(part("attn", "ln_1", Attention(o.width, o.heads, scale)), "")
    :add(part("mlp", "ln_2", mlp), "")
end

-- The model from tokens[batch, seq] to the last hidden state [batch, seq, width], and the module of its tables.
local function network(o)
  local tokens = Tokens(o)
  local net = nn.Sequential():add(tokens, ""):add(nn.Dropout(o.dropout))
  nn.add_blocks(net, o.layers, o.segments, function(layer) return block(o), "h." .. layer end)
  return net:add(layer_norm(o), "ln_f"), tokens
end

return {
  options = {
    { "layers", 4, "transformer blocks", whole = true, least = 1, most = 6000 },
    { "heads", 4, "attention heads; divides width", whole = true, least = 1 },
    { "width", 256, "of the hidden state", whole = true, least = 1 },
    { "vocab", 256, "tokens of the vocabulary", whole = true, least = 2 },
    { "seq", 256, "tokens of a window", whole = true, least = 1 },
    { "batch", 8, "windows of a micro-batch", whole = true, least = 1 },
    { "segments", "auto", "checkpointed by hand: block, sqrt, or blocks of a segment; auto: the planner decides" },
    { "data", "", "text file, or random" },
    { "lengths", "", "windows of these lengths instead of seq, as 64,128,256: texts sorted by length (train)" },
    { "remainder", "pad", "an epoch's last micro-batch, too small: padded, of its own size, dropped",
      choices = { "pad", "own", "drop" } },
    { "metrics", "none", "accuracy: measured in training, too, as in evaluation", choices = { "none", "accuracy" } },
    { "eval_data", "", "text file to evaluate with" },
    { "eval_fraction", 0, "or this share at the end of data, which is not trained with", least = 0, below = 1 },
    { "tokens", "bytes", "kind of tokens", choices = { "bytes", "bpe" } },
    { "dropout", 0, "share of activations dropped", least = 0, below = 1 },
    { "eps", EPS, "of the norms", least = 0 },
    { "frozen", "", "parameters whose names match are not trained, as 'h.*'" },
    { "positions", 0, "rows of the position table, for windows shorter than it; 0: seq", whole = true, least = 0 },
  },
  training = { steps = 100, rate = 3e-4, weight_decay = 0.1, beta1 = 0.9, beta2 = 0.95, clip = 1.0 },

  check = function(o)
    if o.width % o.heads ~= 0 then
      return ("heads=%d does not divide width=%d: each head has width/heads columns"):format(o.heads, o.width)
    end
    if o.positions > 0 and o.positions < o.seq then
      return ("positions=%d is less than seq=%d: each token of a window needs a position"):format(o.positions, o.seq)
    end
    return select(2, nn.segment_size(o.segments, o.layers))
  end,

  model = function(o, graph, purpose)
    local net, tokens = network(o)
    local context = nn.context(graph, true)
    local hidden = net:build(context, graph:input("tokens", { o.batch, o.seq }, "i32"))
    local targets = graph:input("targets", { o.batch, o.seq }, "i32")
    local loss, weight, metrics = nn.vocabulary_loss(context, hidden, tokens.wte, targets,
      purpose == "evaluation" or o.metrics == "accuracy")
    metrics = metrics or {}
    metrics.perplexity = { of = "loss", apply = math.exp, better = "lower" }
    return { loss = loss, weight = weight, metrics = metrics }
  end,

  -- Logits of the token that follows number position[0] of tokens[1, seq].
  generator = function(o, graph)
    local net, tokens = network(o)
    local context = nn.context(graph, false)
    local hidden = net:build(context, graph:input("tokens", { 1, o.seq }, "i32"))
    local position = graph:input("position", { 1 }, "i32")
    local rows = context:op("reshape", hidden, { shape = { o.seq, o.width } })
    local last = context:op("embedding", rows, position)
    return { outputs = { graph:name(context:op("linear", last, tokens.wte), "logits") } }
  end,

  frozen = function(o) return o.frozen end,

  dataset = function(o, run) return run.text(o) end,

  evaluation = function(o, run) return run.evaluation(o) end,

  programs = function(o, run) return run.lengths(o) end,

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

  hf_config = function(o) return require("cli.model.hf_config").gpt2(o) end,

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
}
