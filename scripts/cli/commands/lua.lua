-- cairn lua FILE [ARG ...]: a Lua program with the binding at hand; its arguments are in arg and in ...
local fail = require "cli.base.fail"

local USAGE = "usage: cairn lua FILE [ARG ...]"

return function(arguments)
  local path = table.remove(arguments, 1)
  if path == "--help" or path == "-h" then
    io.stdout:write(USAGE, "\n")
    return 0
  end
  if not path or path:match("^%-") then fail.usage(USAGE) end
  local chunk, problem = loadfile(path)
  if not chunk then fail.input(problem) end
  rawset(_G, "arg", arguments)
  arguments[0] = path
  local ok, result = xpcall(function() return chunk(unpack(arguments)) end, function(err)
    if fail.is(err) then return err end
    return debug.traceback(tostring(err), 2)
  end)
  if not ok then fail.with(1, tostring(result)) end
  return type(result) == "number" and result or 0
end
