-- The programs of a run that share one store: what a recipe's `programs` ask for, remainders of an epoch at their own
-- size, evaluation, generation. Planned together into one arena.
local cairn = require "cairn"
local changed = require "cli.base.changed"
local effective = require "cli.train.effective"
local fail = require "cli.base.fail"

local programs = {}

-- Rows {name, length, kind, o} of a run, the one that has all parameters first; nil: one program, for training, is
-- enough. kind: "train", "sums" (of cli.train.effective), "prepared" (of cli.train.prepared), "evaluation" or
-- "generation". rows.plain: the recipe asked for none of its own.
-- about: what recipes are told of the run; data: its dataset, or nil where no data are needed to know; forward: rows
-- {name, kind, o} of what runs beside training.
function programs.rows(recipe, o, about, data, forward)
  local rows = recipe.programs and recipe.call("programs", o, about)
  local rest, list = data and data.remainders or {}, { plain = rows == nil }
  local first = effective.of(recipe, o)
  if not rows and #rest == 0 and #forward == 0 and not first then return nil end
  for i, row in ipairs(rows or { { name = "train", o = o } }) do
    list[i] = { name = row.name, length = row.length, kind = "train", o = row.o }
  end
  for _, row in ipairs(rest) do
    list[#list + 1] = { name = row.name, length = row.length, kind = "train", remainder = true,
                          o = changed(o, row.changes) }
  end
  if first then effective.add(list) end
  for _, row in ipairs(forward) do list[#list + 1] = row end
  return list
end

local TIERS = { "device", "host", "disk" }

-- Plans rows, each by the graph that build(row, first graph) returns. Returns them as {name, length, kind, number, o,
-- plan, summary, micro_batches, tokens}, the row whose plan stands for the run (of those that train the largest), and
-- the peaks of the whole store by tier. explained(err): the error of a refusal, in more words.
function programs.plan(rows, device, wanted, build, explained)
  local graphs = {}
  for i, row in ipairs(rows) do
    graphs[i] = { name = row.name, graph = build(row, graphs[1] and graphs[1].graph) }
  end
  local plans, err = cairn.plan_set(graphs, device, wanted)
  plans = fail.plan("plan", plans, plans == nil and explained(err) or nil)
  local list, peaks, largest = { plain = rows.plain }, { device = 0, host = 0, disk = 0 }, nil
  for i, row in ipairs(rows) do
    local numbers = fail.check("plan", plans[i]:summary())
    local program = { name = row.name, length = row.length, kind = row.kind, remainder = row.remainder, number = i,
                      o = row.o, plan = plans[i], summary = numbers, micro_batches = 0, tokens = 0,
                      planned_bytes = numbers.peak_bytes }
    for _, tier in ipairs(TIERS) do peaks[tier] = math.max(peaks[tier], numbers.peak_bytes[tier]) end
    if row.kind == "train" and (not largest or numbers.peak_bytes.device > largest.summary.peak_bytes.device) then
      largest = program
    end
    list[i], list[row.name] = program, program
  end
  local first = list[largest.name .. "-sums"]  -- runs before each of its micro-batches, too
  largest.summary.sums_seconds = first and first.summary.predicted_seconds
  return list, largest, peaks
end

-- Peaks by tier of the programs that ran, and the names of those that did not, which raised none; nil: none ran.
function programs.that_ran(list)
  local peaks, idle, ran = { device = 0, host = 0, disk = 0 }, {}, false
  for _, program in ipairs(programs.in_order(list)) do
    if program.micro_batches > 0 then
      ran = true
      for _, tier in ipairs(TIERS) do peaks[tier] = math.max(peaks[tier], program.planned_bytes[tier]) end
    else
      idle[#idle + 1] = program.name
    end
  end
  if ran then return peaks, idle end
end

-- Programs as they are listed: those that train by length, or in the recipe's order; then the others.
function programs.in_order(list)
  local sorted = {}
  for i, program in ipairs(list) do sorted[i] = program end
  local function key(program) return program.kind == "train" and 0 or 1, program.length or 0, program.number end
  table.sort(sorted, function(a, b)
    local a1, a2, a3 = key(a)
    local b1, b2, b3 = key(b)
    if a1 ~= b1 then return a1 < b1 end
    if a2 ~= b2 then return a2 < b2 end
    return a3 < b3
  end)
  return sorted
end

return programs
