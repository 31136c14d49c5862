-- A run from its first step to its last words: what it owes, trains, keeps, and tells at its end.
local checkpoints = require "cli.checkpoint.checkpoints"
local fail = require "cli.base.fail"
local ffi = require "ffi"
local journal = require "cli.report.journal"
local loop = require "cli.train.loop"
local native = require "cli.native"
local posix = require "cli.base.posix"
local rescue = require "cli.train.rescue"
local results = require "cli.train.result"
local resume = require "cli.checkpoint.resume"
local run_directory = require "cli.checkpoint.run_directory"
local runs = require "cli.train.run"
local settings = require "cli.checkpoint.settings"
local shrink = require "cli.train.shrink"
local sums = require "cli.report.sums"

local conduct = {}

-- Signals cancel what the run's session does.
function conduct.watch(run) native.watch(tonumber(ffi.cast("uintptr_t", run.session:raw()))) end

-- Takes up what is known of the run's evaluations: those on the grid of --eval-every, for one that was made because a
-- run ended there, as a shorter one does, is none of the whole run's.
local function follow(state, opened, first)
  local judge, options = state.judge, state.options
  local was = opened and (opened.text("setting.eval-every") or ""):match("^%d+$")
  local function on_grid(step)
    for _, every in pairs { options.eval_every or false, tonumber(was) or false } do
      if every and step % every == 0 then return true end
    end
    return step == first and first >= state.last
  end
  return function(file, row)
    if file ~= "evaluations.jsonl" or not judge then return end
    -- Without a loss it was of data of which nothing counts.
    if row.loss and on_grid(row.step) then judge:take { step = row.step, values = row } end
    -- A checkpoint that was the best of the run so far stays, also where it no longer counts.
    local former = state.former
    if row[judge.metric] and (not former or (judge.better == "lower") == (row[judge.metric] < former.value)) then
      state.former = { step = row.step, value = row[judge.metric] }
    end
  end
end

-- What was due at the step that a run goes on from, and was not done: a signal ended the run before, or the system.
local function owed(run, state, opened, first)
  if not opened or first == 0 or state.dry then return nil end
  local origin = run_directory.of(opened.directory)
  local ended_there = first >= state.last and opened.number("steps", -1) == first
  local due = loop.due(run, state.options, first, ended_there)
  due.evaluation = due.evaluation and not (origin and run_directory.has_line(origin, "evaluations.jsonl", first))
  due.sample = due.sample and not (origin and run_directory.has_line(origin, "samples.jsonl", first))
  return (due.evaluation or due.sample) and due or nil
end

-- Trains to what ends it. Returns why it ended, and in words.
local function train_on(run, state)
  local result, out = state.result, state.out
  local function go()
    local failure, ended, why = rescue.try(function() return loop.run(run, state) end)
    if not failure then return ended, why end
    if not failure.interrupted then error(failure, 0) end
    run:forget()  -- a signal ended the recipe's code
    state.journal:flush()
    state.bar:finish()
    return "stopped"
  end
  local ended, why = go()
  while ended == "memory" do
    native.watch()
    shrink.go_on(run, out and function(step)
      state.save(step)
      return result.checkpoint
    end, why)
    conduct.watch(run)
    if out then checkpoints.prepare(run) end
    state.first = result.steps
    ended, why = go()
  end
  result.ended = ended
  if out then
    if ended == "stopped" or ended == "time" then result.saved = nil end  -- a step that was begun is saved, too
    state.save(result.steps)
  end
  return ended, why
end

-- Sums of the plan that stands for the run, for its page; nil: this library writes no plan as a text.
local function sums_of(run)
  local made, err = sums.of(run.plan)
  if not made and err.status ~= "UNSUPPORTED" then fail.check("plan", made, err) end
  collectgarbage()  -- the texts of a large plan are megabytes
  local several = made and run.trained and #run.trained > 1
  for _, program in ipairs(several and run.trained or {}) do
    if program.plan == run.plan then made.program = program.name end
  end
  return made
end

-- Fills `result` with what is told of the run at its end.
local function tell(run, state, began)
  local result = state.result
  result.batch, result.accumulate, result.shrunk = run.spec.o.batch, run.spec.accumulate, run.spec.shrunk
  result.micro_steps = run.micro_steps
  result.plan, result.total_seconds = run.summary, posix.now() - began
  result.records:digest(result)
  result.peak, result.driver = run:usage()
  result.digest, result.programs = run:digest(), run.programs
  result.parameter_count, result.trainable_parameters = runs.parameter_count(run.graph)
  result.base_digest = result.trainable_parameters < result.parameter_count and run:base_digest() or nil
  results.leave_out_idle(result)
  result.epochs = run.data.batches and run.next_batch / run.data.batches or nil
  result.shares = run.data.shares
  result.skipped_pictures = run.data.skipped and run.data.skipped() or nil
  if state.judge then
    result.best, result.stale = state.judge.best, state.judge.stale
    if result.best then
      result.best.metric = state.judge.metric
      result.best.checkpoint = run.best and posix.readable(run.best .. "/manifest.cairn") and run.best or nil
    end
  end
  result.report = state.journal and state.journal:page(results.page_rows(result))
end

-- Trains, and fills state.result. state: as loop.run has it, and what the command knows: take (takes the directory for
-- this run), write_plan (a function: returns the picture's path), open_mlflow(continues, first) (the run's record for
-- MLflow, or nil), about (rows of the page). Returns why it ended, and in words.
function conduct.train(run, state, opened, continues, note)
  local result, options, out, first = state.result, state.options, state.out, state.first
  local began = posix.now()
  state.owed = owed(run, state, opened, first)
  local idle = opened ~= nil and first >= state.last and not state.owed
  if idle then out, state.out = nil, nil end
  if out and continues then state.take() end
  if opened and not options.dry_run then
    result.resumed = resume.remark(run, opened, first, continues and out, note)
  end
  if idle then
    result.ended, result.checkpoint = "done", opened.directory
    local origin = run_directory.of(opened.directory)
    if origin then journal.recall(origin, first, follow(state, opened, first)) end
    local best = state.judge and state.judge.best
    if best and origin and options.best then run.best = checkpoints.path(origin, best.step) end
    tell(run, state, began)
    return "done"
  end
  if out then result.picture = state.write_plan() end
  state.journal = journal.open(out, continues and first or 0, options.log_every, state.about, run.unit,
    follow(state, opened, first))
  if out then
    state.journal.sums = sums_of(run)
    state.journal.mlflow = state.open_mlflow(continues, first)
  end
  if loop.is_stale(state) and first < state.last then
    settings.leave(options, { "early-stop" }, note, ("it ended the run at step %d"):format(first))
  end
  local best, former = state.judge and state.judge.best, state.former
  if best and out and options.best then run.best = checkpoints.path(out, best.step) end
  if out and continues then
    run.kept = {}
    if former and options.best and not (best and best.step == former.step) then
      run.kept[checkpoints.path(out, former.step)] = true
    end
    -- Of a run that does not say how many it kept, those that are there stay.
    local told = opened.text("setting.keep") or run.spec.settings.keep
    for _, name in ipairs(not told and checkpoints.steps(out) or {}) do
      run.kept[out .. "/" .. name] = true
    end
    if run.micro_before == 0 and opened.directory == checkpoints.path(out, first) then
      result.checkpoint, result.saved = opened.directory, first
    end
  end
  state.saved_at = posix.now()
  function state.save(step)
    if result.saved ~= step then result.checkpoint, result.saved = checkpoints.save(run, out), step end
    state.saved_at = posix.now()
  end
  local failure, ended, why = rescue.try(function()
    local reason, words = train_on(run, state)
    tell(run, state, began)
    return reason, words
  end)
  if failure then rescue.fail(run, state, failure) end
  return ended, why
end

return conduct
