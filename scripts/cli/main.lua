-- The command's entry: picks the file of the command, runs it, turns failures into one line on stderr and an exit code.
local root = ...
local ffi = require "ffi"
local commands = require "cli.commands"
local fail = require "cli.base.fail"
local nearest = require "cli.base.nearest"

local COMMANDS = {}
for i, row in ipairs(commands) do COMMANDS[i] = row[1] end

local function usage()
  local lines = { "cairn trains neural networks inside a memory budget.", "" }
  for _, row in ipairs(commands) do lines[#lines + 1] = ("  cairn %-8s %-22s   %s"):format(unpack(row)) end
  return table.concat(lines, "\n") .. [[


cairn COMMAND --help, or cairn help COMMAND, tells more. Exit codes: 0 ok, 1 failure, 2 usage, 3 bad input,
4 out of memory or over budget, 5 I/O, 6 device lost, 7 non-finite, 130 interrupted after saving.
]]
end

-- Ends the command where the binding takes no library: that is how the machine is set up, not an error in here.
local function check_binding()
  local found, problem = pcall(require, "cairn.core")
  if not found then fail.with(1, tostring(problem)) end
end

local function run(arguments)
  local command = table.remove(arguments, 1)
  if command == nil then
    io.stderr:write(usage())
    return 2
  end
  if command == "help" and #arguments > 0 then  -- of a command, as its own --help
    command = table.remove(arguments, 1)
    arguments[#arguments + 1] = "--help"
  end
  if command == "--help" or command == "-h" or command == "help" then
    io.stdout:write(usage())
    return 0
  end
  check_binding()
  if command == "--version" then
    io.stdout:write("cairn ", require("cairn").version(), "\n")
    return 0
  end
  for _, name in ipairs(COMMANDS) do
    if name == command then return require("cli.commands." .. name)(arguments, root) or 0 end
  end
  fail.usage(("unknown command '%s'%s (known: %s)"):format(command, nearest.hint(command, COMMANDS),
    table.concat(COMMANDS, " ")))
end

ffi.cdef "int ferror(void* file);"
-- Whether all that went to stdout arrived there; what was lost before the last flush shows in the stream's mark.
local function stdout_is_whole()
  local flushed, reason = io.stdout:flush()
  if flushed and ffi.C.ferror(io.stdout) == 0 then return true end
  return false, reason or "a write failed"
end

local ok, result = xpcall(function(...) return run { ... } end, fail.caught, select(2, ...))
local whole, reason = stdout_is_whole()
if ok and not whole then
  io.stderr:write("cairn: stdout: ", reason, "; what was to be printed is incomplete\n")
  return 5
end
if ok then return result end
local failure = fail.of(result)
io.stderr:write("cairn: ", failure.message, "\n")
return failure.code
