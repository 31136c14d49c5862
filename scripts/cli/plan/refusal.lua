-- What is said of a plan that its budget refuses, in three lines: what was asked for, the least that does, and what to
-- type instead.
local attempt = require "cli.base.attempt"
local cairn = require "cairn"
local changed = require "cli.base.changed"
local costs = require "cli.plan.costs"
local fail = require "cli.base.fail"
local format = require "cli.base.format"
local levers = require "cli.plan.levers"

local refusal = {}

local PATIENCE = 4  -- seconds for the least budget, where it is known to be above what there is
local FEW_PARAMETERS = 200  -- a graph of so many is made in a moment, and may have worse mistakes
local LEAST_FROZEN = 0.5  -- bytes of a frozen parameter's element, in the least of formats
local FEW_VALUES = 300  -- of a graph for which no plan is looked for longer than that
local NOTHING = "try a smaller model, or a smaller batch="

-- A plan of the run with a lever's changes, under a budget of `bytes`; true, or nil, err.
local function try(run, device, options, micro_steps, of, row, bytes)
  local with = changed(options, row.options or {})
  if with.tiers and options.closed then with.costs = options.closed.open end
  local wanted = run.plan_options(with, row.micro_steps or micro_steps)
  wanted.budget_share, wanted.budget_bytes = nil, bytes
  if of.plan then
    local plans, err = of.plan(wanted, device)
    for _, plan in ipairs(plans or {}) do plan:free() end
    return plans and true, err
  end
  local o, recipe = changed(of.o, row.o or {}), of.recipe
  if row.freezes then
    local whole = run.graph(recipe, o)
    recipe = levers.freezing(recipe, #whole:parameters())
    whole:free()
  end
  local graph = run.graph(recipe, o)
  local plan, err = cairn.plan(graph, device, wanted)
  if plan then plan:free() end
  graph:free()
  return plan and true, err
end

-- Calls work(tell, device, options) aside for so many seconds, and returns what it told. A GPU's driver does not go
-- with a copy of the process: there it is called here, and takes its time.
local function aside(run, device, options, seconds, work)
  if not (options.device or "cpu"):find("^cuda") then
    return attempt(seconds, function(tell)
      local again = costs.again(changed(options, { rates = "model" }))
      return work(tell, run.device(again), again)
    end)
  end
  local told = {}
  local tried, err = pcall(work, function(line) told[#told + 1] = line end, device, options)
  if not tried and not (fail.is(err) and not err.interrupted) then error(err, 0) end
  return table.concat(told)
end

local function least_of(err) return err and err.status == "OVER_BUDGET" and err.fault.smallest_budget_bytes or nil end

-- Whether a lever fits a budget, and the least that it needs, as far as they are known in so many seconds.
local function smallest_of(run, device, options, micro_steps, of, row, budget, seconds)
  local text = aside(run, device, options, seconds, function(tell, on, with)
    local made, err = try(run, on, with, micro_steps, of, row, budget)
    local bytes = not made and least_of(err)
    -- Programs that share a store may need more than the one that was refused first.
    if not made then return bytes and bytes > budget and tell(("least %d\n"):format(bytes)) end
    tell("fits\n")
    bytes = least_of(select(2, try(run, on, with, micro_steps, of, row, 1)))
    if bytes then tell(("least %d\n"):format(bytes)) end
  end)
  return text:find("fits\n", 1, true) and true or nil, tonumber(text:match("least (%d+)\n"))
end

-- What to do instead. run: cli.train.run; budget, smallest: what was given, and what the refused plan needs, or less;
-- of: {recipe, o}, or {o, plan = function(wanted, device) -> plans, err} of several programs; nil: it is not known;
-- shared: the budget is all of the machine's memory, and the host's is no other.
local function advice(run, device, options, micro_steps, budget, smallest, of, shared)
  if not of or options.on_oom == "shrink" then return nil end
  return levers.advice {
    options = options, o = of.o, micro_steps = micro_steps or 1, budget = budget, smallest = smallest,
    model = options.device_model and costs.variants(options) or nil, whole = not of.plan, shared = shared,
    smallest_of = function(row, seconds)
      return smallest_of(run, device, options, micro_steps, of, row, budget, seconds)
    end,
  }
end

-- Bytes in the unit that a budget was typed in, rounded up so that they do when they are typed.
local function in_unit(bytes, budget, budget_bytes)
  if budget.share and (budget_bytes or 0) > 0 then
    return ("%.12g%%"):format(math.ceil(bytes * budget.share / budget_bytes * 1e4) / 1e2)
  end
  local scale = budget.unit and format.UNITS[budget.unit] or 1
  return scale > 1 and ("%.12g%s"):format(math.ceil(bytes / scale * 1e3) / 1e3, budget.unit) or format.bytes(bytes)
end

-- The three lines. asked: the first; budget_bytes: nil where it is the device that has too little; least: bytes, or nil
-- and at_least, which they are above; more: what else there is to say of them. room: bytes above which no budget may be
-- (0: not known). beside: at_least is beside what tiers hold.
local function lines(asked, budget, budget_bytes, least, at_least, more, room, help, beside)
  local words = least and ("the smallest budget that %s is %%d bytes (%%s)"):format(budget_bytes and "does" or "fits")
    or (beside and "besides what the tiers hold, " or "") .. "weights, gradients and states alone take %d bytes (%s)"
  local second = words:format(least or at_least, in_unit(least or at_least, budget, budget_bytes))
  local open = least and (room == 0 or least <= room)
  local third = open and ("try --budget %s"):format(budget.bytes and budget.unit == "" and ("%d"):format(least)
    or in_unit(least, budget, budget_bytes):gsub(" ", ""))
  if help then third = third and ("%s; %s"):format(third, help) or help end
  return table.concat({ asked, second .. more, third or NOTHING }, "\n")
end

-- What the library says of the peak, as far as it goes on a line.
local function peak_of(message)
  local at = message:match("Its peak is (at .-) %(workspace") or message:match("Its peak is (at [^;,]*)")
  local full = message:match("(; the tier '%w+' has room for %d+ bytes and no more)") or ""
  return (at and "; its peak is " .. at or "") .. full
end

local function memory_of(options) return (levers.device_memory(options.device or "cpu")) end

-- The first line of a refusal of a budget: as it was typed, and in bytes.
function refusal.asked(budget, bytes)
  local typed = budget and budget.typed
  local also = typed and typed ~= ("%d"):format(bytes)
  return ("no plan fits a budget of %d bytes%s"):format(bytes, also and (" (--budget %s)"):format(typed) or "")
end

-- The error of cairn.plan as it is told: with what was typed, and what would help, if it is a refusal.
function refusal.explained(run, err, device, options, micro_steps, of)
  local fault = err.status == "OVER_BUDGET" and err.fault
  local smallest = fault and fault.smallest_budget_bytes or 0
  if smallest == 0 then return err end
  local budget = options.budget or {}
  local room = options.device_model and 0 or memory_of(options)
  local asked = refusal.asked(budget, fault.budget_bytes)
  err.message = lines(asked, budget, fault.budget_bytes, smallest, nil, peak_of(err.message), room,
    advice(run, device, options, micro_steps, fault.budget_bytes, smallest, of))
  return err
end

-- Whether weights may live in tiers.
local function may_leave(options)
  if options.closed then return false end
  if next(levers.open_tiers(options, options.device_model and costs.variants(options))) then return true end
  for _, row in ipairs(options.region or {}) do
    if row.policy:find("^offload") then return true end
  end
  return false
end

-- What ends the command as soon as weights alone are more than the device's memory, where the run is to `train` on it
-- or has a budget: a function of the name and elements of a parameter and whether it is frozen, and at the end of
-- none; nil: there is no such limit. What only a budget is too small for is planned, as its smallest budget can be
-- told.
function refusal.weights_limit(options, train)
  local given, memory = options.budget and options.budget.bytes, memory_of(options)
  if options.device_model or may_leave(options) or not (train or given) or memory == 0 then return nil end
  local most = math.max(given or 0, memory)
  local each, sum = (options.optimizer or {}).parameters == "bf16" and 2 or 4, 0
  local made, last = 0, ""
  return function(name, count, frozen)
    sum, made = sum + (frozen and LEAST_FROZEN or each) * count, made + 1
    last = name or last
    if sum <= most or (name and made < FEW_PARAMETERS) then return end
    local asked = given and refusal.asked(options.budget, given)
      or ("the run takes more than device '%s' has, %s (%d bytes)"):format(options.device or "cpu",
        format.bytes(most), most)
    local tiers = options.no_tiers and "" or "--tiers host,disk, or "
    fail.with(4, ("%s\nthe weights up to '%s' alone take %.0f bytes (%s)\ntry %sa smaller model"):format(asked, last,
      sum, format.bytes(sum), tiers), { status = "OVER_BUDGET", budget_bytes = most })
  end
end

-- Bytes of the device that every plan of the options takes, whatever it recomputes: weights, states, and gradients
-- until the update, but for derived weights, which may be given up, and for what tiers have room for. numbers: the
-- summary of a plan without a budget, in which gradients persist but with one micro-batch a step. nil: nothing is
-- certain, as weights may live in tiers.
function refusal.at_least(numbers, options, micro_steps)
  local room = levers.room(options, options.device_model and costs.variants(options) or nil)
  local apart = micro_steps == 1 and not options.fuse_update
  local bytes = numbers.persistent_bytes - numbers.counters.derived_bytes + (apart and numbers.gradients_bytes or 0)
  return bytes > room and bytes - room or nil
end

-- The options of cairn.plan without a budget, on a device of any memory.
function refusal.unlimited(wanted, options)
  local free = changed(wanted, { budget_share = 1 })
  free.budget_bytes = nil
  if options.device_model then
    local _, open, closed = costs.variants(options)
    free.costs = (options.closed and closed or open)()
  end
  return free
end

-- Ends the command because a plan asks for more than `bytes`, of which `need` says in words, and what it needs at least
-- (nil: not known) may be above them. Where it is, that is certain at once, and the exact number is looked for a while.
function refusal.fail(asked, run, plan, options, micro_steps, of, bytes, at_least, need)
  local budget, device, least, more = options.budget or {}, plan.device
  if at_least and at_least > bytes and of and plan.graph:count() > FEW_VALUES then
    local text = aside(run, device, options, PATIENCE, function(tell, on, with)
      local _, err = try(run, on, with, micro_steps, of, {}, bytes)
      tell(("%d\n%s\n."):format(least_of(err), peak_of(err.message)))
    end)
    local number, peak = text:match("^(%d+)\n(.*)\n%.$")
    least, more = tonumber(number), peak
  else
    local wanted = run.plan_options(options, micro_steps)
    wanted.budget_share, wanted.budget_bytes = nil, bytes
    local other, err = cairn.plan(plan.graph, device, wanted)
    if other then
      other:free()
      fail.with(4, ("%s\nit fits with a budget of that memory\ntry --budget %.0f"):format(asked, bytes),
        { status = "OVER_BUDGET", requested_bytes = need, budget_bytes = bytes })
    end
    if err.status ~= "OVER_BUDGET" or not err.fault then fail.plan("plan", nil, err) end
    least, more = err.fault.smallest_budget_bytes, peak_of(err.message)
  end
  fail.with(4, lines(asked, budget, not need and bytes or nil, least, at_least, more or "", memory_of(options),
    advice(run, device, options, micro_steps, bytes, least or at_least, of,
      need and not (options.device or "cpu"):find("^cuda")),
    at_least and levers.room(options, options.device_model and costs.variants(options) or nil) > 0),
    { status = "OVER_BUDGET", requested_bytes = need, budget_bytes = bytes, smallest_budget_bytes = least })
end

return refusal
