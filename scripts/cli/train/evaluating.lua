-- A trained model with data to evaluate it with: no stepper, no optimizer, and nothing written where it came from.
local cairn = require "cairn"
local base = require "cli.checkpoint.base"
local bundle = require "cli.checkpoint.bundle"
local checkpoints = require "cli.checkpoint.checkpoints"
local evaluation = require "cli.train.evaluation"
local fail = require "cli.base.fail"
local formats = require "cli.recipe.formats"
local metrics = require "cli.train.metrics"
local parameters = require "cli.recipe.parameters"
local posix = require "cli.base.posix"
local precision = require "cli.recipe.precision"
local rates = require "cli.plan.rates"
local recipes = require "cli.recipe.load"
local resume = require "cli.checkpoint.resume"
local run_directory = require "cli.checkpoint.run_directory"
local runs = require "cli.train.run"
local weights = require "cli.recipe.weights"

local evaluating = {}

local function has_option(recipe, name)
  for _, row in ipairs(recipe.rows) do
    if row[1] == name then return true end
  end
  return false
end

local function given_of(settings)
  local given = {}
  for _, setting in ipairs(settings) do given[setting[1]] = setting[2] end
  return given
end

-- Settings {key, text} of an evaluation. data=FILE alone, of a recipe that has eval_data, asks for all of that file:
-- what the model was trained with stays as it is. keeps: whether `data` is known without it, from a checkpoint.
local function settings_of(recipe, settings, keeps)
  local given = given_of(settings)
  if not given.data or given.data == "random" or not has_option(recipe, "eval_data") then return settings end
  if given.eval_data or given.eval_fraction then return settings end
  local list = {}
  for _, setting in ipairs(settings) do
    if setting[1] ~= "data" or not keeps then list[#list + 1] = setting end
  end
  list[#list + 1] = { "eval_data", given.data }
  if has_option(recipe, "eval_fraction") then list[#list + 1] = { "eval_fraction", "0" } end
  return list
end

-- Calls fn, and on its failure changes the beginning of the message: to what the user wrote.
local function worded(was, is, fn, ...)
  local results = { pcall(fn, ...) }
  if results[1] then return unpack(results, 2) end
  if fail.is(results[2]) then results[2].message = results[2].message:gsub("^" .. was, is) end
  error(results[2], 0)
end

-- What recipes are told of the run that they evaluate.
local function about_of(recipe, opened, note)
  local number = opened and opened.number or function(_, otherwise) return otherwise end
  local about = { seed = number("seed", runs.DEFAULT_SEED), accumulate = number("accumulate", 1), note = note,
                  steps = number("steps", recipe.training.steps or recipes.DEFAULT_STEPS) }
  about.tokenizer, about.trained = opened and checkpoints.vocabulary(opened), opened ~= nil
  about.directory = recipe.directory and recipe.directory.path
  return runs.helpers(about)
end

-- The share that was held out is the one of the data as they were: others would hold what the model was trained on.
local function check_content(opened, data, o)
  local was = opened.text("data.content")
  if not was or not data.content or opened.option("data") ~= (posix.real_path(o.data or "") or o.data) then return end
  local now = #was:match("^%x*") == 16 and data.former_content and data.former_content() or data.content
  if was ~= now then
    fail.input(("%s was trained on data=%s, whose content (digest and size) was %s and is %s: what was held out of " ..
      "it is not known any more; data=FILE evaluates with all of a file"):format(opened.directory, o.data, was, now))
  end
end

local function plan_of(graph, device, options)
  local wanted = runs.plan_options(options)
  wanted.no_optimizer = true
  local plan = fail.plan("plan", cairn.plan(graph, device, wanted))
  rates.tell(fail.check("plan", plan:rates()), options)
  return plan
end

-- Opens what `from` says: recipe, opened (a checkpoint, or nil), weights (a safetensors file, without one), settings,
-- options (of the command line), note. Returns {recipe, o, session, plan, summary, evaluation, unit, ...}.
function evaluating.open(from)
  local recipe, opened, options = from.recipe, from.opened, from.options
  local settings = settings_of(recipe, from.settings, opened ~= nil)
  if opened then
    options.amp = options.amp or resume.amp(opened)
    options.format = options.format or parameters.of(opened)
    checkpoints.options(opened, recipe)
  end
  local o = recipes.resolve(recipe, settings, opened and opened.option, true)
  if o.batch == "auto" then fail.usage("batch=auto goes with `cairn plan` and `cairn train`") end
  options.amp_rules = precision.rules(recipe, o)
  options.formats = formats.forward(recipe, o, not opened and from.weights, from.note, options)
  local was = opened and opened.option("eval_fraction")
  if was and o.eval_fraction and recipes.value_text(o.eval_fraction) ~= was and o.eval_fraction > 0 then
    from.note(("note: eval_fraction was %s in training, so that some of these data were trained with"):format(was))
  end
  local about = about_of(recipe, opened, from.note)
  local written = given_of(from.settings).eval_data and "eval_data" or "data"
  local made = worded("eval_data", written, evaluation.of, recipe, o, about)
  if not made then
    fail.usage(("there is nothing to evaluate with; %s"):format(recipe.evaluation
      and (has_option(recipe, "eval_data") and "give data=FILE, all of which is taken"
        or "give eval_fraction=0.1, or another source of data that the recipe's options name (--help)")
      or recipe.path .. " has no `evaluation`"))
  end
  options.rates = options.rates or "model"  -- nobody asks how long this plan takes
  local device = runs.device(options)
  local graph = evaluation.graph(recipe, made.o)
  if opened then
    local trained = fail.check(opened.directory, opened.checkpoint:graph())
    local problem = bundle.mismatch(graph, trained)
    if problem then
      fail.input(("%s is not of the model that these options describe: %s"):format(opened.directory, problem))
    end
  end
  options.optimizer = { parameters = o.parameters }
  local plan = plan_of(graph, device, options)
  worded("eval_data", written, made.open, made, recipe)
  if opened and not given_of(settings).data then check_content(opened, made, o) end
  posix.trim_heap()
  local session = fail.check("session", cairn.session(plan))
  local inputs = graph:inputs()
  local self = runs.forward { recipe = recipe, o = o, graph = graph, session = session, plan = plan, opened = opened,
    summary = fail.check("plan", plan:summary()), evaluation = made, device = device, spec = { options = options },
    unit = runs.unit_of(inputs),
    programs = { evaluation = { name = "evaluation", kind = "evaluation", o = made.o, session = session, plan = plan,
                                inputs = inputs, micro_batches = 0, tokens = 0 } } }
  if opened then
    base.load(opened, session, graph, options)
  else
    base.no_ema(options, from.weights)
    worded("%-%-init: ", "", weights.import, self, from.weights)
  end
  return self
end

-- The directory of the best checkpoint of the run at `path`: by the metric that it was kept by (--best), or the loss.
function evaluating.best(path, root, options, note)
  local newest = checkpoints.open(path)
  local run = run_directory.of(newest.directory)
  if not run or posix.real_path(run) ~= posix.real_path(path) then
    fail.usage(("--best: %s is no run's directory, of whose checkpoints one is the best"):format(path))
  end
  local recipe = checkpoints.recipe(newest, root, options.recipe, options.recipe_changed, note)
  local o = checkpoints.options(newest, recipe)
  local made = evaluation.of(recipe, o, about_of(recipe, newest, function() end))
  local rows = made and evaluation.graph(recipe, made.o).evaluates.metrics or {}
  local best = run_directory.best(run, function(metric) return metrics.better(rows, metric) end)
  newest.checkpoint:free()
  return best
end

return evaluating
