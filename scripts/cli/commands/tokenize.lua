-- cairn tokenize DIR [FILE]
local args = require "cli.base.args"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local json = require "cli.base.json"
local posix = require "cli.base.posix"
local tables = require "cli.data.table"
local tokenizers = require "cli.data.tokenizers"

local USAGE = "cairn tokenize DIR [FILE] [--no-special] [--offsets] [--decode] [--json]"
local KNOWN = args.known("json quiet", {
  ["no-special"] = { args.FLAG, "without the tokens that the tokenizer puts around a text" },
  offsets = { args.FLAG, "objects with the offsets of the tokens, too" },
  decode = { args.FLAG, "the other way round: lines with arrays of tokens become text" },
  ["keep-special"] = { args.FLAG, "with --decode: with special tokens" },
})
local MOST_TOKEN = 2 ^ 31 - 1

local function numbers(array, count)
  local list = {}
  for i = 1, count do list[i] = array[i - 1] end
  return "[" .. table.concat(list, ",") .. "]"
end

local function encoded(tokenizer, line, options)
  local tokens, count, offsets = tokenizer:encode_with(line, { special = not options.no_special,
                                                               offsets = options.offsets })
  fail.check("tokenize", tokens, count)
  if not options.offsets then return numbers(tokens, count) end
  local pairs_ = {}
  for i = 1, count do pairs_[i] = ("[%d,%d]"):format(offsets[2 * i - 2], offsets[2 * i - 1]) end
  return ('{"tokens":%s,"offsets":[%s]}'):format(numbers(tokens, count), table.concat(pairs_, ","))
end

-- The text of a line with an array of tokens.
local function decoded(tokenizer, line, options, where)
  local ok, tokens = pcall(decode, line)
  if not ok or type(tokens) ~= "table" then fail.input(where .. "it is no JSON array of tokens") end
  for i = 1, math.max(#tokens, next(tokens) and 1 or 0) do
    local token = tokens[i]
    if type(token) ~= "number" or token % 1 ~= 0 or token < 0 or token > MOST_TOKEN then
      fail.input(("%sitem %d is no token; wanted: an array of whole numbers"):format(where, i))
    end
  end
  local text, err = tokenizer:decode_with(tokens, { skip_special = not options.keep_special })
  if not text and err.status == "INVALID_ARGUMENT" then fail.input(where .. tostring(err)) end
  text = fail.check("tokenize", text, err)
  return options.json and json.encode(text) or text
end

-- A function that returns line after line of a file or stdin, and what messages call it.
local function lines_of(path)
  if path and path ~= "-" then return tables.file_lines(path, "FILE"), path end
  return tables.lines(function()
    local block, problem = posix.read_some(0)
    if not block then fail.with(5, "stdin: " .. problem) end
    return block
  end), "stdin"
end

return function(arguments)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  -- A path with '=' in it was taken for a setting.
  for _, setting in ipairs(settings) do words[#words + 1] = setting[1] .. "=" .. setting[2] end
  if #words < 1 or #words > 2 then fail.usage("a directory, and at most one file, are needed; usage: " .. USAGE) end
  local tokenizer = tokenizers.opened(words[1])
  local next_line, source = lines_of(words[2])
  local number = 0
  for line in next_line do
    number = number + 1
    local made = options.decode and decoded(tokenizer, line, options, ("%s: line %d: "):format(source, number))
      or encoded(tokenizer, line, options)
    local wrote, problem = io.stdout:write(made, "\n")
    if not wrote then fail.with(5, "stdout: " .. tostring(problem)) end
  end
  local flushed, problem = io.stdout:flush()
  if not flushed then fail.with(5, "stdout: " .. tostring(problem)) end
  return 0
end
