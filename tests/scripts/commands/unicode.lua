-- cairn lua unicode.lua FILE: what cli.base.unicode makes of its bytes, whole and in pieces of every length up to 7.
local unicode = require "cli.base.unicode"

local file = assert(io.open(..., "rb"))
local bytes = file:read("*a")
file:close()
local whole = unicode.text(bytes)
for length = 1, 7 do
  local stream, parts = unicode.stream(), {}
  for at = 1, #bytes, length do
    local part = stream.feed(bytes:sub(at, at + length - 1))
    assert(unicode.text(part) == part, "a piece is no UTF-8")
    parts[#parts + 1] = part
  end
  parts[#parts + 1] = stream.finish()
  assert(table.concat(parts) == whole, "pieces make another text than the whole")
end
io.write(whole)
