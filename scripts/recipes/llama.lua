-- Llama: RMS norms, rotary positions, grouped-query attention, SwiGLU, no biases, a head of its own.
-- Parameters have Hugging Face's names; each block is a region with the regions attn and mlp inside.

local function rms_norm(graph, name, x, width)
  local gamma = graph:parameter(name .. ".weight", { width }, { init = "constant", scale = 1, no_decay = true })
  return (graph:op("rmsnorm", x, gamma))
end

local function linear(graph, name, x, inputs, outputs)
  local w = graph:parameter(name .. ".weight", { outputs, inputs }, { init = "normal", scale = 0.02 })
  return (graph:op("linear", x, w))
end

local function body(o, graph, batch)
  local kv_width = o.width / o.heads * o.kv_heads
  local hidden = o.hidden > 0 and o.hidden or math.ceil(8 * o.width / 3 / 64) * 64
  local tokens = graph:input("tokens", { batch, o.seq }, "i32")
  local table_ = graph:parameter("model.embed_tokens.weight", { o.vocab, o.width }, { init = "normal", scale = 0.02 })
  local x = graph:op("embedding", table_, tokens)
  for layer = 0, o.layers - 1 do
    local name = ("model.layers.%d."):format(layer)
    graph:region("h" .. layer, function()
      graph:region("attn", function()
        local y = rms_norm(graph, name .. "input_layernorm", x, o.width)
        local q = linear(graph, name .. "self_attn.q_proj", y, o.width, o.width)
        local k = linear(graph, name .. "self_attn.k_proj", y, o.width, kv_width)
        local v = linear(graph, name .. "self_attn.v_proj", y, o.width, kv_width)
        q = graph:op("rope", q, { heads = o.heads, base = o.rope_base })
        k = graph:op("rope", k, { heads = o.kv_heads, base = o.rope_base })
        y = graph:op("attention", q, k, v, { heads = o.heads, kv_heads = o.kv_heads })
        x = x + linear(graph, name .. "self_attn.o_proj", y, o.width, o.width)
      end)
      graph:region("mlp", function()
        local y = rms_norm(graph, name .. "post_attention_layernorm", x, o.width)
        local gate = linear(graph, name .. "mlp.gate_proj", y, o.width, hidden)
        local up = linear(graph, name .. "mlp.up_proj", y, o.width, hidden)
        x = x + linear(graph, name .. "mlp.down_proj", graph:op("swiglu", gate, up), hidden, o.width)
      end)
    end)
  end
  x = rms_norm(graph, "model.norm", x, o.width)
  return x, graph:parameter("lm_head.weight", { o.vocab, o.width }, { init = "normal", scale = 0.02 })
end

return {
  options = {
    { "layers", 4, "transformer blocks", whole = true, least = 1 },
    { "heads", 4, "query heads; divides width", whole = true, least = 1 },
    { "kv_heads", 2, "key and value heads; divides heads", whole = true, least = 1 },
    { "width", 256, "of the hidden state", whole = true, least = 1 },
    { "hidden", 0, "of the feed-forward layer; 0: 8/3 width, to a multiple of 64", whole = true, least = 0 },
    { "rope_base", 10000, "of the rotary positions", least = 1 },
    { "vocab", 256, "tokens of the vocabulary", whole = true, least = 2 },
    { "seq", 256, "tokens of a window", whole = true, least = 1 },
    { "batch", 8, "windows of a micro-batch", whole = true, least = 1 },
    { "data", "", "text file, or random" },
    { "tokens", "bytes", "kind of tokens", choices = { "bytes", "bpe" } },
  },
  training = { steps = 100, rate = 3e-4, weight_decay = 0.1, beta1 = 0.9, beta2 = 0.95, clip = 1.0 },

  model = function(o, graph)
    local hidden, head = body(o, graph, o.batch)
    local targets = graph:input("targets", { o.batch, o.seq }, "i32")
    local loss, weight = graph:op("linear_cross_entropy", hidden, head, targets)
    return { loss = loss, weight = weight }
  end,

  generator = function(o, graph)
    local hidden, head = body(o, graph, 1)
    local position = graph:input("position", { 1 }, "i32")
    local rows = graph:op("reshape", hidden, { shape = { o.seq, o.width } })
    local last = graph:op("embedding", rows, position)
    return { outputs = { graph:name(graph:op("linear", last, head), "logits") } }
  end,

  dataset = function(o, run) return run.text(o) end,
}
