-- A file that is one JSON array of objects, read object by object.
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local files = require "cli.base.files"
local unicode = require "cli.base.unicode"

local json_array = {}

local BLOCK = 2 ^ 16
local MOST_BYTES = 2 ^ 27  -- of one object

-- Whether a file begins as an array does.
function json_array.is(path, what) return files.read(path, what, BLOCK):find("^[%s\239\187\191]*%[") ~= nil end

local Reader = {}
Reader.__index = Reader

function Reader:refuse(line, message) fail.input(("%s: line %d: %s"):format(self.source, line, message)) end

-- Takes the bytes of a block from `from` on, of the object that is open.
function Reader:keep(block, from, to)
  self.parts[#self.parts + 1] = block:sub(from, to)
  self.bytes = self.bytes + to - from + 1
  if self.bytes > MOST_BYTES then
    self:refuse(self.began, ("the object that begins here has more than %d bytes"):format(MOST_BYTES))
  end
end

-- An object has ended.
function Reader:take_object()
  self.text = table.concat(self.parts)
  self.parts, self.bytes = {}, 0
  local ok, row = pcall(decode, self.text)
  if not ok then self:refuse(self.began, "it is no JSON object: " .. unicode.shown(tostring(row))) end
  self.take(row, self.began, self)
  self.count = self.count + 1
end

-- One of the marks that an array is read by, at `at` of a block. Depth 1 is in the array, 2 in an object of it.
function Reader:mark(mark, block, at)
  if mark == "\n" then
    self.line = self.line + 1
  elseif mark == '"' then
    self.quoted = true
  elseif mark == "{" or mark == "[" then
    self.depth = self.depth + 1
    if self.depth == 2 then self.began, self.from = self.line, at end
  else
    self.depth = self.depth - 1
    if self.depth == 1 then
      self:keep(block, self.from, at)
      self.from = nil
      self:take_object()
    end
  end
end

local function scan(self, block)
  local at = 1
  if self.depth > 1 then self.from = 1 end
  if self.escaped then at, self.escaped = 2, false end
  while self.depth > 0 or self.count == 0 do
    local from = at
    at = block:find(self.quoted and '[\\"]' or '[%[%]{}"\n]', from)
    local odd = self.depth == 1 and block:find("[^%s,{%]]", from)
    if odd and odd <= (at or odd) then self:refuse(self.line, "it is no array of objects; wanted: [{...}, {...}]") end
    if not at then break end
    local mark = block:sub(at, at)
    if not self.quoted then
      self:mark(mark, block, at)
    elseif mark == '"' then
      self.quoted = false
    else
      at = at + 1
      self.escaped = at > #block
    end
    at = at + 1
  end
  if self.depth > 1 then self:keep(block, self.from, #block) end
end

-- Calls take(row, line, reader) for each object, as cli.data.table does for each row.
function json_array.each(path, what, take)
  local self = setmetatable({ source = ("%s: %s"):format(what, path), take = take, line = 1, depth = 0, count = 0,
                              bytes = 0, parts = {} }, Reader)
  local file = files.open(path, what)
  for block in function() return files.next(file, BLOCK, path, what) end do scan(self, block) end
  file:close()
  if self.depth > 0 then self:refuse(self.line, "the array has no end") end
  if self.count == 0 then fail.input(("%s holds no rows"):format(self.source)) end
end

return json_array
