-- The command's entry: picks the file of the command, runs it, turns failures into one line on stderr and an exit code.
local root = ...
local ffi = require "ffi"
local commands = require "cli.commands"
local fail = require "cli.base.fail"
local format = require "cli.base.format"
local json = require "cli.base.json"
local nearest = require "cli.base.nearest"
local screen = require "cli.base.screen"

local COMMANDS = {}
for i, row in ipairs(commands) do COMMANDS[i] = row[1] end

local function usage()
  local lines = { "cairn trains neural networks inside a memory budget.", "" }
  local columns = format.columns(1)
  for _, row in ipairs(commands) do
    local name = ("  cairn %-8s %-22s   "):format(row[1], row[2])
    local own = #name + #row[3] <= columns and #name or math.min(#name, 17)
    local break_ = own < #name and "\n" .. (" "):rep(own) or ""
    lines[#lines + 1] = (break_ == "" and name or name:gsub("%s+$", "")) .. break_
      .. format.wrapped(row[3], columns, own, own)
  end
  local text = "cairn COMMAND --help, or cairn help COMMAND, tells more. Exit codes: 0 ok, 1 failure, 2 usage, " ..
    "3 bad input, 4 out of memory or over budget, 5 I/O, 6 device lost, 7 non-finite, 130 interrupted after saving."
  return table.concat(lines, "\n") .. "\n\n" .. format.wrapped(text, columns, 0) .. "\n"
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
  if flushed and ffi.C.ferror(screen.stdout) == 0 then return true end
  return false, reason or "a write failed"
end

if select(2, ...) ~= "lua" then screen.install() end  -- that one is a user's program as a whole

-- Whether the command line asks for JSON, also where it was not understood.
local function wants_json(arguments)
  if arguments[1] == "lua" then return false end
  for _, word in ipairs(arguments) do
    if word == "--" then return false end
    if word == "--json" then return true end
  end
  return false
end

local given = { select(2, ...) }
local ok, result = xpcall(function(...) return run { ... } end, fail.caught, unpack(given))
local whole, reason = stdout_is_whole()
if ok and not whole then
  io.stderr:write("cairn: stdout: ", reason, "; what was to be printed is incomplete\n")
  return 5
end
if ok then return result end
local failure = fail.of(result)
local code = fail.is_no_memory(failure.message) and 4 or failure.code
io.stderr:write("cairn: ", failure.message, "\n")
if wants_json(given) and not fail.told then
  local object = json.object { { "error", fail.object(code, failure.message, failure.about) } }
  io.stdout:write(json.encode(object), "\n")
  io.stdout:flush()
end
return code
