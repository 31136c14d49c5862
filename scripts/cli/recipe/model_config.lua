-- The config.json beside a weight file: what shapes do not show (heads, eps, the base of positions, another family of
-- models altogether). Every key is known to the recipe or refused by its name, so that no model is taken for another.
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local files = require "cli.base.files"
local HARMLESS = require "cli.recipe.harmless_keys"
local posix = require "cli.base.posix"
local quantised = require "families.parts.quantised"
local recipes = require "cli.recipe.load"
local unicode = require "cli.base.unicode"

local model_config = {}

local MOST_LISTED = 8
local MOST_BYTES = 2 ^ 24

-- Keys of any family that have one value here.
local FIXED = { is_encoder_decoder = false, add_cross_attention = false, is_decoder = "any",
                quantization_config = "any" }

local function same(a, b)
  if type(a) == "number" and type(b) == "number" then return math.abs(a - b) <= 1e-12 * math.abs(b) end
  return a == b
end

-- What a file's value is shown as.
local function shown(value)
  if type(value) == "table" then return next(value) == nil and "empty" or "a list or an object" end
  return unicode.shown(recipes.value_text(value))
end

-- Calls see(path, value) for the leaves of an object: keys joined by dots. A list is a leaf, and so is an object under
-- a key that is known as a whole.
local function leaves(object, prefix, known, see)
  local keys = {}
  for key in pairs(object) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, key in ipairs(keys) do
    local path, value = prefix .. tostring(key), object[key]
    local nested = type(value) == "table" and value[1] == nil and next(value) ~= nil
    if nested and not known(path) then leaves(value, path .. ".", known, see) else see(path, value) end
  end
end

-- The problem with a key's value, in words, and the option that would match; nil: none. row: {key, value, option,
-- words}. value: what it must be; a function(theirs) that says whether it will do; nil: any will.
local function problem_of(row, theirs)
  local wanted = row[2]
  if wanted == nil then return nil end
  if type(wanted) == "function" then
    if wanted(theirs) then return nil end
    return ("%s is %s there; wanted: %s"):format(row[1], shown(theirs), row[4])
  end
  if same(theirs, wanted) then return nil end
  local option = row[3] and type(theirs) ~= "table" and row[3] .. "=" .. recipes.value_text(theirs)
  return ("%s is %s there and %s here"):format(row[1], shown(theirs), recipes.value_text(wanted)), option
end

local function listed(words)
  if #words <= MOST_LISTED then return table.concat(words, "\n  ") end
  return table.concat({ unpack(words, 1, MOST_LISTED) }, "\n  ") .. ("\n  and %d more"):format(#words - MOST_LISTED)
end

-- Ends the command where the config.json beside the weight file `path` says that it is of another model than the
-- recipe's, or says what the recipe has no word for. family: only whether model_type is one of the recipe's.
function model_config.check(run, path, family, text)
  if not run.recipe.config then return end
  local beside = text and path or (path:match("^(.*/)[^/]*$") or "") .. "config.json"
  if not posix.is_there(beside) then return end
  local ok, config = pcall(decode, text or files.read(beside, "--init", MOST_BYTES))
  if not ok or type(config) ~= "table" then
    fail.input(("--init: %s, which lies next to the weights, is no JSON object%s; put it right or elsewhere"):format(
      beside, ok and "" or ": " .. unicode.shown(tostring(config))))
  end
  local rows, by_key, strict = run.recipe.call("config", run.o), {}, false
  for _, row in ipairs(rows) do
    by_key[row[1]] = row
    strict = strict or row[1] == "model_type"
  end
  local of_family = by_key.model_type and config.model_type ~= nil and
    problem_of(by_key.model_type, config.model_type)
  if of_family then fail.input(("--init: %s says that this is another model:\n  %s"):format(beside, of_family)) end
  if family then return end
  local problems, options, unknown, seen = {}, {}, {}, {}
  if type(config.quantization_config) == "table" then problems[1] = quantised.problem(config.quantization_config) end
  local function known(key) return by_key[key] or HARMLESS[key] or FIXED[key] ~= nil end
  local function see(key, value)
    seen[key] = true
    local row = by_key[key] or FIXED[key] ~= nil and FIXED[key] ~= "any" and { key, FIXED[key] }
    if row then
      local problem, option = problem_of(row, value)
      problems[#problems + 1], options[#options + 1] = problem, option
    elseif strict and not known(key) and not (type(value) == "table" and next(value) == nil) then
      unknown[#unknown + 1] = ("%s (%s)"):format(unicode.shown(key), shown(value))
    end
  end
  leaves(config, "", known, see)
  for _, row in ipairs(rows) do  -- what a file does not say has the default of the program that wrote it
    local default = row.default
    if default ~= nil and not seen[row[1]] and not (row.unless and seen[row.unless]) then
      local problem, option = problem_of(row, default)
      problems[#problems + 1] = problem and problem:gsub(" there and ", " there, by default, and ")
      options[#options + 1] = option
    end
  end
  if #unknown > 0 then
    problems[#problems + 1] = ("the recipe knows nothing of: %s; a key that changes nothing in this model may be " ..
      "taken out of the file"):format(table.concat(unknown, ", "))
  end
  if #problems > 0 then
    fail.input(("--init: %s says that this is another model:\n  %s%s"):format(beside, listed(problems),
      #options > 0 and "\n  options that match it: " .. table.concat(options, " ") or ""))
  end
end

return model_config
