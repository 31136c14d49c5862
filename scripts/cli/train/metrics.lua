-- Metrics: sums over micro-batches, divided once by the sums of their own weights. What model(o, graph) returns as
-- `metrics`, by name:
--   { sum = value, weight = value, better = "lower" }         scalars of the graph, in training and evaluation
--   { outputs = { logits = value }, measure = function(outputs, arrays) return sum, weight end, better = "higher" }
--                                                             from values read back; in evaluation, and in training
--                                                             where training = true
--   { outputs =, count = function(outputs, arrays) return { numbers } end }
--                                                             in evaluation: numbers that are summed and told to nobody
--   { of = "loss", apply = math.exp, better = "lower" }       of the mean of another, or the sums of such numbers, by a
--                                                             function
local fail = require "cli.base.fail"

local metrics = {}

local function sorted_names(list)
  local names = {}
  for name in pairs(list or {}) do names[#names + 1] = name end
  table.sort(names)
  return names
end

-- What a graph must give for its metrics: its ends' `metrics` as an array of rows {name, better, sum, weight, outputs
-- (names of values), measure, count, of, apply}, and the values to freeze it with. evaluates: for evaluation, else for
-- training.
function metrics.of(ends, evaluates)
  local rows, values = {}, {}
  local function name_of(value)
    values[#values + 1] = value
    return value:name()
  end
  for _, name in ipairs(sorted_names(ends.metrics)) do
    local given = ends.metrics[name]
    local row = { name = name, better = given.better, measure = given.measure, count = given.count,
                  of = given.of, apply = given.apply }
    if given.sum then
      row.sum, row.weight = name_of(given.sum), name_of(given.weight)
    elseif given.measure and (evaluates or given.training) or given.count and evaluates then
      row.outputs = {}
      for key, value in pairs(given.outputs) do row.outputs[key] = name_of(value) end
    end
    if row.sum or row.outputs or row.of then rows[#rows + 1] = row end
  end
  return rows, values
end

-- Names of metrics that are told, the loss first.
function metrics.names(rows)
  local names = { "loss" }
  for _, row in ipairs(rows) do
    if row.better then names[#names + 1] = row.name end
  end
  return names
end

local Sums = {}
Sums.__index = Sums

-- Sums over the micro-batches of an effective batch, or over evaluation data.
function metrics.sums(rows) return setmetatable({ rows = rows, sum = {}, weight = {}, totals = {} }, Sums) end

local function scalar(session, name) return fail.check("metrics", session:read(name))[1] end

-- Adds a micro-batch that has just run. call: how a recipe's functions are called (recipe.guard); rows: those of the
-- session's own graph, where several programs take turns, for their values may have other names (optional).
function Sums:add(session, arrays, call, rows)
  for _, row in ipairs(rows or self.rows) do
    local sum, weight
    if row.sum then
      sum, weight = scalar(session, row.sum), scalar(session, row.weight)
    elseif row.outputs then
      local outputs = {}
      for key, name in pairs(row.outputs) do outputs[key] = fail.check("metrics", session:read(name)) end
      if row.count then
        local total = self.totals[row.name] or {}
        for i, number in ipairs(call(row.count, outputs, arrays)) do total[i] = (total[i] or 0) + number end
        self.totals[row.name] = total
      else
        sum, weight = call(row.measure, outputs, arrays)
      end
      if row.measure and (type(sum) ~= "number" or type(weight) ~= "number") then
        fail.input(("metric '%s': measure returned %s and %s; wanted: a sum and its weight, two numbers"):format(
          row.name, tostring(sum), tostring(weight)))
      end
    end
    if sum then
      self.sum[row.name] = (self.sum[row.name] or 0) + sum
      self.weight[row.name] = (self.weight[row.name] or 0) + weight
    end
  end
end

-- Means by name, with the loss, which is given: sum / weight; a weight of 0 leaves nothing to tell.
function Sums:means(loss)
  local values = { loss = loss }
  for _, row in ipairs(self.rows) do
    local weight = self.weight[row.name]
    if weight and weight ~= 0 then values[row.name] = self.sum[row.name] / weight end
  end
  for _, row in ipairs(self.rows) do
    local of = row.of and (values[row.of] or self.totals[row.of])
    if of then values[row.name] = row.apply(of) end
  end
  return values
end

function Sums:clear() self.sum, self.weight, self.totals = {}, {}, {} end

-- The sums as a text that restore takes, exact to the bit, for a checkpoint inside an effective batch.
function Sums:text()
  local words = {}
  for _, name in ipairs(sorted_names(self.sum)) do
    words[#words + 1] = ("%s=%.17g/%.17g"):format(name, self.sum[name], self.weight[name])
  end
  return table.concat(words, " ")
end

function Sums:restore(text)
  self:clear()
  for name, sum, weight in (text or ""):gmatch("([%a_][%w_]*)=(%S-)/(%S+)") do
    self.sum[name], self.weight[name] = tonumber(sum), tonumber(weight)
  end
end

local function finite(value) return value == value and math.abs(value) < math.huge end

-- The first name whose mean is not finite, and the mean; nil: all are. rows: of the metrics, where one that is made of
-- a finite mean may overflow, as the perplexity of a large loss does (optional).
function metrics.not_finite(values, rows)
  local made = {}
  for _, row in ipairs(rows or {}) do made[row.name] = row.of end
  for _, row in ipairs(metrics.rows(values)) do
    local name, value = row[1], row[2]
    local of = values[made[name]]
    if not finite(value) and not (of and finite(of)) then return name, value end
  end
end

-- Rows {name, value} for JSON: the loss first where it is asked for, then by name.
function metrics.rows(values, without_loss)
  local rows = {}
  if not without_loss then rows[1] = { "loss", values.loss } end
  for _, name in ipairs(sorted_names(values)) do
    if name ~= "loss" then rows[#rows + 1] = { name, values[name] } end
  end
  return rows
end

-- Which way a metric is better: "lower" or "higher".
function metrics.better(rows, name)
  if name == "loss" then return "lower" end
  for _, row in ipairs(rows) do
    if row.name == name then return row.better end
  end
end

return metrics
