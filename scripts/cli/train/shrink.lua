-- --on-oom shrink: a run that gets no memory goes on with smaller micro-batches and more of them a step. Its data stay
-- in the micro-batches that they come in, each of which is trained on in equal parts (cli.data.parts): none is lost
-- or seen twice.
local base = require "cli.checkpoint.base"
local cairn = require "cairn"
local changed = require "cli.base.changed"
local checkpoints = require "cli.checkpoint.checkpoints"
local fail = require "cli.base.fail"
local posix = require "cli.base.posix"
local resume = require "cli.checkpoint.resume"
local runs = require "cli.train.run"

local shrink = {}

local MEMORY = 4  -- the exit code of what ends for want of memory

local function smallest_factor(n)
  for p = 2, math.floor(math.sqrt(n)) do
    if n % p == 0 then return p end
  end
  return n
end

-- What a run is set up from, with micro-batches of half the size and twice as many (a third of an odd size that 3
-- divides, and so on); nil, why: there are none.
function shrink.smaller(spec)
  local batch = tonumber(spec.o.batch)
  if not batch then return nil, "the recipe has no option `batch`" end
  if batch == 1 then return nil, "and a micro-batch of one sample cannot be made smaller" end
  if spec.o.remainder == "own" then
    return nil, "and --on-oom shrink does not go with remainder=own: take pad or drop"
  end
  if spec.options.fuse_update then
    return nil, "and --on-oom shrink does not go with --fuse-update: more micro-batches are more than its one a step"
  end
  local p = smallest_factor(batch)
  return changed(spec, { o = changed(spec.o, { batch = batch / p }), accumulate = spec.accumulate * p,
                         parts = (spec.parts or 1) * p })
end

local function say(spec, next_spec, step, why)
  why = why:gsub("\n", "; ")
  spec.note(("note: %s: going on%s with batch=%d and %d micro-batches a step instead of batch=%d and %d"):format(why,
    step > 0 and (" after step %d"):format(step) or "", next_spec.o.batch, next_spec.accumulate, spec.o.batch,
    spec.accumulate))
  next_spec.shrunk = {}
  for i, row in ipairs(spec.shrunk or {}) do next_spec.shrunk[i] = row end
  table.insert(next_spec.shrunk,
    { step = step, batch = next_spec.o.batch, accumulate = next_spec.accumulate, why = why })
end

-- runs.open, as --on-oom says. step: after which the run goes on.
function shrink.open(spec, step)
  while true do
    local opened, made = pcall(runs.open, spec)
    if opened then return made end
    if not fail.is(made) or made.code ~= MEMORY or spec.options.on_oom ~= "shrink" then error(made, 0) end
    local smaller, problem = shrink.smaller(spec)
    if not smaller then fail.with(MEMORY, made.message .. "; " .. problem) end
    say(spec, smaller, step, made.message)
    for _ = 1, 2 do collectgarbage("collect") end  -- the handles that the failed attempt left
    spec = smaller
  end
end

-- Saves a run that has no place to save in. Returns where, and what removes it.
local function save_aside(run)
  local folder = ("%s/cairn-%d"):format(posix.temporary(), posix.pid())
  local made, refused = posix.new_directory(folder)
  if not made then fail.with(5, "--on-oom: " .. refused) end
  local directory = folder .. "/checkpoint"
  fail.check("--on-oom", run.stepper:save(directory, {}, {}))
  return directory, function()
    fail.check("--on-oom", cairn.remove_checkpoint(directory))
    posix.remove_empty_directory(folder)
  end
end

-- Gives a run that the system refused memory, and whose effective batch is thrown away, smaller micro-batches. What it
-- has learnt goes through a checkpoint, so that it is never in memory twice. Changes `run` in place. save(step): saves
-- the run as it does between steps and returns where; nil: it has no place for that.
function shrink.go_on(run, save, why)
  local step = fail.check("--on-oom", run.stepper:report()).step
  local directory = save and save(step)  -- which nothing that fails from here on can lose
  local smaller, problem = shrink.smaller(run.spec)
  if not smaller then fail.with(MEMORY, ("%s; %s"):format(why, problem)) end
  say(run.spec, smaller, step, why)
  local function remove() end
  if not directory then directory, remove = save_aside(run) end
  local first, parts, best, kept = run.next_batch, run.spec.parts or 1, run.best, run.kept
  local source = run.source
  run:close()
  for key in pairs(run) do run[key] = nil end
  for _ = 1, 2 do collectgarbage("collect") end
  local opened, made = pcall(shrink.open, smaller, step)
  if not opened then
    remove()
    error(made, 0)
  end
  for key, value in pairs(made) do run[key] = value end
  local checkpoint = checkpoints.open(directory)
  run.source = source
  fail.check("--on-oom", base.restore(run, checkpoint))
  checkpoint.checkpoint:free()
  resume.configure(run)
  run.next_batch, run.best, run.kept = first * run.spec.parts / parts, best, kept
  remove()
end

return shrink
