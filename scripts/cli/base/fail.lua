-- Ways for a command to end: a message for stderr and the exit code, and what --json prints of them.
local json = require "cli.base.json"

local fail = {}

local Failure = {}
Failure.__index = Failure
Failure.__tostring = function(self) return self.message end

-- Exit code by the status of an error of the binding.
local CODES = {
  INVALID_ARGUMENT = 3, WRONG_STATE = 1, OUT_OF_MEMORY = 4, OVER_BUDGET = 4, UNSUPPORTED = 1, NOT_FOUND = 3,
  CORRUPT_FILE = 3, IO = 5, DEVICE_LOST = 6, CANCELLED = 130, NON_FINITE = 7, INTERNAL = 1,
}
-- Status by exit code, of failures that the binding does not name.
local STATUS = { [1] = "FAILURE", [2] = "USAGE", [3] = "BAD_INPUT", [4] = "OUT_OF_MEMORY", [5] = "IO",
                 [6] = "DEVICE_LOST", [7] = "NON_FINITE", [130] = "INTERRUPTED" }
-- Bytes that a failure may tell of, by their keys in --json.
local BYTES = { "requested_bytes", "in_use_bytes", "budget_bytes", "smallest_budget_bytes" }

-- about: status, and a fault's bytes (optional).
function fail.with(code, message, about)
  error(setmetatable({ code = code, message = message, about = about }, Failure), 0)
end
function fail.usage(message) fail.with(2, message) end
function fail.input(message) fail.with(3, message) end
-- A signal ended the code of the recipe at `path`.
function fail.interrupted(path)
  error(setmetatable({ code = 130, message = "interrupted in the code of " .. path, interrupted = true }, Failure), 0)
end
function fail.is(problem) return type(problem) == "table" and getmetatable(problem) == Failure end

-- The words of the interpreter, the library and the system for memory that they did not get, at the end of a message
-- or of its first line; the interpreter's where not even the error could be handled.
local NO_MEMORY = { "not enough memory", "Cannot allocate memory", "the system gave no memory for a bookkeeping object",
                    "the system gave no thread", "error in error handling" }
function fail.is_no_memory(message)
  local first = type(message) == "string" and (message:match("^[^\n]*") or "") or ""
  for _, words in ipairs(first ~= "" and NO_MEMORY or {}) do
    if first:sub(-#words) == words or message:sub(-#words) == words then return true end
  end
  if not first:find("module '[^']*' not found:") then return false end
  for path in message:gmatch("no file '([^']*)'") do  -- which is there: it could not be looked for
    local file = io.open(path, "r")
    if file then
      file:close()
      return true
    end
  end
  return false
end

-- What --json prints of a failure, as the value of "error".
function fail.object(code, message, about)
  about = about or {}
  local rows = { { "code", code }, { "status", about.status or STATUS[code] or "FAILURE" }, { "message", message } }
  for _, key in ipairs(BYTES) do
    if (about[key] or 0) > 0 then rows[#rows + 1] = { key, about[key] } end
  end
  return json.object(rows)
end

-- What fail.with takes of an error of the binding: its status, and of memory the bytes.
function fail.about(err)
  if type(err) ~= "table" then return nil end
  local about = { status = err.status }
  for _, key in ipairs(BYTES) do about[key] = err.fault and err.fault[key] or nil end
  return about
end

-- Made while there is some.
local NO_MEMORY_FAILURE = setmetatable(
  { code = 4, message = "not enough memory for what was read or made by the command" }, Failure)

-- What was raised, as a failure.
function fail.of(problem)
  if fail.is(problem) then return problem end
  if fail.is_no_memory(problem) then return NO_MEMORY_FAILURE end
  return setmetatable({ code = 1, message = "internal error, please report: " .. tostring(problem),
                        about = { status = "INTERNAL" } }, Failure)
end

-- The same for xpcall to call where it is raised; an error of ours says where that was.
function fail.caught(problem)
  if fail.is(problem) or fail.is_no_memory(problem) then return fail.of(problem) end
  return fail.of(debug.traceback(tostring(problem), 2))
end

-- Passes a call's results on; ends the command if the first is nil and the second an error of the binding, with `what`
-- before it where it does not name that itself.
function fail.check(what, result, err, ...)
  if result ~= nil then return result, err, ... end
  local message = tostring(err)
  if what and what ~= "" and not message:find("'" .. what .. "'", 1, true) then message = what .. ": " .. message end
  fail.with(type(err) == "table" and CODES[err.status] or 1, message, fail.about(err))
end

-- The same for what makes a plan: a pattern that no region matches is a mistake of the command line.
function fail.plan(what, plan, err)
  if not plan and tostring(err):find("no region matches the pattern", 1, true) then
    fail.usage("--region: " .. tostring(err))
  end
  return fail.check(what, plan, err)
end

return fail
