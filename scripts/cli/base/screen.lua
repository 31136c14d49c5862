-- What the command writes to stdout and stderr, control characters made visible: names and texts that come from files
-- must not move a terminal's cursor, or tell it to answer. The command's own codes pass, marked by control().
local unicode = require "cli.base.unicode"

local screen = {}

-- Around codes of the command's own: nobody else knows it.
local MARK = "\1" .. tostring({}):match("%w+$") .. "\1"
local real = { stdout = io.stdout, stderr = io.stderr }

local function put(stdout, stderr)
  rawset(io, "stdout", stdout)
  rawset(io, "stderr", stderr)
end

-- Control characters but tabs and line ends: \x1b and so on. Those of Latin-1 are two bytes of UTF-8.
function screen.visible(text)
  if not text:find("[%z\1-\8\11-\31\127-\255]") then return text end
  text = unicode.text(text):gsub("\r\n", "\n"):gsub("[%z\1-\8\11-\31\127]", function(c)
    return ("\\x%02x"):format(c:byte())
  end)
  return (text:gsub("\194([\128-\159])", function(c) return ("\\x%02x"):format(c:byte()) end))
end

-- Codes of the command's own, as a part of what it writes.
function screen.control(codes) return io.stderr == real.stderr and codes or MARK .. codes .. MARK end

local function filtered(text)
  if type(text) ~= "string" then return text end
  local parts, at = {}, 1
  while true do
    local from, to = text:find(MARK, at, true)
    if not from then break end
    local close, stop = text:find(MARK, to + 1, true)
    if not close then break end
    parts[#parts + 1] = screen.visible(text:sub(at, from - 1))
    parts[#parts + 1] = text:sub(to + 1, close - 1)
    at = stop + 1
  end
  if at == 1 then return screen.visible(text) end
  return table.concat(parts) .. screen.visible(text:sub(at))
end

local function wrap(file)
  local methods = {}
  local function through(_, name)
    return function(self, ...) return file[name](self == methods and file or self, ...) end
  end
  function methods.write(_, ...)
    local parts = { ... }
    for i = 1, #parts do parts[i] = filtered(parts[i]) end
    local ok, problem, number = file:write(unpack(parts))
    if not ok then return nil, problem, number end
    return methods
  end
  return setmetatable(methods, { __index = through })
end

-- From now on, what is written by io.stdout:write and io.stderr:write is made visible.
function screen.install()
  put(wrap(real.stdout), wrap(real.stderr))
end

-- Runs body(...), which is a user's program, with the files as they are.
function screen.plainly(body, ...)
  local stdout, stderr = io.stdout, io.stderr
  put(real.stdout, real.stderr)
  local results = { body(...) }
  put(stdout, stderr)
  return unpack(results, 1, table.maxn(results))
end

-- stdout as it is, for what is written to it byte by byte.
screen.stdout = real.stdout

return screen
