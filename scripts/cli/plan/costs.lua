-- Where a plan's seconds come from: --profile FILE, measured by `cairn profile`, or --device-model NAME|FILE.
local cairn = require "cairn"
local changed = require "cli.base.changed"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local files = require "cli.base.files"
local json = require "cli.base.json"
local nearest = require "cli.base.nearest"
local posix = require "cli.base.posix"

local costs = {}

local MOST = 2 ^ 26 + 1  -- one byte more than the library reads, so that it can say so

local function folder(root) return root .. "/scripts/devices/" end

-- Names of the device models that come with cairn, sorted.
function costs.known(root)
  local known = {}
  for _, file in ipairs(posix.list(folder(root)) or {}) do known[#known + 1] = file:match("^(.*)%.json$") end
  table.sort(known)
  return known
end

-- A device model that comes with cairn, as a table of its form.
function costs.model(name, root) return decode(files.read(folder(root) .. name .. ".json", "devices")) end

-- Path of a device model: one that comes with cairn, by name, or a file.
local function find_model(name, root)
  local known = costs.known(root)
  for _, model in ipairs(known) do
    if model == name:lower() then return folder(root) .. model .. ".json" end
  end
  if posix.readable(name) then return name end
  fail.with(name:find("[/.]") and 3 or 2, ("--device-model: there is no '%s'%s (a file, or one of: %s)"):format(name,
    nearest.hint(name, known), table.concat(known, " ")))
end

function costs.read(path, what)
  return fail.check(("%s %s"):format(what, path), cairn.read_costs(files.read(path, what, MOST)))
end

-- Reads what the options name into options.costs, which cli.train.run hands to every plan.
function costs.load(options, root)
  if options.profile and options.device_model then fail.usage("--profile and --device-model exclude each other") end
  if options.rates and (options.profile or options.device_model) then
    fail.usage(("--rates does not go with --%s, which says what seconds are planned with"):format(
      options.profile and "profile" or "device-model"))
  end
  if options.force_profile and not options.profile then fail.usage("--force-profile needs --profile") end
  if options.profile then options.costs = costs.read(options.profile, "--profile") end
  if options.device_model then
    options.model_path = find_model(options.device_model, root)
    options.costs = costs.read(options.model_path, "--device-model")
  end
  if options.tiers == "none" then
    if options.link or options.policy == "offload" then
      fail.usage(("--tiers none does not go with --%s, which is of copies"):format(options.link and "link"
        or "policy offload"))
    end
    if (options.device or "cpu"):find("^cuda") then
      fail.usage("--tiers none: plans of a GPU may use the host; it goes with --device-model, and is a CPU's default")
    end
    options.tiers = nil
    if options.device_model then
      local model, _, closed = costs.variants(options)
      options.closed = { open = options.costs }  -- the costs without --tiers none
      options.costs = closed(model.memory_bytes)
    end
  end
end

-- Bytes that no plan asks for, below 2^53.
local BOUNDLESS = 2 ^ 50
local NUMBERS = { "f32_flops_per_second", "bf16_flops_per_second", "f16_flops_per_second", "memory_bytes_per_second",
                  "host_memory_bytes_per_second", "launch_seconds" }

-- The device model that the options name, as a table of its form, and two ways to have it as costs to plan with, of
-- functions of the bytes of its memory (default: as much as any plan asks for, so that what does not fit has seconds
-- all the same): as it is, and without room in any tier.
function costs.variants(options)
  local model = decode(files.read(options.model_path, "--device-model", MOST))
  local function with(capacity, memory)
    local rows = { { "format", model.format }, { "name", model.name }, { "sources", json.array(model.sources) },
                   { "memory_bytes", memory or BOUNDLESS }, { "separate_memory", model.separate_memory } }
    for _, name in ipairs(NUMBERS) do
      if model[name] then rows[#rows + 1] = { name, model[name] } end
    end
    local links = {}
    for i, link in ipairs(model.links) do
      links[i] = { tier = link.tier, latency_seconds = link.latency_seconds, both_ways_factor = link.both_ways_factor,
                   out_bytes_per_second = link.out_bytes_per_second, in_bytes_per_second = link.in_bytes_per_second,
                   host_in_bytes_per_second = link.host_in_bytes_per_second,
                   host_out_bytes_per_second = link.host_out_bytes_per_second,
                   capacity_bytes = capacity or link.capacity_bytes }
    end
    rows[#rows + 1] = { "links", json.array(links) }
    return fail.check("--device-model", cairn.read_costs(json.encode(json.object(rows))))
  end
  return model, function(memory) return with(nil, memory) end, function(memory) return with(1, memory) end
end

-- The options with costs that are read anew: for a copy of the process, in which handles of this one do not count.
function costs.again(options)
  local path = options.model_path or options.profile
  if not options.costs or not path then return options end
  local again, whole = changed(options, {}), costs.read(path, options.model_path and "--device-model" or "--profile")
  again.costs = whole
  if options.closed then
    local model, _, closed = costs.variants(options)
    again.closed, again.costs = { open = whole }, closed(model.memory_bytes)
  end
  return again
end

return costs
