-- Where a plan's seconds come from: --profile FILE, measured by `cairn profile`, or --device-model NAME|FILE.
local cairn = require "cairn"
local fail = require "cli.base.fail"
local posix = require "cli.base.posix"

local costs = {}

local MOST = 2 ^ 26 + 1  -- one byte more than the library reads, so that it can say so

local function read_file(path, what)
  local file, problem = io.open(path, "rb")
  if not file then fail.input(what .. ": " .. problem) end
  local text, reason = file:read(MOST)
  file:close()
  if reason then fail.with(5, ("%s: %s: %s"):format(what, path, reason)) end
  return text or ""
end

-- Path of a device model: one that comes with cairn, by name, or a file.
local function find_model(name, root)
  local folder = root .. "/scripts/devices/"
  local known = {}
  for _, file in ipairs(posix.list(folder) or {}) do known[#known + 1] = file:match("^(.*)%.json$") end
  for _, model in ipairs(known) do
    if model == name:lower() then return folder .. model .. ".json" end
  end
  if posix.readable(name) then return name end
  fail.input(("--device-model: there is no '%s' (a file, or one of: %s)"):format(name, table.concat(known, " ")))
end

function costs.read(path, what)
  return fail.check(("%s %s"):format(what, path), cairn.read_costs(read_file(path, what)))
end

-- Reads what the options name into options.costs, which cli.train.run hands to every plan.
function costs.load(options, root)
  if options.profile and options.device_model then fail.usage("--profile and --device-model exclude each other") end
  if options.force_profile and not options.profile then fail.usage("--force-profile needs --profile") end
  if options.profile then options.costs = costs.read(options.profile, "--profile") end
  if options.device_model then options.costs = costs.read(find_model(options.device_model, root), "--device-model") end
end

return costs
