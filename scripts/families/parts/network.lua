-- The graph of a decoder from its architecture (families.parts.architecture lists the attributes). Each block is a
-- region with the regions attn and mlp inside.
local changed = require "cli.base.changed"
local experts = require "families.parts.experts"
local nn = require("cairn").nn
local rope = require "families.parts.rope"

local network = {}

local EPS = 1e-5  -- the ops' own, which is not written into graphs

-- By the name that a config has for it: what a plain layer applies, and what a gated one applies to its gate.
network.ACTIVATIONS = {
  silu = { op = "silu", gate = "silu" },
  relu = { op = "relu", gate = "relu" },
  gelu_tanh = { op = "gelu", gate = "gelu_tanh" },  -- the op's default
  gelu = { op = "gelu", attributes = { approximate = "erf" }, gate = "gelu" },
}

local function constant(value) return { init = "constant", scale = value, no_decay = true } end

-- A table of rows, or the matrix of a product, that starts normal.
local function matrix(graph, name, rows, columns, scale)
  return graph:parameter(name .. ".weight", { rows, columns }, { init = "normal", scale = scale })
end

local function linear(graph, x, name, inputs, outputs, bias, scale)
  local w = matrix(graph, name, outputs, inputs, scale)
  local b = bias and graph:parameter(name .. ".bias", { outputs }, constant(0))
  return (graph:op("linear", x, w, b or nil))
end

-- norm: {kind = "rms" or "layer", eps, offset (added to the weight), bias (of "layer")}.
local function normed(graph, x, name, width, norm)
  local offset = norm.offset or 0
  local gamma = graph:parameter(name .. ".weight", { width }, constant(1 - offset))
  local eps = norm.eps ~= EPS and norm.eps or nil
  if norm.kind == "rms" then
    return (graph:op("rmsnorm", x, gamma, { eps = eps, offset = offset ~= 0 and offset or nil }))
  end
  local beta = norm.bias and graph:parameter(name .. ".bias", { width }, constant(0))
  return (graph:op("layernorm", x, gamma, beta or nil, { eps = eps }))
end

local function reshape(graph, x, ...) return (graph:op("reshape", x, { shape = { ... } })) end
local function cut(graph, x, axis, begin, end_)
  return (graph:op("slice", x, { axis = axis, begin = begin, ["end"] = end_ }))
end
local function scaled(graph, x, factor)
  return factor and factor ~= 1 and (graph:op("scale", x, { factor = factor })) or x
end

-- q, k, v of x[batch, seq, width]; k and v are nil where one product's columns q|k|v go into attention as they are.
local function projections(a, graph, x, prefix, shape)
  local names, wide, narrow = a.names, a.heads * a.head_dim, a.kv_heads * a.head_dim
  if a.fused_qkv == "packed" then
    return linear(graph, x, prefix .. names.qkv, a.width, wide + 2 * narrow, a.bias.q, a.init.scale)
  end
  if not a.fused_qkv then
    local function one(part, columns)
      return linear(graph, x, prefix .. names[part], a.width, columns, a.bias[part], a.init.scale)
    end
    return one("q", wide), one("k", narrow), one("v", narrow)
  end
  local y = linear(graph, x, prefix .. names.qkv, a.width, wide + 2 * narrow, a.bias.q, a.init.scale)
  if a.fused_qkv == "columns" then
    return cut(graph, y, 2, 0, wide), cut(graph, y, 2, wide, wide + narrow),
      cut(graph, y, 2, wide + narrow, wide + 2 * narrow)
  end
  y = reshape(graph, y, shape.batch * shape.seq, a.heads, 3 * a.head_dim)  -- "heads": q|k|v of each head
  local parts = {}
  for i = 1, 3 do
    local part = cut(graph, y, 2, (i - 1) * a.head_dim, i * a.head_dim)
    parts[i] = reshape(graph, part, shape.batch, shape.seq, wide)
  end
  return unpack(parts)
end

local function qk_normed(a, graph, x, name, heads, shape)
  if a.qk_norm == "whole" then return normed(graph, x, name, heads * a.head_dim, a.norm) end
  local y = normed(graph, reshape(graph, x, shape.batch, shape.seq, heads, a.head_dim), name, a.head_dim, a.norm)
  return reshape(graph, y, shape.batch, shape.seq, heads * a.head_dim)
end

-- Attention of a program that generates: keys and values go into caches, which hold the last tokens of each sample. A
-- program of one token attends to them, one of prompts to its own tokens. name: how the caches' names begin; sinks: of
-- the heads' scores, or nil.
local function remembered(a, graph, q, k, v, sinks, name, attributes, shape)
  local cached = shape.cached
  local rows = math.min(attributes.window or cached.rows, cached.rows)
  local function kept(part, y)
    local cache = graph:cache(name .. part, { shape.batch, rows, a.kv_heads * a.head_dim }, { dtype = cached.dtype })
    return (graph:op("append", cache, y, cached.position, cached.count, { ring = rows < cached.rows and 1 or nil }))
  end
  local keys, values = kept("keys", k), kept("values", v)
  if shape.seq > 1 then return (graph:op("attention", q, k, v, sinks, attributes)) end
  attributes.causal, attributes.window = 0, nil  -- a cache holds no more than the window
  if cached.dtype then q = graph:op("cast", q, { dtype = cached.dtype }) end
  local y = graph:op("attention", q, keys, values, sinks, nil, cached.lengths, attributes)
  return cached.dtype and (graph:op("cast", y, { dtype = "f32" })) or (y)
end

-- Queries times 1 + beta ln(1 + floor(t / original)), which is 1 for the first `original` positions.
local function lengthened(a, graph, q, seq, shape)
  local growth = a.query_growth
  if not growth or seq <= growth.original then return q end
  if shape.positions then  -- a step up at each multiple of `original`
    local t = reshape(graph, (graph:op("cast", shape.positions, { dtype = "f32" })), shape.batch, seq, 1)
    local factor, before = graph:op("equal", t, t), 1
    for begin = growth.original, seq - 1, growth.original do
      local step = graph:op("less", (graph:op("clamp", t, { max = begin - 1 })), t)
      local now = 1 + growth.beta * math.log(1 + begin / growth.original)
      factor, before = factor + step * (now - before), now
    end
    return q * factor
  end
  local parts = {}
  for begin = 0, seq - 1, growth.original do
    local part = cut(graph, q, 1, begin, math.min(begin + growth.original, seq))
    parts[#parts + 1] = scaled(graph, part, 1 + growth.beta * math.log(1 + begin / growth.original))
  end
  return graph:concat(parts, 1)
end

local function attention(a, graph, x, prefix, layer, shape)
  local q, k, v = projections(a, graph, x, prefix, shape)
  if a.qk_norm then
    q = qk_normed(a, graph, q, prefix .. a.names.q_norm, a.heads, shape)
    k = qk_normed(a, graph, k, prefix .. a.names.k_norm, a.kv_heads, shape)
  end
  local longest = shape.cached and shape.cached.rows or shape.seq
  local turn = a.rotary[layer] and rope.attributes(a, a.rotary[layer], longest)
  if turn then
    local function turned(y, heads)
      local attributes = { heads = heads }
      for key, value in pairs(turn) do attributes[key] = value end
      return (graph:op("rope", y, shape.cached and shape.cached.positions or shape.positions, attributes))
    end
    q, k = turned(q, a.heads), turned(k, a.kv_heads)
  end
  q = lengthened(a, graph, q, shape.seq, shape)
  local window = a.windows[layer]
  local attributes = { heads = a.heads, kv_heads = k and a.kv_heads or nil, scale = a.attention_scales[layer] or nil,
                       softcap = a.attention_softcap, window = window and window < longest and window or nil,
                       causal = a.bidirectional and 0 or nil }
  local sinks = a.sinks and graph:parameter(prefix .. "sinks", { a.heads }, { init = "normal", scale = a.init.scale,
    no_decay = true }) or nil
  if shape.cached then
    if not k then
      local wide, narrow = a.heads * a.head_dim, a.kv_heads * a.head_dim
      q, k, v = cut(graph, q, 2, 0, wide), cut(graph, q, 2, wide, wide + narrow),
        cut(graph, q, 2, wide + narrow, wide + 2 * narrow)
      attributes.kv_heads = a.kv_heads
    end
    local y = remembered(a, graph, q, k, v, sinks, prefix .. "cache.", attributes, shape)
    return linear(graph, y, prefix .. a.names.o, a.heads * a.head_dim, a.width, a.bias.o, a.init.residual)
  end
  local y
  if shape.key_lengths then
    y = graph:op("attention", q, k, v, sinks, nil, shape.key_lengths, attributes)
  else
    y = (graph:op("attention", q, k, v, sinks, shape.sequences, attributes))
  end
  return linear(graph, y, prefix .. a.names.o, a.heads * a.head_dim, a.width, a.bias.o, a.init.residual)
end

local function feed_forward(a, graph, x, prefix, layer, shape)
  local names, act = a.names, network.ACTIVATIONS[a.activation]
  local function gated(gate, up)
    local limit = a.experts and a.experts.limit
    if limit then return (graph:op("glu", gate, up, { activation = "swish_clamped", limit = limit })) end
    return act.gate == "silu" and (graph:op("swiglu", gate, up))
      or (graph:op("glu", gate, up, { activation = act.gate }))
  end
  if a.experts and a.experts.layers[layer] then
    return experts.build(a, graph, x, prefix, shape, gated, shape.look)
  end
  local function product(name, columns)
    return linear(graph, x, prefix .. name, a.width, columns, a.bias.up, a.init.scale)
  end
  local y
  if a.gated then
    local gate, up
    if a.fused_gate_up then
      local both = product(names.gate_up, 2 * a.hidden)
      gate, up = cut(graph, both, 2, 0, a.hidden), cut(graph, both, 2, a.hidden, 2 * a.hidden)
    else
      gate, up = product(names.gate, a.hidden), product(names.up, a.hidden)
    end
    y = gated(gate, up)
  else
    -- An op of its own, which the planner may recompute without the product.
    y = (graph:op(act.op, product(names.up, a.hidden), act.attributes or {}))
  end
  return linear(graph, y, prefix .. names.down, a.hidden, a.width, a.bias.down, a.init.residual)
end

-- How names of a part of a block begin; "": of one whose names share nothing.
local function inside(prefix, part) return part == "" and prefix or prefix .. part .. "." end

-- One block, built from x[batch, seq, width].
local Block = nn.define("DecoderBlock", function(self, a, layer, shape)
  self.a, self.layer, self.shape = a, layer, shape
end, function(self, context, x)
  local a, graph = self.a, context.graph
  local prefix = a.names.block:format(self.layer) .. "."
  local norms, drop = a.norms, nn.Dropout(a.dropout or 0)
  local function norm(y, place)
    if not norms[place] or a.plain_first and self.layer == 0 and place == "before_attention" then return y end
    return normed(graph, y, prefix .. norms[place], a.width, a.norm)
  end
  local function added(base, y, place)
    local sum = base + scaled(graph, drop:build(context, a.norm_sums and y or norm(y, place)), a.residual_scale)
    return a.norm_sums and norm(sum, place) or sum
  end
  -- input: of both parts where the second follows no norm of its own and no sum.
  local input = a.parallel and not norms.before_mlp and norm(x, "before_attention")
  local function attend()
    local y = attention(a, graph, input or norm(x, "before_attention"), inside(prefix, a.names.attention),
      self.layer + 1, self.shape)
    return added(x, y, "after_attention")
  end
  local sum = graph:region("attn", nil, attend)
  return graph:region("mlp", nil, function()
    local y = input or norm(a.parallel and x or sum, "before_mlp")
    return added(sum, feed_forward(a, graph, y, inside(prefix, a.names.mlp), self.layer + 1, self.shape), "after_mlp")
  end)
end)

-- What a program that generates reads beside tokens: see runtime/generate. One of prompts needs no number of keys.
local function remembering(graph, shape)
  local cached = {}
  for key, value in pairs(shape.cached) do cached[key] = value end
  cached.positions = graph:input("positions", { shape.batch, shape.seq }, "i32")
  cached.position = graph:input("position", { shape.batch }, "i32")
  cached.count = graph:input("count", { shape.batch }, "i32")
  if shape.seq == 1 then cached.lengths = graph:input("lengths", { shape.batch }, "i32") end
  return { batch = shape.batch, seq = shape.seq, cached = cached }
end

-- What encoders, too, are built of.
network.constant, network.matrix, network.linear, network.normed = constant, matrix, linear, normed

-- All blocks, one after the other, from x[batch, seq, width]. shape.key_lengths: how many keys of each sample are seen.
function network.blocks(a, context, x, shape, segments)
  local chain = nn.Sequential()
  nn.add_blocks(chain, a.layers, segments, function(layer) return Block(a, layer, shape), "" end)
  return chain:build(context, x)
end

-- Builds the blocks from tokens[batch, seq]: returns the last hidden state [batch, seq, width] and the token table.
-- segments: as of nn.add_blocks. shape.cached: {rows, dtype} of caches, of a program that generates; shape.packed: the
-- windows hold several samples, which see nothing of each other: the input sequences[batch, seq] has the number of
-- each token's sample, -1 of padding, and positions[batch, seq] its place there. Distances within a sample are the same
-- as in the window, so that what attention sees of a sample (`window`) needs no more.
function network.hidden(a, graph, training, shape, segments)
  local context, names = nn.context(graph, training), a.names
  local tokens = graph:input("tokens", { shape.batch, shape.seq }, "i32")
  if shape.cached then shape = remembering(graph, shape) end
  if shape.packed then
    shape = changed(shape, { sequences = graph:input("sequences", { shape.batch, shape.seq }, "i32"),
                             positions = graph:input("positions", { shape.batch, shape.seq }, "i32") })
  end
  local positions = shape.positions or shape.cached and shape.cached.positions
  local drop = nn.Dropout(a.dropout or 0)
  local wte = matrix(graph, names.tokens, a.vocab, a.width, a.init.scale)
  local wpe = names.positions and matrix(graph, names.positions, a.positions, a.width, a.init.scale)
  if wpe and positions then
    wpe = (graph:op("embedding", wpe, positions))
  elseif wpe and a.positions > shape.seq then
    wpe = cut(graph, wpe, 0, 0, shape.seq)
  end
  local x = scaled(graph, (graph:op("embedding", wte, tokens)), a.embedding_scale)
  if wpe then x = x + wpe end
  x = drop:build(context, x)
  return normed(graph, network.blocks(a, context, x, shape, segments), names.final, a.width, a.norm), wte
end

-- The same with the head's weights in the place of the table.
function network.body(a, graph, training, shape, segments)
  local x, wte = network.hidden(a, graph, training, shape, segments)
  return x, a.tied and wte or matrix(graph, a.names.head, a.vocab, a.width, a.init.scale)
end

-- The shape of windows: of instruction data they hold several samples. shape: where it is not that of the options.
function network.windows(o, shape)
  local packed = o.form == "rows" and o.packing == "best_fit"
  shape = shape or o
  return { batch = shape.batch, seq = shape.seq, look = shape.look, packed = packed or nil }
end

-- Logits of rows[n, width].
function network.logits(a, graph, rows, head)
  local logits = scaled(graph, (graph:op("linear", rows, head)), a.logits_scale)
  return a.logits_softcap and (graph:op("softcap", logits, { cap = a.logits_softcap })) or logits
end

network.linear, network.normed, network.feed_forward = linear, normed, feed_forward

return network
