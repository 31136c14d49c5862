-- cairn train RECIPE [key=value ...]
local args = require "cli.args"
local cairn = require "cairn"
local checkpoints = require "cli.checkpoints"
local costs = require "cli.costs"
local facts = require "cli.facts"
local fail = require "cli.fail"
local format = require "cli.format"
local joint = require "cli.joint"
local json = require "cli.json"
local native = require "cli.native"
local posix = require "cli.posix"
local progress = require "cli.progress"
local recipes = require "cli.recipe"
local resume = require "cli.resume"
local run_directory = require "cli.run_directory"
local runs = require "cli.run"
local stats = require "cli.stats"
local summary = require "cli.summary"

local USAGE = "cairn train RECIPE [key=value ...] [options]"
local KNOWN = args.known("device threads budget amp policy tiers link profile force-profile seed steps accumulate " ..
                         "fuse-update json quiet", {
  ["device-model"] = { function()
    fail.usage("--device-model: nothing runs on a model; it goes with `cairn plan`")
  end, "not here: it goes with `cairn plan`" },
  init = { args.text, "initial weights, by the names that `cairn export` writes", "FILE" },
  out = { args.text, "where checkpoints, plan.html and metrics.jsonl go", "DIR" },
  resume = { args.text, "continue a run from its newest checkpoint", "DIR" },
  ["save-every"] = { args.whole(1), "steps between checkpoints (default: only at the end)" },
  force = { args.FLAG, "start anew in an --out that has checkpoints already" },
  recipe = { args.text, "with --resume: the recipe, which must be named if it does not come with cairn", "FILE" },
  ["recipe-changed"] = { args.FLAG, "with --resume: take a recipe whose text is not the one the run was trained with" },
})
local DEFAULT_SEED = 1337
local FLUSH_SECONDS, SHORT_STEP = 1, 0.002  -- metrics are written after each step that is not short, and each second
local DRIFT, DRIFT_STEPS = 0.1, 5  -- of predicted seconds, and steps to judge by

-- What is to be trained: from the command line alone, or from a checkpoint and the command line.
local function specify(options, words, settings, root, note)
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
    if not words[1] then fail.usage("a recipe is needed; usage: " .. USAGE) end
    recipe = recipes.load(words[1], root)
  end
  local o = recipes.resolve(recipe, settings, opened and opened.option, true)
  options.optimizer = recipes.optimizer(recipe, o)
  if opened and o.batch == "auto" then fail.usage("batch=auto does not go with --resume: the run has its batch") end
  local number = opened and opened.number or function(_, otherwise) return otherwise end
  return {
    recipe = recipe, o = o, options = options, note = note,
    seed = options.seed or number("seed", DEFAULT_SEED),
    accumulate = options.accumulate or number("accumulate", 1),
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

-- Where to save: --out, or with --resume the run's own directory.
local function out_directory(options, opened, note)
  local out = options.out
  local origin = opened and run_directory.of(opened.directory)
  if not out and opened then
    out = origin or fail.usage(opened.directory .. " is in no run's directory (it is not called step-N): --out DIR " ..
      "says where to save")
  end
  if not out then return nil end
  local ok, problem = posix.make_directory(out)
  if not ok then fail.with(5, "--out: " .. problem) end
  run_directory.hold(out)
  local there = checkpoints.steps(out)
  local continues = origin and posix.real_path(out) == posix.real_path(origin)
  if #there > 0 and not continues then
    if not options.force then
      fail.usage(("%s has checkpoints already; --resume %s continues them, --force starts anew"):format(out, out))
    end
    for _, name in ipairs(there) do
      local removed, err = cairn.remove_checkpoint(out .. "/" .. name)
      if not removed then
        -- What stays must not be taken for a checkpoint of the new run.
        if cairn.checkpoint(out .. "/" .. name) then fail.check("--force", nil, err) end
        note("note: " .. tostring(err))
      end
    end
  end
  return out, continues
end

local function write_file(path, mode, text)
  local ok, problem = posix.write_file(path, text, mode == "ab")
  if not ok then fail.with(5, problem) end
end

local function start(run, opened, options)
  if opened then
    resume.restore(run, opened)
    -- A checkpoint keeps the options it was saved under; those given now count, once no effective batch is open.
    local report = fail.check("--resume", run.stepper:report())
    run.next_batch = opened.number("next_batch", report.step * run.spec.accumulate)
    run.micro_before = report.micro
    if report.micro == 0 then resume.configure(run) else run.configures = true end
    return report.step
  end
  run:initialise()
  if options.init then run:import(options.init) end
  return 0
end

-- Trains to the end or to what ends it. Fills `result`; returns why it ended: "done", "stopped", "nonfinite".
local function loop(run, done, out, options, result)
  local bar = progress.new(run.spec.steps, done, run.summary.peak_bytes.device, options.quiet)
  local metrics, flushed = {}, posix.now()
  local function flush()
    if out and #metrics > 0 then write_file(out .. "/metrics.jsonl", "ab", table.concat(metrics)) end
    metrics, flushed = {}, posix.now()
  end
  local function stop()
    bar:tick()
    if #metrics > 0 and posix.now() - flushed >= FLUSH_SECONDS then flush() end
    return native.interrupts() > 0
  end
  local ended = "done"
  while done < run.spec.steps do
    local step = stop() and { outcome = "stopped" } or run:step(stop)
    if step.outcome == "stopped" or step.outcome == "cancelled" then
      ended = "stopped"
      break
    end
    if run.configures then
      run.configures = nil
      resume.configure(run)
    end
    local report = step.report
    result.skipped_steps, done = report.skipped_steps, report.step
    result.loss[#result.loss + 1] = step.loss
    result.seconds[#result.seconds + 1] = step.seconds
    result.tokens[#result.tokens + 1] = step.tokens
    result.stall[#result.stall + 1] = step.stall_seconds
    result.copies[#result.copies + 1] = step.copies
    result.submit[#result.submit + 1] = step.submit_seconds
    if step.fell_back then
      io.stderr:write("note: the disk tier failed; training goes on from a plan without it\n")
    end
    metrics[#metrics + 1] = json.encode(json.object {
      { "step", report.step }, { "loss", step.loss }, { "gradient_norm", report.gradient_norm },
      { "rate", report.rate }, { "tokens", step.tokens }, { "seconds", step.seconds },
      { "stall_seconds", step.stall_seconds }, { "outcome", step.outcome } }) .. "\n"
    if step.seconds >= SHORT_STEP or posix.now() - flushed >= FLUSH_SECONDS then flush() end
    bar:update(done, step.loss, step.tokens)
    if step.outcome == "skipped_nonfinite" then
      ended = "nonfinite"
      break
    end
    if options.save_every and out and done % options.save_every == 0 and done < run.spec.steps then
      flush()
      checkpoints.save(run, out)
    end
  end
  flush()
  bar:finish()
  result.steps = done
  return ended
end

-- Means and medians leave out the first step, which also touches memory and packs weights for the first time.
local function digest_times(result)
  local from = #result.seconds > 1 and 2 or 1
  local seconds, tokens, stall, timed = 0, 0, 0, {}
  for i = from, #result.seconds do
    seconds, tokens, stall = seconds + result.seconds[i], tokens + result.tokens[i], stall + result.stall[i]
    timed[#timed + 1] = result.seconds[i]
  end
  result.step_seconds_median, result.timed_steps = stats.median(timed), #timed
  result.tokens_per_second = seconds > 0 and tokens / seconds or 0
  result.stall_seconds = #timed > 0 and stall / #timed or 0
  local submits = {}
  for i = from, #result.submit do
    for _, s in ipairs(result.submit[i]) do submits[#submits + 1] = s end
  end
  result.submit_seconds_median = #submits > 0 and stats.median(submits) or 0
  result.copies_per_step = {}
  for tier, name in ipairs { "host", "disk" } do
    local mean = {}
    for _, key in ipairs { "out_bytes", "in_bytes", "out_seconds", "in_seconds" } do
      local sum = 0
      for i = from, #result.copies do sum = sum + result.copies[i][name][key] end
      mean[#mean + 1] = { key, #timed > 0 and sum / #timed or 0 }
    end
    result.copies_per_step[tier] = { name, json.object(mean) }
  end
end

-- Says so when steps take another time than the profile promised: it was measured under other conditions.
local function hint(result, options)
  if not options.profile or options.quiet or options.json or result.timed_steps < DRIFT_STEPS then return end
  local predicted = summary.step_seconds(result.plan, result.plan.predicted_seconds, result.accumulate)
  local drift = result.step_seconds_median / predicted - 1
  if math.abs(drift) <= DRIFT then return end
  io.stderr:write(("note: a step takes %s, %s %s than %s predicts (%s); `cairn profile` measures again\n"):format(
    format.seconds(result.step_seconds_median), format.percent(math.abs(drift)), drift > 0 and "more" or "less",
    options.profile, format.seconds(predicted)))
end

-- Programs as they are listed: by length, or in the recipe's order.
local function in_order(programs)
  table.sort(programs, function(a, b)
    local x, y = a.length or 0, b.length or 0
    return x < y or x == y and a.number < b.number
  end)
  return programs
end

local function to_json(result)
  local plan = result.plan
  local rows = {
    { "steps", result.steps }, { "loss", json.array(result.loss) },
    { "step_seconds_median", result.step_seconds_median }, { "tokens_per_second", result.tokens_per_second },
    { "peak_bytes", summary.tiers(result.peak) }, { "planned_peak_bytes", summary.tiers(plan.peak_bytes) },
    { "activation_peak_bytes", plan.activation_peak_bytes }, { "memory_bytes", summary.memory(plan) },
    { "stall_seconds", result.stall_seconds }, { "process_peak_rss_bytes", posix.peak_rss_bytes() },
    { "copies", json.object(result.copies_per_step) },
    { "submit_seconds_median", result.submit_seconds_median },
    { "driver_bytes", json.object { { "before", result.driver.before }, { "now", result.driver.now } } },
    { "parameter_digest", result.digest }, { "skipped_steps", result.skipped_steps },
    { "plan", summary.plan(plan, result.accumulate) }, { "first_step", result.first_step },
    { "step_seconds", json.array(result.seconds) }, { "checkpoint", result.checkpoint },
    { "batch", result.batch }, { "accumulate", result.accumulate }, { "optimizer", result.optimizer },
  }
  if result.programs then
    local list = {}
    for i, program in ipairs(in_order(result.programs)) do
      list[i] = json.object { { "name", program.name }, { "length", program.length },
        { "micro_batches", program.micro_batches }, { "tokens", program.tokens } }
    end
    rows[#rows + 1] = { "programs", json.array(list) }
  end
  if result.resumed then rows[#rows + 1] = { "resumed", result.resumed } end
  if result.candidates then rows[#rows + 1] = { "candidates", joint.json(result.candidates) } end
  return json.encode(json.object(rows)) .. "\n"
end

local function to_text(result)
  local loss = result.loss
  local lines = {}
  if #loss > 0 then
    lines[1] = ("%s  %.4f -> %.4f over steps %d to %d\n"):format(format.colour("bold", "loss"), loss[1], loss[#loss],
      result.first_step + 1, result.steps)
    lines[2] = ("%s  %s tokens/s, %s per step"):format(format.colour("bold", "rate"),
      format.count(result.tokens_per_second), format.seconds(result.step_seconds_median))
    lines[3] = result.stall_seconds > 0 and (", of it %s waiting for copies\n"):format(
      format.seconds(result.stall_seconds)) or "\n"
  else
    lines[1] = ("nothing to do: step %d is done already\n"):format(result.steps)
  end
  lines[#lines + 1] = summary.lines(result.plan, result.peak)
  for _, program in ipairs(in_order(result.programs or {})) do
    lines[#lines + 1] = ("%-17s %s micro-batches, %s tokens\n"):format(program.name,
      format.count(program.micro_batches), format.count(program.tokens))
  end
  lines[#lines + 1] = "parameters        " .. result.digest .. "\n"
  if result.checkpoint then lines[#lines + 1] = "checkpoint        " .. result.checkpoint .. "\n" end
  if result.picture then lines[#lines + 1] = "picture           " .. result.picture .. "\n" end
  return table.concat(lines)
end

return function(arguments, root)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE, function(given)
    return recipes.help(given, root)
  end)
  if not options then return 0 end
  if #words > 1 then fail.usage(("unexpected '%s'; usage: %s"):format(words[2], USAGE)) end
  local function note(message)
    if not options.quiet then io.stderr:write(message, "\n") end
  end
  local spec, opened = specify(options, words, settings, root, note)
  costs.load(options, root)
  local candidates = choose(spec, note)
  options = spec.options
  if options.save_every and not (options.out or opened) then fail.usage("--save-every needs --out") end
  local run = runs.open(spec)
  if options.out or opened then checkpoints.prepare(run) end
  local out, continues = out_directory(options, opened, note)
  if out then checkpoints.rehearse(run, out) end
  native.catch_signals()
  native.watch(tonumber(require("ffi").cast("uintptr_t", run.session:raw())))
  local first = start(run, opened, options)
  local result = { first_step = first, loss = {}, seconds = {}, tokens = {}, stall = {}, copies = {}, submit = {},
                   skipped_steps = fail.check("step", run.stepper:report()).skipped_steps, plan = run.summary,
                   accumulate = spec.accumulate, batch = spec.o.batch, optimizer = spec.o.optimizer,
                   candidates = candidates }
  if opened then result.resumed = resume.remark(run, opened, first, continues and out, note) end
  if out then
    local title = facts("cairn train " .. spec.recipe.name, spec.recipe, spec.o, options, run.summary, spec.accumulate)
    local page = fail.check("plan.html", run.plan:render("html", title))
    result.picture = out .. "/plan.html"
    write_file(result.picture, "wb", page)
    run_directory.keep_metrics(out, continues and first or 0)
  end
  local ended = loop(run, first, out, options, result)
  digest_times(result)
  result.peak, result.driver = run:usage()
  result.digest, result.programs = run:digest(), run.programs
  if out then result.checkpoint = checkpoints.save(run, out) end
  io.stdout:write(options.json and to_json(result) or to_text(result))
  hint(result, options)
  native.watch()
  local last_loss = result.loss[#result.loss]
  run:close()
  if ended == "nonfinite" then
    local saved = result.checkpoint and ", saved in " .. result.checkpoint or ""
    fail.with(7, ("step %d: loss or gradients are not finite (loss %s); the parameters are those of the step before%s")
      :format(result.steps, tostring(last_loss), saved))
  end
  if ended == "stopped" then
    fail.with(130, result.checkpoint and "interrupted; saved " .. result.checkpoint
      or "interrupted; nothing is saved without --out")
  end
  return 0
end
