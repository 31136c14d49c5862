-- cairn train RECIPE [key=value ...]
local args = require "cli.base.args"
local attach = require "cli.adapter.attach"
local base = require "cli.checkpoint.base"
local checkpoints = require "cli.checkpoint.checkpoints"
local conduct = require "cli.train.conduct"
local config = require "cli.recipe.config"
local costs = require "cli.plan.costs"
local directory = require "cli.model.directory"
local evaluation = require "cli.train.evaluation"
local facts = require "cli.plan.facts"
local fail = require "cli.base.fail"
local formats = require "cli.recipe.formats"
local joint = require "cli.plan.joint"
local lengths = require "cli.recipe.lengths"
local metrics = require "cli.train.metrics"
local mlflow = require "cli.report.mlflow"
local native = require "cli.native"
local nearest = require "cli.base.nearest"
local out_directory = require "cli.checkpoint.out_directory"
local parameters = require "cli.recipe.parameters"
local posix = require "cli.base.posix"
local precision = require "cli.recipe.precision"
local prepared = require "cli.train.prepared"
local recipes = require "cli.recipe.load"
local records = require "cli.train.records"
local results = require "cli.train.result"
local resume = require "cli.checkpoint.resume"
local run_directory = require "cli.checkpoint.run_directory"
local runs = require "cli.train.run"
local samples = require "cli.train.samples"
local settings_of_run = require "cli.checkpoint.settings"
local shrink = require "cli.train.shrink"
local tmpfs = require "cli.plan.tmpfs"

local USAGE = "cairn train RECIPE [key=value ...] [options]"
local KNOWN = args.known("device threads budget amp format policy region tiers link profile force-profile seed " ..
                         "steps accumulate rates fuse-update on-oom json quiet", {
  ["device-model"] = { function()
    fail.usage("--device-model: nothing runs on a model; it goes with `cairn plan`")
  end, "not here: it goes with `cairn plan`", elsewhere = true },
  init = { args.text, "initial weights, by the names that `cairn export` writes: a safetensors file, a directory " ..
    "with a model; or one with an adapter that PEFT wrote, where a model's directory is the recipe", "DIR|FILE" },
  ["init-missing"] = { args.text, "with --init: parameters that the file may lack, and that begin fresh, as " ..
    "'head.*,*.bias'", "PATTERNS" },
  out = { args.text, "where checkpoints, run.json, metrics.jsonl, report.html and other records go", "DIR" },
  resume = { args.text, "continue a run from its newest checkpoint", "DIR" },
  config = { args.text, "do what a run did, by the run.json in its --out; options given with it override it", "FILE" },
  ["dry-run"] = { args.FLAG, "plan, try one step and write nothing" },
  epochs = { args.whole "epochs", "passes over the data, instead of --steps", "N" },
  ["save-every"] = { args.every, "steps between checkpoints, or time: 500, 90s, 15m, 2h (default, with --out: 15m)",
    "N" },
  ["max-time"] = { args.duration, "end after this long, saved: 90s, 30m, 2h", "DURATION" },
  keep = { args.whole(1), "newest checkpoints to keep (default 2)", "N" },
  ["eval-every"] = { args.whole(1), "steps between evaluations (default: only at the end)", "N" },
  best = { args.text, "keep the checkpoint with the best evaluation by this metric, too: loss, perplexity, ...",
    "METRIC" },
  ["max-skips"] = { args.whole(1), "skipped steps in a row that end training (default 50)", "N" },
  ["early-stop"] = { args.whole(0), "end after N evaluations without a better value of --best (default: loss); 0: " ..
    "never", "N" },
  ["sample-every"] = { args.whole(0), "steps between samples of generated text; 0: none", "N" },
  ["sample-prompt"] = { args.text, "what samples begin with (default: a line's end)", "TEXT" },
  ["sample-temperature"] = { args.real, "of the draws; 0: always the likeliest; default 0.8", "T" },
  ["log-every"] = { args.whole(1), "steps between records in metrics.jsonl and for TensorBoard (default 1)", "N" },
  ["progress-every"] = { args.whole(1), "seconds between lines of progress where stderr is no terminal (default 10)",
    "N" },
  prefetch = { args.whole(1), "micro-batches that a thread makes ahead of the model (default 0, at most 64)", "N" },
  mlflow = { args.text, "record the run in MLflow's file store in this directory, too", "DIR" },
  force = { args.FLAG, "start again in an --out that has checkpoints already" },
  base = base.OPTION,
  recipe = { args.text, "with --resume: the recipe, which must be named if it does not come with cairn", "FILE" },
  ["recipe-changed"] = { args.FLAG, "with --resume: take a recipe whose text is not the one the run was trained with" },
})

-- What is to be trained: from the command line alone, or from a checkpoint and the command line.
-- file: what --config reads, or nil.
local function specify(options, words, settings, texts, root, file, note)
  local opened, recipe
  if options.resume and options.init then fail.usage("--init and --resume exclude each other") end
  if options.recipe and (words[1] or not options.resume) then
    fail.usage("--recipe FILE goes with --resume, instead of a recipe before it; usage: " .. USAGE)
  end
  if options.recipe_changed and not options.resume then fail.usage("--recipe-changed goes with --resume") end
  if options.resume then
    opened = checkpoints.open(options.resume)
    recipe = checkpoints.recipe(opened, root, options.recipe or words[1], options.recipe_changed, note)
    options.amp = options.amp or resume.amp(opened)
    options.format = options.format or parameters.of(opened)
    options.threads = options.threads or opened.number("threads")
    checkpoints.options(opened, recipe)
    settings_of_run.go_on(options, texts, KNOWN, opened)
  else
    if not words[1] and not file then fail.usage("a recipe is needed; usage: " .. USAGE) end
    recipe = recipes.load(file and config.recipe(file, words[1], root) or words[1], root)
  end
  if options.init and attach.is(options.init) then
    settings, options.init = attach.to(recipe, options.init, settings), nil
  end
  if recipe.directory then options.init = options.init or directory.weights(recipe.directory) end
  if options.init_missing and not options.init then
    fail.usage("--init-missing goes with --init FILE")
  end
  for _, name in ipairs { "early_stop", "sample_every" } do
    if options[name] == 0 then options[name] = nil end
  end
  precision.check(recipe, settings, options.amp)
  if file then
    config.check(file, recipe)
    local all = {}
    for _, list in ipairs { file.settings, settings } do
      for _, setting in ipairs(list) do all[#all + 1] = setting end
    end
    settings = all
  end
  local o = recipes.resolve(recipe, settings, opened and opened.option, true)
  lengths.tell(settings, o, note)
  local data_given = false
  for _, setting in ipairs(settings) do data_given = data_given or setting[1] == "data" end
  options.optimizer = recipes.optimizer(recipe, o)
  options.amp_rules = precision.rules(recipe, o)
  options.formats = formats.rules(recipe, o, options, opened and false, note)
  if opened and o.batch == "auto" then fail.usage("batch=auto does not go with --resume: the run has its batch") end
  local number = opened and opened.number or function(_, otherwise) return otherwise end
  local trained = opened and opened.option("batch")
  if trained and o.batch and recipes.value_text(o.batch) ~= trained then
    fail.usage(("batch=%s: the run was trained with batch=%s, by which its place in the data is counted"):format(
      recipes.value_text(o.batch), trained))
  end
  if options.epochs and options.steps then fail.usage("--epochs and --steps exclude each other") end
  return {
    recipe = recipe, o = o, options = options, settings = texts, note = note, data_given = data_given,
    tokenizer = opened and checkpoints.vocabulary(opened), check_content = opened and resume.content_check(opened, o,
      settings, data_given, options.recipe_changed),
    seed = options.seed or number("seed", runs.DEFAULT_SEED), epochs = options.epochs,
    evaluates = true, generates = options.sample_every ~= nil,
    accumulate = options.accumulate or number("accumulate", 1), parts = number("parts", 1),
    steps = options.steps or number("steps", recipe.training.steps or recipes.DEFAULT_STEPS),
  }, opened
end

-- Takes up what batch and global_batch ask for: the micro-batch and how many of them. Returns batch=auto's candidates.
local function choose(spec, note)
  local o, options = spec.o, spec.options
  if not o.batch or (o.batch ~= "auto" and o.global_batch == 0) then return nil end
  spec.device = runs.device(options)
  local micro_steps, candidates
  spec.o, micro_steps, spec.options, candidates = joint.resolve(spec.recipe, o, spec.device, options)
  spec.accumulate = micro_steps or spec.accumulate
  if candidates then note(joint.text(candidates)) end
  return candidates
end

local function write_file(path, mode, text)
  local ok, problem = posix.write_file(path, text, mode == "ab")
  if not ok then fail.with(5, problem) end
end

local function start(run, opened, options, note)
  if opened then
    resume.restore(run, opened)
    run.source = { directory = opened.text("model.directory"), dtype = opened.text("model.dtype"),
                   base = options.base and posix.real_path(options.base) or opened.text("base.path") }
    -- A checkpoint keeps the options it was saved under; those given now count, once no effective batch is open.
    local before = resume.place(run, opened, note)
    if before > 0 then run.sums:restore(opened.text("metrics")) end
    if before == 0 then resume.configure(run) else run.configures = true end
    return fail.check("--resume", run.stepper:report()).step
  end
  run:begin(options.init, options.init_missing)
  return 0
end

-- Ends the command if the options ask for evaluations or samples that the run cannot make. Returns what follows the
-- best evaluation; nil: there is none.
local function judge_of(run, options, note)
  if not run.evaluation then
    settings_of_run.leave(options, settings_of_run.OF_EVALUATION, note, "there is nothing to evaluate with")
  end
  for _, name in ipairs { "eval_every", "best", "early_stop" } do
    if options[name] and not run.evaluation then
      fail.usage(("--%s: there is nothing to evaluate with; %s"):format((name:gsub("_", "-")), run.recipe.evaluation
        and "give eval_fraction=0.1, or another source of data that the recipe's options name (--help)"
        or "the recipe has no `evaluation`"))
    end
  end
  if options.early_stop and not options.eval_every then fail.usage("--early-stop needs --eval-every N") end
  if not run.evaluation then return nil end
  local rows = run.programs.evaluation.plan.graph.evaluates.metrics
  local metric, names = options.best or "loss", metrics.names(rows)
  if not metrics.better(rows, metric) then
    fail.usage(("--best %s: there is no such metric%s (known: %s)"):format(metric, nearest.hint(metric, names),
      table.concat(names, " ")))
  end
  return evaluation.judge(rows, metric)
end

-- What the run's page begins with.
local function about_page(run, options)
  local text = facts("cairn train " .. run.recipe.name, run.recipe, run.o, options, run.summary, run.micro_steps)
  local rows = {}
  for line in text:gmatch("[^\n]+") do
    local what, words = line:match("^(%l+): (.*)$")
    rows[#rows + 1] = { what or "title", words or line }
  end
  return rows
end

-- Writes what is known before the first step: run.json and the plan's picture. Returns the picture's path; nil: this
-- library draws none.
local function write_plan(run, out, options, texts, note)
  write_file(out .. "/run.json", "wb", config.text(run.spec, texts))
  local title = facts("cairn train " .. run.recipe.name, run.recipe, run.o, options, run.summary, run.micro_steps)
  local picture, page, err = out .. "/plan.html", run.plan:render("html", title)
  if not page and err.status == "UNSUPPORTED" then
    note("note: plan.html: " .. tostring(err))
    return nil
  end
  write_file(picture, "wb", fail.check("plan.html", page, err))
  return picture
end

-- Whether a run's last step was not finite. Under a loss scale, gradients alone that were not tell of the scale, which
-- has gone down by that.
local function ends_not_finite(result, options)
  if result.last_outcome ~= "skipped_nonfinite" then return false end
  local loss = result.last_loss
  return options.amp ~= "fp16" or loss ~= loss or math.abs(loss) == math.huge
end

-- Why a run ends with another code than 0: by what ended it, the code and the words.
local ENDS = {
  nonfinite = function(result)
    local before = (result.skipped_in_a_row or 1) - 1
    local more = before > 0 and (", as in the %d steps before"):format(before) or ""
    return 7, ("step %d: loss or gradients are not finite (loss %s)%s; the parameters are those of the last step " ..
      "that was"):format(result.steps, tostring(result.last_loss), more)
  end,
  empty = function(result)
    return 3, ("step %d: the weights of the step's micro-batches add up to 0, as in the %d steps before: nothing " ..
      "of the data counts; give it data of which something counts"):format(result.steps, result.skipped_in_a_row - 1)
  end,
  metric = function(_, why) return 7, why end,
}

-- The exit code and message of a run that did not end well; nil: it did.
local function failure_of(result, why)
  local saved = result.checkpoint and ", saved in " .. result.checkpoint or ""
  if ENDS[result.ended] then
    local code, reason = ENDS[result.ended](result, why)
    return code, reason .. saved
  end
  if result.ended == "stopped" then
    return 130, result.checkpoint and "interrupted; saved " .. result.checkpoint
      or "interrupted; nothing is saved without --out"
  end
end

return function(arguments, root)
  local began = posix.now()
  local options, words, settings, texts = args.parse(arguments, KNOWN, USAGE, function(given)
    return recipes.help(given, root)
  end)
  if not options then return 0 end
  if #words > 1 then fail.usage(("unexpected '%s'; usage: %s"):format(words[2], USAGE)) end
  local function note(message)
    if not options.quiet then io.stderr:write(message, "\n") end
  end
  local file = options.config and config.read(options.config, KNOWN, USAGE)
  if file then config.merge(file, options, texts) end
  local saves_nothing = options.save_every and not (options.out or options.resume)
  local spec, opened = specify(options, words, settings, texts, root, file, note)
  costs.load(options, root)
  local candidates = choose(spec, note)
  options = spec.options
  if saves_nothing then fail.usage("--save-every needs --out") end
  mlflow.check(options.mlflow, options.out or opened)
  settings_of_run.complete(options, KNOWN)
  samples.check(spec)
  local run = shrink.open(spec, 0)
  spec = run.spec
  local in_memory = tmpfs(run.summary)
  if in_memory then note(in_memory) end
  local judge = judge_of(run, options, note)
  if options.out or opened then checkpoints.prepare(run) end
  local out, continues, take = out_directory.of(run, options, opened, note)
  native.catch_signals()
  conduct.watch(run)
  local first = start(run, opened, options, note)
  if opened then resume.check_data(run, opened) end
  local function stopped() return native.interrupts() > 0 end
  if not prepared.run(run, opened and run_directory.of(opened.directory), first, out, note, stopped) then
    fail.with(130, "interrupted before the first step; nothing was saved")
  end
  local skipped = fail.check("step", run.stepper:report()).skipped_steps
  local result = { first_step = first, steps = first, records = records.new(options.json),
                   evaluations = records.array(options.json), evaluation_seconds = 0, empty_steps = 0,
                   evaluates = run.evaluation ~= nil, dry = options.dry_run, skipped_steps = skipped,
                   plan = run.summary, accumulate = spec.accumulate, batch = spec.o.batch,
                   micro_steps = run.micro_steps, counted = run.recipe.unit,
                   optimizer = spec.o.optimizer, candidates = candidates, unit = run.unit }
  local state = { first = first, last = options.dry_run and math.min(first + 1, spec.steps) or spec.steps, out = out,
                  options = options, result = result, judge = judge, dry = options.dry_run, take = take,
                  deadline = options.max_time and began + options.max_time }
  state.sample = spec.generates and samples.maker(run, state, options)
  state.about = about_page(run, options)
  function state.write_plan() return write_plan(run, out, options, texts, note) end
  function state.open_mlflow(goes_on, step)
    return mlflow.open(out, options.mlflow, goes_on, step, spec.recipe.name, config.text(spec, texts), note)
  end
  local ended, why = conduct.train(run, state, opened, continues, note)
  if ended == "done" and ends_not_finite(result, options) then ended = "nonfinite" end
  result.ended = ended
  local code, message = failure_of(result, why)
  result.error = code and fail.object(code, message)
  if state.journal then state.journal:close(code) end
  if options.json then
    results.to_json(result, function(text) io.stdout:write(text) end)
  else
    io.stdout:write(results.to_text(result))
  end
  fail.told = true  -- --json says it in its object
  results.hint(result, options)
  native.watch()
  run:close()
  if code then fail.with(code, message) end
  return 0
end
