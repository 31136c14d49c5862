-- GPT-2: pre-norm transformer blocks, learned positions, tanh GELU, head tied to the token table.
-- Parameters have Hugging Face's names; each block is a region with the regions attn and mlp inside.

local EPS = 1e-5  -- the op's own, which is not written into graphs

local function layer_norm(o, graph, name, x)
  local gamma = graph:parameter(name .. ".weight", { o.width }, { init = "constant", scale = 1, no_decay = true })
  local beta = graph:parameter(name .. ".bias", { o.width }, { no_decay = true })
  return (graph:op("layernorm", x, gamma, beta, o.eps ~= EPS and { eps = o.eps } or {}))
end

local function linear(graph, name, x, inputs, outputs, scale)
  local w = graph:parameter(name .. ".weight", { outputs, inputs }, { init = "normal", scale = scale })
  local b = graph:parameter(name .. ".bias", { outputs }, { no_decay = true })
  return (graph:op("linear", x, w, b))
end

local function dropout(graph, x, rate)
  if rate == 0 then return x end
  return (graph:op("dropout", x, { rate = rate }))
end

-- From tokens[batch, seq] to the last hidden state [batch, seq, width] and the token table.
local function body(o, graph, batch, rate)
  local normal = { init = "normal", scale = 0.02 }
  local residual_scale = 0.02 / math.sqrt(2 * o.layers)  -- so that the sum over blocks keeps its size
  local tokens = graph:input("tokens", { batch, o.seq }, "i32")
  local wte = graph:parameter("wte.weight", { o.vocab, o.width }, normal)
  local wpe = graph:parameter("wpe.weight", { math.max(o.positions, o.seq), o.width }, normal)
  if o.positions > o.seq then wpe = graph:op("slice", wpe, { axis = 0, begin = 0, ["end"] = o.seq }) end
  local x = dropout(graph, graph:op("embedding", wte, tokens) + wpe, rate)
  for layer = 0, o.layers - 1 do
    local name = ("h.%d."):format(layer)
    graph:region("h" .. layer, function()
      graph:region("attn", function()
        local y = layer_norm(o, graph, name .. "ln_1", x)
        y = linear(graph, name .. "attn.c_attn", y, o.width, 3 * o.width, 0.02)
        y = graph:op("attention", y, { heads = o.heads })
        y = linear(graph, name .. "attn.c_proj", y, o.width, o.width, residual_scale)
        x = x + dropout(graph, y, rate)
      end)
      graph:region("mlp", function()
        local y = layer_norm(o, graph, name .. "ln_2", x)
        y = linear(graph, name .. "mlp.c_fc", y, o.width, 4 * o.width, 0.02)
        y = graph:op("gelu", y)  -- an op of its own: the planner may compute it again without the product
        y = linear(graph, name .. "mlp.c_proj", y, 4 * o.width, o.width, residual_scale)
        x = x + dropout(graph, y, rate)
      end)
    end)
  end
  return layer_norm(o, graph, "ln_f", x), wte
end

return {
  options = {
    { "layers", 4, "transformer blocks", whole = true, least = 1, most = 6000 },
    { "heads", 4, "attention heads; divides width", whole = true, least = 1 },
    { "width", 256, "of the hidden state", whole = true, least = 1 },
    { "vocab", 256, "tokens of the vocabulary", whole = true, least = 2 },
    { "seq", 256, "tokens of a window", whole = true, least = 1 },
    { "batch", 8, "windows of a micro-batch", whole = true, least = 1 },
    { "data", "", "text file, or random" },
    { "lengths", "", "windows of these lengths instead of seq, as 64,128,256: texts sorted by length (train)" },
    { "tokens", "bytes", "kind of tokens", choices = { "bytes", "bpe" } },
    { "dropout", 0, "share of activations dropped", least = 0, below = 1 },
    { "eps", EPS, "of the norms", least = 0 },
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
  end,

  model = function(o, graph)
    local hidden, wte = body(o, graph, o.batch, o.dropout)
    local targets = graph:input("targets", { o.batch, o.seq }, "i32")
    local loss, weight = graph:op("linear_cross_entropy", hidden, wte, targets)
    return { loss = loss, weight = weight }
  end,

  -- Logits of the token that follows number position[0] of tokens[1, seq].
  generator = function(o, graph)
    local hidden, wte = body(o, graph, 1, 0)
    local position = graph:input("position", { 1 }, "i32")
    local rows = graph:op("reshape", hidden, { shape = { o.seq, o.width } })
    local last = graph:op("embedding", rows, position)
    return { outputs = { graph:name(graph:op("linear", last, wte), "logits") } }
  end,

  dataset = function(o, run) return run.text(o) end,

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

  -- What config.json must say.
  config = function(o)
    return { { "n_head", o.heads, "heads" }, { "layer_norm_epsilon", o.eps, "eps" },
             { "activation_function", "gelu_new" }, { "scale_attn_weights", true },
             { "scale_attn_by_inverse_layer_idx", false } }
  end,
}
