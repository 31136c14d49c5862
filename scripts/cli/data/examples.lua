-- Datasets of what a file has one of in each of its rows, by a kind of it:
--   read(path, what, o) -> {lines (of each row), labels (of each; optional)}
--   source(o, run, found, list, what, path) -> what cli.data.rows fills arrays from, for the rows `list`; tokenizer
--   random(o, seed) -> the same of data=random, and how many rows there are
--   labels(o) -> those that rows are counted by (optional)
local content = require "cli.data.content"
local fail = require "cli.base.fail"
local rows = require "cli.data.rows"
local unicode = require "cli.base.unicode"

local examples = {}

local MOST_TOLD = 20

-- The file that is trained with, looked at once a run.
function examples.trained_file(o, run)
  run.labelled_file = run.labelled_file or content.open(run, o.data, "data")
  return run.labelled_file
end

-- How many of the rows have which label: rows { label, count }.
local function counts_of(kind, o, found, list)
  local count, counts = {}, {}
  for _, at in ipairs(list) do count[found.labels[at]] = (count[found.labels[at]] or 0) + 1 end
  for i, label in ipairs(kind.labels(o)) do counts[i] = { label, count[label] or 0 } end
  return counts
end

-- What run.note says of a run's data.
local function told(what, counts, total)
  local words = {}
  for i = 1, math.min(#counts, MOST_TOLD) do
    words[i] = ("%s %d"):format(unicode.shown(counts[i][1]), counts[i][2])
  end
  return ("texts to %s with: %d (%s%s)"):format(what, total, table.concat(words, ", "),
    #counts > MOST_TOLD and ", ..." or "")
end

function examples.dataset(kind, o, run)
  if o.data == "" then fail.usage("data=FILE is needed (or data=random)") end
  if o.batch * o.seq > rows.MOST_TOKENS then
    fail.usage(("batch=%.0f and seq=%.0f make %.0f tokens of a micro-batch; at most %.0f"):format(o.batch, o.seq,
      o.batch * o.seq, rows.MOST_TOKENS))
  end
  if o.data == "random" then
    local source, count = kind.random(o, run.seed)
    return rows.dataset(rows.split(count, o.eval_fraction), o, run.seed, source, "data=random")
  end
  local file = examples.trained_file(o, run)
  local found = kind.read(o.data, "data", o)
  local list = rows.split(#found.lines, o.eval_fraction)
  local source, tokenizer = kind.source(o, run, found, list, "data", o.data)
  if kind.labels then run.note(told("train", counts_of(kind, o, found, list), #list)) end
  local made = rows.dataset(list, o, run.seed, source, "data: " .. o.data)
  made.tokenizer, made.content = tokenizer, file.content
  return made
end

-- What is evaluated with: eval_data, or the share eval_fraction of data that is not trained with.
function examples.evaluation(kind, o, run)
  if not rows.evaluates(o) then return nil end
  local own = {}
  for key, value in pairs(o) do own[key] = value end
  own.dropout = 0
  return { o = own, data = function()
    if o.data == "random" and o.eval_data == "" then
      local source, count = kind.random(o, run.seed)
      return rows.evaluation(select(2, rows.split(count, o.eval_fraction)), o, source)
    end
    local path, what = o.eval_data, "eval_data"
    if path == "" then path, what = o.data, "eval_fraction" end
    local file = o.eval_data == "" and examples.trained_file(o, run) or content.open(run, path, what)
    local found = kind.read(path, what, o)
    local list = {}
    for i = 1, #found.lines do list[i] = i end
    if o.eval_data == "" then list = select(2, rows.split(#found.lines, o.eval_fraction)) end
    if #list == 0 then
      fail.input(("eval_fraction=%.15g of the %d rows of %s is none"):format(o.eval_fraction, #found.lines, path))
    end
    local made = rows.evaluation(list, o, (kind.source(o, run, found, list, what, path)))
    if kind.labels then made.counts = { labels = counts_of(kind, o, found, list) } end
    if o.eval_data == "" then made.content = file.content end
    return made
  end }
end

return examples
