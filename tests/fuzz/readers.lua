-- What the Lua targets call: each takes any text, and raises an error only where a reader broke its promise.
local ROOT = rawget(_G, "ROOT")
package.path = ROOT .. "/scripts/?.lua;" .. ROOT .. "/bindings/lua/?.lua"
-- Of the command's own functions only those that end a recipe are called here, and no graph is built.
local function nothing() end
package.preload["cli.native"] = function() return { enter = nothing, leave = nothing } end
package.preload["cairn.core"] = function() return { is = function() return false end } end
-- As the library lists them, with ranges of the same kinds.
local SETTINGS = {
  adamw = { { name = "beta1", description = "", default = 0.9, least = 0, most = 1, below = true } },
  sgd = { { name = "momentum", description = "", default = 0, least = 0, most = 1, below = true },
          { name = "nesterov", description = "", default = false } },
  stepper = { { name = "rate", description = "", default = 3e-4, least = 1e-30, most = 1e38 },
              { name = "minimum_rate", description = "", default = 0, least = 0, most = 1e38 },
              { name = "warmup_steps", description = "", default = 0, least = 0, most = 2 ^ 32 - 1, integer = true },
              { name = "clip_norm", description = "", default = 1, least = 0, most = 1e38 },
              { name = "loss_scale", description = "", default = 0, least = 1, most = 1e38, or_zero = true } },
}
package.preload["cairn"] = function()
  return { settings = function(kind, owner) return SETTINGS[owner or kind] end,
  optimizers = function()
    return { { name = "adamw", hypers = { { name = "beta1", default = 0.9 } } },
             { name = "sgd", hypers = { { name = "momentum", default = 0 }, { name = "nesterov", default = 0 } } } }
  end,
  schedules = function()
    return { { name = "constant", parameters = { { name = "factor", default = 1 } }, ends = false },
             { name = "linear", parameters = { { name = "start_factor", default = 1 } }, ends = true },
             { name = "cosine", parameters = { { name = "first_cycle", default = 0 } }, ends = true },
             { name = "multistep", parameters = { { name = "milestones", list = true } }, ends = false },
             { name = "onecycle", ends = true,
               parameters = { { name = "three_phase", default = "false", words = { "false", "true" } },
                              { name = "anneal", default = "cos", words = { "cos", "linear" } } } } }
  end,
  parse_schedule = require("cairn.schedules").parse }
end
package.preload["cairn.graph"] = function() return {} end
local args = require "cli.base.args"
local config = require "cli.recipe.config"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local forms = require "cli.instruct.forms"
local recipe = require "cli.recipe.load"

local sample = recipe.load(ROOT .. "/tests/fuzz/recipe.lua", ROOT)
local USAGE = "cairn train RECIPE [key=value ...] [options]"
local KNOWN = args.known("device threads budget amp policy tiers link profile force-profile seed steps " ..
  "accumulate json quiet")
local no_output = setmetatable({}, { __index = { write = function() end } })

local readers = {}

-- An error is a text that begins with "JSON: ".
function readers.json(text)
  local ok, problem = pcall(decode, text)
  if not ok and not (type(problem) == "string" and problem:find("^JSON: ")) then error(problem, 0) end
end

-- An error is one of cli.base.fail, for the user. What is taken can be written and read again.
function readers.options(text)
  local words = {}
  for word in (text .. "\n"):gmatch("([^\n]*)\n") do words[#words + 1] = word end
  local stdout = io.stdout
  rawset(io, "stdout", no_output)
  local ok, problem = pcall(function()
    local options, _, settings = args.parse(words, KNOWN, USAGE)
    if not options then return end
    local values = recipe.resolve(sample, settings, nil, true)
    local again = {}
    for name, value in pairs(values) do again[#again + 1] = { name, recipe.value_text(value) } end
    for name, value in pairs(recipe.resolve(sample, again, nil, true)) do
      if value ~= values[name] then error(("%s=%s is not read back"):format(name, tostring(values[name])), 0) end
    end
  end)
  rawset(io, "stdout", stdout)
  if not ok and not fail.is(problem) then error(problem, 0) end
  if not ok and tostring(problem) == "" then error("an error without a message", 0) end
end

-- As options: what is refused is so for the user. The recipe's options that are taken can be resolved or are refused.
function readers.run_config(text)
  local ok, problem = pcall(function()
    local file = config.parse("run.json", text, KNOWN, USAGE)
    config.merge(file, {}, {})
    config.check(file, sample)
  end)
  if not ok and not fail.is(problem) then error(problem, 0) end
  if not ok and not tostring(problem):find("run.json", 1, true) then error("which file it is is not said", 0) end
end

-- A row is a form, or refused with a message.
function readers.row(text)
  local decoded, row = pcall(decode, text)
  if not decoded or type(row) ~= "table" then return end
  local ok, problem = pcall(forms.of, row, text, {}, function(message) fail.input("row: " .. message) end)
  if not ok and not fail.is(problem) then error(problem, 0) end
  if ok and type(problem.form) ~= "string" then error("a row without a form", 0) end
end

return readers
