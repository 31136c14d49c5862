-- What a decoder is: a table of attributes, from a config's values. A family begins with that of Llama and changes it:
--   vocab, width, layers, heads, kv_heads, head_dim, hidden (of the feed-forward layer), positions (the most)
--   norm = {kind = "rms" | "layer", eps, offset (added to weights), bias}, qk_norm = "head" | "whole" | nil
--   norms = {before_attention, after_attention, before_mlp, after_mlp}: names of those that there are
--   parallel: both parts of a block begin with its input; without before_mlp they share the first norm
--   bias = {q, k, v, o, up (gate, too), down}
--   fused_qkv = "packed" (into attention as they are) | "columns" (q|k|v) | "heads" (q|k|v of each head) | nil
--   gated, fused_gate_up (gate|up), activation (network.ACTIVATIONS)
--   windows[layer] (keys), rotary[layer] (which of ropes, or nil), attention_scales[layer], attention_softcap
--   ropes[type]: families.parts.rope; query_growth = {beta, original}
--   sinks: each head has a learned score without a key
--   experts = {count, chosen (of them, for each token), normalise (weights of the chosen add up to 1), hidden, bias,
--     limit (of a clamped gate), layers[layer] (which have them), balance (the auxiliary loss's coefficient that the
--     config asks for), split (files have a tensor for each expert), names: router, gate, up, down, or gate_up: one
--     product whose columns take turns, and matrices that are [in, out]}; nil: there are none
--   embedding_scale, residual_scale, logits_scale, logits_softcap, tied, dropout
--   init = {scale, residual (of the matrices whose results are added to the hidden state)}
--   head_in_file: whether the head is the token table is what the files say, not the config
--   bidirectional: every token sees the later ones, too; norm_sums: norms after a part are of the sum with its input;
--   plain_first: the first block's attention follows no norm; heads_by_task and more: families.parts.encoder
--   class: how Transformers begins the names of its classes; labels: of files that tell texts apart, or nil
--   names: of parameters; unused: patterns of tensors in files that nothing needs; transposed: parts as [in, out] there
local config = require "families.parts.config"
local fail = require "cli.base.fail"
local labels = require "families.parts.labels"
local rope = require "families.parts.rope"
local unicode = require "cli.base.unicode"

local architecture = {}

local MOST_LAYERS = 6000

local ACTIVATIONS = { silu = "silu", swish = "silu", gelu = "gelu", gelu_new = "gelu_tanh",
                      gelu_pytorch_tanh = "gelu_tanh", relu = "relu" }
-- The name of an activation as the decoder has it.
function architecture.activation(word, where, key)
  local found = ACTIVATIONS[word]
  if found then return found end
  local known = {}
  for each in pairs(ACTIVATIONS) do known[#known + 1] = each end
  table.sort(known)
  fail.input(("%s: %s is '%s'; known: %s"):format(where, key or "hidden_act", unicode.shown(tostring(word)),
    table.concat(known, " ")))
end

local function standard(c, where)
  local function whole(value, words)
    if value ~= math.floor(value) then fail.input(("%s: %s"):format(where, words)) end
    return value
  end
  local heads = c.num_attention_heads
  local kv_heads = c.num_key_value_heads or heads
  local head_dim = c.head_dim or whole(c.hidden_size / heads,
    ("num_attention_heads=%d does not divide hidden_size=%d, and there is no head_dim"):format(heads, c.hidden_size))
  whole(heads / kv_heads, ("num_key_value_heads=%d does not divide num_attention_heads=%d"):format(kv_heads, heads))
  if c.num_hidden_layers > MOST_LAYERS then
    fail.input(("%s: num_hidden_layers is %.0f; at most %d"):format(where, c.num_hidden_layers, MOST_LAYERS))
  end
  local attention, mlp = c.attention_bias == true, c.mlp_bias == true
  return {
    vocab = c.vocab_size, width = c.hidden_size, layers = c.num_hidden_layers, heads = heads, kv_heads = kv_heads,
    head_dim = head_dim, hidden = c.intermediate_size, positions = c.max_position_embeddings,
    norm = { kind = "rms", eps = c.rms_norm_eps }, gated = true,
    norms = { before_attention = "input_layernorm", before_mlp = "post_attention_layernorm" },
    bias = { q = attention, k = attention, v = attention, o = attention, up = mlp, down = mlp },
    activation = c.hidden_act and architecture.activation(c.hidden_act, where),
    windows = {}, rotary = {}, attention_scales = {}, ropes = {}, tied = c.tie_word_embeddings,
    init = { scale = c.initializer_range, residual = c.initializer_range },
    names = { tokens = "model.embed_tokens", block = "model.layers.%d", final = "model.norm", head = "lm_head",
              attention = "self_attn", q = "q_proj", k = "k_proj", v = "v_proj", qkv = "qkv_proj", o = "o_proj",
              q_norm = "q_norm", k_norm = "k_norm",
              mlp = "mlp", gate = "gate_proj", up = "up_proj", down = "down_proj", gate_up = "gate_up_proj" },
    unused = { "%.rotary_emb%.inv_freq$" }, where = where, blocks = "model.layers.",
  }
end

-- The same for every layer.
function architecture.fill(list, layers, value)
  for i = 1, layers do list[i] = value end
end

-- Windows by type of layer, as layer_types says, or else type_of(number of the layer, from 1). Returns the types.
function architecture.windows(c, a, type_of)
  local types = {}
  if c.layer_types and #c.layer_types ~= a.layers then
    fail.input(("%s: layer_types has %d entries, of %d layers"):format(a.where, #c.layer_types, a.layers))
  end
  for i = 1, a.layers do
    types[i] = c.layer_types and c.layer_types[i] or type_of(i)
    if types[i] == "sliding_attention" then
      if not c.sliding_window then
        fail.input(("%s: layer %d has sliding_attention, and there is no sliding_window"):format(a.where, i - 1))
      end
      a.windows[i] = c.sliding_window
    elseif types[i] ~= "full_attention" then
      fail.input(("%s: layer_types has '%s' for layer %d; known: full_attention sliding_attention"):format(a.where,
        unicode.shown(tostring(types[i])), i - 1))
    end
  end
  return types
end

-- Of layers without layer_types: every nth is full_attention, the others have the window, n being
-- sliding_window_pattern or `default`; without a window all are full.
function architecture.every(c, a, default)
  local n = c.sliding_window_pattern or default
  if not c.layer_types and c.sliding_window and (type(n) ~= "number" or n < 1 or n ~= math.floor(n)) then
    fail.input(("%s: sliding_window_pattern is %s, and there are no layer_types; wanted: a whole number"):format(
      a.where, config.shown(n)))
  end
  return function(i) return (not c.sliding_window or i % n == 0) and "full_attention" or "sliding_attention" end
end

local function any(list)
  for _, value in ipairs(list) do
    if value then return true end
  end
  return false
end

-- Experts in the place of feed-forward layers, in all of them until the family says otherwise. own: what config.json
-- has no common key for.
function architecture.experts(c, a, own)
  if c.num_experts_per_tok > own.count then
    fail.input(("%s: num_experts_per_tok=%d is more than the %d experts"):format(a.where, c.num_experts_per_tok,
      own.count))
  end
  own.chosen, own.layers = c.num_experts_per_tok, {}
  own.balance = c.output_router_logits and c.router_aux_loss_coef or 0
  architecture.fill(own.layers, a.layers, true)
  a.experts = own
end

local function settled(c, a, parameters, words, given)
  return rope.settle(parameters, a.where .. ": " .. words, { base = given.base or c.rope_theta or 10000,
    share = c.partial_rotary_factor or given.share, original = c.original_max_position_embeddings,
    positions = a.positions, head_dim = a.head_dim, interleaved = given.interleaved, extra = given.extra })
end

-- One way of rotary positions for all layers. given: base and share (of a head's columns) where the config says none,
-- interleaved, extra (keys that the family reads itself). Returns the parameters.
function architecture.rope(c, a, given)
  local word = c.rope_scaling and "rope_scaling" or "rope_parameters"
  given = given or {}
  local parameters = c[word] or given.parameters or {}
  a.ropes.all = settled(c, a, parameters, word, { base = c.rope_theta or given.base, share = given.share,
    interleaved = given.interleaved, extra = given.extra })
  architecture.fill(a.rotary, a.layers, "all")
  return parameters
end

-- One for each type of layer. bases: by type, where rope_parameters says none; what rope_scaling says is of
-- full_attention alone.
function architecture.rope_by_type(c, a, types, bases)
  local parameters = c.rope_parameters or {}
  for key, value in pairs(parameters) do
    if bases[key] == nil or type(value) ~= "table" then
      fail.input(("%s: rope_parameters has the key '%s'; wanted: one object each for full_attention and " ..
        "sliding_attention"):format(a.where, unicode.shown(tostring(key))))
    end
  end
  for name, base in pairs(bases) do
    local own = parameters[name] or name == "full_attention" and c.rope_scaling or {}
    a.ropes[name] = settled(c, a, own, "rope_parameters." .. name, { base = base })
    -- A table by types hides its own truncate from the rule of yarn.
    if parameters[name] then a.ropes[name].truncate = nil end
  end
  for i, name in ipairs(types) do a.rotary[i] = name end
end

-- That of a family whose values are known: `values` in the place of its defaults.
function architecture.preset(name, values)
  local family, c = require("families." .. name), { tie_word_embeddings = false, initializer_range = 0.02 }
  for key, default in pairs(family.defaults) do c[key] = default ~= config.NONE and default or nil end
  for key, value in pairs(values) do c[key] = value end
  local a = standard(c, name)
  a.family = name
  family.shape(c, a, architecture)
  return a
end

-- Ends the command where a model is of another recipe than `name`.
function architecture.check_recipe(a, name)
  if a.recipe ~= name then
    fail.input(("%s: the family %s is of the recipe %s, and not of %s"):format(a.where, a.family, a.recipe, name))
  end
end

-- How Transformers begins the names of the model's classes, and the labels of one that tells texts apart, which has no
-- head over the vocabulary.
local function classes(c, a)
  for _, name in ipairs(c.architectures or {}) do
    local before, what = tostring(name):match("^(.-)(For%a+)$")
    a.class = a.class or before
    if what == "ForSequenceClassification" and not a.labels then
      a.labels, a.untied_head, a.names.head = labels.of(c, a.where), a.names.head, nil
    end
  end
end

-- Of a model of pictures: options (values of the recipe's that the config says), labels, headless (files have no head),
-- names, unused; the rest is the recipe's own.
local function of_pictures(c, where)
  local list, headless = labels.of(c, where), c.architectures ~= nil
  for _, name in ipairs(c.architectures or {}) do
    if tostring(name):find("ForImageClassification") then headless = false end
  end
  return { where = where, names = {}, unused = { "num_batches_tracked$", "position_ids$" }, labels = list,
           headless = headless, options = { image = c.image_size, channels = c.num_channels } }
end

-- The architecture that a config.json's text describes. where: its name for messages. Also returns whether the config
-- says itself if the head is tied.
function architecture.of(text, where)
  local c, family, name, says_tied, wrapped, place = config.read(text, where)
  local a = family.of_pictures and of_pictures(c, place) or standard(c, place)
  a.family, a.wrapped, a.recipe = name, wrapped, family.recipe or "decoder"
  family.shape(c, a, architecture)
  if a.experts and not any(a.experts.layers) then a.experts = nil end
  if a.recipe == "decoder" then classes(c, a) end
  if wrapped then
    for _, pattern in ipairs { "^vision_tower%.", "^multi_modal_projector%.", "%.vision_tower%.",
                               "%.multi_modal_projector%." } do
      a.unused[#a.unused + 1] = pattern
    end
  end
  return a, says_tied
end

return architecture
