-- cairn plan --fit: a row for each set of levers: how little of the device it needs, what a step then takes, and what
-- the bytes are for.
local cairn = require "cairn"
local changed = require "cli.base.changed"
local costs = require "cli.plan.costs"
local fail = require "cli.base.fail"
local format = require "cli.base.format"
local json = require "cli.base.json"
local large = require "cli.plan.fit_large"
local levers = require "cli.plan.levers"
local posix = require "cli.base.posix"
local screen = require "cli.base.screen"
local runs = require "cli.train.run"
local summary = require "cli.plan.summary"

local fit = {}

local OWN = { "tiers", "policy", "fuse_update", "sweep", "html", "problem", "problem_out", "plan_out" }

-- Ends the command if options are given that --fit chooses itself, or that ask for another answer.
function fit.check(options)
  for _, name in ipairs(OWN) do
    if options[name] then
      fail.usage(("--%s does not go with --fit, which %s"):format((name:gsub("_", "-")),
        (name == "tiers" or name == "policy" or name == "fuse_update") and "tries it itself" or "prints one table"))
    end
  end
end

local function joined(a, b)
  return { words = fit.words(a.words, b.words), options = changed(a.options or {}, b.options or {}),
           o = changed(a.o or {}, b.o or {}), closed = a.closed, needs = b.needs, than = b.than }
end

function fit.words(...)
  local all = {}
  for _, list in ipairs { ... } do
    for _, word in ipairs(list) do all[#all + 1] = word end
  end
  return all
end

-- The sets to try. than: rows (by number) that this one must need less than to be worth a row; quicker: or a step of
-- which within the budget takes less than of that row, as the host updates beside backward; crowded: it is only
-- where that tier may be too small.
local function sets_of(options, o, micro_steps, model)
  local open = levers.open_tiers(options, model)
  local away = model and model.separate_memory
  local has = {}
  for _, link in ipairs(model and model.links or { { tier = "host" }, { tier = "disk" } }) do has[link.tier] = true end
  local notes = {}
  local base = { words = away and { "--tiers", "none" } or {}, closed = true }
  local sets = { { words = fit.words({ "--policy", "keep" }, base.words), options = { policy = "keep" }, closed = true,
                   keeps = true }, base }
  local host, disk
  local function add(row)
    sets[#sets + 1] = row
    return #sets
  end
  if has.host and (away or not open.host) then host = add(levers.tiers "host") end
  if has.disk then disk = add(levers.tiers "disk") end
  for _, tier in ipairs { "host", "disk" } do
    if not has[tier] then
      notes[#notes + 1] = ("the device model names no link to the tier %s: nothing is sent there"):format(tier)
    end
  end
  if host and disk then
    local both = levers.tiers "host,disk"
    both.than, both.crowded = { host, disk }, "host"
    add(both)
  end
  local fused, why = levers.fused(o, micro_steps)
  if fused then
    add(joined(base, fused))
    local last = host or disk
    if last then
      local with = joined(sets[last], fused)
      with.than, with.quicker = { last }, away and host
      add(with)
    end
  else
    notes[#notes + 1] = ("--fuse-update: %s"):format(why)
  end
  return sets, notes
end

local Fit = {}
Fit.__index = Fit

-- The plan of a set under a budget (budget_bytes, budget_share or smallest_budget); nil, err.
function Fit:plan(set, budget)
  local options = changed(self.options, set.options or {})
  options.costs = self.model and (set.closed and self.closed or self.open) or options.costs
  local o = changed(self.o, set.o or {})
  local graph = runs.graph(self.recipe, o)
  local wanted = runs.plan_options(options, self.micro_steps)
  wanted.budget_bytes, wanted.budget_share = budget.budget_bytes, budget.budget_share
  wanted.smallest_budget = budget.smallest_budget
  local plan, err = cairn.plan(graph, self.device, wanted)
  if not plan then
    graph:free()
    return nil, err
  end
  local numbers = fail.check("plan", plan:summary())
  plan:free()
  graph:free()
  return numbers
end

-- The same with so many micro-batches a step.
function Fit:with(micro_steps) return setmetatable(changed(self, { micro_steps = micro_steps }), Fit) end

-- The same in a copy of the process, in which handles of this one do not count.
function Fit:again()
  local options = costs.again(self.options)
  local again = setmetatable(changed(self, { options = options }), Fit)
  again.device = runs.device(self.model and changed(options, { rates = "model" }) or options)
  if self.model then
    local _, open, closed = costs.variants(options)
    again.open, again.closed = open(), closed()
  end
  return again
end

function Fit:seconds(numbers)
  return summary.step_seconds(numbers, numbers.predicted_seconds, self.micro_steps)
end

-- Plans the set that keeps everything, which shares are of; nil, why: there is no such plan.
function Fit:plan_keeping(set)
  local numbers, err = self:plan(set, { budget_share = 1 })
  fail.plan("plan", numbers or err.status ~= "NOT_FOUND", err)
  if not numbers then return nil, tostring(err) end
  self.keep, self.keep_bytes = numbers, numbers.peak_bytes.device
  return true
end

-- A row, but for what it does within the budget; or nil, why: there is no such plan.
function Fit:smallest(set)
  local row = { set = set }
  -- What lies in no region is the planner's all the same, so that less may do for the row.
  if set.keeps and not self.keep then return nil, self.why_not_kept end
  -- A row that may not be worth it is only refused, which takes less.
  local numbers, err = self:plan(set, set.than and { budget_bytes = 1 } or { smallest_budget = true })
  if numbers then
    row.numbers, row.bytes = numbers, numbers.budget_bytes
    if row.bytes <= 1 then return nil, "it needs nothing of the device" end
  elseif err.status == "OVER_BUDGET" then
    row.bytes = err.fault.smallest_budget_bytes
  else
    return nil, tostring(err)
  end
  return row
end

-- Plans a row at its smallest budget, and within the budget that there is.
function Fit:complete(row)
  row.fits = self.budget == 0 or row.bytes <= self.budget
  if not row.numbers then
    if row.set.than and (self.model or self.memory == 0 or row.bytes <= self.memory) then
      local err
      row.numbers, err = self:plan(row.set, { smallest_budget = true })
      row.why = not row.numbers and tostring(err) or nil
    else
      row.why = ("it needs more than the %s of the device"):format(format.bytes(self.memory))
    end
  end
  if not row.fits or self.budget == 0 then return end
  row.within = self:plan(row.set, { budget_bytes = self.budget })
end

-- Within the budget, by more than predictions are worth.
function Fit:quicker(row, other)
  if not (row.within and other and other.within) then return false end
  return self:seconds(row.within) < 0.98 * self:seconds(other.within)
end

local function row_json(self, row)
  local numbers = row.numbers or row.within
  local fields = {
    { "levers", json.array(row.set.words) }, { "smallest_budget_bytes", row.bytes },
    { "at_least_bytes", row.at_least }, { "at_most_bytes", row.at_most },
    { "predicted_step_seconds", row.numbers and self:seconds(numbers) }, { "peak_at", numbers and numbers.peak_at },
    { "fits", row.fits }, { "budget_step_seconds", row.within and self:seconds(row.within) },
    { "memory_bytes", numbers and summary.memory(numbers) },
    { "packed_bytes", numbers and numbers.counters.packed_bytes },
    { "tier_bytes", numbers and summary.tier_bytes(numbers) },
    { "planned_peak_bytes", numbers and summary.tiers(numbers.peak_bytes) }, { "needs", row.set.needs },
    { "why", row.why },
  }
  return json.object(fields)
end

local SHOWN = { "gradients", "optimizer", "activations", "workspace" }

local function cell(bytes) return bytes > 0 and format.bytes(bytes) or "-" end

local function yes_or_no(fits) return fits == nil and "?" or fits and "yes" or "no" end

local function row_text(self, row)
  local numbers = row.numbers or row.within
  local name = #row.set.words > 0 and table.concat(row.set.words, " ") or "(recompute)"
  local cells = { name, large.smallest(row), row.numbers and format.seconds(self:seconds(numbers)) or "-",
                  yes_or_no(row.fits), row.within and format.seconds(self:seconds(row.within)) or "-" }
  local packed = numbers and numbers.counters.packed_bytes or 0
  cells[#cells + 1] = cell(numbers and numbers.parameters_bytes - packed or 0)
  cells[#cells + 1] = cell(packed)
  for _, category in ipairs(SHOWN) do cells[#cells + 1] = cell(numbers and numbers[category .. "_bytes"] or 0) end
  for _, tier in ipairs { "host", "disk" } do cells[#cells + 1] = cell(numbers and numbers.peak_bytes[tier] or 0) end
  cells[#cells + 1] = numbers and numbers.peak_at or row.why or "-"
  return cells
end

local HEADER = { "what is given up", "smallest", "its step", "fits", "step", "weights", "packed", "gradients",
                 "optimizer", "activations", "workspace", "host", "disk", "peak at" }

local function print_table(self, rows, notes)
  local cells, any = {}, false
  for i, row in ipairs(rows) do
    cells[i] = row_text(self, row)
    any = any or row.fits ~= false
  end
  local where = self.budget == 0 and "no limit is known"
    or ("%s: %s (%s bytes)"):format(self.given and "the budget" or self.name, format.bytes(self.budget),
      format.count(self.budget))
  io.stdout:write(("%s\n"):format(where), format.table(cells, HEADER))
  io.stdout:write("smallest          the least that a plan may be given of the device: its step, bytes and peak then\n",
    "fits, step        within what is named above, and a step then\n")
  for _, row in ipairs(rows) do
    if row.set.needs then
      io.stdout:write(("--fuse-update     needs %s\n"):format(row.set.needs))
      break
    end
  end
  for _, note in ipairs(notes) do io.stdout:write("note: ", note, "\n") end
  if not any then
    io.stdout:write("nothing of this fits; what is left: a smaller batch=, --amp bf16, fewer parameters that learn\n")
  end
end

-- Every row with all of its numbers.
function Fit:rows(sets, notes)
  local options, found, rows = self.options, {}, {}
  for i, set in ipairs(sets) do
    if not options.quiet and posix.is_terminal(2) then
      io.stderr:write("planning ", table.concat(set.words, " "), screen.control("\27[K\r"))
    end
    local row, why
    if not set.crowded or levers.crowded(self.keep_bytes, set.crowded, self.memory, self.model) then
      row, why = self:smallest(set)
    end
    local worth = row ~= nil
    for _, other in ipairs(set.than or {}) do
      worth = worth and not (found[other] and found[other].bytes <= row.bytes)
    end
    if worth or (row and set.quicker) then self:complete(row) end
    if worth or (row and self:quicker(row, found[set.quicker])) then
      found[i] = row
      rows[#rows + 1] = row
    elseif why then
      notes[#notes + 1] = ("%s: %s"):format(table.concat(set.words, " "), why)
    end
  end
  return rows
end

-- Prints the table. options.budget: what the rows are to fit; without it, the device's memory.
function fit.run(recipe, o, device, options, micro_steps)
  local self = setmetatable({ recipe = recipe, o = o, device = device, options = changed(options, {}),
                              micro_steps = micro_steps, keep_bytes = 0, began = posix.now() }, Fit)
  self.in_place = (options.device or "cpu"):find("^cuda") ~= nil  -- a GPU's driver goes with no copy of the process
  if options.device_model then
    local open, closed
    self.model, open, closed = costs.variants(options)
    self.open, self.closed = open(), closed()
    self.memory, self.name = self.model.memory_bytes, self.model.name
  else
    self.memory, self.name = levers.device_memory(options.device or "cpu")
  end
  local sets, notes = sets_of(options, o, micro_steps, self.model)
  local budget = options.budget or {}
  self.given, self.options.budget = options.budget ~= nil, nil
  self.budget = budget.bytes or self.memory
  if self.memory > 0 and self.budget > self.memory then
    fail.input(("--budget: %.0f bytes are above the %.0f bytes of memory that '%s' has"):format(self.budget,
      self.memory, self.name))
  end
  local kept, why = self:plan_keeping(sets[1])
  self.why_not_kept = why
  if budget.share then
    if not kept then fail.with(4, ("--budget: a share is of what keeping everything takes, and %s"):format(why)) end
    self.budget = math.floor(self.keep_bytes * budget.share)
  end
  local graph = runs.graph(recipe, o)
  if not options.quiet and posix.is_terminal(2) then
    io.stderr:write(("planning %d rows"):format(#sets), screen.control("\27[K\r"))
  end
  local rows = kept and large.is(graph) and large.rows(self, sets, notes) or self:rows(sets, notes)
  graph:free()
  if not options.quiet and posix.is_terminal(2) then io.stderr:write(screen.control("\27[K")) end
  if not options.json then return print_table(self, rows, notes) end
  local list = {}
  for i, row in ipairs(rows) do list[i] = row_json(self, row) end
  io.stdout:write(json.encode(json.object { { "device", self.name }, { "device_bytes", self.memory },
    { "budget_bytes", self.budget }, { "rows", json.array(list) }, { "notes", json.array(notes) } }), "\n")
end

return fit
