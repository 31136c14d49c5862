-- The run directory: step-00000010, step-00000020 ..., the newest two kept; and what a checkpoint tells of its run.
local cairn = require "cairn"
local fail = require "cli.fail"
local posix = require "cli.posix"
local recipes = require "cli.recipe"

local checkpoints = {}

local KEPT = 2

function checkpoints.steps(directory)
  local found = {}
  for _, name in ipairs(posix.list(directory) or {}) do
    if name:match("^step%-%d+$") then found[#found + 1] = name end
  end
  return found
end

-- Removes older checkpoints than the newest two. What cannot be removed (a link, say) stays, and is told of once.
local told = {}
local function prune(out, newest, note)
  local paths = {}
  for _, name in ipairs(checkpoints.steps(out)) do
    local path = out .. "/" .. name
    if posix.readable(path .. "/manifest.cairn") then paths[#paths + 1] = path end
  end
  for i = 1, #paths - KEPT do
    local ok, err = true
    if paths[i] ~= newest then ok, err = cairn.remove_checkpoint(paths[i]) end
    if not ok and note and not told[paths[i]] then
      told[paths[i]] = true
      note("note: an older checkpoint stays: " .. tostring(err))
    end
  end
end

-- Saves a run; removes older checkpoints than the newest two. Returns the new directory.
function checkpoints.save(run, out)
  local report = fail.check("save", run.stepper:report())
  local spec, tokenizer = run.spec, run.data.tokenizer
  local metadata = {
    ["recipe"] = run.recipe.built_in and run.recipe.name or posix.real_path(run.recipe.path) or run.recipe.path,
    ["recipe.text"] = run.recipe.text,
    ["seed"] = ("%d"):format(spec.seed), ["accumulate"] = ("%d"):format(spec.accumulate),
    ["amp"] = spec.options.amp or "off", ["steps"] = ("%d"):format(spec.steps),
    ["next_batch"] = ("%d"):format(run.next_batch), ["cairn"] = cairn.version(),
  }
  if spec.options.threads then metadata["threads"] = ("%d"):format(spec.options.threads) end
  for name, value in pairs(run.o) do
    if name == "data" and value ~= "random" then value = posix.real_path(value) or value end
    metadata["option." .. name] = recipes.value_text(value)
  end
  local files = {}
  if tokenizer then
    metadata["tokenizer"] = tokenizer.kind
    if tokenizer.file then
      files[1] = tokenizer.file
      metadata["tokenizer.file"] = tokenizer.file:match("([^/]+)$")
    end
  end
  local directory = ("%s/step-%08d"):format(out, report.step)
  fail.check("save", run.stepper:save(directory, metadata, files))
  prune(out, directory, spec.note)
  return directory
end

-- Opens the newest checkpoint below a directory: {checkpoint, directory, recipe, text(key), option(name)}.
-- recipe_name: instead of the one it was trained with.
function checkpoints.open(path, root, recipe_name, note)
  local checkpoint = fail.check(path, cairn.checkpoint(path))
  local self = { checkpoint = checkpoint, directory = checkpoint:directory() }
  function self.text(key) return checkpoint:metadata(key) end
  function self.option(name) return checkpoint:metadata("option." .. name) end
  function self.number(key, otherwise) return tonumber(self.text(key) or "") or otherwise end
  local name = recipe_name or self.text("recipe")
  if not name then fail.input(self.directory .. " was not saved by `cairn train`: it names no recipe") end
  -- Files below the checkpoint are data and never run: a checkpoint may come from a stranger.
  local real, inside = posix.real_path(name), posix.real_path(self.directory)
  if not recipe_name and real and inside and real:sub(1, #inside) == inside then
    fail.input(("%s names a recipe inside itself (%s); look at it, then give it as --recipe"):format(path, name))
  end
  self.recipe = recipes.load(name, root)
  if note and not recipe_name and self.text("recipe.text") ~= self.recipe.text then
    note(("note: %s is not the text this model was trained with"):format(self.recipe.path))
  end
  return self
end

-- The tokenizer a model was trained with.
function checkpoints.tokenizer(opened)
  local kind, file = opened.text("tokenizer"), opened.text("tokenizer.file")
  if not kind then fail.input(opened.directory .. " was not trained on text: it has no tokenizer") end
  local path
  if kind == "bpe" then
    if not file or file:find("/", 1, true) then fail.input(opened.directory .. ": its tokenizer has no file") end
    path = opened.directory .. "/" .. file
  end
  return fail.check("tokenizer", cairn.tokenizer(kind, path))
end

return checkpoints
