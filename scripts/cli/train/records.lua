-- What a run remembers of its steps, in the same memory however many there are: sums for means, a sample for medians,
-- the first and the last loss. Only where --json asks for the numbers of all steps are they kept, outside memory.
local json = require "cli.base.json"
local spill = require "cli.base.spill"
local stats = require "cli.base.stats"

local records = {}

-- Every value, until there are too many; from then on every second, every fourth ...
local MOST = 4096
local Sample = {}
Sample.__index = Sample

local function sample() return setmetatable({ list = {}, seen = 0, stride = 1 }, Sample) end

function Sample:add(value)
  if self.seen % self.stride == 0 then self.list[#self.list + 1] = value end
  self.seen = self.seen + 1
  if #self.list <= MOST then return end
  local kept = {}
  for i = 1, #self.list, 2 do kept[#kept + 1] = self.list[i] end
  self.list, self.stride = kept, 2 * self.stride
end

-- An array in JSON that is added to value by value. keeps: whether it is.
local Array = {}
Array.__index = Array

function records.array(keeps) return setmetatable({ texts = keeps and spill.new() or nil, count = 0 }, Array) end

function Array:add(value)
  self.count = self.count + 1
  if self.texts then self.texts:add((self.count > 1 and "," or "") .. json.encode(value)) end
end

function Array:json()
  return json.stream(function(write)
    write("[")
    if self.texts then self.texts:each(write) end
    write("]")
  end)
end

local COPIES = { "out_bytes", "in_bytes", "out_seconds", "in_seconds" }

local function nothing()
  local sums = { seconds = 0, tokens = 0, samples = 0, stall = 0, data = 0, copies = { host = {}, disk = {} } }
  for _, tier in pairs(sums.copies) do
    for _, key in ipairs(COPIES) do tier[key] = 0 end
  end
  return sums
end

local function add(sums, step)
  sums.seconds, sums.tokens = sums.seconds + step.seconds, sums.tokens + step.tokens
  sums.stall, sums.data = sums.stall + step.stall_seconds, sums.data + step.data_seconds
  sums.samples = sums.samples and step.samples and sums.samples + step.samples
  for name, tier in pairs(sums.copies) do
    for key, sum in pairs(tier) do tier[key] = sum + step.copies[name][key] end
  end
end

local Records = {}
Records.__index = Records

-- keeps: also the loss, seconds and metrics of all steps.
function records.new(keeps)
  return setmetatable({ keeps = keeps, steps = 0, sums = nothing(), timed = sample(), submits = sample(), metrics = {},
                        loss = records.array(keeps), seconds = records.array(keeps) }, Records)
end

-- Adds what a step gave (Run:step). names: of the metrics that training measures. Means and medians leave out the first
-- step, which also touches memory and packs weights for the first time, where there are others.
function Records:add(step, names)
  self.steps = self.steps + 1
  if self.steps <= 2 then self.sums, self.timed, self.submits = nothing(), sample(), sample() end
  add(self.sums, step)
  self.timed:add(step.seconds)
  for _, seconds in ipairs(step.submit_seconds) do self.submits:add(seconds) end
  if self.steps == 1 then self.first_loss = step.loss end
  self.last_loss, self.last_metrics = step.loss, step.metrics
  self.loss:add(step.loss)
  self.seconds:add(step.seconds)
  for _, name in ipairs(names) do
    self.metrics[name] = self.metrics[name] or records.array(self.keeps)
    self.metrics[name]:add(step.metrics[name] or 0 / 0)
  end
end

-- Sets in `result` what is told of times and copies.
function Records:digest(result)
  local sums, count = self.sums, math.max(self.steps - 1, math.min(self.steps, 1))
  result.step_seconds_median, result.timed_steps = stats.median(self.timed.list), count
  result.tokens_per_second = sums.seconds > 0 and sums.tokens / sums.seconds or 0
  result.samples_per_second = sums.samples and (sums.seconds > 0 and sums.samples / sums.seconds or 0) or nil
  result.stall_seconds = count > 0 and sums.stall / count or 0
  result.data_seconds = count > 0 and sums.data / count or 0
  result.submit_seconds_median = stats.median(self.submits.list)
  result.copies_per_step = {}
  for tier, name in ipairs { "host", "disk" } do
    local mean = {}
    for i, key in ipairs(COPIES) do mean[i] = { key, count > 0 and sums.copies[name][key] / count or 0 } end
    result.copies_per_step[tier] = { name, json.object(mean) }
  end
end

-- The metrics of all steps, an array for each.
function Records:metrics_json()
  local names, rows = {}, {}
  for name in pairs(self.metrics) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do rows[i] = { name, self.metrics[name]:json() } end
  return json.stream(function(write) json.write(json.object(rows), write) end)
end

return records
