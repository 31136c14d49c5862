-- What a config.json says of models of two towers, one of pictures and one of texts: an object for each.
local architecture = require "families.parts.architecture"
local config = require "families.parts.config"
local fail = require "cli.base.fail"
local HARMLESS = require "cli.recipe.harmless_keys"
local unicode = require "cli.base.unicode"

local towers = { NONE = config.NONE }

local DEFAULTS = {
  clip = {
    text = { hidden_size = 512, intermediate_size = 2048, num_hidden_layers = 12, num_attention_heads = 8,
             vocab_size = 49408, max_position_embeddings = 77, hidden_act = "quick_gelu", layer_norm_eps = 1e-5 },
    vision = { hidden_size = 768, intermediate_size = 3072, num_hidden_layers = 12, num_attention_heads = 12,
               image_size = 224, patch_size = 32, num_channels = 3, hidden_act = "quick_gelu", layer_norm_eps = 1e-5 },
  },
  siglip = {
    text = { hidden_size = 768, intermediate_size = 3072, num_hidden_layers = 12, num_attention_heads = 12,
             vocab_size = 32000, max_position_embeddings = 64, hidden_act = "gelu_pytorch_tanh",
             layer_norm_eps = 1e-6 },
    vision = { hidden_size = 768, intermediate_size = 3072, num_hidden_layers = 12, num_attention_heads = 12,
               image_size = 224, patch_size = 16, num_channels = 3, hidden_act = "gelu_pytorch_tanh",
               layer_norm_eps = 1e-6 },
  },
}
local IGNORED = { model_type = true, projection_dim = true, projection_size = true, initializer_factor = true,
                  vision_use_head = true }

-- The values of one tower's object, with the defaults of its kind.
local function values_of(object, defaults, where)
  local values = {}
  for key, value in pairs(defaults) do values[key] = value end
  for key, value in pairs(object or {}) do
    if defaults[key] ~= nil and type(value) == type(defaults[key]) then
      values[key] = value
    elseif defaults[key] ~= nil then
      fail.input(("%s: %s is %s; wanted: a %s"):format(where, key, config.shown(value), type(defaults[key])))
    elseif not IGNORED[key] and not HARMLESS[key] and not (type(value) == "table" and next(value) == nil) then
      fail.input(("%s: nothing is known of %s (%s)"):format(where, unicode.shown(tostring(key)), config.shown(value)))
    end
  end
  return values
end

local function tower_of(c, where)
  local activation = c.hidden_act == "quick_gelu" and c.hidden_act or architecture.activation(c.hidden_act, where)
  return { width = c.hidden_size, hidden = c.intermediate_size, layers = c.num_hidden_layers,
           heads = c.num_attention_heads, eps = c.layer_norm_eps, activation = activation }
end

function towers.shape(c, a, kind)
  local text = values_of(c.text_config, DEFAULTS[kind].text, a.where .. ": text_config")
  local vision = values_of(c.vision_config, DEFAULTS[kind].vision, a.where .. ": vision_config")
  a.text, a.vision = tower_of(text, a.where), tower_of(vision, a.where)
  a.patch, a.projection = vision.patch_size, c.projection_dim or vision.hidden_size
  a.options = { image = vision.image_size, channels = vision.num_channels, vocab = text.vocab_size,
                seq = text.max_position_embeddings, tokens = "auto" }
end

return towers
