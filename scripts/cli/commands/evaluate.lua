-- cairn evaluate RUN|step-dir [key=value ...], or FILE.safetensors RECIPE [key=value ...]
local args = require "cli.base.args"
local attach = require "cli.adapter.attach"
local cairn = require "cairn"
local checkpoints = require "cli.checkpoint.checkpoints"
local decode = require "cli.base.json_decode"
local directories = require "cli.model.directory"
local evaluating = require "cli.train.evaluating"
local evaluation = require "cli.train.evaluation"
local fail = require "cli.base.fail"
local format = require "cli.base.format"
local json = require "cli.base.json"
local metrics = require "cli.train.metrics"
local models = require "cli.checkpoint.model"
local posix = require "cli.base.posix"
local recipes = require "cli.recipe.load"
local summary = require "cli.plan.summary"
local unicode = require "cli.base.unicode"

local USAGE = "cairn evaluate RUN [key=value ...] [options]"
local KNOWN = args.known("device threads budget amp format policy tiers link rates json quiet", {
  best = { args.FLAG, "the best checkpoint of a run, by its evaluations, and not the newest" },
  recipe = { args.text, "the recipe, which must be named if it does not come with cairn", "FILE" },
  ["recipe-changed"] = models.OPTIONS["recipe-changed"],
  base = models.OPTIONS.base, ema = models.OPTIONS.ema, adapter = attach.OPTION,
})

-- What the words name: for evaluating.open.
local function named(words, settings, options, root, note)
  local from = { settings = settings, options = options, note = note }
  if directories.is(words[1]) then
    if options.best then fail.usage("--best goes with a run's directory") end
    if words[2] then fail.usage(("unexpected '%s'; usage: %s"):format(words[2], USAGE)) end
    from.recipe = recipes.load(words[1], root)
    from.weights = directories.weights(from.recipe.directory)
    if options.adapter then from.settings = attach.to(from.recipe, options.adapter, settings) end
    return from
  end
  if options.adapter then fail.usage("--adapter goes with a model's directory") end
  if words[1]:find("%.safetensors$") and not posix.list(words[1]) then
    if options.best then fail.usage("--best goes with a run's directory") end
    local name = words[2] or options.recipe
    if not name or words[3] then
      fail.usage(("%s holds weights alone: name the recipe that they are of, as cairn evaluate %s gpt2 data=FILE")
        :format(words[1], words[1]))
    end
    from.weights, from.recipe = words[1], recipes.load(name, root)
    return from
  end
  if words[2] then fail.usage(("unexpected '%s'; usage: %s"):format(words[2], USAGE)) end
  local path = options.best and evaluating.best(words[1], root, options, note) or words[1]
  from.opened = checkpoints.open(path)
  from.recipe = checkpoints.recipe(from.opened, root, options.recipe, options.recipe_changed, note)
  return from
end

local function step_of(directory)
  return decode(fail.check(directory, cairn.inspect(directory))).state.step
end

-- Rows {name, value} of what was found.
local function rows_of(run, made, from)
  local rows = { { "checkpoint", from.opened and from.opened.directory or from.weights } }
  if from.opened then rows[2] = { "step", from.step } end
  for _, row in ipairs(metrics.rows(made.values)) do rows[#rows + 1] = row end
  local samples = made.samples
  if run.unit == "tokens" then
    rows[#rows + 1] = { "tokens", made.tokens }
  else
    samples = samples or made.tokens
  end
  if samples then rows[#rows + 1] = { "samples", samples } end
  rows[#rows + 1] = { "seconds", made.seconds }
  for name, counts in pairs(run.evaluation.counts or {}) do rows[#rows + 1] = { name, json.object(counts) } end
  return rows
end

local SHOWN = { seconds = format.seconds, tokens = format.count, samples = format.count }
local function shown(name, value)
  if type(value) == "table" then
    local words = {}
    for i, row in ipairs(value.rows) do words[i] = ("%s %d"):format(unicode.shown(row[1]), row[2]) end
    return table.concat(words, ", ")
  end
  if SHOWN[name] then return SHOWN[name](value) end
  return type(value) == "number" and ("%.6g"):format(value) or tostring(value)
end

return function(arguments, root)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  if not words[1] then fail.usage("a run, a checkpoint or a safetensors file is needed; usage: " .. USAGE) end
  if options.recipe_changed and not options.recipe then fail.usage("--recipe-changed goes with --recipe FILE") end
  local function note(message)
    if not options.quiet then io.stderr:write(message, "\n") end
  end
  local from = named(words, settings, options, root, note)
  local run = evaluating.open(from)
  if from.opened then from.step = step_of(from.opened.directory) end
  local made = evaluation.run(run)
  local rows, peak = rows_of(run, made, from), run:usage()
  if options.json then
    rows[#rows + 1] = { "peak_bytes", summary.tiers(peak) }
    rows[#rows + 1] = { "planned_peak_bytes", summary.tiers(run.summary.peak_bytes) }
    io.stdout:write(json.encode(json.object(rows)), "\n")
  else
    for _, row in ipairs(rows) do io.stdout:write(("%-17s %s\n"):format(row[1], shown(row[1], row[2]))) end
    io.stdout:write(summary.lines(run.summary, peak))
  end
  local name, value = metrics.not_finite(made.values)
  if name then fail.with(7, ("%s is %s, which is not finite"):format(name, tostring(value))) end
  return 0
end
