-- What a run may do so that it takes less of the device: rows {words (as they are typed), options and o (what they
-- change of the command's and the recipe's), micro_steps, freezes, needs (what else, in words)}. A lever is judged by
-- the smallest budget of its plans, which planning for one byte tells at little cost.
local cairn = require "cairn"
local changed = require "cli.base.changed"
local fail = require "cli.base.fail"
local format = require "cli.base.format"
local posix = require "cli.base.posix"

local levers = {}

local PATIENCE = 3  -- seconds after which no further lever is tried

-- Tiers that the plans of these options may use, as {host =, disk =}.
function levers.open_tiers(options, model)
  local open = {}
  if options.closed then return open end
  for word in (options.tiers or ""):gmatch("[^,]+") do open[word] = true end
  if next(open) then return open end
  local separate = model and model.separate_memory or not model and (options.device or "cpu"):find("^cuda") ~= nil
  open.host = separate or options.link ~= nil or options.policy == "offload" or nil
  return open
end

-- Whether one tier may have too little room for a model that takes `bytes` on the device.
function levers.crowded(bytes, tier, device_bytes, model)
  local room = device_bytes
  for _, link in ipairs(model and model.links or {}) do
    if link.tier == tier then room = link.capacity_bytes or 0 end
  end
  return room > 0 and bytes > room
end

-- Bytes that the tiers of these options hold at most; infinity: not known.
function levers.room(options, model)
  if options.closed then return 0 end
  for _, row in ipairs(options.region or {}) do
    if row.policy:find("^offload") then return math.huge end
  end
  local open, bytes = levers.open_tiers(options, model), 0
  if not next(open) then return 0 end
  if not model then return math.huge end
  for _, link in ipairs(model.links) do
    if open[link.tier] then bytes = bytes + ((link.capacity_bytes or 0) > 0 and link.capacity_bytes or math.huge) end
  end
  return bytes
end

function levers.tiers(list) return { words = { "--tiers", list }, options = { tiers = list } } end

-- The update inside backward; nil, why: the run has more than one micro-batch a step.
function levers.fused(o, micro_steps)
  if micro_steps > 1 then return nil, ("a step has %d micro-batches, and it goes with one"):format(micro_steps) end
  local clips = o.clip and o.clip ~= 0
  return { words = { "--fuse-update", clips and "clip=0" or nil }, options = { fuse_update = true },
           o = clips and { clip = 0 } or nil, needs = "clip=0 and one micro-batch per step" }
end

local function smaller(o, micro_steps)
  local batch = tonumber(o.batch)
  if not batch or batch < 2 then return nil end
  local p = 2
  while batch % p ~= 0 and p * p <= batch do p = p + 1 end
  if batch % p ~= 0 then p = batch end
  return { words = { ("batch=%d"):format(batch / p), "--accumulate", ("%d"):format(micro_steps * p) },
           o = { batch = batch / p, global_batch = o.global_batch and 0 }, micro_steps = micro_steps * p }
end

-- The recipe with all but the last quarter of its parameters frozen. count: how many it has.
function levers.freezing(recipe, count)
  local function call(part, o, graph, ...)
    if part ~= "model" then return recipe.call(part, o, graph, ...) end
    local add, made = graph.parameter, 0
    function graph.parameter(self, name, dims, given)
      made = made + 1
      return add(self, name, dims, made <= count * 3 / 4 and changed(given or {}, { frozen = true }) or given)
    end
    local ends = recipe.call(part, o, graph, ...)
    graph.parameter = nil  -- the graph's own again
    return ends
  end
  return changed(recipe, { call = call })
end

-- Bytes of memory and the description of the device of that name; 0: not known.
function levers.device_memory(name)
  for _, info in ipairs(fail.check("devices", cairn.devices())) do
    if info.name == name then return info.memory_bytes, info.description end
  end
  return 0, name
end

-- What to try under a budget that was refused, in order.
local function ladder(about)
  local options, o, micro_steps, whole = about.options, about.o, about.micro_steps, about.whole
  local rows, model = {}, about.model
  local function add(row) rows[#rows + 1] = row end
  local open = levers.open_tiers(options, model)
  if not open.host and not open.disk then add(levers.tiers(about.shared and "disk" or "host")) end
  local memory = levers.device_memory(options.device or "cpu")
  local crowded = not about.shared and levers.crowded(about.smallest, "host", memory, model)
  if open.host ~= open.disk or crowded and not open.host then add(levers.tiers "host,disk") end
  if not options.fuse_update then add((levers.fused(o, micro_steps))) end
  if whole then
    add(not options.fuse_update and smaller(o, micro_steps) or nil)
    add { words = { "a recipe that trains the last quarter of its parameters alone (`frozen`)" }, freezes = true }
  end
  return rows
end

-- What is left to do under a budget that was refused: the first lever that fits it, as found by planning, or the one
-- that comes closest, as a text that begins with what is typed. about: {options, o, micro_steps, budget (bytes),
-- smallest (of the refused plan, or less), model (of --device-model, or nil), whole (not only options, the graph may be
-- another, too), shared (the host has no other memory than the device), smallest_of = function(row, seconds) -> whether
-- it fits (nil: not known), and the bytes it needs (nil: not known)}.
function levers.advice(about)
  local best, all = nil, true
  local ends = posix.now() + PATIENCE
  for _, row in ipairs(ladder(about)) do
    local left = ends - posix.now()
    if left <= 0 then
      all = false
      break
    end
    local fits, bytes = about.smallest_of(row, left)
    if posix.now() >= ends and not bytes then all = false end
    local words = table.concat(row.words, " ")
    if fits then
      if not bytes then return ("with %s it fits"):format(words) end
      return ("with %s it fits: the smallest budget is then %d bytes (%s)"):format(words, bytes, format.bytes(bytes))
    end
    if bytes and bytes < about.smallest and (not best or bytes < best.bytes) then
      best = { words = words, bytes = bytes }
    end
  end
  local none = all and "no lever alone makes it fit" or "no lever that was tried makes it fit (`cairn plan --fit`)"
  if not best then return none end
  return ("%s; closest comes %s: %d bytes (%s)"):format(none, best.words, best.bytes, format.bytes(best.bytes))
end

return levers
