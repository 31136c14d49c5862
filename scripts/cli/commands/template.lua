-- cairn template DIR|FILE.gguf FILE.jsonl
local args = require "cli.base.args"
local chat = require "cli.data.chat"
local fail = require "cli.base.fail"
local json = require "cli.base.json"
local nearest = require "cli.base.nearest"
local posix = require "cli.base.posix"
local shards = require "cli.instruct.shards"
local tokenizers = require "cli.data.tokenizers"
local tokens = require "cli.instruct.tokens"
local unicode = require "cli.base.unicode"

local USAGE = "cairn template DIR|FILE.gguf FILE [template=FILE] [train_on=all] [--limit N] [--json]"
local KNOWN = args.known("quiet", {
  json = { args.FLAG, "an object for each row, one a line" },
  limit = { args.whole(1), "rows to print (default: all)", "N" },
})
local SETTINGS = { "template", "train_on", "prompt", "answer" }
local DONE = {}  -- what ends the reading of rows

local function write(...)
  local wrote, problem = io.stdout:write(...)
  if not wrote then fail.with(5, "stdout: " .. tostring(problem)) end
end

local function options_of(settings, words)
  local o = { template = "", train_on = "answers", prompt = "", answer = "", tokens = "auto" }
  for _, setting in ipairs(settings) do
    local name, value = setting[1], setting[2]
    if posix.is_there(name .. "=" .. value) then  -- a path with '=' in it
      words[#words + 1] = name .. "=" .. value
    elseif o[name] == nil or name == "tokens" then
      fail.usage(("unknown option '%s'%s (known: %s)"):format(name, nearest.hint(name, SETTINGS),
        table.concat(SETTINGS, " ")))
    else
      o[name] = value
    end
  end
  if o.train_on ~= "answers" and o.train_on ~= "all" then
    fail.usage(("train_on=%s; wanted: answers or all"):format(o.train_on))
  end
  return o
end

-- A row as JSON: its line, the text that it became, its tokens and the mask of those that are learned.
local function row_json(row, files)
  local fields = { { "line", row.line }, { "form", row.form }, { "text", row.text },
                   { "ids", json.array(row.ids) }, { "mask", json.array(row.mask) } }
  if files > 1 then table.insert(fields, 1, { "file", row.file }) end
  return json.encode(json.object(fields))
end

-- The same for people: what is learned has a plus.
local function row_lines(row, tokenizer)
  local lines = { ("%s: line %d: %s, %d tokens, %d of them learned"):format(unicode.shown(row.file), row.line, row.form,
    #row.ids, row.learned) }
  local at = 1
  while at <= #row.ids do
    local part, learned = {}, row.mask[at]
    while at <= #row.ids and row.mask[at] == learned do part[#part + 1], at = row.ids[at], at + 1 end
    lines[#lines + 1] = ("  %s %s"):format(learned == 1 and "+" or " ",
      json.encode(fail.check("tokenizer", tokenizer:decode_with(part, {}))))
  end
  return table.concat(lines, "\n")
end

return function(arguments)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  local o = options_of(settings, words)
  if #words ~= 2 then fail.usage("a model and a file of rows are needed; usage: " .. USAGE) end
  local run = { directory = words[1] }
  if not posix.is_there(words[1]) then fail.input(("there is no '%s'"):format(unicode.shown(words[1]))) end
  local list = shards.list(words[2], "FILE")
  local tokenizer = posix.no_file(words[1]) == "a directory" and tokenizers.of(o, run)
    or { kind = "pretrained", opened = tokenizers.opened(words[1]) }
  local opened, count = chat.open(o, run, tokenizer), 0
  local called, problem = pcall(tokens.each, opened, list, "FILE", o, function(row)
    row.file = list[row.file]
    write(options.json and row_json(row, #list) or row_lines(row, tokenizer.opened), "\n")
    count = count + 1
    if count == options.limit then error(DONE, 0) end
  end)
  if not called and problem ~= DONE then error(problem, 0) end
  local flushed, reason = io.stdout:flush()
  if not flushed then fail.with(5, "stdout: " .. tostring(reason)) end
  return 0
end
