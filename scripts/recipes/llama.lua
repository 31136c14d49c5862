-- Llama: RMS norms, rotary positions, grouped-query attention, SwiGLU, no biases, a head of its own or tied to the
-- token table.
-- Parameters have Hugging Face's names; each block is a region with the regions attn and mlp inside.

local nn = require("cairn").nn

local EPS = 1e-5  -- the op's own, which is not written into graphs

-- A table of rows that start normal: building it gives the table itself.
local Table = nn.define("Table", function(self, rows, width) self.dims = { rows, width } end, function(self, context)
  return context:parameter(self, "weight", self.dims, { init = "normal", scale = 0.02 })
end)

local Tokens = nn.define("Tokens", function(self, o) self.modules = { Table(o.vocab, o.width) } end,
  function(self, context, tokens)
    self.weight = context:child("embed_tokens", self.modules[1])
    return (context:op("embedding", self.weight, tokens))
  end)

local function linear(inputs, outputs) return nn.Linear(inputs, outputs, { bias = false, scale = 0.02 }) end

local Attention = nn.define("Attention", function(self, o)
  self.heads, self.kv_heads, self.base = o.heads, o.kv_heads, o.rope_base
  local wide, narrow = o.width, o.width / o.heads * o.kv_heads
  self.modules = { linear(wide, wide), linear(wide, narrow), linear(wide, narrow), linear(wide, wide) }
end, function(self, context, x)
  local q = context:child("q_proj", self.modules[1], x)
  local k = context:child("k_proj", self.modules[2], x)
  local v = context:child("v_proj", self.modules[3], x)
  q = context:op("rope", q, { heads = self.heads, base = self.base })
  k = context:op("rope", k, { heads = self.kv_heads, base = self.base })
  local y = context:op("attention", q, k, v, { heads = self.heads, kv_heads = self.kv_heads })
  return context:child("o_proj", self.modules[4], y)
end)

local FeedForward = nn.define("FeedForward", function(self, width, hidden)
  self.modules = { linear(width, hidden), linear(width, hidden), linear(hidden, width) }
end, function(self, context, x)
  local gate = context:child("gate_proj", self.modules[1], x)
  local up = context:child("up_proj", self.modules[2], x)
  return context:child("down_proj", self.modules[3], (context:op("swiglu", gate, up)))
end)

local function hidden_width(o) return o.hidden > 0 and o.hidden or math.ceil(8 * o.width / 3 / 64) * 64 end

local function rms_norm(o) return nn.RMSNorm(o.width, o.eps ~= EPS and o.eps) end

local function block(o)
  local function part(region, norm, name, inner)
    return nn.Region(region, nil, nn.Residual(nn.Sequential():add(rms_norm(o), norm):add(inner, name)))
  end
  return nn.Sequential():add(part("attn", "input_layernorm", "self_attn", Attention(o)), "")
    :add(part("mlp", "post_attention_layernorm", "mlp", FeedForward(o.width, hidden_width(o))), "")
end

-- Builds the model from tokens[batch, seq]: returns the last hidden state [batch, seq, width] and the head's weights.
local function body(o, context, batch)
  local tokens, head = Tokens(o), Table(o.vocab, o.width)
  local net = nn.Sequential():add(tokens, "model")
  nn.add_blocks(net, o.layers, o.segments, function(layer) return block(o), "model.layers." .. layer end)
  net:add(rms_norm(o), "model.norm")
  local hidden = net:build(context, context.graph:input("tokens", { batch, o.seq }, "i32"))
  return hidden, o.tied and tokens.weight or context:child("lm_head", head)
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
    { "segments", "auto", "checkpointed by hand: block, sqrt, or blocks of a segment; auto: the planner decides" },
    { "data", "", "text file, or random" },
    { "lengths", "", "windows of these lengths instead of seq, as 64,128,256: texts sorted by length (train)" },
    { "remainder", "pad", "an epoch's last micro-batch, too small: padded, of its own size, dropped",
      choices = { "pad", "own", "drop" } },
    { "metrics", "none", "accuracy: measured in training, too, as in evaluation", choices = { "none", "accuracy" } },
    { "eval_data", "", "text file to evaluate with" },
    { "eval_fraction", 0, "or this share at the end of data, which is not trained with", least = 0, below = 1 },
    { "tokens", "bytes", "kind of tokens", choices = { "bytes", "bpe" } },
    { "eps", EPS, "of the norms", least = 0 },
    { "frozen", "", "parameters whose names match are not trained, as 'h.*'" },
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
    return select(2, nn.segment_size(o.segments, o.layers))
  end,

  model = function(o, graph, purpose)
    local context = nn.context(graph, true)
    local hidden, head = body(o, context, o.batch)
    local targets = graph:input("targets", { o.batch, o.seq }, "i32")
    local loss, weight, metrics = nn.vocabulary_loss(context, hidden, head, targets,
      purpose == "evaluation" or o.metrics == "accuracy")
    metrics = metrics or {}
    metrics.perplexity = { of = "loss", apply = math.exp, better = "lower" }
    return { loss = loss, weight = weight, metrics = metrics }
  end,

  generator = function(o, graph)
    local context = nn.context(graph, false)
    local hidden, head = body(o, context, 1)
    local position = graph:input("position", { 1 }, "i32")
    local rows = context:op("reshape", hidden, { shape = { o.seq, o.width } })
    local last = context:op("embedding", rows, position)
    return { outputs = { graph:name(context:op("linear", last, head), "logits") } }
  end,

  frozen = function(o) return o.frozen end,

  blocks = "model.layers.",

  dataset = function(o, run) return run.text(o) end,

  evaluation = function(o, run) return run.evaluation(o) end,

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

  hf_config = function(o) return require("cli.model.hf_config").llama(o) end,

  -- What config.json must say.
  config = function(o)
    local head = o.width / o.heads
    local function family(name) return name == "llama" or name == "mistral" end
    local function whole(window) return type(window) == "number" and window >= o.seq end
    local function is_silu(name) return name == "silu" or name == "swish" end
    return {
      { "model_type", family, nil, "llama, or mistral, which is the same" },
      { "num_attention_heads", o.heads, "heads" }, { "num_key_value_heads", o.kv_heads, "kv_heads", default = o.heads },
      { "head_dim", head }, { "rms_norm_eps", o.eps, "eps", default = 1e-6 },
      { "rope_theta", o.rope_base, "rope_base", default = 10000, unless = "rope_parameters.rope_theta" },
      { "rope_parameters.rope_theta", o.rope_base, "rope_base" }, { "rope_parameters.rope_type", "default" },
      { "rope_parameters.type", "default" }, { "rope_parameters.partial_rotary_factor", 1 },
      { "rope_parameters.original_max_position_embeddings" },  -- which other types scale by
      { "rope_scaling.rope_type", "default" }, { "rope_scaling.type", "default" }, { "partial_rotary_factor", 1 },
      { "hidden_act", is_silu, nil, "silu" }, { "tie_word_embeddings", o.tied, "tied", default = false },
      { "attention_bias", false }, { "mlp_bias", false },
      { "sliding_window", whole, nil, ("at least seq=%d: attention sees full windows here"):format(o.seq) },
      -- Shapes show these.
      { "vocab_size" }, { "hidden_size" }, { "intermediate_size" }, { "num_hidden_layers" },
      { "max_position_embeddings" },
    }
  end,
}
