-- Calls of functions of host.model by their names: a status of the C API, and the results or a message.
local cairn = require "cairn"
local fail = require "cli.base.fail"
local model = require "host.model"

-- Status by exit code, of failures that say none.
local STATUS = { [1] = "UNSUPPORTED", [2] = "INVALID_ARGUMENT", [3] = "INVALID_ARGUMENT", [4] = "OUT_OF_MEMORY",
                 [5] = "IO", [6] = "DEVICE_LOST", [7] = "NON_FINITE", [130] = "CANCELLED" }

local function number_of(status) return tonumber(cairn.C["CAIRN_STATUS_" .. status]) end

return function(root)
  local functions = model(root)
  return function(name, arguments)
    local ok, result = xpcall(functions[name], fail.caught, arguments)
    if ok then return 0, result end
    local failure = fail.of(result)
    local memory = fail.is_no_memory(failure.message)
    local status = failure.about and failure.about.status or STATUS[memory and 4 or failure.code]
    local known, number = pcall(number_of, status)
    return known and number or number_of(STATUS[failure.code] or "INTERNAL"), failure.message
  end
end
