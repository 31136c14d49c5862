-- Recipes that learn which picture and which text belong together: a tower of patches, a tower of tokens, and a loss
-- over all pairs of a micro-batch. CLIP's (Radford et al., 2021) has a class token, a causal text tower read at the
-- text's last token, and InfoNCE; SigLIP's (Zhai et al., 2023) attends over patches with a learned query, reads its
-- last token and has a loss of each pair. Parameters have the names of Transformers.
local changed = require "cli.base.changed"
local ffi = require "ffi"
local nn = require("cairn").nn
local pictured = require "families.parts.pictured"
local pictures = require "cli.data.pictures"
local tower = require "families.parts.tower"
local whole_batch = require "families.parts.whole_batch"

local two_towers = {}

local SIZES = { tiny = { 192, 12, 3 }, small = { 384, 12, 6 }, base = { 768, 12, 12 }, large = { 1024, 24, 16 } }

local KINDS = {
  clip = { eps = 1e-5, activation = "quick_gelu", class = true, causal = true },
  siglip = { eps = 1e-6, activation = "gelu_tanh" },
}

local function names_of(side)
  return { block = side .. ".encoder.layers.%d", before = "layer_norm1", after = "layer_norm2", q = "self_attn.q_proj",
           k = "self_attn.k_proj", v = "self_attn.v_proj", o = "self_attn.out_proj", up = "mlp.fc1", down = "mlp.fc2" }
end

-- What both towers are: {kind, text, vision (shapes of families.parts.tower), projection, patch, rows (patches),
-- channels, seq, vocab}.
local function shape_of(kind, o)
  local a = pictured.model_of(o)
  if a then
    local text = changed(a.text, { names = names_of("text_model"), causal = KINDS[kind].causal })
    return { kind = kind, text = text, vision = changed(a.vision, { names = names_of("vision_model") }),
             projection = kind == "siglip" and a.vision.width or a.projection, patch = a.patch,
             rows = (o.image / a.patch) ^ 2, channels = o.channels, seq = o.seq, vocab = o.vocab,
             segments = o.segments }
  end
  local size, of_kind = SIZES[o.size], KINDS[kind]
  local function side(prefix, width, layers, heads)
    local w = width > 0 and width or size[1]
    return { width = w, layers = layers > 0 and layers or size[2], heads = heads > 0 and heads or size[3],
             hidden = 4 * w, eps = of_kind.eps, activation = of_kind.activation, names = names_of(prefix) }
  end
  local vision = side("vision_model", o.width, o.layers, o.heads)
  local text = side("text_model", o.text_width > 0 and o.text_width or o.width, o.text_layers > 0 and o.text_layers
    or o.layers, o.text_heads > 0 and o.text_heads or o.heads)
  text.causal = of_kind.causal
  local patch = tower.patch_of(o)
  return { kind = kind, text = text, vision = vision, projection = kind == "siglip" and vision.width or o.projection > 0
           and o.projection or vision.width, patch = patch, rows = (o.image / patch) ^ 2,
           channels = o.channels, seq = o.seq, vocab = o.vocab, segments = o.segments }
end

-- What a learned query sees of all rows, and a feed-forward layer on that: SigLIP's pooling.
local Probe = nn.define("AttentionPool", function(self, a)
  self.a = a
  self.modules = { tower.linear(a.width, a.width), nn.LayerNorm(a.width, a.eps),
    nn.Sequential():add(tower.linear(a.width, a.hidden), "fc1"):add(tower.activation(a.activation))
      :add(tower.linear(a.hidden, a.width), "fc2") }
end, function(self, context, x)
  local a, shape = self.a, x:shape()
  local normal = { init = "truncated_normal", scale = 0.02 }
  local probe = context:op("reshape", context:parameter(self, "probe", { 1, 1, a.width }, normal),
    { shape = { 1, a.width } })
  local w = context:parameter(self, "attention.in_proj_weight", { 3 * a.width, a.width }, normal)
  local b = context:parameter(self, "attention.in_proj_bias", { 3 * a.width }, { init = "constant", no_decay = true })
  local function part(value, first, count)
    return (context:op("slice", value, { axis = 0, begin = first * a.width, ["end"] = (first + count) * a.width }))
  end
  local q = context:op("linear", probe, part(w, 0, 1), part(b, 0, 1))
  -- The same row for every sample.
  q = (context:op("slice", x, { axis = 1, begin = 0, ["end"] = 1 })) * 0 + q
  local k = context:op("linear", x, part(w, 1, 1), part(b, 1, 1))
  local v = context:op("linear", x, part(w, 2, 1), part(b, 2, 1))
  local y = context:op("attention", q, k, v, { heads = a.heads, causal = 0 })
  y = context:child("attention.out_proj", self.modules[1], y)
  y = y + context:child("mlp", self.modules[3], (context:child("layernorm", self.modules[2], y)))
  return (context:op("reshape", y, { shape = { shape[1], a.width } }))
end)

local function vision_tower(s)
  local a, class = s.vision, KINDS[s.kind].class
  local stem = nn.Sequential()
    :add(tower.Patches(s.channels, a.width, s.patch, not class), "patch_embedding")
    :add(tower.Positions(s.rows, a.width, { positions = "position_embedding.weight", flat = true,
                                            class = class and "class_embedding" or nil }), "")
  local net = nn.Sequential():add(nn.Region("patches", nil, stem), "vision_model.embeddings")
  if class then net:add(nn.LayerNorm(a.width, a.eps), "vision_model.pre_layrnorm") end
  tower.add(net, a, s.segments)
  if class then
    return net:add(tower.Row(0)):add(nn.LayerNorm(a.width, a.eps), "vision_model.post_layernorm")
      :add(tower.linear(a.width, s.projection, false), "visual_projection")
  end
  return net:add(nn.LayerNorm(a.width, a.eps), "vision_model.post_layernorm"):add(Probe(a), "vision_model.head")
end

-- x[batch, seq, width] at the rows numbered ids[batch] over all samples.
local function chosen(context, x, ids)
  local shape = x:shape()
  return (context:op("embedding", (context:op("reshape", x, { shape = { shape[1] * shape[2], shape[3] } })), ids))
end

local function text_rows(s)
  local a = s.text
  local stem = nn.Sequential():add(nn.Embedding(s.vocab, a.width), "token_embedding")
    :add(tower.Positions(s.seq, a.width, { positions = "position_embedding.weight", flat = true }), "")
  local net = nn.Sequential():add(nn.Region("tokens", nil, stem), "text_model.embeddings")
  return tower.add(net, a, s.segments):add(nn.LayerNorm(a.width, a.eps), "text_model.final_layer_norm")
end

-- The representations [batch, projection], of length 1, of pictures and of texts, by the graph's inputs.
local function representations(s, o, context)
  local graph = context.graph
  local input = graph:input("input", { o.batch, o.image, o.image, o.channels })
  local text = graph:input("text", { o.batch, o.seq }, "i32")
  local image = graph:region("vision", function() return vision_tower(s):build(context, input) end)
  local words = graph:region("text", function()
    local rows = text_rows(s):build(context, text)
    if s.kind == "siglip" then
      return context:child("text_model.head", tower.linear(s.text.width, s.projection),
        tower.Row(-1):build(context, rows))
    end
    local last = chosen(context, rows, graph:input("last", { o.batch }, "i32"))
    return context:child("text_projection", tower.linear(s.text.width, s.projection, false), last)
  end)
  local normal = nn.L2Normalize()
  return normal:build(context, image), normal:build(context, words)
end

-- A dataset with what the text tower reads of a text's length: the number of its last token over all samples.
local function with_last(kind, o, data)
  if not data then return nil end
  local batch = data.batch
  return changed(data, { batch = function(index)
    local arrays, tokens, which, samples = batch(index)
    local last
    if kind == "clip" then
      last = ffi.new("int32_t[?]", o.batch)
      for i = 0, o.batch - 1 do last[i] = i * o.seq + arrays.text_length[i] - 1 end
    end
    return { input = arrays.input, text = arrays.text, last = last }, tokens, which, samples
  end })
end

local OPTIONS = {
  { "size", "tiny", "width, layers and heads of both towers: 192 12 3, 384 12 6, 768 12 12 or 1024 24 16",
    choices = { "tiny", "small", "base", "large" } },
  { "width", 0, "of the hidden state; 0: as size says", whole = true, least = 0 },
  { "layers", 0, "blocks of each tower; 0: as size says", whole = true, least = 0, most = 6000 },
  { "heads", 0, "attention heads; divides width; 0: as size says", whole = true, least = 0 },
  tower.PATCH,
  { "text_width", 0, "of the text tower; 0: as the other's", whole = true, least = 0 },
  { "text_layers", 0, "of the text tower; 0: as the other's", whole = true, least = 0, most = 6000 },
  { "text_heads", 0, "of the text tower; 0: as the other's", whole = true, least = 0 },
  whole_batch.OPTION,
  { "vocab", 0, "tokens of the vocabulary; 0: those of the data", whole = true, least = 0 },
  { "segments", "auto", "checkpointed by hand: block, sqrt, or blocks of a segment; auto: the planner decides" },
  { "metrics", "none", "accuracy: measured in training, too, as in evaluation", choices = { "none", "accuracy" } },
}

local function problem(kind, o)
  local s = shape_of(kind, o)
  if o.batch ~= "auto" and o.batch < 2 then
    return ("batch=%d: a picture's text is told from those of others; give batch=2 or more"):format(o.batch)
  end
  if o.image % s.patch ~= 0 then return ("patch=%d does not divide image=%d"):format(s.patch, o.image) end
  for _, a in ipairs { s.vision, s.text } do
    if a.width % a.heads ~= 0 then return ("heads=%d does not divide width=%d"):format(a.heads, a.width) end
  end
  if kind == "siglip" and s.text.width ~= s.vision.width then
    return ("text_width=%d and width=%d: both towers of siglip have one width"):format(s.text.width, s.vision.width)
  end
  return select(2, nn.segment_size(o.segments, math.min(s.vision.layers, s.text.layers))) or pictured.check(o, "text")
end

-- The recipe of a kind. criterion(o, measured): what makes the loss.
function two_towers.recipe(kind, criterion)
  local own = {}
  for _, list in ipairs { OPTIONS, pictured.MODEL } do
    for _, row in ipairs(list) do own[#own + 1] = row end
  end
  if kind == "clip" then
    own[#own + 1] = { "projection", 0, "of what both towers make of their inputs; 0: width", whole = true, least = 0 }
  end
  local recipe = {
    options = pictured.options(own, { image = 32 }, pictures.text_options()), unit = "images",
    training = { steps = 2000, rate = 5e-4, warmup = 100, schedule = "cosine", weight_decay = 0.1, beta2 = 0.98 },
    settle = function(o, run) return pictured.settled(o, "text", run) end,
    check = function(o) return problem(kind, o) end,
    crosses = whole_batch.crosses,
    model = function(o, graph, purpose)
      local context = nn.context(graph, purpose ~= "evaluation")
      local image, words = representations(shape_of(kind, o), o, context)
      image, words = whole_batch.of(o, graph, image), whole_batch.of(o, graph, words)
      local loss, weight, metrics = criterion(purpose == "evaluation" or o.metrics == "accuracy")
        :build(context, image, words)
      return { loss = loss, weight = weight, metrics = metrics, output = image, other = words }
    end,
    predictor = function(o, graph)
      local image, words = representations(shape_of(kind, o), o, nn.context(graph, false))
      return { outputs = { image = image, text_representation = words } }
    end,
    dataset = function(o, run) return with_last(kind, o, pictures.dataset(o, run, "text")) end,
    evaluation = function(o, run)
      local made = pictures.evaluation(o, run, "text")
      return made and changed(made, { data = function() return with_last(kind, made.o or o, made.data()) end })
    end,
  }
  for name, part in pairs(pictured.of_transformers(kind, function(o, graph)
    return recipe.model(o, graph, "evaluation")
  end)) do recipe[name] = part end
  return recipe
end

return two_towers
