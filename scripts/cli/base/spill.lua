-- A long list of texts that takes no memory: what is more than a little goes into a temporary file without a name.
local spill = {}
local Spill = {}
Spill.__index = Spill

local MOST = 2 ^ 16  -- bytes in memory

function spill.new() return setmetatable({ parts = {}, size = 0, count = 0, stored = 0 }, Spill) end

-- Where there is no room for a file, memory has to do.
function Spill:store()
  local text = table.concat(self.parts)
  if self.file == nil then self.file = io.tmpfile() or false end
  if self.file and self.file:seek("set", self.stored) and self.file:write(text) and self.file:flush() then
    self.stored = self.stored + #text
  else
    self.pieces = self.pieces or {}
    if self.file then
      self.file:seek("set", 0)
      self.pieces[1] = self.stored > 0 and self.file:read(self.stored) or ""
      self.file:close()
      self.file = false
    end
    self.pieces[#self.pieces + 1] = text
  end
  self.parts, self.size = {}, 0
  collectgarbage()  -- long texts come faster than they are collected
end

function Spill:add(text)
  self.parts[#self.parts + 1] = text
  self.size, self.count = self.size + #text, self.count + 1
  if self.size >= MOST then self:store() end
end

-- Calls write(text) for all of it, in pieces.
function Spill:each(write)
  for _, piece in ipairs(self.pieces or {}) do write(piece) end
  if self.file then
    self.file:seek("set", 0)
    local left = self.stored
    while left > 0 do
      local piece = self.file:read(math.min(left, MOST))
      if not piece then break end
      write(piece)
      left = left - #piece
      collectgarbage()
    end
  end
  write(table.concat(self.parts))
end

return spill
