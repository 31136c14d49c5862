-- Ways for a command to end: a message for stderr and the exit code.
local fail = {}

local Failure = {}
Failure.__index = Failure
Failure.__tostring = function(self) return self.message end

-- Exit code by the status of an error of the binding.
local CODES = {
  INVALID_ARGUMENT = 3, WRONG_STATE = 1, OUT_OF_MEMORY = 4, OVER_BUDGET = 4, UNSUPPORTED = 1, NOT_FOUND = 3,
  CORRUPT_FILE = 3, IO = 5, DEVICE_LOST = 6, CANCELLED = 130, NON_FINITE = 7, INTERNAL = 1,
}

function fail.with(code, message) error(setmetatable({ code = code, message = message }, Failure), 0) end
function fail.usage(message) fail.with(2, message) end
function fail.input(message) fail.with(3, message) end
-- A signal ended the code of the recipe at `path`.
function fail.interrupted(path)
  error(setmetatable({ code = 130, message = "interrupted in the code of " .. path, interrupted = true }, Failure), 0)
end
function fail.is(problem) return type(problem) == "table" and getmetatable(problem) == Failure end

-- Passes a call's results on; ends the command if the first is nil and the second an error of the binding, with `what`
-- before it where it does not name that itself.
function fail.check(what, result, err, ...)
  if result ~= nil then return result, err, ... end
  local message = tostring(err)
  if what and what ~= "" and not message:find("'" .. what .. "'", 1, true) then message = what .. ": " .. message end
  fail.with(type(err) == "table" and CODES[err.status] or 1, message)
end

-- The same for what makes a plan: a pattern that no region matches is a mistake of the command line.
function fail.plan(what, plan, err)
  if not plan and tostring(err):find("no region matches the pattern", 1, true) then
    fail.usage("--region: " .. tostring(err))
  end
  return fail.check(what, plan, err)
end

return fail
