-- A run so far, as curves to draw: bounded in size, however long the run is.
local history = {}
local History = {}
History.__index = History

local MOST_POINTS, MOST_SAMPLES = 2048, 20

-- unit: "tokens" or "samples", which the rows count.
function history.new(unit)
  return setmetatable({ unit = unit, steps = {}, stride = 1, seen = 0, skipped = 0, skips = {}, evaluations = {},
                        samples = {} }, History)
end

-- Every second point goes once there are too many.
local function thin(list)
  local kept = {}
  for i = 1, #list, 2 do kept[#kept + 1] = list[i] end
  return kept
end

local ADD = {
  ["metrics.jsonl"] = function(self, row)
    if row.outcome ~= "applied" then
      self.skipped = self.skipped + 1
      if #self.skips < MOST_POINTS then self.skips[#self.skips + 1] = row.step end
      return
    end
    local counted, seconds = row.tokens or 0, row.seconds or 0
    row.tokens_per_second = counted > 0 and seconds > 0 and counted / seconds or nil
    if self.seen % self.stride == 0 then self.steps[#self.steps + 1] = row end
    self.seen, self.last = self.seen + 1, row
    if #self.steps > MOST_POINTS then self.steps, self.stride = thin(self.steps), 2 * self.stride end
  end,
  ["evaluations.jsonl"] = function(self, row)
    self.evaluations[#self.evaluations + 1] = row
    if #self.evaluations > MOST_POINTS then self.evaluations = thin(self.evaluations) end
  end,
  ["samples.jsonl"] = function(self, row)
    if not row.text then return end
    self.samples[#self.samples + 1] = row
    if #self.samples > MOST_SAMPLES then table.remove(self.samples, 1) end
  end,
}

local WORDS = { outcome = true, text = true }  -- all other fields are numbers

-- Adds a line of one of the journal's files, as a table. Of one that was damaged, what is of the right kind.
function History:add(file, row)
  if type(row) ~= "table" then return end
  for name, value in pairs(row) do
    if type(value) ~= (WORDS[name] and "string" or "number") then row[name] = nil end
  end
  if row.step then ADD[file](self, row) end
end

-- Points {step, value} of a field of `list`; those that are no number are left out.
function history.points(list, name)
  local points = {}
  for _, row in ipairs(list) do
    local value = row[name]
    if type(value) == "number" and value == value and math.abs(value) < math.huge then
      points[#points + 1] = { row.step, value }
    end
  end
  return points
end

return history
