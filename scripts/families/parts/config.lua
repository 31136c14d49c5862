-- A config.json of Hugging Face's form: which family it is of, and the values of the keys that the family reads, with
-- its defaults for those left out. Every key is read, known to change nothing, or refused by its name.
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local HARMLESS = require "cli.recipe.harmless_keys"
local nearest = require "cli.base.nearest"
local posix = require "cli.base.posix"
local quantised = require "families.parts.quantised"
local unicode = require "cli.base.unicode"

-- NONE: the default of a key that asks for nothing where it is left out.
local config = { NONE = {} }
local NONE, NULL = config.NONE, {}
local MOST = 2 ^ 31 - 1
local MOST_LISTED = 8

-- Read of every family. rope_theta and rope_scaling are the spelling of Transformers 4, rope_parameters that of 5.
local SHARED = { tie_word_embeddings = false, initializer_range = 0.02, architectures = NONE, id2label = NONE,
                 num_labels = NONE }
local ROTARY = { rope_theta = NONE, rope_scaling = NONE, rope_parameters = NONE, partial_rotary_factor = NONE,
                 head_dim = NONE, original_max_position_embeddings = NONE }
-- Keys of any family that have one value here.
local FIXED = { is_encoder_decoder = false, add_cross_attention = false, is_decoder = "any" }

-- What a key's value is, where its default does not tell.
local KINDS = {}
local function kind(name, keys)
  for key in keys:gmatch("%S+") do KINDS[key] = name end
end
kind("size", [[vocab_size hidden_size intermediate_size num_hidden_layers num_attention_heads num_key_value_heads
  head_dim max_position_embeddings original_max_position_embeddings sliding_window no_rope_layer_interval
  num_experts num_local_experts num_experts_per_tok moe_intermediate_size decoder_sparse_step
  type_vocab_size local_attention global_attn_every_n_layers num_labels]])
kind("size", "num_decoder_layers relative_attention_num_buckets relative_attention_max_distance")
kind("number", "decoder_start_token_id")
kind("flag", "is_gated_act scale_decoder_outputs")
kind("object", "rope_scaling rope_parameters text_config id2label")
kind("list", "layer_types no_rope_layers mlp_only_layers architectures")
kind("number", "rope_theta partial_rotary_factor final_logit_softcapping attn_logit_softcapping rope_local_base_freq")
kind("any", "sliding_window_pattern")
-- Keys whose null says that there is no such thing, whatever the default is.
local NULLABLE = { sliding_window = true, num_key_value_heads = true, head_dim = true, final_logit_softcapping = true,
                   attn_logit_softcapping = true }
local WANTED = { size = "a whole number of at least 1", object = "an object", list = "a list", number = "a number",
                 flag = "true or false", word = "a text" }

local function is_list(value) return type(value) == "table" and (next(value) == nil or value[1] ~= nil) end
local CHECKS = {
  size = function(v) return type(v) == "number" and v >= 1 and v <= MOST and v == math.floor(v) end,
  number = function(v) return type(v) == "number" and v == v and math.abs(v) < math.huge end,
  flag = function(v) return type(v) == "boolean" end,
  word = function(v) return type(v) == "string" end,
  list = is_list,
  object = function(v) return type(v) == "table" and (next(v) == nil or not is_list(v)) end,
  any = function() return true end,
}

local OF_DEFAULT = { number = "number", boolean = "flag", string = "word" }
local function kind_of(key, default) return KINDS[key] or OF_DEFAULT[type(default)] or "any" end

-- A value without the nulls in it.
local function plain(value)
  if value == NULL then return nil end
  if type(value) ~= "table" then return value end
  local copy = {}
  for key, each in pairs(value) do copy[key] = plain(each) end
  return copy
end

local function shown(value)
  if type(value) == "table" then return next(value) == nil and "empty" or "a list or an object" end
  return unicode.shown(type(value) == "number" and ("%.15g"):format(value) or tostring(value))
end
config.shown = shown

local function sorted(object)
  local keys = {}
  for key in pairs(object) do keys[#keys + 1] = tostring(key) end
  table.sort(keys)
  return keys
end

-- Keys that a family reads.
function config.keys(family)
  local keys = {}
  for _, rows in ipairs { SHARED, family.learned and {} or ROTARY, family.defaults } do
    for key in pairs(rows) do keys[key] = true end
  end
  return sorted(keys)
end

-- The families that there are: names, sorted.
function config.families()
  local root, names = debug.getinfo(1, "S").source:match("^@(.*)/parts/config%.lua$"), {}
  for _, file in ipairs(posix.list(root) or {}) do names[#names + 1] = file:match("^([%w_]+)%.lua$") end
  table.sort(names)
  return names
end

-- Configs of models that see pictures, too: where their text is, its family if it does not say, its defaults.
config.WRAPPERS = {
  gemma3 = { family = "gemma3_text", ties = true, ignored = { "vision_config", "mm_tokens_per_image", "boi_token_index",
    "eoi_token_index", "image_token_index", "boi_token_id", "eoi_token_id", "image_token_id" } },
  mistral3 = { family = "mistral", ties = true, ignored = { "vision_config", "image_token_index", "image_token_id",
    "projector_hidden_act", "vision_feature_layer", "multimodal_projector_bias", "spatial_merge_size" },
    defaults = { head_dim = 128, hidden_size = 5120, intermediate_size = 32768, num_hidden_layers = 40,
      num_attention_heads = 32, num_key_value_heads = 8, max_position_embeddings = 131072, rms_norm_eps = 1e-5,
      rope_theta = 1e9, sliding_window = NONE, vocab_size = 131072 } },
}

-- The family of a model_type: its table; ends the command where there is none.
function config.family(name, where)
  local known = config.families()
  for _, each in ipairs(known) do
    if each == name then return require("families." .. name) end
  end
  for each in pairs(config.WRAPPERS) do known[#known + 1] = each end
  table.sort(known)
  fail.input(("%s: model_type is '%s', a family that is not known%s (known: %s)"):format(where,
    unicode.shown(tostring(name)), nearest.hint(tostring(name), known), table.concat(known, " ")))
end

-- The recipe that a config's text is for: what its family says, or else decoder.
function config.recipe(text)
  local ok, object = pcall(decode, text)
  local name = ok and type(object) == "table" and object.model_type
  for _, each in ipairs(config.families()) do
    if each == name then return require("families." .. name).recipe or "decoder" end
  end
  return "decoder"
end

local function listed(words, last)
  if #words <= MOST_LISTED then return table.concat(words, last) end
  return table.concat({ unpack(words, 1, MOST_LISTED) }, last) .. (" and %d more"):format(#words - MOST_LISTED)
end

-- Values by key of an object, with a family's defaults; changed: defaults of a wrapper.
local function values_of(object, family, name, where, changed)
  local defaults, fixed, values, problems, unknown = {}, {}, {}, {}, {}
  for _, rows in ipairs { SHARED, family.learned and {} or ROTARY, family.defaults, changed or {} } do
    for key, default in pairs(rows) do defaults[key] = default end
  end
  for _, rows in ipairs { FIXED, family.fixed or {} } do
    for key, value in pairs(rows) do fixed[key] = value end
  end
  for key, default in pairs(defaults) do
    if default ~= NONE then values[key] = default end
  end
  for _, given in ipairs(sorted(object)) do
    local key, value = (family.spelled or {})[given] or given, object[given]
    if defaults[key] ~= nil then
      local wanted = kind_of(key, defaults[key])
      if value == NULL then
        values[key] = nil
      elseif CHECKS[wanted](value) then
        values[key] = plain(value)
      else
        problems[#problems + 1] = ("%s is %s; wanted: %s"):format(given, shown(value), WANTED[wanted])
      end
    elseif fixed[key] ~= nil then
      if value ~= NULL and fixed[key] ~= "any" and value ~= fixed[key] then
        problems[#problems + 1] = ("%s is %s; cairn has only %s"):format(given, shown(value), tostring(fixed[key]))
      end
    elseif key == "quantization_config" and type(value) == "table" and value ~= NULL then
      problems[#problems + 1] = quantised.problem(value)
      values.quantised = value.quant_method
    elseif key ~= "model_type" and not HARMLESS[key] and value ~= NULL
        and not (type(value) == "table" and next(value) == nil) then
      unknown[#unknown + 1] = ("%s (%s)"):format(unicode.shown(given), shown(value))
    end
  end
  if #unknown > 0 then
    problems[#problems + 1] = ("the family %s knows nothing of: %s; a key that changes nothing in this model may be " ..
      "taken out of the file"):format(name, listed(unknown, ", "))
  end
  if #problems > 0 then fail.input(("%s: %s"):format(where, listed(problems, "\n  "))) end
  for key, default in pairs(defaults) do  -- a null where the family has a value and no other meaning
    if values[key] == nil and default ~= NONE and not NULLABLE[key] then
      values[key] = default
    end
  end
  return values
end

-- Reads a config.json's text: the values, the family's table and name, whether it says tie_word_embeddings itself, and
-- whether it is wrapped.
function config.read(text, where)
  local ok, object = pcall(decode, text, NULL)
  if not ok or type(object) ~= "table" or is_list(object) then
    fail.input(("%s is no JSON object%s"):format(where, ok and "" or ": " .. unicode.shown(tostring(object))))
  end
  local name = object.model_type
  if type(name) ~= "string" then
    fail.input(("%s names no family of models: model_type is %s; wanted: one of %s"):format(where,
      name == nil and "not there" or name == NULL and "null" or shown(name), table.concat(config.families(), " ")))
  end
  local wrapper, changed = config.WRAPPERS[name], nil
  if wrapper then
    local inner = object.text_config
    if inner == nil or inner == NULL then inner = {} end
    if not CHECKS.object(inner) then fail.input(("%s: text_config is no object"):format(where)) end
    local ignored, unknown = { text_config = true, model_type = true, tie_word_embeddings = true }, {}
    for _, key in ipairs(wrapper.ignored) do ignored[key] = true end
    for _, key in ipairs(sorted(object)) do
      if not ignored[key] and not HARMLESS[key] and object[key] ~= NULL and FIXED[key] == nil then
        unknown[#unknown + 1] = ("%s (%s)"):format(unicode.shown(key), shown(object[key]))
      end
    end
    if #unknown > 0 then
      fail.input(("%s: %s knows nothing of: %s"):format(where, name, listed(unknown, ", ")))
    end
    local tied = object.tie_word_embeddings
    if tied == nil then tied = inner.tie_word_embeddings end
    local copy = {}
    for key, value in pairs(inner) do copy[key] = value end
    copy.tie_word_embeddings = tied
    changed = { tie_word_embeddings = wrapper.ties }
    name = type(inner.model_type) == "string" and inner.model_type or wrapper.family
    if next(inner) == nil then
      for key, value in pairs(wrapper.defaults or {}) do changed[key] = value end
    end
    object, where = copy, where .. ": text_config"
  end
  local family = config.family(name, where)
  local values = values_of(object, family, name, where, changed)
  local says = object.tie_word_embeddings
  return values, family, name, says ~= nil and says ~= NULL, wrapper ~= nil, where
end

return config
