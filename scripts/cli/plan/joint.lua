-- batch=auto global_batch=N: micro-batch, accumulation and plan chosen together, for the most samples per second.
-- And global_batch=N beside a fixed batch, which says how many micro-batches a step has.
local cairn = require "cairn"
local fail = require "cli.base.fail"
local format = require "cli.base.format"
local json = require "cli.base.json"
local refusal = require "cli.plan.refusal"
local runs = require "cli.train.run"
local summary = require "cli.plan.summary"

local joint = {}

-- Divisors of n, ascending: the micro-batches whose step is whole.
function joint.divisors(n)
  local low, high = {}, {}
  for d = 1, math.floor(math.sqrt(n)) do
    if n % d == 0 then
      low[#low + 1] = d
      if d * d ~= n then table.insert(high, 1, n / d) end
    end
  end
  for _, d in ipairs(high) do low[#low + 1] = d end
  return low
end

local function with_batch(o, batch)
  local copy = {}
  for key, value in pairs(o) do copy[key] = value end
  copy.batch, copy.global_batch = batch, 0
  return copy
end

-- One plan's numbers; nil, smallest budget, error where the budget is too small.
local function try(recipe, o, device, wanted, limit)
  local graph = runs.graph(recipe, o, limit)
  local plan, err = cairn.plan(graph, device, wanted)
  if not plan then
    graph:free()
    if err.status ~= "OVER_BUDGET" then fail.plan(("plan, batch=%d"):format(o.batch), nil, err) end
    return nil, err.fault and err.fault.smallest_budget_bytes or 0, err
  end
  local numbers = fail.check("plan", plan:summary())
  plan:free()
  graph:free()
  return numbers
end

-- The budget in bytes. A share is of what keeping everything takes with the whole global batch in one micro-batch;
-- without a budget it is the device's memory.
local function budget_bytes(recipe, o, device, options)
  local wanted = runs.plan_options(options, 1)
  if wanted.budget_bytes then return wanted.budget_bytes end
  if wanted.budget_share then
    local numbers, _, err = try(recipe, with_batch(o, o.global_batch), device, wanted)
    return numbers and numbers.budget_bytes or err.fault.budget_bytes
  end
  if options.device_model then return 0 end  -- the planner's own default: the model's memory
  for _, info in ipairs(fail.check("devices", cairn.devices())) do
    if info.name == (options.device or "cpu") then return info.memory_bytes end
  end
  return 0
end

local function faster(a, b)
  if a.samples_per_second ~= b.samples_per_second then return a.samples_per_second > b.samples_per_second end
  return a.peak_bytes < b.peak_bytes
end

-- Plans every micro-batch that divides the global batch; updates inside backward leave only all of it. Returns
-- candidates, the fastest first and those that do not fit last, and the budget in bytes, 0 for the planner's default.
function joint.candidates(recipe, o, device, options)
  local bytes = budget_bytes(recipe, o, device, options)
  local fits, others = {}, {}
  for _, batch in ipairs(options.fuse_update and { o.global_batch } or joint.divisors(o.global_batch)) do
    local wanted = runs.plan_options(options, o.global_batch / batch)
    wanted.budget_share, wanted.budget_bytes = nil, bytes > 0 and bytes or nil
    local numbers, smallest = try(recipe, with_batch(o, batch), device, wanted,
      not options.device_model and refusal.weights_limit(options, true) or nil)
    local row = { batch = batch, accumulate = o.global_batch / batch }
    if numbers then
      row.plan, row.peak_bytes = numbers, numbers.peak_bytes.device
      row.seconds = summary.step_seconds(numbers, numbers.predicted_seconds, row.accumulate)
      row.samples_per_second = o.global_batch / row.seconds
      fits[#fits + 1] = row
    else
      row.smallest_budget_bytes = smallest
      others[#others + 1] = row
    end
  end
  table.sort(fits, faster)
  for _, row in ipairs(others) do fits[#fits + 1] = row end
  return fits, bytes
end

local function nothing_fits(candidates, bytes, global_batch)
  local best = candidates[1]
  for _, row in ipairs(candidates) do
    if row.smallest_budget_bytes < best.smallest_budget_bytes then best = row end
  end
  local least = best.smallest_budget_bytes
  fail.with(4, ("global_batch=%d: no micro-batch fits the budget of %.0f bytes (%s)\nthe smallest budget that fits " ..
    "is %.0f bytes (%s), with batch=%d and %d micro-batches\ntry batch=%d --accumulate %d --budget %.0f"):format(
    global_batch, bytes, format.bytes(bytes), least, format.bytes(least), best.batch, best.accumulate, best.batch,
    best.accumulate, least), { status = "OVER_BUDGET", budget_bytes = bytes, smallest_budget_bytes = least })
end

-- What batch and global_batch ask for. Returns option values to build the graph with, the micro-batches of a step
-- (nil: nothing was said about them), the options with the budget in bytes, and with batch=auto the candidates.
-- given: whether --accumulate was.
function joint.resolve(recipe, o, device, options)
  local global, given = o.global_batch or 0, options.accumulate
  if o.batch ~= "auto" then
    if global == 0 then return o, given, options end
    if global % o.batch ~= 0 then
      fail.usage(("global_batch=%d: batch=%d does not divide it"):format(global, o.batch))
    end
    local micro_steps = global / o.batch
    if given and given ~= micro_steps then
      fail.usage(("--accumulate %d: global_batch=%d and batch=%d make it %d"):format(given, global, o.batch,
        micro_steps))
    end
    return with_batch(o, o.batch), micro_steps, options
  end
  if global == 0 then fail.usage("batch=auto needs global_batch=N, the samples of a step") end
  if given then fail.usage("--accumulate does not go with batch=auto, which chooses it") end
  local candidates, bytes = joint.candidates(recipe, o, device, options)
  local best = candidates[1]
  if not best.plan then nothing_fits(candidates, bytes, global) end
  local changed = {}
  for key, value in pairs(options) do changed[key] = value end
  changed.budget = bytes > 0 and { bytes = bytes } or nil
  return with_batch(o, best.batch), best.accumulate, changed, candidates
end

-- What `cairn plan --json` adds for a plan: batch, accumulate, samples_per_second, and with batch=auto candidates.
function joint.rows(o, micro_steps, numbers, candidates)
  if not o.batch then return { { "accumulate", micro_steps } } end
  local seconds = summary.step_seconds(numbers, numbers.predicted_seconds, micro_steps)
  local rows = { { "batch", o.batch }, { "accumulate", micro_steps },
                 { "samples_per_second", o.batch * micro_steps / seconds } }
  if candidates then rows[4] = { "candidates", joint.json(candidates) } end
  return rows
end

-- Candidates for JSON: the choice first.
function joint.json(candidates)
  local list = {}
  for i, row in ipairs(candidates) do
    local fields = { { "batch", row.batch }, { "accumulate", row.accumulate }, { "fits", row.plan ~= nil } }
    if row.plan then
      for _, field in ipairs {
        { "samples_per_second", row.samples_per_second }, { "predicted_step_seconds", row.seconds },
        { "slower", row.seconds / candidates[1].seconds - 1 },
        { "planned_peak_bytes", summary.tiers(row.plan.peak_bytes) },
        { "plan", summary.plan(row.plan, row.accumulate) }, { "measured_ops", row.plan.counters.measured_ops },
        { "ops", row.plan.op_count },
      } do fields[#fields + 1] = field end
    else
      fields[#fields + 1] = { "smallest_budget_bytes", row.smallest_budget_bytes }
    end
    list[i] = json.object(fields)
  end
  return json.array(list)
end

-- The choice and its runners-up as a table.
function joint.text(candidates)
  local rows = {}
  for i, row in ipairs(candidates) do
    local name = ("%s%d x %d"):format(i == 1 and "* " or "  ", row.accumulate, row.batch)
    if row.plan then
      local slower = row.seconds / candidates[1].seconds - 1
      rows[i] = { name, format.bytes(row.peak_bytes), format.seconds(row.seconds),
                  format.rate(row.samples_per_second), i == 1 and "chosen" or format.percent(slower),
                  format.bytes(row.plan.recompute_bytes),
                  format.bytes(row.plan.offload_host_bytes + row.plan.offload_disk_bytes) }
    else
      rows[i] = { name, "needs " .. format.bytes(row.smallest_budget_bytes), "-", "-", "does not fit", "-", "-" }
    end
  end
  return format.table(rows, { "  micro-batches", "peak", "step", "samples/s", "slower", "recomputed", "offloaded" })
end

return joint
