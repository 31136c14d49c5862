-- Training to its end, or to what ends it: steps, and between them evaluation, samples of text, saves.
local checkpoints = require "cli.checkpoint.checkpoints"
local evaluation = require "cli.train.evaluation"
local metrics = require "cli.train.metrics"
local native = require "cli.native"
local posix = require "cli.base.posix"
local progress = require "cli.train.progress"
local results = require "cli.train.result"
local resume = require "cli.checkpoint.resume"

local MAX_SKIPS = 50  -- steps in a row that were skipped, after which training ends

local loop = {}

-- Keeps what a step gave.
local function record(result, run, step)
  local report, names = step.report, {}
  for i, row in ipairs(run.graph.metrics or {}) do names[i] = row.name end
  result.skipped_steps, result.steps, result.saved = report.skipped_steps, report.step, nil
  result.loss_scale, result.last_outcome, result.last_loss = report.loss_scale, step.outcome, step.loss
  result.empty_steps = result.empty_steps + (step.outcome == "skipped_empty" and 1 or 0)
  result.records:add(step, names)
end

-- Evaluates after a step. Returns what ends the run, and in words why; nil: nothing does.
local function evaluate(run, state, step, stop)
  local made = evaluation.run(run, stop, state.dry and 1 or nil)
  if not made then return "stopped" end
  local result = state.result
  result.evaluation_seconds = result.evaluation_seconds + made.seconds
  if made.empty and not state.told_empty then
    state.told_empty = true
    run.spec.note(("note: evaluation after step %d: the weights of all its data are 0, so that nothing of it " ..
      "counts; give other data to evaluate with"):format(step))
  end
  if state.dry then return nil end
  local row = { step = step, values = made.values, seconds = made.seconds }
  result.evaluations:add(results.evaluation(row))
  result.last_evaluation = row
  state.journal:evaluation(row)
  if made.empty then return nil end
  local name, value = metrics.not_finite(made.values)
  if name then
    return "metric", ("evaluation after step %d: %s is %s, which is not finite"):format(step, name, tostring(value))
  end
  local improved = state.judge:take(row)
  if improved and state.options.best and state.out then
    run.best = checkpoints.path(state.out, step)
    state.save(step)
  end
  if loop.is_stale(state) then return "early" end
end

-- Whether --early-stop ends the run.
function loop.is_stale(state)
  return state.judge and state.options.early_stop and state.judge.stale >= state.options.early_stop
end

-- What is due after a step, by its number; last: whether the run ends with it.
function loop.due(run, options, step, last)
  local every = options.eval_every
  return { evaluation = run.evaluation and (last or every and step % every == 0) or false,
           sample = options.sample_every and step % options.sample_every == 0 or false }
end

local function save_is_due(state, step)
  local every = state.options.save_every
  if not every or not state.out then return false end
  return every.steps and step % every.steps == 0 or every.seconds and posix.now() - state.saved_at >= every.seconds
end

-- Does what is due after a step. Returns what ends the run, and why.
local function attend(run, state, step, due, stop)
  local bar, ends, why = state.bar, nil, nil
  if due.evaluation then
    local began = posix.now()
    bar:say("evaluating")
    ends, why = evaluate(run, state, step, stop)
    bar:pause(posix.now() - began, state.result.last_evaluation)
  end
  if due.sample and state.sample and (not ends or ends == "early") then
    local began = posix.now()
    bar:clear()
    if not state.sample(step, stop) then return "stopped" end
    bar:pause(posix.now() - began)
  end
  return ends, why
end

-- Tells the recipe of a step. Returns whether it ends the run, and what it raised.
local function tell(run, state, step)
  if not run.recipe.on_step or state.dry then return false end
  local report = step.report
  local told, answer = pcall(run.recipe.guard, run.recipe.on_step, {
    step = report.step, outcome = step.outcome, loss = step.loss, rate = report.rate, tokens = step.tokens,
    gradient_norm = report.gradient_norm, loss_scale = report.loss_scale, samples = step.samples,
    skipped_steps = report.skipped_steps, seconds = step.seconds, metrics = step.metrics })
  if not told then return false, answer end
  return answer == "stop" or answer == false
end

-- What ends a run after a step, by what came of it.
local function verdict(run, state, step)
  local skips, most, outcome = state.skips, state.options.max_skips or MAX_SKIPS, step.outcome
  skips.count = outcome ~= "applied" and skips.count + 1 or 0
  if outcome == "skipped_empty" and not skips.told then
    skips.told = true
    run.spec.note(("note: step %d is skipped: the weights of its %d micro-batch(es) add up to 0, so that nothing of " ..
      "them counts"):format(step.report.step, #step.submit_seconds))
  end
  if skips.count >= most then
    state.result.skipped_in_a_row = skips.count
    return outcome == "skipped_empty" and "empty" or "nonfinite"
  end
  local name, value
  if outcome == "applied" then name, value = metrics.not_finite(step.metrics, run.graph.metrics) end
  if name then
    return "metric", ("step %d: %s is %s, which is not finite"):format(step.report.step, name, tostring(value))
  end
end

-- state: first and last (step), out, options, result (what is filled), journal, judge, sample(step, stop) (or nil),
-- save(step), saved_at, dry, deadline (of the clock, or nil), owed (what is due at `first`, or nil). Returns why it
-- ended: "done", "early", "recipe", "time", "stopped", "nonfinite", "empty", "metric" or "memory" (of --on-oom shrink:
-- `run` can go on with smaller micro-batches), and with the last two of these the reason in words.
function loop.run(run, state)
  local done, options, journal, result = state.first, state.options, state.journal, state.result
  local bar = progress.new { total = run.spec.steps, done = done, memory = run.summary.peak_bytes.device,
    quiet = options.quiet, seconds = options.progress_every, batches = run.data.batches, unit = run.unit,
    skipped = result.skipped_steps }
  state.bar, state.skips = bar, state.skips or { count = 0 }
  local function over() return state.deadline ~= nil and posix.now() >= state.deadline end
  if done < state.last then bar:start() end
  local function stop()
    bar:tick()
    if journal:due() then journal:flush() end
    return native.interrupts() > 0 or over()
  end
  local ended, why
  if state.owed then
    ended, why = attend(run, state, done, state.owed, stop)
    state.owed = nil
  end
  if not ended and loop.is_stale(state) then ended = "early" end
  while not ended and done < state.last do
    local step = stop() and { outcome = "stopped" } or run:step(stop)
    if step.outcome == "stopped" or step.outcome == "cancelled" then
      ended = "stopped"
      break
    end
    if step.outcome == "memory" then
      ended, why = "memory", step.why
      break
    end
    if run.configures then
      run.configures = nil
      resume.configure(run)
    end
    record(result, run, step)
    done = step.report.step
    if step.fell_back then
      io.stderr:write("note: the disk tier failed; training goes on from a plan without it\n")
    end
    local stops, problem = tell(run, state, step)
    local last = done >= state.last
    journal:step(step, last or stops)
    if step.problem or problem then error(step.problem or problem, 0) end
    bar:update(done, step.loss, run.unit == "samples" and step.samples or step.tokens, run.next_batch,
      result.skipped_steps)
    ended, why = verdict(run, state, step)
    if not ended then
      ended, why = attend(run, state, done, loop.due(run, options, done, last or stops), stop)
      if not ended and stops then ended = "recipe" end
      if not ended and not last and save_is_due(state, done) then
        journal:flush()
        state.save(done)
      end
    end
  end
  if ended == "stopped" and native.interrupts() == 0 and over() then ended = "time" end
  journal:flush()
  bar:finish()
  state.result.steps = done
  return ended or "done", why
end

return loop
