-- Llama: RMS norms, rotary positions, grouped-query attention, SwiGLU, no biases, a head of its own or tied to the
-- token table.
-- Parameters have Hugging Face's names; each block is a region with the regions attn and mlp inside.

local EPS = 1e-5  -- the op's own, which is not written into graphs

local function rms_norm(o, graph, name, x)
  local gamma = graph:parameter(name .. ".weight", { o.width }, { init = "constant", scale = 1, no_decay = true })
  return (graph:op("rmsnorm", x, gamma, o.eps ~= EPS and { eps = o.eps } or {}))
end

local function linear(graph, name, x, inputs, outputs)
  local w = graph:parameter(name .. ".weight", { outputs, inputs }, { init = "normal", scale = 0.02 })
  return (graph:op("linear", x, w))
end

local function hidden_width(o) return o.hidden > 0 and o.hidden or math.ceil(8 * o.width / 3 / 64) * 64 end

local function body(o, graph, batch)
  local kv_width, hidden = o.width / o.heads * o.kv_heads, hidden_width(o)
  local tokens = graph:input("tokens", { batch, o.seq }, "i32")
  local table_ = graph:parameter("model.embed_tokens.weight", { o.vocab, o.width }, { init = "normal", scale = 0.02 })
  local x = graph:op("embedding", table_, tokens)
  for layer = 0, o.layers - 1 do
    local name = ("model.layers.%d."):format(layer)
    graph:region("h" .. layer, function()
      graph:region("attn", function()
        local y = rms_norm(o, graph, name .. "input_layernorm", x)
        local q = linear(graph, name .. "self_attn.q_proj", y, o.width, o.width)
        local k = linear(graph, name .. "self_attn.k_proj", y, o.width, kv_width)
        local v = linear(graph, name .. "self_attn.v_proj", y, o.width, kv_width)
        q = graph:op("rope", q, { heads = o.heads, base = o.rope_base })
        k = graph:op("rope", k, { heads = o.kv_heads, base = o.rope_base })
        y = graph:op("attention", q, k, v, { heads = o.heads, kv_heads = o.kv_heads })
        x = x + linear(graph, name .. "self_attn.o_proj", y, o.width, o.width)
      end)
      graph:region("mlp", function()
        local y = rms_norm(o, graph, name .. "post_attention_layernorm", x)
        local gate = linear(graph, name .. "mlp.gate_proj", y, o.width, hidden)
        local up = linear(graph, name .. "mlp.up_proj", y, o.width, hidden)
        x = x + linear(graph, name .. "mlp.down_proj", graph:op("swiglu", gate, up), hidden, o.width)
      end)
    end)
  end
  x = rms_norm(o, graph, "model.norm", x)
  if o.tied then return x, table_ end
  return x, graph:parameter("lm_head.weight", { o.vocab, o.width }, { init = "normal", scale = 0.02 })
end

return {
  options = {
    { "layers", 4, "transformer blocks", whole = true, least = 1, most = 6000 },
    { "heads", 4, "query heads; divides width", whole = true, least = 1 },
    { "kv_heads", 2, "key and value heads; divides heads", whole = true, least = 1 },
    { "width", 256, "of the hidden state", whole = true, least = 1 },
    { "hidden", 0, "of the feed-forward layer; 0: 8/3 width, to a multiple of 64", whole = true, least = 0 },
    { "rope_base", 10000, "of the rotary positions", least = 1 },
    { "vocab", 256, "tokens of the vocabulary", whole = true, least = 2 },
    { "seq", 256, "tokens of a window", whole = true, least = 1 },
    { "batch", 8, "windows of a micro-batch", whole = true, least = 1 },
    { "data", "", "text file, or random" },
    { "lengths", "", "windows of these lengths instead of seq, as 64,128,256: texts sorted by length (train)" },
    { "tokens", "bytes", "kind of tokens", choices = { "bytes", "bpe" } },
    { "eps", EPS, "of the norms", least = 0 },
    { "tied", false, "the head is the token table" },
  },
  training = { steps = 100, rate = 3e-4, weight_decay = 0.1, beta1 = 0.9, beta2 = 0.95, clip = 1.0 },

  check = function(o)
    if o.width % o.heads ~= 0 or o.width / o.heads % 2 ~= 0 then
      return ("heads=%d and width=%d: a head must have width/heads columns, an even whole number"):format(o.heads,
        o.width)
    end
    if o.heads % o.kv_heads ~= 0 then
      return ("kv_heads=%d does not divide heads=%d"):format(o.kv_heads, o.heads)
    end
  end,

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

  programs = function(o, run) return run.lengths(o) end,

  -- Frequencies that old files hold; of a tied model the head, too.
  unused = function(o)
    local head = { "^lm_head%.weight$", same = "model.embed_tokens.weight", advice = "tied=false keeps both" }
    return { "%.rotary_emb%.inv_freq$", o.tied and head or nil }
  end,

  -- What a file's shapes ask for.
  fit = function(shapes, o)
    local rows, layers = {}, 0
    while shapes[("model.layers.%d.input_layernorm.weight"):format(layers)] do layers = layers + 1 end
    if layers > 0 then rows[1] = { "layers", layers } end
    local tokens = shapes["model.embed_tokens.weight"]
    local gate, key = shapes["model.layers.0.mlp.gate_proj.weight"], shapes["model.layers.0.self_attn.k_proj.weight"]
    if tokens and #tokens == 2 then
      rows[#rows + 1], rows[#rows + 2] = { "vocab", tokens[1] }, { "width", tokens[2] }
    end
    if gate and gate[1] ~= hidden_width(o) then rows[#rows + 1] = { "hidden", gate[1] } end
    if tokens and key and key[1] * o.heads % tokens[2] == 0 then
      rows[#rows + 1] = { "kv_heads", key[1] * o.heads / tokens[2] }
    end
    rows[#rows + 1] = { "tied", shapes["lm_head.weight"] == nil }
    return rows
  end,

  -- What config.json must say.
  config = function(o)
    return { { "num_attention_heads", o.heads, "heads" }, { "num_key_value_heads", o.kv_heads, "kv_heads" },
             { "rms_norm_eps", o.eps, "eps" }, { "rope_theta", o.rope_base, "rope_base" },
             { "rope_parameters.rope_theta", o.rope_base, "rope_base" }, { "rope_parameters.rope_type", "default" },
             { "rope_scaling.rope_type", "default" }, { "rope_scaling.type", "default" }, { "hidden_act", "silu" },
             { "tie_word_embeddings", o.tied, "tied" }, { "attention_bias", false }, { "mlp_bias", false },
             { "head_dim", o.width / o.heads } }
  end,
}
