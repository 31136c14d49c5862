-- cairn plan --sweep: plans from keeping everything down to the smallest budget, beside checkpointing by hand.
local cairn = require "cairn"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local format = require "cli.base.format"
local json = require "cli.base.json"
local runs = require "cli.train.run"
local summary = require "cli.plan.summary"

local sweep = {}

-- A curve ("cairn.sweep/1") as a table of Lua. `seconds`: from those of a micro-batch to those of a step.
local function read(text, seconds)
  local curve = decode(text)
  curve.keep_all_bytes = curve.baselines[1].arena_bytes
  curve.keep_all_seconds = seconds(curve.keep_all_seconds)
  for _, list in ipairs { curve.points, curve.baselines } do
    for _, row in ipairs(list) do
      row.predicted_seconds = seconds(row.predicted_seconds)
      if row.bound_seconds then
        row.bound_seconds = seconds(row.bound_seconds)
        if row.bound_seconds > 0 then row.gap = row.predicted_seconds / row.bound_seconds - 1 end
      end
    end
  end
  return curve
end

local NONE = { offload_bytes = 0, arena_bytes = 0 }

local function slower(curve, row)
  local all = curve.keep_all_seconds
  if all == 0 then return row.predicted_seconds > 0 and math.huge or 0 end
  return row.predicted_seconds / all - 1
end

-- What the same planner does within a budget; nil if no point of the curve fits.
local function within(curve, bytes)
  local best
  for _, point in ipairs(curve.points) do
    local faster = not best or point.predicted_seconds < best.predicted_seconds
    if faster and point.arena_bytes <= bytes then best = point end
  end
  return best
end

-- points: rows {budget_bytes, arena_bytes, predicted_seconds, bound_seconds, gap, keep_bytes, recompute_bytes, tiers =
-- {name = {offload_bytes, arena_bytes}}}, by falling budget.
local function print_tables(curve)
  local rows, used = {}, {}
  local header = { "of keep-all", "budget", "peak", "predicted", "slower", "bound", "gap", "kept", "recomputed",
                   "offloaded" }
  for _, name in ipairs { "host", "disk" } do
    for _, point in ipairs(curve.points) do used[name] = used[name] or (point.tiers[name] or NONE).arena_bytes > 0 end
    if used[name] then header[#header + 1] = "peak, " .. name end
  end
  for i, point in ipairs(curve.points) do
    local away = 0
    for _, tier in pairs(point.tiers) do away = away + tier.offload_bytes end
    rows[i] = {
      format.percent(point.budget_bytes / curve.keep_all_bytes), format.bytes(point.budget_bytes),
      format.bytes(point.arena_bytes), format.seconds(point.predicted_seconds),
      format.percent(slower(curve, point)), format.seconds(point.bound_seconds),
      ("%.2f%%"):format(point.gap * 100), format.bytes(point.keep_bytes), format.bytes(point.recompute_bytes),
      format.bytes(away),
    }
    for _, name in ipairs { "host", "disk" } do
      if used[name] then rows[i][#rows[i] + 1] = format.bytes((point.tiers[name] or NONE).arena_bytes) end
    end
  end
  io.stdout:write(format.table(rows, header))
  local hand = {}
  for i, baseline in ipairs(curve.baselines) do
    local ours = within(curve, baseline.arena_bytes)
    hand[i] = {
      (baseline.words:gsub("\226\136\154n", "sqrt(n)")), format.bytes(baseline.arena_bytes),
      format.seconds(baseline.predicted_seconds), format.percent(slower(curve, baseline)),
      ours and format.percent(slower(curve, ours)) or "-",
    }
  end
  io.stdout:write("\n", format.table(hand, { "by hand", "needs", "predicted", "slower", "planned within the same" }))
end

-- The same in every row, so that each can be read alone.
local function by_hand(curve)
  local rows = {}
  for i, baseline in ipairs(curve.baselines) do
    rows[i] = { baseline.name, json.object {
      { "budget_bytes", baseline.arena_bytes }, { "predicted_step_seconds", baseline.predicted_seconds } } }
  end
  return json.object(rows)
end

-- What fits a budget fits a higher one: where the plan of a lower budget is faster, it stands for both, beside the
-- bound of the higher one. `found`: summaries by falling budget. Each budget's variants are searched for by themselves.
local function let_more_be_no_slower(found, micro_steps)
  local function step(plan, seconds) return summary.step_seconds(plan, seconds, micro_steps) end
  for i = #found, 2, -1 do
    local less, more = found[i], found[i - 1]
    if step(less, less.predicted_seconds) < step(more, more.predicted_seconds) then
      local same = setmetatable({}, getmetatable(less))
      for key, value in pairs(less) do same[key] = value end
      same.budget_bytes, same.solve_seconds = more.budget_bytes, more.solve_seconds
      -- The higher budget's is of the variants that were searched for there, which the faster one need not be among.
      local bound = more.bound_seconds + (step(more, 0) - step(same, 0)) / micro_steps
      same.bound_seconds = math.min(less.bound_seconds, bound)
      found[i - 1] = same
    end
  end
end

-- Budgets from `high` to `low`, both left out, in equal ratios: fewer than 8.
local function between(high, low)
  local list, parts = {}, math.min(8, math.ceil(math.log(high / low) / math.log(1.1)))
  for i = 1, parts - 1 do list[i] = math.floor(high * (low / high) ^ (i / parts)) end
  return list
end

-- Summaries of plans by falling budget: under the curve's budgets, which are those of one form of the run, and below
-- them, where other forms need less: weights and states that live in tiers, packed weights that are given up.
local function plans_of(graph, device, options, micro_steps, curve)
  local found = {}
  local function add(name, value)
    local wanted = runs.plan_options(options, micro_steps)
    wanted[name] = value
    local plan, err = cairn.plan(graph, device, wanted)
    -- The base plan has the same options but the budget: this one is above the device's memory.
    if not plan and err.status == "INVALID_ARGUMENT" then return end
    found[#found + 1] = fail.check("plan", fail.check("plan", plan, err):summary())
    plan:free()
  end
  for _, point in ipairs(curve.points) do add("budget_bytes", point.budget_bytes) end
  local last = curve.points[#curve.points]
  if not last then return found end
  add("smallest_budget", true)
  local smallest = found[#found] and found[#found].budget_bytes
  if not smallest or smallest <= 0 then return found end
  local least = table.remove(found)
  if smallest < last.budget_bytes then
    for _, bytes in ipairs(between(last.budget_bytes, smallest)) do add("budget_bytes", bytes) end
    found[#found + 1] = least
  end
  let_more_be_no_slower(found, micro_steps)
  return found
end

-- A row of the table.
local function point_of(plan, micro_steps)
  local function step(seconds) return summary.step_seconds(plan, seconds, micro_steps) end
  local predicted, bound = step(plan.predicted_seconds), step(plan.bound_seconds)
  local tiers = {}
  for _, name in ipairs { "host", "disk" } do
    tiers[name] = { offload_bytes = plan[("offload_%s_bytes"):format(name)], arena_bytes = plan.peak_bytes[name] }
  end
  return { budget_bytes = plan.budget_bytes, arena_bytes = plan.peak_bytes.device, predicted_seconds = predicted,
           bound_seconds = bound, gap = bound > 0 and predicted / bound - 1 or plan.gap,
           keep_bytes = plan.keep_bytes, recompute_bytes = plan.recompute_bytes, tiers = tiers }
end

-- Whether a budget may make another form of the run better than the one that the curve is of: one whose weights and
-- states live in tiers, whose weights are not kept packed or decoded, whose updates lie elsewhere.
local function has_forms(curve, about, options)
  local first = curve.points[1]
  return first ~= nil and next(first.tiers) ~= nil or about.counters.derived_bytes > 0 or options.fuse_update
end

-- rows_of(plan, micro_steps): the keys of `cairn plan --json`.
function sweep.recipe(graph, device, options, micro_steps, rows_of)
  local base = runs.plan(graph, device, options, micro_steps)
  local about = fail.check("plan", base:summary())
  local curve = read(fail.check("plan", base:render("sweep")), function(seconds)
    return summary.step_seconds(about, seconds, micro_steps)
  end)
  base:free()
  if not options.json and not has_forms(curve, about, options) then  -- planning every budget anew takes its time
    print_tables(curve)
    io.stdout:write("\nEvery row has the ops of the plan without a budget. --json plans each budget again: that takes ",
      "longer, and may find faster ones.\n")
    return
  end
  local found = plans_of(graph, device, options, micro_steps, curve)
  if not options.json then
    for i, numbers in ipairs(found) do curve.points[i] = point_of(numbers, micro_steps) end
    for i = #found + 1, #curve.points do curve.points[i] = nil end
    return print_tables(curve)
  end
  local rows, hand = {}, by_hand(curve)
  for i, numbers in ipairs(found) do
    local object = json.object(rows_of(numbers, micro_steps))
    table.insert(object.rows, 2, { "budget_share", numbers.budget_bytes / curve.keep_all_bytes })
    object.rows[#object.rows + 1] = { "by_hand", hand }
    rows[i] = object
  end
  io.stdout:write(json.encode(json.array(rows)), "\n")
end

local FIRST = { host = "\1", disk = "\2" }  -- then other tiers by name

function sweep.problem(path, text, options)
  local curve = read(fail.check(path, cairn.problem_solve(text, 2 ^ 62, "sweep")), function(seconds) return seconds end)
  if not options.json then return print_tables(curve) end
  local rows, hand = {}, by_hand(curve)
  for i, point in ipairs(curve.points) do
    local plan = { { "keep_bytes", point.keep_bytes }, { "recompute_bytes", point.recompute_bytes } }
    local peak = { { "device", point.arena_bytes } }
    local names = { "host", "disk" }
    for name in pairs(point.tiers) do
      if name ~= "host" and name ~= "disk" then names[#names + 1] = name end
    end
    table.sort(names, function(a, b) return (FIRST[a] or a) < (FIRST[b] or b) end)
    for _, name in ipairs(names) do
      local tier = point.tiers[name] or { offload_bytes = 0, arena_bytes = 0 }
      plan[#plan + 1] = { ("offload_%s_bytes"):format(name), tier.offload_bytes }
      peak[#peak + 1] = { name, tier.arena_bytes }
    end
    for _, row in ipairs { { "predicted_step_seconds", point.predicted_seconds },
                           { "bound_step_seconds", point.bound_seconds }, { "gap", point.gap },
                           { "solve_seconds", point.solve_seconds },
                           { "keep_all_step_seconds", curve.keep_all_seconds },
                           -- Whatever persists is on the device in a problem.
                           { "optimizer_host_bytes", 0 }, { "optimizer_disk_bytes", 0 } } do
      plan[#plan + 1] = row
    end
    rows[i] = json.object { { "budget_bytes", point.budget_bytes },
      { "budget_share", point.budget_bytes / curve.keep_all_bytes }, { "plan", json.object(plan) },
      { "planned_peak_bytes", json.object(peak) }, { "persistent_bytes", curve.persistent_bytes },
      { "by_hand", hand } }
  end
  io.stdout:write(json.encode(json.array(rows)), "\n")
end

return sweep
