-- cairn train RECIPE [key=value ...]
local args = require "cli.base.args"
local cairn = require "cairn"
local checkpoints = require "cli.checkpoint.checkpoints"
local config = require "cli.recipe.config"
local costs = require "cli.plan.costs"
local evaluation = require "cli.train.evaluation"
local facts = require "cli.plan.facts"
local fail = require "cli.base.fail"
local joint = require "cli.plan.joint"
local journal = require "cli.report.journal"
local loop = require "cli.train.loop"
local metrics = require "cli.train.metrics"
local native = require "cli.native"
local nearest = require "cli.base.nearest"
local posix = require "cli.base.posix"
local precision = require "cli.recipe.precision"
local recipes = require "cli.recipe.load"
local results = require "cli.train.result"
local resume = require "cli.checkpoint.resume"
local run_directory = require "cli.checkpoint.run_directory"
local runs = require "cli.train.run"
local samples = require "cli.train.samples"
local shrink = require "cli.train.shrink"

local USAGE = "cairn train RECIPE [key=value ...] [options]"
local KNOWN = args.known("device threads budget amp policy region tiers link profile force-profile seed steps " ..
                         "accumulate rates fuse-update on-oom json quiet", {
  ["device-model"] = { function()
    fail.usage("--device-model: nothing runs on a model; it goes with `cairn plan`")
  end, "not here: it goes with `cairn plan`", elsewhere = true },
  init = { args.text, "initial weights, by the names that `cairn export` writes", "FILE" },
  out = { args.text, "where checkpoints, run.json, metrics.jsonl, report.html and other records go", "DIR" },
  resume = { args.text, "continue a run from its newest checkpoint", "DIR" },
  config = { args.text, "do what a run did, by the run.json in its --out; what is given beside it counts", "FILE" },
  ["dry-run"] = { args.FLAG, "plan, try one step and write nothing" },
  epochs = { args.whole(1), "passes over the data, instead of --steps", "N" },
  ["save-every"] = { args.whole(1), "steps between checkpoints (default: only at the end)", "N" },
  keep = { args.whole(1), "newest checkpoints to keep (default 2)", "N" },
  ["eval-every"] = { args.whole(1), "steps between evaluations (default: only at the end)", "N" },
  best = { args.text, "keep the checkpoint with the best evaluation by this metric, too: loss, perplexity, ...",
    "METRIC" },
  ["max-skips"] = { args.whole(1), "steps in a row with gradients not finite that end training (default 50)", "N" },
  ["early-stop"] = { args.whole(1), "end after N evaluations without a better value of --best (default: loss)", "N" },
  ["sample-every"] = { args.whole(1), "steps between samples of generated text", "N" },
  ["sample-prompt"] = { args.text, "what samples begin with (default: a line's end)", "TEXT" },
  ["log-every"] = { args.whole(1), "steps between records in metrics.jsonl and for TensorBoard (default 1)", "N" },
  ["progress-every"] = { args.whole(1), "seconds between lines of progress where stderr is no terminal (default 10)",
    "N" },
  force = { args.FLAG, "start anew in an --out that has checkpoints already" },
  recipe = { args.text, "with --resume: the recipe, which must be named if it does not come with cairn", "FILE" },
  ["recipe-changed"] = { args.FLAG, "with --resume: take a recipe whose text is not the one the run was trained with" },
})

-- What is to be trained: from the command line alone, or from a checkpoint and the command line.
-- file: what --config reads, or nil.
local function specify(options, words, settings, root, file, note)
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
    options.threads = options.threads or opened.number("threads")
    checkpoints.options(opened, recipe)
  else
    if not words[1] and not file then fail.usage("a recipe is needed; usage: " .. USAGE) end
    recipe = recipes.load(file and config.recipe(file, words[1], root) or words[1], root)
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
  local data_given = false
  for _, setting in ipairs(settings) do data_given = data_given or setting[1] == "data" end
  options.optimizer = recipes.optimizer(recipe, o)
  options.amp_rules = precision.rules(recipe, o)
  if opened and o.batch == "auto" then fail.usage("batch=auto does not go with --resume: the run has its batch") end
  local number = opened and opened.number or function(_, otherwise) return otherwise end
  local trained = opened and opened.option("batch")
  if trained and o.batch and recipes.value_text(o.batch) ~= trained then
    fail.input(("batch=%s: the run was trained with batch=%s, by which its place in the data is counted"):format(
      recipes.value_text(o.batch), trained))
  end
  if options.epochs and options.steps then fail.usage("--epochs and --steps exclude each other") end
  return {
    recipe = recipe, o = o, options = options, note = note, data_given = data_given,
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

-- Where to save: --out, or with --resume the run's own directory; nil in a dry run.
local function out_directory(options, opened, note)
  local out = options.out
  local origin = opened and run_directory.of(opened.directory)
  if not out and opened then
    out = origin or fail.usage(opened.directory .. " is in no run's directory (it is not called step-N): --out DIR " ..
      "says where to save")
  end
  if not out then return nil end
  if not options.dry_run then
    local ok, problem = posix.make_directory(out)
    if not ok then fail.with(5, "--out: " .. problem) end
    run_directory.hold(out)
  end
  local there = checkpoints.steps(out)
  local continues = origin and posix.real_path(out) == posix.real_path(origin)
  if #there > 0 and not continues then
    if not options.force then
      fail.usage(("%s has checkpoints already; --resume %s continues them, --force starts anew"):format(out, out))
    end
    if options.dry_run then return nil end
    for _, name in ipairs(there) do
      local removed, err = cairn.remove_checkpoint(out .. "/" .. name)
      if not removed then
        -- What stays must not be taken for a checkpoint of the new run.
        if cairn.checkpoint(out .. "/" .. name) then fail.check("--force", nil, err) end
        note("note: " .. tostring(err))
      end
    end
  end
  if options.dry_run then return nil end
  return out, continues
end

local function write_file(path, mode, text)
  local ok, problem = posix.write_file(path, text, mode == "ab")
  if not ok then fail.with(5, problem) end
end

local function start(run, opened, options, note)
  if opened then
    resume.restore(run, opened)
    -- A checkpoint keeps the options it was saved under; those given now count, once no effective batch is open.
    local before = resume.place(run, opened, note)
    if before > 0 then run.sums:restore(opened.text("metrics")) end
    if before == 0 then resume.configure(run) else run.configures = true end
    return fail.check("--resume", run.stepper:report()).step
  end
  run:initialise()
  if options.init then run:import(options.init) end
  return 0
end

-- Ends the command if the options ask for evaluations or samples that the run cannot make. Returns what follows the
-- best evaluation; nil: there is none.
local function judge_of(run, options)
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
  local text = facts("cairn train " .. run.recipe.name, run.recipe, run.o, options, run.summary, run.spec.accumulate)
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
  local title = facts("cairn train " .. run.recipe.name, run.recipe, run.o, options, run.summary, run.spec.accumulate)
  local picture, page, err = out .. "/plan.html", run.plan:render("html", title)
  if not page and err.status == "UNSUPPORTED" then
    note("note: plan.html: " .. tostring(err))
    return nil
  end
  write_file(picture, "wb", fail.check("plan.html", page, err))
  return picture
end

-- Signals cancel what the run's session does.
local function watch(run) native.watch(tonumber(require("ffi").cast("uintptr_t", run.session:raw()))) end

-- Trains, and fills `result`. Returns why it ended, and in words.
local function train(run, state, opened, continues, texts, note)
  local result, options, out, first = state.result, state.options, state.out, state.first
  if opened then resume.check_data(run, opened) end
  if opened and not options.dry_run then
    result.resumed = resume.remark(run, opened, first, continues and out, note)
  end
  if out then result.picture = write_plan(run, out, options, texts, note) end
  state.journal = journal.open(out, continues and first or 0, options.log_every, about_page(run, options), run.unit)
  for _, row in ipairs(state.judge and state.journal.history.evaluations or {}) do
    state.judge:take { step = row.step, values = row }
  end
  local best = state.judge and state.judge.best
  if best and out and options.best then run.best = checkpoints.path(out, best.step) end
  function state.save(step)
    if result.saved ~= step then result.checkpoint, result.saved = checkpoints.save(run, out), step end
  end
  local began = posix.now()
  local ended, why = loop.run(run, state)
  while ended == "memory" do
    native.watch()
    shrink.go_on(run, out and function(step)
      state.save(step)
      return result.checkpoint
    end, why)
    watch(run)
    if out then checkpoints.prepare(run) end
    state.first = result.steps
    ended, why = loop.run(run, state)
  end
  result.batch, result.accumulate, result.shrunk = run.spec.o.batch, run.spec.accumulate, run.spec.shrunk
  result.plan = run.summary
  result.total_seconds, result.ended = posix.now() - began, ended
  results.digest_times(result)
  result.peak, result.driver = run:usage()
  result.digest, result.programs = run:digest(), run.programs
  result.epochs = run.data.batches and run.next_batch / run.data.batches or nil
  if out then
    result.saved = ended ~= "stopped" and result.saved or nil  -- a step that was begun is saved, too
    state.save(result.steps)
  end
  if state.judge then
    result.best, result.stale = state.judge.best, state.judge.stale
    if result.best then
      result.best.metric = state.judge.metric
      result.best.checkpoint = run.best and posix.readable(run.best .. "/manifest.cairn") and run.best or nil
    end
  end
  result.report = state.journal:page(results.page_rows(result))
  return ended, why
end

return function(arguments, root)
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
  local spec, opened = specify(options, words, settings, root, file, note)
  costs.load(options, root)
  local candidates = choose(spec, note)
  options = spec.options
  if options.save_every and not (options.out or opened) then fail.usage("--save-every needs --out") end
  samples.check(spec)
  local run = shrink.open(spec, 0)
  spec = run.spec
  local judge = judge_of(run, options)
  if options.out or opened then checkpoints.prepare(run) end
  local out, continues = out_directory(options, opened, note)
  if out then checkpoints.rehearse(run, out) end
  native.catch_signals()
  watch(run)
  local first = start(run, opened, options, note)
  local result = { first_step = first, steps = first, loss = {}, seconds = {}, tokens = {}, samples = {}, stall = {},
                   copies = {}, submit = {}, metrics = {}, evaluation = {}, evaluation_seconds = 0,
                   evaluates = run.evaluation ~= nil, dry = options.dry_run,
                   skipped_steps = fail.check("step", run.stepper:report()).skipped_steps, plan = run.summary,
                   accumulate = spec.accumulate, batch = spec.o.batch, optimizer = spec.o.optimizer,
                   candidates = candidates, unit = run.unit }
  local state = { first = first, last = options.dry_run and math.min(first + 1, spec.steps) or spec.steps, out = out,
                  options = options, result = result, judge = judge, dry = options.dry_run }
  state.sample = spec.generates and samples.maker(run, state, options)
  local ended, why = train(run, state, opened, continues, texts, note)
  io.stdout:write(options.json and results.to_json(result) or results.to_text(result))
  results.hint(result, options)
  native.watch()
  local last_loss = result.loss[#result.loss]
  run:close()
  local saved = result.checkpoint and ", saved in " .. result.checkpoint or ""
  if ended == "nonfinite" then
    fail.with(7, ("step %d: loss or gradients are not finite (loss %s), as in the %d steps before; the parameters " ..
      "are those of the last step that was%s"):format(result.steps, tostring(last_loss), result.skipped_in_a_row - 1,
      saved))
  end
  if ended == "metric" then fail.with(7, why .. saved) end
  if ended == "stopped" then
    fail.with(130, result.checkpoint and "interrupted; saved " .. result.checkpoint
      or "interrupted; nothing is saved without --out")
  end
  return 0
end
