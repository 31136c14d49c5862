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

local NO_MEMORY = setmetatable({ code = 4, message = "not enough memory for what was read or made by the command" },
  Failure)  -- made while there is some
fail.OUT_OF_MEMORY = "not enough memory"  -- the interpreter's own words: a file without an end, say

-- What was raised, as a failure.
function fail.of(problem)
  if fail.is(problem) then return problem end
  if problem == fail.OUT_OF_MEMORY then return NO_MEMORY end
  return setmetatable({ code = 1, message = "internal error, please report: " .. tostring(problem) }, Failure)
end

-- The same for xpcall to call where it is raised; an error of ours says where that was.
function fail.caught(problem)
  if fail.is(problem) or problem == fail.OUT_OF_MEMORY then return fail.of(problem) end
  return fail.of(debug.traceback(tostring(problem), 2))
end

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
