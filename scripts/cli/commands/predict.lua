-- cairn predict RUN [--input FILE]
local ffi = require "ffi"
local args = require "cli.base.args"
local checkpoints = require "cli.checkpoint.checkpoints"
local fail = require "cli.base.fail"
local fields = require "cli.data.fields"
local json = require "cli.base.json"
local models = require "cli.checkpoint.model"
local nearest = require "cli.base.nearest"
local posix = require "cli.base.posix"
local tables = require "cli.data.table"
local unicode = require "cli.base.unicode"

local USAGE = "cairn predict RUN [--input FILE] [--format csv|tsv|jsonl] [--batch N]"
local KNOWN = args.known("device threads budget policy tiers link rates json quiet", {
  input = { args.text, "rows to predict from (default: stdin): JSON lines, or a table whose first line names columns",
    "FILE" },
  format = { args.choice(unpack(tables.FORMS)),
    "of the rows: csv, tsv or jsonl (default: as the file's name says, or its first line looks)" },
  batch = { args.whole(1), "rows that are read before they are answered (default: as many as the model takes at once)",
    "N" },
  json = { args.FLAG, "JSON lines, the one form there is: the flag changes nothing" },
  recipe = { args.text, "a recipe to take the predictor from, instead of the checkpoint's", "FILE" },
  ["recipe-changed"] = models.OPTIONS["recipe-changed"],
  base = models.OPTIONS.base, ema = models.OPTIONS.ema,
})

local Predictor = {}
Predictor.__index = Predictor

local function refuse(self, line, message) fail.input(("%s: line %d: %s"):format(self.source, line, message)) end

-- Puts a row {row, line} into place `at` of the buffers.
function Predictor:put(at, each)
  for _, field in ipairs(self.model.inputs) do
    local value = each.row[field.field]
    if value == nil then
      local known = {}
      for name in pairs(each.row) do known[#known + 1] = tostring(name) end
      table.sort(known)
      refuse(self, each.line, ("there is no '%s'%s; wanted in every row: %s"):format(unicode.shown(field.field),
        nearest.hint(field.field, known), self.wanted))
    end
    local ok, problem = fields.inputs[field.kind].write(field, self.arrays, at, value, self.tokenizer,
      each.row)
    if not ok then refuse(self, each.line, ("'%s': %s"):format(unicode.shown(field.field), problem)) end
  end
end

-- Writes the buffers into the session. Returns true, or nil and the error.
function Predictor:write()
  for name, array in pairs(self.arrays) do
    local ok, err = self.model.session:write(name, array.data)
    if not ok then return nil, err end
  end
  return true
end

-- Says in which line a row is that the library refused, as numbers that are no ids of a table.
function Predictor:blame(group, err)
  if err.status ~= "INVALID_ARGUMENT" then fail.check("predict", nil, err) end
  for _, each in ipairs(group) do
    for at = 0, self.model.rows - 1 do self:put(at, each) end
    local ok, problem = self:write()
    if not ok then refuse(self, each.line, tostring(problem)) end
  end
  fail.check("predict", nil, err)
end

local function is_finite(values)
  for i = 1, #values do
    if values[i] ~= values[i] or math.abs(values[i]) == math.huge then return false end
  end
  return true
end

local function encoded(rows)
  for _, row in ipairs(rows) do
    if type(row[2]) == "table" and row[2].object then row[2] = json.object(row[2].object) end
  end
  return json.encode(json.object(rows))
end

-- Answers at most as many rows as the graph has.
function Predictor:run(group)
  for _, array in pairs(self.arrays) do ffi.fill(array.data, ffi.sizeof(array.data)) end
  for at, each in ipairs(group) do self:put(at - 1, each) end
  local ok, err = self:write()
  if not ok then self:blame(group, err) end
  local session, read = self.model.session, {}
  fail.check("predict", session:run())
  for _, field in ipairs(self.model.answers) do
    read[field.output] = read[field.output] or fail.check("predict", session:read(field.output))
  end
  for at, each in ipairs(group) do
    local answer = {}
    for _, field in ipairs(self.model.answers) do
      local output = self.outputs[field.output]
      local values = {}
      for i = 1, output.width do
        local value = read[field.output][(at - 1) * output.width + i]
        values[i] = output.dtype == "f32" and fields.rounded(value) or value
      end
      if not is_finite(values) then
        fail.with(7, ("%s: line %d: the model's '%s' is not finite"):format(self.source, each.line, field.output))
      end
      for _, pair in ipairs(fields.answers[field.kind].read(field, values, output.shape, self.arrays, at - 1)) do
        answer[#answer + 1] = pair
      end
    end
    local wrote, problem = io.stdout:write(encoded(answer), "\n")
    if not wrote then fail.with(5, "stdout: " .. tostring(problem)) end
  end
end

function Predictor:answer(group)
  for first = 1, #group, self.model.rows do
    local part = {}
    for i = first, math.min(first + self.model.rows - 1, #group) do part[#part + 1] = group[i] end
    self:run(part)
  end
  local ok, problem = io.stdout:flush()
  if not ok then fail.with(5, "stdout: " .. tostring(problem)) end
end

local function open(path, options, root)
  local model = models.predictor(path, root, options)
  local wanted, outputs, needs_tokens = {}, {}, false
  for i, field in ipairs(model.inputs) do
    wanted[i], needs_tokens = unicode.shown(field.field), needs_tokens or fields.inputs[field.kind].reads_text
  end
  for _, field in ipairs(model.answers) do
    local info = model.graph:info(field.output)
    local shape = { unpack(info.shape, 2) }
    local width = 1
    for _, dim in ipairs(shape) do width = width * dim end
    outputs[field.output] = { shape = shape, width = width, dtype = info.dtype }
  end
  return setmetatable({ model = model, wanted = table.concat(wanted, ", "), outputs = outputs,
                        arrays = fields.buffers(model.graph:inputs()),
                        tokenizer = needs_tokens and checkpoints.tokenizer(model.opened) or nil }, Predictor)
end

-- A function that returns line after line, and what messages call their source.
local function lines_of(options)
  local path = options.input
  if not path or path == "-" then
    return tables.lines(function()  -- as they come
      local block, problem = posix.read_some(0)
      if not block then fail.with(5, "stdin: " .. problem) end
      return block
    end), "stdin"
  end
  return tables.file_lines(path, "--input"), "--input: " .. path
end

return function(arguments, root)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  if #words ~= 1 or #settings > 0 then fail.usage("one directory is needed; usage: " .. USAGE) end
  local next_line, source = lines_of(options)
  local self = open(words[1], options, root)
  self.source = source
  local reader = tables.reader(next_line, source,
    options.format or options.input and tables.form_of(options.input) or nil)
  if reader.at then
    for _, field in ipairs(self.model.inputs) do
      if not reader.at[field.field] then
        fail.input(("%s: line 1: the header has no column '%s'%s; it has: %s; wanted: %s"):format(source,
          unicode.shown(field.field), nearest.hint(field.field, reader.columns),
          unicode.shown(table.concat(reader.columns, ", ")), self.wanted))
      end
    end
  end
  local group, most = {}, options.batch or self.model.rows
  for row, line in function() return reader:row() end do
    group[#group + 1] = { row = row, line = line }
    if #group == most then
      self:answer(group)
      group = {}
    end
  end
  if #group > 0 then self:answer(group) end
  return 0
end
