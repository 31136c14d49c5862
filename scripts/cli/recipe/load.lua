-- Recipes: finding, loading, options.
--
-- A recipe is a Lua file that returns a table:
--   options   = { { "layers", 4, "blocks", whole = true, least = 1 }, ... }  names, defaults, words for help
--   model     = function(o, graph, purpose) ... return { loss =, weight = } end
--                                                                            builds the graph for "training" or
--                                                                            "evaluation"
--   dataset   = function(o, run) ... return { batch = function(index) ... end, batches = of an epoch } end
--   training  = { steps = 100, rate = 3e-4, ... }                            defaults of the training options below
--   generator = function(o, graph) ... return { outputs = { logits } } end   optional: one token at a time
--   texts     = function(o, graph, shape) return { outputs = { logits } } end
--                                                                            optional: the same with caches; shape:
--                                                                            {samples, length, rows, dtype}, as
--                                                                            cairn.generator wants programs
--   begins    = function(o) return { first =, last = } end                   optional: the generator reads a source,
--                                                                            too, source[1, n] and source_lengths[1];
--                                                                            tokens that begin and end every text
--   predictor = function(o, graph) return { outputs = { name = value } } end  optional: rows in, answers out
--   settle    = function(o, run) return { option = value } end               optional: option values that data say
--   names     = function(o) return { { ours, theirs, transposed }, ... } end optional: Hugging Face names;
--                                                                            fourth, stacked: see Session:import
--   check     = function(o) ... return "what is wrong" or nothing end         optional: options that do not go together
--   config    = function(o) return { { key, value, option }, ... } end       optional: what config.json must say
--   hf_config = function(o) return { model_type =, ... } end                 optional: config.json of an exported model
--   fresh     = function(o) return { "pattern", ... } end                    optional: parameters that files may lack
--   no_texts  = "why"                                                        optional: the generator writes no texts
--   unused    = function(o) return { "pattern", ... } end                    optional: tensors of files not needed
--   programs  = function(o, run) return { { name, length, o }, ... } end     optional: several graphs on the same
--                                                                            parameters, by their option values;
--                                                                            batch(index) then returns, third, the
--                                                                            number of its program
--   evaluation = function(o, run) return { o = values, data = function() return { batch =, batches = } end } end
--                                                                            optional: what to evaluate with; nothing:
--                                                                            these options ask for no evaluation
--   groups    = function(o) return { { pattern = "*.bias", rate_scale = 2 } } end
--                                                                            optional: parameters by name, with an
--                                                                            optimizer or hyper-parameters of their own
--   amp_rules = function(o) return { { op = "softmax", region = "h0", class = "full" } } end
--                                                                            optional: ops with a precision of their
--                                                                            own under --amp; the last match counts
--   frozen, blocks                                                           optional: cli.recipe.parameters
--   on_step   = function(row) ... end                                        optional: called after each whole step
--   fit       = function(shapes, o) return { { option, value }, ... } end    optional: what a weight file asks for
-- batch(index) returns a table of arrays by input name, and how many tokens (or samples) they hold. What model returns
-- may have `metrics` (cli.train.metrics).
local cairn = require "cairn"
local adapters = require "cli.recipe.adapters"
local aliases = require "cli.base.aliases"
local args = require "cli.base.args"
local check = require "cli.recipe.check"
local core = require "cairn.core"
local directory = require "cli.model.directory"
local fail = require "cli.base.fail"
local files = require "cli.base.files"
local format = require "cli.base.format"
local hypers = require "cli.recipe.hypers"
local lengths = require "cli.recipe.lengths"
local native = require "cli.native"
local nearest = require "cli.base.nearest"
local parameters = require "cli.recipe.parameters"
local posix = require "cli.base.posix"
local precision = require "cli.recipe.precision"
local schedule = require "cli.recipe.schedule"
local screen = require "cli.base.screen"
local settle = require "cli.recipe.settle"
local unicode = require "cli.base.unicode"

local recipe = {}

local function names_of(rows)
  local names = {}
  for i, row in ipairs(rows) do names[i] = row.name end
  return names
end

-- Options of every recipe, with defaults that its `training` may change.
local TRAINING = schedule.rows()
local function add(...)
  for _, row in ipairs { ... } do TRAINING[#TRAINING + 1] = row end
end
add({ "optimizer", "adamw", "`cairn ops --optimizers` says what each does", choices = names_of(cairn.optimizers()) },
  { "parameters", "f32", "weights are stored as; with --amp bf16 also bf16: half the bytes, rounded stochastically; "
    .. "split: f32 as its bf16 and the 16 bits below, without copies in bf16", choices = { "f32", "bf16", "split" } })
add(unpack(hypers.rows))
add({ "ema", 0, "decay of averages of the parameters, which move after every update by 1 - ema towards them, " ..
  "such as 0.999; --ema of other commands takes them; 0: none", least = 0, below = 1 })
add(unpack(adapters.options))
add({ "otherwise_rate", 0, "of parameters that an optimizer leaves to another, as Muon to AdamW; 0: rate", least = 0,
  most = 1e38 })
add({ "save_frozen", "auto", "whether checkpoints hold the frozen parameters, or name the base that they come from; " ..
  "auto: a run with lora= leaves them out", choices = { "auto", "true", "false" } })
for _, setting in ipairs(cairn.settings("stepper")) do
  if setting.name == "clip_norm" then add(check.row(setting, "clip")) end
  if setting.name:find("^loss_scale") then add(check.row(setting)) end
end
-- Of every recipe that has a batch.
local GLOBAL_BATCH = { "global_batch", 0, "samples of a step: batch times --accumulate; 0: not stated. batch=auto " ..
  "chooses among its divisors", whole = true, least = 0, most = 2 ^ 31 - 1 }
recipe.DEFAULT_STEPS = 100
local LONGEST_SHOWN = 60  -- characters of a default
for _, row in ipairs(TRAINING) do aliases.SETTINGS[row[1]] = true end

-- Where a function of a recipe begins, as "file:line". A call in tail position leaves no line of its own.
local function place_of(path, fn)
  local info = debug.getinfo(fn, "S")
  return info.source == "@" .. path and ("%s:%d"):format(path, math.max(info.linedefined, 1)) or path
end
recipe.place_of = place_of

-- Calls a function of a recipe. An error ends the command with the recipe's file and line. While it runs, the first
-- signal stops it: the command then ends as interrupted.
local function guarded(path, fn, ...)
  native.enter()
  local function explain(problem)
    if fail.is(problem) then return problem end
    local text = tostring(problem)
    if text:sub(1, #path) == path and text:find("^:%d+: ", #path + 1) then return text end
    for level = 2, 40 do
      local info = debug.getinfo(level, "Sl")
      if not info then break end
      if info.source == "@" .. path then
        text = text:gsub("^[^\n]-%.lua:%d+: ", "")
        return ("%s:%d: %s"):format(path, info.currentline, text)
      end
    end
    if text:find(path, 1, true) then return text end
    return place_of(path, fn) .. ": " .. text:gsub("^[^\n]-%.lua:%d+: ", "")
  end
  local before = core.on_error
  core.on_error = explain
  local results = { screen.plainly(xpcall, fn, explain, ...) }
  core.on_error = before
  if native.leave() then fail.interrupted(path) end
  if results[1] then return unpack(results, 2, table.maxn(results)) end
  if fail.is(results[2]) then error(results[2], 0) end
  local memory = fail.is_no_memory(results[2])
  fail.with(memory and 4 or 3, results[2] == "not enough memory" and ("%s: %s"):format(place_of(path, fn), results[2])
    or results[2])
end

local function readable(path)
  local found = posix.look(path)
  return found ~= nil and not found.kind and posix.readable(path)
end

-- Path of the recipe of that name in the installation; nil if none of that name comes with cairn.
function recipe.built_in(name, root)
  if not name:match("^[%w_%-]+$") then return nil end
  local path = ("%s/scripts/recipes/%s.lua"):format(root, name)
  return readable(path) and path or nil
end

-- Names of the recipes that come with cairn.
function recipe.known(root)
  local known = {}
  for _, file in ipairs(posix.list(root .. "/scripts/recipes") or {}) do
    known[#known + 1] = file:match("^(.*)%.lua$")
  end
  return table.concat(known, " ")
end

-- Path of a recipe: a plain name is one that comes with cairn wherever there is one, anything else a file.
function recipe.find(name, root)
  local built_in = recipe.built_in(name, root)
  if built_in and readable(name .. ".lua") then
    io.stderr:write(("note: '%s' is the recipe that comes with cairn; the file here is ./%s.lua\n"):format(name, name))
  end
  local folder = root .. "/scripts/recipes/"
  for _, path in ipairs { built_in or name, name, name .. ".lua", folder .. name } do
    if readable(path) then return path end
  end
  if posix.no_file(name) == "a directory" then fail.input(directory.problem(name)) end
  files.check(name, "recipe")
  local known = recipe.known(root)
  local names = {}
  for each in known:gmatch("%S+") do names[#names + 1] = each end
  -- A path is a file that is not there; a name is a word that was mistyped.
  fail.with(name:find("[/.]") and 3 or 2, ("there is no recipe '%s'%s (a Lua file, or one of: %s)"):format(
    unicode.shown(name), nearest.hint(name, names), known))
end

-- Modules that a recipe requires are the installation's, or lie beside the recipe.
local function search_beside(path)
  local folder = (posix.real_path(path) or path):match("^(.*)/[^/]*$")
  if not folder or folder:find("[;?]") then return end
  package.path = ("%s;%s/?.lua"):format(package.path, folder)
end

-- Gives a recipe of directories what a model's directory says: the defaults of its options.
local function adopt(self, model)
  local architecture = require "families.parts.architecture"
  local a, says = architecture.of(model.text, model.name)
  local defaults = { model = model.text, model_name = model.name,
                     tied = tostring(directory.tied(model, a, says)) }
  for name, value in pairs(a.options or {}) do defaults[name] = value end
  local rows = {}
  for i, row in ipairs(self.options) do
    rows[i] = {}
    for key, value in pairs(row) do rows[i][key] = value end
    if defaults[row[1]] ~= nil then rows[i][2] = defaults[row[1]] end
  end
  self.options, self.directory = rows, model
end

-- approve(path, text, built_in), optional, is asked before anything of the recipe runs, and ends the command if it must
-- not.
function recipe.load(name, root, approve)
  local model = not recipe.built_in(name, root) and directory.is(name) and directory.open(name) or nil
  local path = recipe.find(model and require("families.parts.config").recipe(model.text) or name, root)
  local text = files.read(path, "recipe")
  local built_in = path == recipe.built_in(path:match("([^/]*)%.lua$") or "", root)
  if approve then approve(path, text, built_in) end
  if not built_in then search_beside(path) end
  local chunk, problem = loadstring(text, "@" .. path)
  if not chunk then fail.input(problem) end
  local self = guarded(path, chunk)
  check.parts(path, self)
  if model then adopt(self, model) end
  self.path, self.text, self.root = path, text, root
  self.name = path:match("([^/]+)%.lua$") or path
  self.built_in = built_in
  self.training = self.training or {}
  local rows, seen = {}, {}
  check.options(path, self.options or {})
  for _, row in ipairs(self.options or {}) do rows[#rows + 1], seen[row[1]] = row, true end
  check.training(path, self.training, TRAINING, seen)
  if seen.batch and not seen.global_batch then rows[#rows + 1] = GLOBAL_BATCH end
  for _, row in ipairs(TRAINING) do
    if not seen[row[1]] then
      local copy = {}
      for key, value in pairs(row) do copy[key] = value end
      if self.training[row[1]] ~= nil then copy[2] = self.training[row[1]] end
      rows[#rows + 1] = copy
    end
  end
  self.rows, self.common = rows, {}  -- common: by name, whether an option is every recipe's and not this one's own
  for _, row in ipairs(TRAINING) do self.common[row[1]] = not seen[row[1]] end
  -- Calls one of the recipe's functions, and looks at what it returns.
  function self.call(part, ...)
    local made = parameters.call(self, part, guarded, adapters.prepare, ...)
    if check.returns[part] then check.returns[part](place_of(path, self[part]), made, ...) end
    return made
  end
  -- Calls a function that one of its parts returned, which makes data.
  function self.call_data(part, fn)
    local made = guarded(path, fn)
    check.returns.dataset(("%s: %s"):format(place_of(path, fn), part), made)
    return made
  end
  function self.guard(fn, ...) return guarded(path, fn, ...) end
  return self
end

local function read_value(row, text)
  local name, default, value = row[1], row[2], text
  if name == "batch" and text == "auto" then return text end
  if type(default) == "boolean" then
    if text ~= "true" and text ~= "false" then fail.usage(("%s=%s; wanted: true or false"):format(name, text)) end
    value = text == "true"
  elseif type(default) == "number" then
    value = tonumber(text)
    if not value then fail.usage(("%s=%s; wanted: a number"):format(name, text)) end
  end
  local problem = check.problem(row, value)
  if problem then fail.usage(("%s=%s; wanted: %s"):format(name, text, problem)) end
  return value
end

-- Option values: defaults, overridden by `saved` (function(name) -> text or nil), overridden by settings {key, text}.
-- joint: the command can do with batch=auto and global_batch (see cli.plan.joint).
function recipe.resolve(self, settings, saved, joint)
  local values, by_name, names, stated = {}, {}, {}, {}
  for _, row in ipairs(self.rows) do
    by_name[row[1]], values[row[1]] = row, row[2]
    names[#names + 1] = row[1]
    local text = saved and (saved(row[1]) or row.before)
    if text then values[row[1]], stated[row[1]] = read_value(row, text), true end
  end
  for _, setting in ipairs(settings) do
    local name, text = setting[1], setting[2]
    if not by_name[name] then
      fail.usage(("%s: unknown option '%s'%s (known: %s)"):format(self.name, name,
        args.setting_hint(name, text, by_name) or nearest.hint(name, names), table.concat(names, " ")))
    end
    values[name], stated[name] = read_value(by_name[name], text), true
    if not joint and (values[name] == "auto" and name == "batch" or by_name[name] == GLOBAL_BATCH) then
      fail.usage(("%s=%s: goes with `cairn plan` and `cairn train`"):format(name, text))
    end
  end
  hypers.settle(self, values, by_name, stated)
  schedule.settle(values, settings, self.common)
  if values.lengths and values.lengths ~= "" then
    if not joint then fail.usage(("lengths=%s: goes with `cairn plan` and `cairn train`"):format(values.lengths)) end
    if values.batch == "auto" then fail.usage("lengths= does not go with batch=auto") end
    lengths.settle(values)
  end
  if values.remainder == "own" and not joint then
    fail.usage("remainder=own: goes with `cairn plan` and `cairn train`")
  end
  local known, defaults = hypers.of(values.optimizer)
  for _, setting in ipairs(settings) do
    for _, name in ipairs(hypers.NAMES) do
      local meant = not setting.file or values[name] ~= by_name[name][2]  -- as run.json states all options
      if setting[1] == name and not defaults[name] and meant then
        fail.usage(("%s=%s: '%s' has no %s; it has: rate %s"):format(name, setting[2], values.optimizer, name,
          table.concat(known, " ")))
      end
    end
  end
  settle(self, values)
  adapters.check(values)
  local wrong = self.check and self.call("check", values)
  if wrong then fail.usage(("%s: %s"):format(self.name, tostring(wrong))) end
  return values
end

-- Text of a value that read_value turns back into it.
function recipe.value_text(value)
  if type(value) ~= "number" then return tostring(value) end
  local short = ("%.15g"):format(value)
  return tonumber(short) == value and short or ("%.17g"):format(value)
end

-- What there is to choose from, also where other texts are taken; nil: nothing.
function recipe.choices(row) return row.choices or row.known end

-- What --help says of an option: the default; words, and what there is to choose from.
function recipe.shown_default(row)
  local text = recipe.value_text(row[2])
  return #text <= LONGEST_SHOWN and text or text:sub(1, LONGEST_SHOWN):gsub("%s+", " ") .. "..."
end
function recipe.words(row)
  local choices = recipe.choices(row)
  local words = (row[3] or "") .. (row[1] == "batch" and ", or auto (plan and train)" or "")
  return choices and ("%s (%s)"):format(words, table.concat(choices, ", ")) or words
end

-- What --help says about the options of the recipe named first in `words`.
function recipe.help(words, root)
  if not words[1] then return "\nNaming a recipe before --help lists its own options.\n" end
  local self = recipe.load(words[1], root)
  local about = ("options of %s and their defaults, as key=value; it runs %d steps, unless --steps says otherwise:")
    :format(self.name, self.training.steps or recipe.DEFAULT_STEPS)
  local lines = { "", format.wrapped(about, format.columns(1), 0), "" }
  for _, row in ipairs(self.rows) do
    lines[#lines + 1] = format.option(row[1] .. "=" .. recipe.shown_default(row), recipe.words(row))
  end
  return table.concat(lines, "\n") .. "\n"
end

-- What cairn.plan takes of an optimizer, from a recipe's option values.
function recipe.optimizer(self, o)
  local given = {}
  for _, name in ipairs((hypers.of(o.optimizer))) do given[name] = o[name] end
  local groups = adapters.groups(o, self.groups and self.call("groups", o))
  if given.otherwise_rate then
    if given.otherwise_rate > 0 then
      if o.rate == 0 then fail.usage(("otherwise_rate=%g: goes with a rate above 0"):format(o.otherwise_rate)) end
      local scale = o.otherwise_rate / o.rate
      if scale > 1e38 then
        fail.usage(("otherwise_rate=%g: more than 1e38 times the rate, %g"):format(o.otherwise_rate, o.rate))
      end
      cairn.optim.scale_rests(given, o.optimizer, scale, groups)
    end
    given.otherwise_rate = nil
  end
  return { optimizer = o.optimizer, hypers = given, groups = groups, parameters = o.parameters, ema = o.ema }
end

-- Where a schedule ends in a run of few steps that stands for a whole one.
function recipe.schedule_end(self, steps)
  return math.max(steps, self.training.steps or recipe.DEFAULT_STEPS)
end

-- Where a schedule ends whose end nobody states: with the run. One too short for the recipe's own warm-up is the
-- beginning of a run of the recipe's own length.
local function default_end(self, o, steps)
  local own = self.training
  local begins = self.common.warmup and own.warmup and o.warmup == own.warmup and steps <= own.warmup
  return begins and math.max(steps, own.steps or 0) or steps
end

-- Options of cairn.stepper from a recipe's option values. run: {seed, steps, accumulate}.
function recipe.stepper_options(self, o, run)
  local options = schedule.options(o, { steps = default_end(self, o, run.steps), accumulate = run.accumulate },
    self.common)
  options.clip_norm, options.seed, options.micro_steps = o.clip, run.seed, run.accumulate
  for _, name in ipairs(precision.LOSS_SCALE) do
    if self.common[name] then options[name] = o[name] end
  end
  return options
end

return recipe
