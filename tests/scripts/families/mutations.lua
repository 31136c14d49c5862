-- Changes of config.json files at random: each is read, or refused by a message for the user. arg: a seed, then files.
local architecture = require "families.parts.architecture"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local json = require "cli.base.json"
local rope = require "families.parts.rope"

local ROUNDS, SEQ = 60, 30
local VALUES = { 0, 1, 2, 7, -1, 1.5, 1e300, "x", "", true, false, {}, { 1 }, { "a" }, "yarn", "llama3", "longrope",
                 "dynamic", "linear" }
for text in ([=[null {"a":1} [null] [1,null,"x"] {"sliding_attention":3} {"rope_type":["a"]}
    {"rope_type":"dynamic","factor":-1}
    {"rope_type":"yarn","rope_theta":1} {"full_attention":{"rope_type":"yarn","factor":0}}
    {"rope_type":"longrope","short_factor":[1,"b"],"long_factor":[[1]]}]=]):gmatch("%S+") do
  VALUES[#VALUES + 1] = json.raw(text)
end
local function words(text)
  local list = {}
  for word in text:gmatch("%S+") do list[#list + 1] = word end
  return list
end
local KEYS = words [[rope_parameters rope_scaling rope_theta partial_rotary_factor layer_types no_rope_layers
  sliding_window head_dim text_config quantization_config model_type sliding_window_pattern
  original_max_position_embeddings]]
local ROTARY = words [[rope_type type factor rope_theta mscale mscale_all_dim beta_fast attention_factor truncate
  low_freq_factor partial_rotary_factor original_max_position_embeddings short_factor llama_4_scaling_beta]]

local function one_of(list) return list[math.random(#list)] end
local function copy_of(object)
  local copy = {}
  for key, value in pairs(object) do copy[key] = value end
  return copy
end

math.randomseed(tonumber(arg[1]))
for i = 2, #arg do
  local base, keys = decode(io.open(arg[i]):read("*a")), {}
  for key in pairs(base) do keys[#keys + 1] = key end
  table.sort(keys)
  for _ = 1, ROUNDS do
    local changed = copy_of(base)
    for _ = 1, math.random(1, 2) do changed[one_of(math.random() < 0.6 and keys or KEYS)] = one_of(VALUES) end
    if base.rope_parameters and math.random() < 0.5 then
      changed.rope_parameters = copy_of(base.rope_parameters)
      changed.rope_parameters[one_of(ROTARY)] = one_of(VALUES)
    end
    local text = json.encode(changed)
    local ok, problem = pcall(function()
      local a = architecture.of(text, "config")
      for name in pairs(a.ropes) do rope.attributes(a, name, SEQ) end
    end)
    if not ok and not fail.is(problem) then error(tostring(problem) .. "\n" .. text, 0) end
  end
end
