-- The config.json of a model directory, as Transformers reads it: a recipe's own part (`hf_config` of the recipe, a
-- table or a text of JSON), and what every model has.
local decode = require "cli.base.json_decode"
local json = require "cli.base.json"

local hf_config = {}

local NULL = json.raw("null")

local TYPES = { f32 = "float32", bf16 = "bfloat16", f16 = "float16" }

-- Keys that the recipe has no word for: those of the directory that the weights came from are right, for training
-- changes none of them; without one there are no special tokens.
local CARRIED = { "bos_token_id", "eos_token_id", "pad_token_id" }
-- And those that only grow what is allowed.
local LARGER = { "max_position_embeddings" }

local function text_of(object) return json.pretty(json.encode(object)) .. "\n" end

-- A text with another type in it: numbers and nulls remain as they are written.
local function retyped(text, dtype)
  local word = ('"dtype": "%s"'):format(TYPES[dtype])
  local changed, count = text:gsub('"t?o?r?c?h?_?dtype"%s*:%s*"[^"]*"', word)
  return count > 0 and changed or (text:gsub("{", "{\n  " .. word .. ",", 1))
end

-- The text of an object without quantization_config: what is written is not quantised.
local function unquantised(text)
  local rest, count = text:gsub('%s*"quantization_config"%s*:%s*%b{}%s*,', "", 1)
  if count == 0 then rest = text:gsub(',%s*"quantization_config"%s*:%s*%b{}', "", 1) end
  return rest
end

-- The texts of config.json and of generation_config.json. own: what a recipe returned; before: the object in the
-- config.json that the weights came with (optional); dtype: what they are written as, "f32", "bf16" or "f16".
function hf_config.texts(own, before, dtype)
  local config, generation = {}, { _from_model_config = true }
  for key, value in pairs(type(own) == "string" and decode(own) or own) do config[key] = value end
  for _, key in ipairs(CARRIED) do
    if config[key] == nil then config[key] = before and before[key] or NULL end
    if config[key] ~= NULL then generation[key] = config[key] end
  end
  for _, key in ipairs(LARGER) do
    if before and config[key] and tonumber(before[key]) then config[key] = math.max(config[key], before[key]) end
  end
  config.dtype, config.quantization_config = TYPES[dtype], nil
  return type(own) == "string" and retyped(unquantised(own), dtype) or text_of(config), text_of(generation)
end

return hf_config
