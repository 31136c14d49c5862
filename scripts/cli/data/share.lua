-- A text cut in two: what is trained with, and the share at its end that is held out.
local fail = require "cli.base.fail"
local files = require "cli.base.files"
local posix = require "cli.base.posix"

local share = {}

local BLOCK = 2 ^ 20

-- Where a text of `size` bytes is cut so that the rest is about `part` of it: after a line, or, where lines are longer
-- than a block, between two characters of UTF-8.
local function cut(path, size, part)
  local from = math.floor(size * (1 - part))
  local file = files.open(path, "data")
  file:seek("set", from)
  local text = file:read(BLOCK) or ""
  file:close()
  local line = text:find("\n", 1, true)
  if line and from + line < size then return from + line end
  return from + (text:find("[^\128-\191]") or 1) - 1
end

-- The bytes {from, to} of the training part of a text, or of the share at its end.
function share.range(path, part, held_out)
  local size = files.check(path, "data").size
  local at = cut(path, size, part)
  if at == 0 or at >= size then
    fail.input(("eval_fraction=%.15g: %s is too short to be parted so"):format(part, path))
  end
  return held_out and { from = at, to = size } or { from = 0, to = at }
end

-- Copies bytes of a file. Returns true, or nil and why not.
local function copy(path, range, out)
  local source, problem = io.open(path, "rb")
  if not source then return nil, problem end
  local target
  target, problem = io.open(out, "wb")
  local ok, from = target ~= nil, range.from
  if ok then ok, problem = source:seek("set", from) end
  while ok and from < range.to do
    local block = source:read(math.min(BLOCK, range.to - from))
    if not block then break end
    from = from + #block
    ok, problem = target:write(block)
  end
  source:close()
  if target then
    local closed, reason = target:close()
    if not closed then ok, problem = nil, reason end
  end
  return ok and true, problem
end

-- Calls read(path of a file that holds these bytes of the text alone) and passes on what it returns: true, or nil, err.
-- range: nil for the whole text. The bytes lie beside `beside`, this user's alone, for as long as that takes.
function share.with(path, range, beside, read)
  if not range then return read(path) end
  local part = beside .. ".part"
  local ok, problem = posix.privately(copy, path, range, part)
  if not ok then
    posix.remove_file(part)
    return nil, setmetatable({ status = "IO", message = tostring(problem) },
      { __tostring = function(self) return self.message end })
  end
  local done, err = read(part)
  posix.remove_file(part)
  if not done and err.message then
    local first, last = err.message:find(part, 1, true)
    if first then
      err.message = ("%s%s' (bytes %d to %d)%s"):format(err.message:sub(1, first - 1), path, range.from, range.to,
        err.message:sub(last + 2))
    end
  end
  return done, err
end

return share
