-- Training to its end, or to what ends it: steps, and between them evaluation, samples of text, saves.
local checkpoints = require "cli.checkpoint.checkpoints"
local evaluation = require "cli.train.evaluation"
local metrics = require "cli.train.metrics"
local native = require "cli.native"
local posix = require "cli.base.posix"
local progress = require "cli.train.progress"
local resume = require "cli.checkpoint.resume"

local MAX_SKIPS = 50  -- steps in a row whose gradients were not finite, after which training ends

local loop = {}

-- Keeps what a step gave.
local function record(result, run, step)
  local report = step.report
  result.skipped_steps, result.steps, result.saved = report.skipped_steps, report.step, nil
  result.loss_scale = report.loss_scale
  local at = #result.seconds + 1
  result.loss[at], result.seconds[at], result.tokens[at] = step.loss, step.seconds, step.tokens
  result.samples = result.samples and step.samples and result.samples
  if result.samples then result.samples[at] = step.samples end
  result.stall[at], result.copies[at], result.submit[at] = step.stall_seconds, step.copies, step.submit_seconds
  for _, row in ipairs(run.graph.metrics or {}) do
    result.metrics[row.name] = result.metrics[row.name] or {}
    result.metrics[row.name][at] = step.metrics[row.name] or 0 / 0
  end
end

-- Evaluates after a step. Returns what ends the run, and in words why; nil: nothing does.
local function evaluate(run, state, step, stop)
  local made = evaluation.run(run, stop, state.dry and 1 or nil)
  if not made then return "stopped" end
  local result = state.result
  result.evaluation_seconds = result.evaluation_seconds + made.seconds
  if state.dry then return nil end
  local row = { step = step, values = made.values, seconds = made.seconds }
  result.evaluation[#result.evaluation + 1] = row
  state.journal:evaluation(row)
  local name, value = metrics.not_finite(made.values)
  if name then
    return "metric", ("evaluation after step %d: %s is %s, which is not finite"):format(step, name, tostring(value))
  end
  local improved = state.judge:take(row)
  if improved and state.options.best and state.out then
    run.best = checkpoints.path(state.out, step)
    state.save(step)
  end
  if state.options.early_stop and state.judge.stale >= state.options.early_stop then return "early" end
end

-- state: first and last (step), out, options, result (what is filled), journal, judge, sample(step, stop) (or nil),
-- save(step), dry. Returns why it ended: "done", "early", "stopped", "nonfinite", "metric" or "memory" (of --on-oom
-- shrink: `run` can go on with smaller micro-batches), and with the last two of these the reason in words.
function loop.run(run, state)
  local done, options, journal = state.first, state.options, state.journal
  local bar = progress.new { total = run.spec.steps, done = done, memory = run.summary.peak_bytes.device,
    quiet = options.quiet, seconds = options.progress_every, batches = run.data.batches, unit = run.unit }
  if done < state.last then bar:start() end
  local function stop()
    bar:tick()
    if journal:due() then journal:flush() end
    return native.interrupts() > 0
  end
  local ended, why, skipped = "done", nil, 0
  while done < state.last do
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
    record(state.result, run, step)
    done = step.report.step
    if step.fell_back then
      io.stderr:write("note: the disk tier failed; training goes on from a plan without it\n")
    end
    local last = done >= state.last
    journal:step(step, last)
    bar:update(done, step.loss, run.unit == "samples" and step.samples or step.tokens, run.next_batch)
    skipped = step.outcome == "skipped_nonfinite" and skipped + 1 or 0
    if skipped >= (options.max_skips or MAX_SKIPS) then
      ended, state.result.skipped_in_a_row = "nonfinite", skipped
      break
    end
    local name, value
    if skipped == 0 then name, value = metrics.not_finite(step.metrics, run.graph.metrics) end
    if name then
      ended, why = "metric", ("step %d: %s is %s, which is not finite"):format(done, name, tostring(value))
      break
    end
    local every = options.eval_every
    if run.evaluation and (last or every and done % every == 0) then
      local began = posix.now()
      bar:say("evaluating")
      local ends, reason = evaluate(run, state, done, stop)
      bar:pause(posix.now() - began, state.result.evaluation)
      if ends then
        ended, why = ends, reason
        break
      end
    end
    if state.sample and done % options.sample_every == 0 then
      local began = posix.now()
      bar:clear()
      state.sample(done, stop)
      bar:pause(posix.now() - began)
    end
    if options.save_every and state.out and done % options.save_every == 0 and not last then
      journal:flush()
      state.save(done)
    end
  end
  journal:flush()
  bar:finish()
  state.result.steps = done
  return ended, why
end

return loop
