-- Rows of cairn plan --fit of a large model, for which the exact smallest budget of each would take minutes. What bytes
-- alone decide is not searched for; the rest is planned within the budget and asked for its smallest one, two plans at
-- a time, for some seconds. A row says what is known then: its smallest budget (`bytes`), or what that is above
-- (`at_least`: weights, states and gradients are somewhere) or at most (`at_most`: the bytes of a plan there is).
local attempts = require "cli.base.attempts"
local changed = require "cli.base.changed"
local decode = require "cli.base.json_decode"
local format = require "cli.base.format"
local json = require "cli.base.json"
local levers = require "cli.plan.levers"
local posix = require "cli.base.posix"

local large = {}

local MANY_VALUES = 300  -- of a graph; of fewer, every number of every row is found soon
local PATIENCE, AT_ONCE = 8, 2  -- seconds of the whole table, and how many are planned at a time

function large.is(graph) return graph:count() > MANY_VALUES end

-- What every plan of a set takes of the device between backward and update, as the tiers hold no more.
local function least_of(self, set, stored)
  local bytes = stored.persistent + (set.options and set.options.fuse_update and 0 or stored.gradients)
  local options = changed(self.options, set.options or {})
  return math.max(0, bytes - (self.model and set.closed and 0 or levers.room(options, self.model)))
end

local function say(tell, fields) tell(json.encode(fields) .. "\n") end

-- Tells the smallest budget of a row as a line of JSON.
local function find_smallest(self, set, tell)
  local numbers, err = self:plan(set, { budget_bytes = 1 })
  if numbers then return say(tell, { why_not = "it needs nothing of the device" }) end
  if err.status == "OVER_BUDGET" then return say(tell, { bytes = err.fault.smallest_budget_bytes }) end
  say(tell, { why_not = tostring(err) })
end

-- Tells the plan of a row within the budget; true: there is one.
local function find_within(self, set, tell)
  local within, err = self:plan(set, { budget_bytes = self.budget })
  if within then
    say(tell, { within = within })
  elseif err.status == "OVER_BUDGET" then
    say(tell, { bytes = err.fault.smallest_budget_bytes })
  else
    say(tell, { why_not = tostring(err) })
  end
  return within ~= nil
end

local function find_both(self, set, tell)
  if find_within(self, set, tell) then find_smallest(self, set, tell) end
end

-- What is asked of the rows, in order: {row, find}. Where tiers have room for all that may leave, the smallest budget
-- is soon found; elsewhere a plan within the budget is, and what has most tiers takes longest.
local function questions(rows, budget)
  local list = {}
  local function ask(find, matches)
    for _, row in ipairs(rows) do
      if matches(row) then list[#list + 1] = { row = row, find = find } end
    end
  end
  local function is_roomy(row) return row.at_least == 0 or budget == 0 end
  ask(find_smallest, function(row) return is_roomy(row) and not row.set.crowded end)
  if budget > 0 then
    ask(find_within, function(row) return is_roomy(row) and not row.set.crowded end)
    ask(find_both, function(row) return not is_roomy(row) and not row.set.crowded end)
  end
  ask(budget > 0 and find_both or find_smallest, function(row) return row.set.crowded end)
  return list
end

-- Answers the questions in time, into their rows.
local function answer(self, list)
  local works, texts = {}, {}
  for i, question in ipairs(list) do
    works[i] = function(tell) question.find(self.in_place and self or self:again(), question.row.set, tell) end
  end
  local ends = self.began + PATIENCE
  if self.in_place then
    for i, work in ipairs(works) do
      local parts = {}
      if posix.now() < ends then work(function(text) parts[#parts + 1] = text end) end
      texts[i] = table.concat(parts)
    end
  else
    texts = attempts(ends - posix.now(), works, AT_ONCE)
  end
  for i, text in ipairs(texts) do
    for line in text:gmatch("([^\n]*)\n") do
      for name, value in pairs(decode(line)) do list[i].row[name] = value end
    end
  end
end

-- Whether a row that others come before is worth its place, as far as is known. found: rows by the number of their set.
local function is_worth_it(self, row, found)
  if row.why_not then return false end
  for _, other in ipairs(row.set.than or {}) do
    local before = found[other]
    if before and before.bytes and row.bytes and before.bytes <= row.bytes then
      local slower = row.set.quicker and found[row.set.quicker]
      if not slower then return false end
      return row.fits and not (row.within and slower.within) or self:quicker(row, slower)
    end
  end
  return true
end

-- What a row with more tiers has of those with fewer, which are plans of its own, too.
local function take_over(row, found)
  if not row.set.crowded then return end
  for _, other in ipairs(row.set.than) do
    local before = found[other]
    local bytes = before and (before.bytes or before.at_most)
    if bytes and not row.bytes and (not row.at_most or bytes < row.at_most) then row.at_most = bytes end
  end
end

local function fits(row, budget)
  if budget == 0 or row.within then return true end
  local most = row.bytes or row.at_most
  if most and most <= budget then return true end
  if (row.bytes or row.at_least or 0) > budget then return false end
  return nil
end

-- All that was found for the sets; notes: of what was not. self: cli.plan.fit's, with keep, the plan that
-- keeps all, and began, when the command did.
function large.rows(self, sets, notes)
  local twice = self.micro_steps == 1 and self:with(2):plan(sets[1], { budget_share = 1 })
  local stored = { persistent = self.keep.persistent_bytes - self.keep.counters.derived_bytes,
                   gradients = twice and twice.persistent_bytes - self.keep.persistent_bytes or 0 }
  local rows, asked = {}, {}
  for i, set in ipairs(sets) do
    if not set.crowded or levers.crowded(self.keep_bytes, set.crowded, self.memory, self.model) then
      local row = { set = set, number = i, at_least = least_of(self, set, stored) }
      rows[#rows + 1] = row
      if set.keeps then row.numbers, row.at_most = self.keep, self.keep_bytes end
      if self.budget == 0 or row.at_least <= self.budget then asked[#asked + 1] = row end
    end
  end
  answer(self, questions(asked, self.budget))
  local found, shown, unknown = {}, {}, false
  for _, row in ipairs(rows) do
    if row.within then row.at_most = math.min(row.at_most or math.huge, row.within.peak_bytes.device) end
    take_over(row, found)
    row.fits = fits(row, self.budget)
    unknown = unknown or row.fits == nil or (row.fits and self.budget > 0 and not row.within)
    if row.bytes then
      row.at_least, row.at_most = nil, nil
    else
      row.at_least = row.at_least > 0 and row.at_least or nil
      unknown = unknown or self.budget == 0 or row.at_least == nil or row.at_least <= self.budget
    end
    if is_worth_it(self, row, found) then
      found[row.number] = row
      shown[#shown + 1] = row
    elseif row.why_not then
      notes[#notes + 1] = ("%s: %s"):format(table.concat(row.set.words, " "), row.why_not)
    end
  end
  notes[#notes + 1] = "a large model: bytes are of the plan within what is named above, and no step is planned at " ..
    "the smallest budget"
  if unknown then
    notes[#notes + 1] = ("what %d s do not tell is left open: `cairn plan` with a row's options takes its time")
      :format(PATIENCE)
  end
  return shown
end

-- The smallest budget in words, as far as it is known.
function large.smallest(row)
  if row.bytes then return format.bytes(row.bytes) end
  if row.at_most then return "<= " .. format.bytes(row.at_most) end
  return row.at_least and "> " .. format.bytes(row.at_least) or "?"
end

return large
