-- Datasets of rows that lie in memory: which are trained with, in which order, and which are held out.
local fail = require "cli.base.fail"
local numbers = require "cairn.numbers"
local shuffled = require "cli.data.shuffled"

local rows = { MOST_TOKENS = 2 ^ 28 }  -- of a micro-batch: what one array of the interpreter holds

local SPLIT_SEED = 20260  -- of all runs: what is held out of data is the same whatever seed a run has

local function counted(count)
  local list = {}
  for i = 1, count do list[i] = i end
  return list
end

-- Which of `count` rows are trained with, and which are held out: a share, drawn by their number alone. Files that are
-- sorted, as by their labels, are parted as well as others.
function rows.split(count, share)
  if (share or 0) == 0 then return counted(count), {} end
  local order, trained, held = shuffled(counted(count), SPLIT_SEED), {}, {}
  local most = count - math.floor(count * share + 0.5)
  for i, at in ipairs(order) do
    if i <= most then trained[#trained + 1] = at else held[#held + 1] = at end
  end
  table.sort(trained)
  table.sort(held)
  return trained, held
end

-- Buffers of `count` rows by input name. layout: rows {name, dtype, numbers of a row}.
local function buffers(layout, count)
  local arrays, plain = {}, {}
  for _, row in ipairs(layout) do
    local data = numbers.buffer(row[2], count * row[3])
    arrays[row[1]], plain[row[1]] = { data = data, width = row[3] }, data
  end
  return arrays, plain
end

-- Fills `count` places from list, whose numbers are at first + 1 and on. fill(arrays, place, number or nil: a row that
-- counts for nothing) returns the row's tokens. Returns the tokens, and the rows that count.
local function fill_all(arrays, count, list, first, fill)
  local tokens, there = 0, 0
  for place = 0, count - 1 do
    local number = list[first + place + 1]
    tokens = tokens + (fill(arrays, place, number) or 1)
    there = there + (number and 1 or 0)
  end
  return tokens, there
end

-- A dataset of the rows `list`, in an order drawn from the seed for each epoch. o: batch, remainder; source: layout and
-- fill as above, complete (there are no micro-batches with rows that count for nothing, nor of their own size);
-- what: names the data for messages.
function rows.dataset(list, o, seed, source, what)
  if #list == 0 then
    fail.input(("%s: eval_fraction=%.15g leaves no row to train with"):format(what, o.eval_fraction))
  end
  local rest, batches = #list % o.batch, math.ceil(#list / o.batch)
  if source.complete or o.remainder == "drop" then batches = math.floor(#list / o.batch) end
  if batches == 0 then
    fail.input(("%s: %d rows to train with are fewer than batch=%d, and %s them out"):format(what, #list, o.batch,
      source.complete and "a loss of pairs leaves" or "remainder=drop leaves"))
  end
  local arrays, plain = buffers(source.layout, o.batch)
  local own, own_plain
  if o.remainder == "own" and not source.complete and rest > 0 then own, own_plain = buffers(source.layout, rest) end
  local order, of_epoch
  return {
    batches = batches,
    remainders = own and { { name = "remainder", changes = { batch = rest } } } or nil,
    batch = function(index)
      local epoch, first = math.floor(index / batches), index % batches * o.batch
      if of_epoch ~= epoch then
        order, of_epoch = {}, epoch
        for i, at in ipairs(list) do order[i] = at end
        shuffled(order, seed + 7919 * (epoch + 1))
      end
      if own and #list - first < o.batch then
        local tokens, there = fill_all(own, rest, order, first, source.fill)
        return own_plain, tokens, "remainder", there
      end
      local tokens, there = fill_all(arrays, o.batch, order, first, source.fill)
      return plain, tokens, nil, there
    end,
  }
end

-- All rows of `list` once, in order, to evaluate with.
function rows.evaluation(list, o, source)
  if source.complete and #list < o.batch then
    fail.input(("%d rows to evaluate with are fewer than batch=%d"):format(#list, o.batch))
  end
  local arrays, plain = buffers(source.layout, o.batch)
  return {
    batches = source.complete and math.floor(#list / o.batch) or math.ceil(#list / o.batch),
    batch = function(index)
      local tokens, there = fill_all(arrays, o.batch, list, index * o.batch, source.fill)
      return plain, tokens, nil, there
    end,
  }
end

-- Ends the command where options of evaluation do not go together. Whether they ask for one.
function rows.evaluates(o)
  if o.eval_data == "" and o.eval_fraction == 0 then return false end
  if o.eval_data ~= "" and o.eval_fraction > 0 then fail.usage("eval_data and eval_fraction exclude each other") end
  return true
end

return rows
