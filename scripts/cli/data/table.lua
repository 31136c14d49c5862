-- Tables of texts: CSV (RFC 4180), TSV and JSON lines, row by row, with the number of each row's first line. What is no
-- such table is refused with its line.
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local files = require "cli.base.files"
local unicode = require "cli.base.unicode"

local tables = {}

tables.FORMS = { "csv", "tsv", "jsonl" }
local ENDINGS = { csv = "csv", tsv = "tsv", tab = "tsv", jsonl = "jsonl", ndjson = "jsonl", json = "jsonl" }
local MOST_LINE_BYTES, BLOCK = 2 ^ 27, 2 ^ 16

local Reader = {}
Reader.__index = Reader

function Reader:refuse(line, message) fail.input(("%s: line %d: %s"):format(self.source, line, message)) end

-- The next line without its end; nil behind the last one.
function Reader:line()
  local line = self.next_line()
  if not line then return nil end
  self.number = self.number + 1
  if #line > MOST_LINE_BYTES then
    self:refuse(self.number, ("it has %d bytes; at most %d"):format(#line, MOST_LINE_BYTES))
  end
  if self.number == 1 then
    if line:find("^\255\254") or line:find("^\254\255") then
      self:refuse(1, "the file is UTF-16; wanted: UTF-8")
    end
    line = line:gsub("^\239\187\191", "")  -- a mark of UTF-8
  end
  return line
end

local function without_return(line) return line:sub(-1) == "\r" and line:sub(1, -2) or line end

local function split(line, by)
  local cells, at = {}, 1
  while true do
    local stop = line:find(by, at, true)
    cells[#cells + 1] = line:sub(at, (stop or #line + 1) - 1)
    if not stop then return cells end
    at = stop + 1
  end
end

-- The cells of a row of CSV that begins with `line`, which quotes may carry over line ends.
function Reader:csv_cells(line)
  local first = self.number
  if not line:find('"', 1, true) then return split(without_return(line), ",") end
  local cells, at = {}, 1
  while true do
    if line:sub(at, at) == '"' then
      local parts, from, bytes = {}, at + 1, 0
      while true do
        local stop = line:find('"', from, true)
        if not stop then
          parts[#parts + 1] = line:sub(from) .. "\n"
          bytes = bytes + #line
          line, from = bytes <= MOST_LINE_BYTES and self:line() or nil, 1
          if not line then self:refuse(first, "a quote is opened and not closed") end
        elseif line:sub(stop + 1, stop + 1) == '"' then
          parts[#parts + 1] = line:sub(from, stop)
          from = stop + 2
        else
          parts[#parts + 1] = line:sub(from, stop - 1)
          at = stop + 1
          break
        end
      end
      cells[#cells + 1] = table.concat(parts)
      local behind = line:sub(at)
      if behind == "" or behind == "\r" then return cells end
      if line:sub(at, at) ~= "," then
        self:refuse(self.number, ("'%s' follows a quoted cell; wanted: a comma, and \"\" for a quote inside")
          :format(unicode.shown(behind:sub(1, 20))))
      end
      at = at + 1
    else
      local stop = line:find(",", at, true)
      if not stop then
        cells[#cells + 1] = without_return(line:sub(at))
        return cells
      end
      cells[#cells + 1] = line:sub(at, stop - 1)
      at = stop + 1
    end
  end
end

function Reader:cells(line)
  if self.form == "csv" then return self:csv_cells(line) end
  return split(without_return(line), "\t")
end

-- A line that is not empty; nil at the end.
function Reader:filled_line()
  repeat
    local line = self:line()
    if not line then return nil end
    if line:find("[^ \r]") then return line end
  until false
end

function Reader:read_header(line)
  self.columns, self.at = self:cells(line), {}
  for i, name in ipairs(self.columns) do
    if name == "" then
      self:refuse(1, ("column %d of the header has no name; the first line names the columns"):format(i))
    end
    if self.at[name] then self:refuse(1, ("the header names '%s' twice"):format(unicode.shown(name))) end
    self.at[name] = i
  end
end

local function record_of(self, line)
  local ok, row = pcall(decode, line)
  if not ok then self:refuse(self.number, ("it is no JSON object: %s"):format(unicode.shown(tostring(row)))) end
  if type(row) ~= "table" or not line:find("^%s*{") then
    self:refuse(self.number, 'it is no JSON object; wanted: one in every line, as {"text": "..."}')
  end
  return row
end

-- The next row: values by name, and the number of its first line; nil at the end. Cells of CSV and TSV are texts. Of
-- JSON lines self.text is the row as it is written.
function Reader:row()
  local line = self.first or self:filled_line()
  self.first = nil
  if not line then return nil end
  local number = self.number
  if self.form == "jsonl" then
    self.text = line
    return record_of(self, line), number
  end
  local cells, row = self:cells(line), {}
  if #cells ~= #self.columns then
    self:refuse(number, ("it has %d cell%s, the header has %d"):format(#cells, #cells == 1 and "" or "s",
      #self.columns))
  end
  for i, name in ipairs(self.columns) do row[name] = cells[i] end
  return row, number
end

-- Reads rows from next_line(). source: what messages name; form: one of FORMS, or nil: as the first line looks.
-- self.columns: the header's names in order, self.at: their places; nil of JSON lines.
function tables.reader(next_line, source, form)
  local self = setmetatable({ next_line = next_line, source = source, form = form, number = 0 }, Reader)
  local line = self:filled_line()
  if not line then return self end
  self.form = form or line:find("^%s*{") and "jsonl" or line:find("\t", 1, true) and "tsv" or "csv"
  if self.form == "jsonl" then
    self.first = line
  else
    self:read_header(line)
  end
  return self
end

-- Lines without their ends, of blocks that next_block() returns; "" or nothing: the end. Any bytes may be in them.
function tables.lines(next_block)
  local parts, bytes, block, at, ended = {}, 0, "", 1, false
  return function()
    while true do
      local stop = block:find("\n", at, true)
      local piece = block:sub(at, (stop or #block + 1) - 1)
      if piece ~= "" then parts[#parts + 1], bytes = piece, bytes + #piece end
      at = (stop or #block) + 1
      if stop or bytes > MOST_LINE_BYTES or ended then
        if ended and bytes == 0 then return nil end
        local line = #parts == 1 and parts[1] or table.concat(parts)
        parts, bytes = {}, 0
        return line
      end
      block, at = next_block() or "", 1
      ended = block == ""
    end
  end
end

-- Those of a file. what: the option that names it.
function tables.file_lines(path, what)
  local file = files.open(path, what)
  return tables.lines(function() return files.next(file, BLOCK, path, what) end)
end

-- The form that a file's name says; nil: none.
function tables.form_of(path) return ENDINGS[(path:match("%.(%w+)$") or ""):lower()] end

-- Calls take(row, line) for each row of a file. what: the option that names it. Returns the reader.
function tables.each(path, what, take)
  local reader = tables.reader(tables.file_lines(path, what), ("%s: %s"):format(what, path), tables.form_of(path))
  local count = 0
  for row, line in function() return reader:row() end do
    take(row, line, reader)
    count = count + 1
  end
  if count == 0 then
    fail.input(("%s: %s holds no rows%s"):format(what, path, reader.columns and ", only a header" or ""))
  end
  return reader
end

return tables
