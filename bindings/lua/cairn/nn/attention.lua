-- Attention in both directions, or in one.
local layers = require "cairn.nn.layers"
local module = require "cairn.nn.module"

local nn = {}

-- The layers of a module with heads and kv_heads, by its settings.
local function take(self, width, settings)
  self.rope = settings.rope
  local inner = { bias = settings.bias, scale = settings.scale, init = settings.init }
  local narrow = width / self.heads * self.kv_heads
  self.modules = { layers.Linear(width, width, inner), layers.Linear(width, narrow, inner),
                   layers.Linear(width, narrow, inner), layers.Linear(width, width, inner) }
end

-- causal: false where every position sees all.
local function build(self, context, x)
  local q = context:child("query", self.modules[1], x)
  local k = context:child("key", self.modules[2], x)
  local v = context:child("value", self.modules[3], x)
  if self.rope then
    q = context:op("rope", q, { heads = self.heads })
    k = context:op("rope", k, { heads = self.kv_heads })
  end
  local y = context:op("attention", q, k, v,
    { heads = self.heads, kv_heads = self.kv_heads, causal = self.causal == false and 0 or nil })
  return context:child("out", self.modules[4], y)
end

local KNOWN = { causal = true, kvHeads = true, rope = true, bias = true, scale = true, init = true }

-- Self-attention over x[batch, time, width] in `heads` heads of width / heads columns: softmax(q k^T / sqrt(columns)) v
-- by head, and a layer behind. settings: causal (false: every position sees all), kvHeads (grouped queries), rope
-- (true: rotary positions), bias (true), init (of its weights).
nn.MultiHeadAttention = module.define("MultiHeadAttention", function(self, width, heads, settings)
  settings = settings or {}
  for key in pairs(settings) do
    if not KNOWN[key] then
      error(("MultiHeadAttention: unknown setting '%s' (known: bias, causal, init, kvHeads, rope, scale)"):format(
        tostring(key)), 3)
    end
  end
  self.width, self.heads = module.positive(width, "width"), module.positive(heads, "heads")
  self.kv_heads = settings.kvHeads and module.positive(settings.kvHeads, "kvHeads") or heads
  if width % heads ~= 0 or heads % self.kv_heads ~= 0 then
    error(("MultiHeadAttention: %d heads (kvHeads %d) do not divide the width %d"):format(heads, self.kv_heads, width),
      3)
  end
  take(self, width, settings)
  self.causal = settings.causal == true
end, build)

-- Causal self-attention over x[batch, time, width]. settings: kvHeads (grouped queries), rope (true: rotary positions),
-- bias (true).
nn.CausalSelfAttention = module.define("CausalSelfAttention", function(self, width, heads, settings)
  settings = settings or {}
  self.heads, self.kv_heads = module.positive(heads, "heads"), settings.kvHeads or heads
  take(self, width, { rope = settings.rope, bias = settings.bias, scale = settings.scale })
end, build)

return nn
