-- The run directory: step-00000010, step-00000020 ..., of which the newest few and the best are kept; and what a
-- checkpoint tells of its run.
local args = require "cli.base.args"
local adapters = require "cli.recipe.adapters"
local base = require "cli.checkpoint.base"
local cairn = require "cairn"
local bundle = require "cli.checkpoint.bundle"
local effective = require "cli.train.effective"
local fail = require "cli.base.fail"
local json = require "cli.base.json"
local parameters = require "cli.recipe.parameters"
local posix = require "cli.base.posix"
local precision = require "cli.recipe.precision"
local recipes = require "cli.recipe.load"
local settings = require "cli.checkpoint.settings"
local unicode = require "cli.base.unicode"

local checkpoints = {}

-- Statuses of a checkpoint in whose place an older one is taken.
local FALL_BACK = { CORRUPT_FILE = true, IO = true, NOT_FOUND = true }
local KEPT = 2  -- newest checkpoints, unless --keep says otherwise
local MOST_RECIPE_BYTES = 2 ^ 20  -- of one value in a checkpoint

function checkpoints.steps(directory)
  local found = {}
  for _, name in ipairs(posix.list(directory) or {}) do
    if name:match("^step%-%d+$") then found[#found + 1] = name end
  end
  table.sort(found, function(a, b) return tonumber(a:match("%d+$")) < tonumber(b:match("%d+$")) end)
  return found
end

-- What a run's checkpoints will hold beside its state. Fails, before anything is trained, if it could not be saved.
function checkpoints.prepare(run)
  local text = run.recipe.text
  if #text > MOST_RECIPE_BYTES or text:find("%z") then
    fail.input(("%s: its text is kept in checkpoints: at most %d bytes, and no byte 0"):format(run.recipe.path,
      MOST_RECIPE_BYTES))
  end
  run.bundle = bundle.make(run.recipe, run.o, run.graph)
end

-- Where files lie while they are copied into a checkpoint.
local function staging(out) return out .. "/.saving" end

-- Writes what a save will copy, and removes it: what fails at the end of a run should fail at its beginning.
function checkpoints.rehearse(run, out)
  bundle.with_files(run.bundle, staging(out), function() return true end)
end

-- Removes older checkpoints than the newest `keep`, but for the best and those in `kept` (by path; optional). What
-- cannot be removed (a link, say) stays, and is told of once.
local told = {}
local function prune(out, newest, keep, best, note, kept)
  local paths = {}
  for _, name in ipairs(checkpoints.steps(out)) do
    local path = out .. "/" .. name
    if posix.readable(path .. "/manifest.cairn") then paths[#paths + 1] = path end
  end
  for i = 1, #paths - keep do
    local ok, err = true
    local stays = paths[i] == newest or paths[i] == best or kept and kept[paths[i]]
    if not stays then ok, err = cairn.remove_checkpoint(paths[i]) end
    if not ok and note and not told[paths[i]] then
      told[paths[i]] = true
      note("note: an older checkpoint was not deleted: " .. tostring(err))
    end
  end
end

-- Where a run saves after a step.
function checkpoints.path(out, step) return ("%s/step-%08d"):format(out, step) end

local known_devices  -- devices are not looked for at every checkpoint
local function info_of(spec)
  if not known_devices then
    known_devices = {}
    for _, info in ipairs(fail.check("devices", cairn.devices())) do known_devices[info.name] = info end
  end
  return known_devices[spec.options.device or "cpu"]
end

-- Of a CPU the instruction set that its bits depend on, by the name that CAIRN_ISA takes; nil elsewhere.
function checkpoints.isa(spec)
  local info = (spec.options.device or "cpu") == "cpu" and info_of(spec)
  return info and info.isa or nil
end

-- How many threads a run computes with, as a text: those it was given, or all processors; nil: not known.
function checkpoints.threads(spec)
  local info = not spec.options.threads and info_of(spec)
  local count = spec.options.threads or info and info.threads or 0
  return count > 0 and ("%d"):format(count) or nil
end

-- Saves a run; removes checkpoints that are neither among the newest (--keep) nor the best. Returns the new directory.
function checkpoints.save(run, out)
  local report = fail.check("save", run.stepper:report())
  local spec, tokenizer = run.spec, run.data.tokenizer
  local metadata = {
    ["recipe"] = run.recipe.built_in and run.recipe.name or posix.real_path(run.recipe.path) or run.recipe.path,
    ["recipe.text"] = run.recipe.text,
    ["seed"] = ("%d"):format(spec.seed), ["accumulate"] = ("%d"):format(spec.accumulate),
    ["amp"] = spec.options.amp or "off", ["steps"] = ("%d"):format(spec.steps),
    ["device"] = spec.options.device or "cpu", ["data.content"] = run.data.content,
    ["next_batch"] = ("%d"):format(run.next_batch * run.joined), ["cairn"] = cairn.version(),
    ["isa"] = checkpoints.isa(spec),
  }
  if (spec.parts or 1) > 1 then metadata["parts"] = ("%d"):format(spec.parts) end
  if spec.options.amp_rules then metadata["amp.rules"] = precision.text(spec.options.amp_rules) end
  metadata["formats"] = parameters.metadata(spec.options.formats)
  metadata["adapter"] = adapters.text(run.o, run.graph, run.recipe)
  local source = run.source or {}
  metadata["model.directory"], metadata["model.dtype"] = source.directory, source.dtype ~= "f32" and source.dtype or nil
  if spec.options.threads then metadata["threads"] = ("%d"):format(spec.options.threads) end
  metadata["threads.effective"] = checkpoints.threads(spec)
  settings.write(spec.settings or {}, metadata)
  for name, value in pairs(spec.o) do
    if name == "data" and value ~= "random" then value = posix.real_path(value) or value end
    if not effective.TOLD[name] then
      metadata["option." .. name] = recipes.value_text(value)
    end
  end
  local read = {}
  for path, content in pairs(run.files) do read[#read + 1] = json.array { json.bytes(path), content } end
  if #read > 0 then metadata["files"] = json.encode(json.array(read)) end
  local sums = run.sums:text()
  if sums ~= "" then metadata["metrics"] = sums end
  local directory = checkpoints.path(out, report.step)
  local without = base.is_left_out(run)
  if without then base.write(run, metadata) end
  bundle.with_files(run.bundle, staging(out), function(files, about)
    for key, value in pairs(about) do metadata[key] = value end
    if tokenizer then
      metadata["tokenizer"] = tokenizer.kind
      metadata["tokenizer.file"] = tokenizer.file
    end
    return fail.check("save", run.stepper:save(directory, metadata, files, { without_frozen = without }))
  end, tokenizer)
  prune(out, directory, spec.options.keep or KEPT, run.best, spec.note, run.kept)
  return directory
end

-- Opens a checkpoint whose tensors have their digests, too; nil, err.
local function whole(path)
  local checkpoint, err = cairn.checkpoint(path)
  if not checkpoint then return nil, err end
  local verified, problem = checkpoint:verify()
  if verified then return checkpoint end
  checkpoint:free()
  return nil, problem
end

-- The newest whole checkpoint below a directory of them, and rows {directory, why} of newer ones, which are not.
local function newest(path)
  local names, damaged = checkpoints.steps(path), {}
  for i = #names, 1, -1 do
    local directory = path:gsub("/+$", "") .. "/" .. names[i]
    local checkpoint, err = whole(directory)
    if checkpoint then return checkpoint, damaged end
    if not FALL_BACK[err.status] then fail.check(path, nil, err) end
    damaged[#damaged + 1] = { directory = directory, why = tostring(err) }
  end
  return nil, damaged
end

-- Opens the newest whole checkpoint below a directory: {checkpoint, directory, text(key), option(name),
-- number(key, otherwise), damaged (rows of newest)}. Newer ones that cannot be read are named on stderr.
function checkpoints.open(path)
  local checkpoint, damaged
  if posix.is_there(path .. "/manifest.cairn") then damaged = {} else checkpoint, damaged = newest(path) end
  if not checkpoint then
    local err
    checkpoint, err = cairn.checkpoint(path)
    if checkpoint and #damaged > 0 then fail.input(damaged[1].why .. "; no older checkpoint is complete") end
    fail.check(path, checkpoint, err)
  end
  local self = { checkpoint = checkpoint, directory = checkpoint:directory(), damaged = damaged }
  for _, row in ipairs(self.damaged) do
    io.stderr:write(("cairn: warning: %s is damaged and passed over for the older %s: %s\n"):format(row.directory,
      self.directory, row.why))
  end
  function self.text(key) return checkpoint:metadata(key) end
  function self.option(name) return checkpoint:metadata("option." .. name) end
  function self.number(key, otherwise)
    local text = self.text(key)
    if not text then return otherwise end
    local value, problem = args.whole_of(text, args.BOUNDS[key])
    if not value then
      fail.input(("%s is damaged: its %s '%s' %s"):format(self.directory, key, unicode.shown(text), problem))
    end
    return value
  end
  return self
end

-- The first line in which two texts differ.
local function first_difference(a, b)
  local line, at = 1, 1
  while true do
    local to_a, to_b = a:find("\n", at, true) or #a + 1, b:find("\n", at, true) or #b + 1
    if a:sub(at, to_a) ~= b:sub(at, to_b) or to_a > #a then return line end
    line, at = line + 1, to_a + 1
  end
end

-- The recipe that a checkpoint was trained with. What a checkpoint says never picks the file that runs, for it may come
-- from a stranger: `named` is what the user gave on the command line; without it only a recipe that comes with cairn
-- is taken, by its name. A file whose text is not the recorded one is refused before it runs, unless the user says that
-- it was changed. note(message) is told of what is worth a word.
function checkpoints.recipe(opened, root, named, changed, note)
  local recorded, stored = opened.text("recipe"), opened.text("recipe.text")
  if not named then
    if not recorded then fail.input(opened.directory .. " was not saved by `cairn train`: it names no recipe") end
    if not recipes.built_in(recorded, root) then
      fail.input(("%s was trained with the recipe '%s', which does not come with cairn (%s do), and a checkpoint " ..
        "never says what runs: look at that file, then name it as --recipe FILE"):format(opened.directory,
        unicode.shown(recorded), recipes.known(root)))
    end
  end
  return recipes.load(named or recorded, root, function(path, text, built_in)
    if text == stored then return end
    if not stored then
      return note(("note: %s holds no recipe to compare %s with"):format(opened.directory, path))
    end
    local line = first_difference(stored, text)
    if changed or (built_in and recipes.built_in(recorded or "", root) == path) then
      return note(("note: %s is not the text that %s was trained with: line %d differs"):format(path, opened.directory,
        line))
    end
    fail.input(("%s is not the text that %s was trained with%s: line %d differs, and nothing of it was run; give " ..
      "the recipe as it was, or --recipe-changed if the change is meant"):format(path, opened.directory,
      recorded and recorded ~= named and (", the recipe '%s'"):format(unicode.shown(recorded)) or "", line))
  end)
end

-- Option values of a checkpoint's run. What it holds is checked like what a user gives.
function checkpoints.options(opened, recipe)
  local ok, result = pcall(recipes.resolve, recipe, {}, opened.option, true)
  if ok then return result end
  if not fail.is(result) then error(result, 0) end
  fail.input(("%s holds an option that %s does not take: %s"):format(opened.directory, recipe.path,
    unicode.shown(result.message)))
end

-- The file of the vocabulary that a model was trained with; nil: its tokens are bytes, or it has none.
function checkpoints.vocabulary(opened)
  local kind, file = opened.text("tokenizer"), opened.text("tokenizer.file")
  if kind == nil or kind == "bytes" then return nil end
  if kind ~= "bpe" and kind ~= "pretrained" then
    fail.input(("%s is damaged: its tokenizer is '%s', none of bytes, bpe, pretrained"):format(opened.directory,
      unicode.shown(kind)))
  end
  if not file or file:find("/", 1, true) then fail.input(opened.directory .. ": its tokenizer has no file") end
  return opened.directory .. "/" .. file
end

-- The tokenizer a model was trained with.
function checkpoints.tokenizer(opened)
  local kind = opened.text("tokenizer")
  if not kind then fail.input(opened.directory .. " was not trained on text: it has no tokenizer") end
  return fail.check("tokenizer", cairn.tokenizer(kind, checkpoints.vocabulary(opened)))
end

return checkpoints
