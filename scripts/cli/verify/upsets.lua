-- What `cairn verify` does to a run beside its plans: parameters that are frozen, and a step that is skipped.
local ffi = require "ffi"
local fail = require "cli.base.fail"

local upsets = {}

local EVERY = 3  -- a parameter of so many is frozen

-- The recipe with every third parameter frozen, from number `first` on, beside those that it freezes itself.
local function freezing(recipe, first)
  local changed = {}
  function changed.call(part, ...)
    if part ~= "model" then return recipe.call(part, ...) end
    local _, graph = ...
    local add, count = graph.parameter, 0
    function graph.parameter(self, name, dims, options)
      local copy = {}
      for key, value in pairs(options or {}) do copy[key] = value end
      copy.frozen = copy.frozen or count % EVERY == first
      count = count + 1
      return add(self, name, dims, copy)
    end
    local ends = recipe.call(part, ...)
    graph.parameter = nil  -- the class's again
    return ends
  end
  return setmetatable(changed, { __index = recipe })
end

-- The recipe with some parameters frozen; nil where nothing would learn then, whichever these are. build(recipe): its
-- graph, or an error.
function upsets.freezing(recipe, build)
  for first = 0, EVERY - 1 do
    local changed = freezing(recipe, first)
    local built, graph = pcall(build, changed)
    if built then
      graph:free()
      return changed
    end
  end
end

-- Parameters of a run as {name, buffer, bytes}, a copy; which(name): those to take (optional).
local function copies(run, which)
  local list = {}
  for _, info in ipairs(run.graph:parameters()) do
    if not which or which(info.name) then
      local buffer = ffi.new("uint8_t[?]", info.bytes)
      fail.check(info.name, run.session:read(info.name, buffer, info.bytes))
      list[#list + 1] = { name = info.name, buffer = buffer, bytes = info.bytes, dtype = info.dtype }
    end
  end
  return list
end

local function same(a, b, bytes)
  for at = 0, bytes - 1 do
    if a[at] ~= b[at] then return false end
  end
  return true
end

local function is_frozen(run, name)
  local ok, err = run.session:read(name .. "/gradient", ffi.new("uint8_t[1]"), 0)
  return not ok and err.status == "NOT_FOUND"
end

-- Those that have no gradient, which no step may change: a copy of them.
function upsets.frozen(run)
  return copies(run, function(name) return is_frozen(run, name) end)
end

-- The name of one of `frozen` that the run has changed; nil: none.
function upsets.thawed(run, frozen)
  for _, one in ipairs(frozen) do
    local now = ffi.new("uint8_t[?]", one.bytes)
    fail.check(one.name, run.session:read(one.name, now, one.bytes))
    if not same(now, one.buffer, one.bytes) then return one.name end
  end
end

local function write(run, list)
  for _, one in ipairs(list) do fail.check(one.name, run.session:write(one.name, one.buffer, one.bytes)) end
end

-- The same parameters as not-a-numbers: loss and gradients become that, whatever the data are. Not frozen ones, whose
-- formats may refuse them.
local function spoilt(list)
  local made = {}
  for i, one in ipairs(list) do
    local wide = one.dtype == "f64"
    local count = one.bytes / (wide and 8 or 4)
    local buffer = ffi.new(wide and "double[?]" or "float[?]", count)
    for at = 0, count - 1 do buffer[at] = 0 / 0 end
    made[i] = { name = one.name, buffer = buffer, bytes = one.bytes }
  end
  return made
end

-- Runs micro-batches first to first + count - 1 as a step whose gradients are not finite, because of the one in the
-- middle. Returns what is wrong (nil: it was skipped, and no parameter changed).
function upsets.skipped_step(run, first, count)
  local digest, report = run:digest(), nil
  local kept = copies(run, function(name) return not is_frozen(run, name) end)
  local bad = spoilt(kept)
  for _ = 1, run.two_passes and 2 or 1 do
    for index = 0, count - 1 do
      local spoils = index == math.floor(count / 2)
      if spoils then write(run, bad) end
      report = run:micro(first + index) or fail.interrupted(run.recipe.path)
      if spoils then write(run, kept) end
    end
  end
  if report.outcome == "accumulated" then report = fail.check("step", run.stepper:apply()) end
  run.sums:clear()
  if report.outcome ~= "skipped_nonfinite" then
    return ("a step whose gradients are not finite was not skipped, but %s"):format(report.outcome)
  end
  return run:digest() ~= digest and "a step that was skipped changed parameters" or nil
end

return upsets
