-- run.json: what a run was started with, for --config, which replays it:
--   {"form": "cairn.run/1", "recipe": "gpt2", "options": {"layers": 2, ...}, "arguments": {"steps": 100, ...}}
-- options: the recipe's, key=value on the command line; arguments: those that begin with --.
local args = require "cli.base.args"
local cairn = require "cairn"
local decode = require "cli.base.json_decode"
local directory = require "cli.model.directory"
local fail = require "cli.base.fail"
local json = require "cli.base.json"
local lengths = require "cli.recipe.lengths"
local nearest = require "cli.base.nearest"
local posix = require "cli.base.posix"
local recipes = require "cli.recipe.load"
local unicode = require "cli.base.unicode"

local config = {}

local FORM = "cairn.run/1"
local MOST_BYTES = 2 ^ 20
local KEYS = { "form", "cairn", "recipe", "options", "arguments" }
-- Of one call of the command, and not of the run.
local OF_THE_CALL = { out = true, resume = true, config = true, force = true, json = true, quiet = true, recipe = true,
                      epochs = true, ["max-time"] = true, ["no-color"] = true, ["dry-run"] = true,
                      mlflow = true,
                      ["recipe-changed"] = true }
local PATHS = { data = true, eval_data = true, init = true, profile = true }

local function sorted_keys(list)
  local keys = {}
  for key in pairs(list) do keys[#keys + 1] = tostring(key) end
  table.sort(keys)
  return keys
end

-- A file's name as one that holds wherever the command is called.
local function absolute(name, value)
  return PATHS[name] and value ~= "random" and value ~= "" and posix.real_path(value) or value
end

-- A value whose bytes are kept, whatever they are: names of files need not be UTF-8.
local function exact(value) return type(value) == "string" and json.bytes(value) or value end

-- Runs read(), whose refusal of what is in the file at `path` is bad input of that file.
local function inside(path, read)
  local ok, result, more, rest, texts = pcall(read)
  if ok then return result, more, rest, texts end
  if not fail.is(result) then error(result, 0) end
  fail.input(("%s: %s"):format(path, result.message))
end

-- Whether `value` is texts in a list, and `row` an option that may be given several times.
local function is_texts(value, row)
  if not (row and args.LISTS[row[1]]) then return false end
  for key, text in pairs(value) do
    if type(key) ~= "number" or key > #value or type(text) ~= "string" then return false end
  end
  return #value > 0
end

-- What a file's text says: {path, recipe, options (parsed, by name), texts, settings ({key, text} pairs)}. known: the
-- command's options.
function config.parse(path, text, known, usage)
  local ok, read = pcall(decode, text)
  if not ok or type(read) ~= "table" then
    fail.input(("--config: %s is no JSON object%s"):format(path, ok and "" or ": " .. tostring(read)))
  end
  for _, key in ipairs(sorted_keys(read)) do
    local there = false
    for _, name in ipairs(KEYS) do there = there or name == key end
    if not there then
      fail.input(("%s: unknown key '%s'%s (known: %s)"):format(path, unicode.shown(key), nearest.hint(key, KEYS),
        table.concat(KEYS, " ")))
    end
  end
  if read.form ~= nil and read.form ~= FORM then
    fail.input(("%s: its form is '%s'; wanted: %s"):format(path, unicode.shown(tostring(read.form)), FORM))
  end
  for _, key in ipairs { "options", "arguments" } do
    local list = read[key] == nil and {} or read[key]
    if type(list) ~= "table" then fail.input(("%s: %s is a %s; wanted: an object"):format(path, key, type(list))) end
    for _, name in ipairs(sorted_keys(list)) do
      if type(list[name]) == "table" and not is_texts(list[name], key == "arguments" and known[name])
          or list[name] == nil then
        fail.input(("%s: %s: '%s' is no text, number or boolean"):format(path, key, unicode.shown(name)))
      end
    end
    read[key] = list
  end
  if read.recipe ~= nil and type(read.recipe) ~= "string" then fail.input(path .. ": recipe is no text") end
  local list, allowed = {}, {}
  for name, row in pairs(known) do allowed[name] = not OF_THE_CALL[name] and row or nil end
  for _, name in ipairs(sorted_keys(read.arguments)) do
    local value = read.arguments[name]
    if not allowed[name] then
      fail.input(("%s: arguments: unknown '%s'%s; wanted: options of a run without --, as steps"):format(path,
        unicode.shown(name), nearest.hint(name, sorted_keys(allowed))))
    end
    if value == true then
      list[#list + 1] = "--" .. name
    elseif type(value) == "table" then
      for _, each in ipairs(value) do list[#list + 1] = ("--%s=%s"):format(name, each) end
    elseif value ~= false then
      list[#list + 1] = ("--%s=%s"):format(name, recipes.value_text(value))
    end
  end
  local options, _, _, texts = inside(path, function() return args.parse(list, allowed, usage) end)
  local settings = {}
  for _, name in ipairs(sorted_keys(read.options)) do
    if not lengths.follows(name, read.options[name], read.options.lengths) then
      settings[#settings + 1] = { name, recipes.value_text(read.options[name]), file = true }
    end
  end
  return { path = path, recipe = read.recipe, options = options, texts = texts, settings = settings }
end

function config.read(path, known, usage)
  local text, problem = posix.read_file(path, MOST_BYTES)
  if not text then fail.input("--config: " .. problem) end
  return config.parse(path, text, known, usage)
end

-- The options of a command line that begins with a file's: what is given counts. Where nothing is saved, how often
-- says nothing.
function config.merge(file, options, texts)
  local saves = options.out or options.resume
  for key, value in pairs(file.options) do
    if options[key] == nil and (saves or key ~= "save_every") then options[key] = value end
  end
  for name, text in pairs(file.texts) do
    if texts[name] == nil then texts[name] = text end
  end
end

-- The recipe to load. As with a checkpoint, what a file says never picks a program that runs: without a name on the
-- command line only a recipe that comes with cairn is taken.
function config.recipe(file, named, root)
  if named then return named end
  if not file.recipe then
    fail.usage(("%s names no recipe; give one: cairn train RECIPE --config FILE"):format(file.path))
  end
  if directory.is(file.recipe) then return file.recipe end  -- a model's directory is data
  if not recipes.built_in(file.recipe, root) then
    fail.input(("%s is of the recipe '%s', which does not come with cairn (%s do), and a file never says what runs: " ..
      "look at the recipe, then name it: cairn train FILE --config %s"):format(file.path, unicode.shown(file.recipe),
      recipes.known(root), file.path))
  end
  return file.recipe
end

-- Ends the command if the recipe does not take the file's options.
function config.check(file, recipe)
  inside(file.path, function() return recipes.resolve(recipe, file.settings, nil, true) end)
end

local function texts_of(list)
  local all = {}
  for i, text in ipairs(list) do all[i] = exact(text) end
  return all
end

-- The text of a run's file. texts: what was given on the command line, by name.
function config.text(spec, texts)
  local options, arguments = {}, {}
  for _, row in ipairs(spec.recipe.rows) do
    options[#options + 1] = { row[1], exact(absolute(row[1], spec.o[row[1]])) }
  end
  local given = { seed = spec.seed, steps = spec.steps, accumulate = spec.accumulate }
  for name, text in pairs(texts) do
    if given[name] == nil and not OF_THE_CALL[name] then
      given[name] = type(text) == "table" and json.array(texts_of(text)) or absolute(name, text)
    end
  end
  for _, name in ipairs(sorted_keys(given)) do
    local value = given[name]
    local number = type(value) == "string" and tonumber(value)
    if number and recipes.value_text(number) == value then value = number end
    arguments[#arguments + 1] = { name, exact(value) }
  end
  local recipe = spec.recipe
  return json.pretty(json.encode(json.object {
    { "form", FORM }, { "cairn", cairn.version() },
    { "recipe", exact(recipe.directory and recipe.directory.path or recipe.built_in and recipe.name
      or posix.real_path(recipe.path) or recipe.path) },
    { "options", json.object(options) }, { "arguments", json.object(arguments) },
  })) .. "\n"
end

return config
