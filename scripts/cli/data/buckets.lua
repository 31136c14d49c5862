-- Texts sorted by length: each goes into the shortest window that holds it, and a micro-batch is of one length.
local ffi = require "ffi"
local fail = require "cli.base.fail"
local files = require "cli.base.files"
local flat = require "cli.data.flat"
local lengths = require "cli.recipe.lengths"
local random = require "cairn.random"
local shuffled = require "cli.data.shuffled"

local buckets = {}

local IGNORED = -100  -- a target that counts for nothing
local BLOCK = 2 ^ 20

-- Calls take(line) for each line of a file, whatever bytes are in it.
local function each_line(path, what, take)
  local file, parts = files.open(path, what), {}
  for block in function() return files.next(file, BLOCK, path, what) end do
    local at = 1
    while true do
      local stop = block:find("\n", at, true)
      if not stop then break end
      parts[#parts + 1] = block:sub(at, stop - 1)
      take(#parts == 1 and parts[1] or table.concat(parts))
      parts, at = {}, stop + 1
    end
    if at <= #block then parts[#parts + 1] = block:sub(at) end
  end
  file:close()
  if #parts > 0 then take(table.concat(parts)) end
end

-- Calls take(text) for the texts of a file: what stands between empty lines, or between lines of "%" alone. Returns how
-- many there are.
local function each_text(path, what, take)
  local lines, count = {}, 0
  local function close()
    if #lines > 0 then
      count = count + 1
      take(lines, count)
      lines = {}
    end
  end
  each_line(path, what, function(line)
    if line:find("^%%?%s*$") then close() else lines[#lines + 1] = line end
  end)
  close()
  return count
end

-- Pieces of one length: where each begins among all tokens, and how many places of a window it takes.
function buckets.new(longest) return { first = flat.new(2 ^ 52), count = flat.new(longest) } end

-- Micro-batches of one epoch: {program, first piece of its bucket's order, how many}.
local function epoch_of(sorted, batch, seed)
  local plan, orders = {}, {}
  for program, bucket in ipairs(sorted) do
    local order, size = {}, bucket.count.count
    for i = 1, size do order[i] = i end
    orders[program] = shuffled(order, seed + program)
    for first = 1, size, batch do plan[#plan + 1] = { program, first, math.min(batch, size - first + 1) } end
  end
  return shuffled(plan, seed), orders
end

-- A dataset as text.dataset makes them, whose batch(index) also returns its program. tokenizer: nil where tokens are
-- drawn from the seed. part: {path, what (the option that names it), from, to (shares of the texts)}.
function buckets.dataset(o, run, tokenizer, part)
  local list, what = lengths.parse(o.lengths), part.what or "data"
  local tokens = flat.new(tokenizer and tokenizer.opened:vocabulary() - 1 or o.vocab - 1)
  local sorted, count = {}, 0
  for i = 1, #list do sorted[i] = buckets.new(list[1]) end
  -- Cuts a text's tokens into pieces of at most the longest length; the last token of one is the first of the next, so
  -- that every token but the first is predicted once.
  local function add(array, size)
    local first = tokens.count
    tokens:append(array, size)
    while size > 1 do
      local made = math.min(list[1], size - 1)
      local program = #list
      while list[program] < made do program = program - 1 end
      sorted[program].first:add(first)
      sorted[program].count:add(made)
      count = count + 1
      first, size = first + made, size - made
    end
  end
  if tokenizer then
    local all = (part.from or part.to) and each_text(part.path, what, function() end) or nil
    local first = all and math.floor(all * (part.from or 0) + 0.5) + 1 or 1
    local last = all and math.floor(all * (part.to or 1) + 0.5) or math.huge
    each_text(part.path, what, function(lines, index)
      if index >= first and index <= last then
        add(fail.check(what, tokenizer.opened:encode_array(table.concat(lines, "\n"))))
      end
    end)
  else
    local draw = random(run.seed)
    local drawn = ffi.new("int32_t[?]", list[1] + 2)
    for _ = 1, 64 * o.batch do
      local size = 2 + math.floor(draw() * list[1])
      for i = 0, size - 1 do drawn[i] = math.floor(draw() * o.vocab) end
      add(drawn, size)
    end
  end
  if count == 0 then fail.input(("%s: %s holds no text of two tokens"):format(what, part.path)) end
  return buckets.batches(o, run.seed, sorted, ("%s: %s"):format(what, part.path), function(into, at, from, size)
    local all = tokens.data
    for i = 0, size - 1 do into.tokens[at + i], into.targets[at + i] = all[from + i], all[from + i + 1] end
  end)
end

-- The same of pieces that are in their buckets (see buckets.new), one for each of the lengths. what: names the data,
-- for messages; put(into, at, first, count): writes a piece into the arrays tokens and targets, from number `at` on.
function buckets.batches(o, seed, sorted, what, put)
  local list, predictions = lengths.parse(o.lengths), 0
  local arrays, epoch, plan, orders = {}, -1, nil, nil
  for program, length in ipairs(list) do
    local n = o.batch * length
    arrays[program] = { tokens = ffi.new("int32_t[?]", n), targets = ffi.new("int32_t[?]", n) }
  end
  local batches, remainders = 0, {}
  for program, bucket in ipairs(sorted) do
    local size = bucket.count.count
    local rest = size % o.batch
    for i = 0, size - 1 do predictions = predictions + bucket.count.data[i] end
    if o.remainder == "drop" then
      for i = size - rest, size - 1 do predictions = predictions - bucket.count.data[i] end
      bucket.first:cut(size - rest)
      bucket.count:cut(size - rest)
    elseif o.remainder == "own" and rest > 0 then
      local length, n = list[program], rest * list[program]
      local name = ("length-%d-remainder"):format(length)
      remainders[#remainders + 1] = { name = name, length = length,
                                      changes = { batch = rest, seq = length, lengths = "" } }
      arrays[name] = { tokens = ffi.new("int32_t[?]", n), targets = ffi.new("int32_t[?]", n) }
    end
    batches = batches + math.ceil(bucket.count.count / o.batch)
  end
  if batches == 0 then
    fail.input(("%s: no length has batch=%d windows, and remainder=drop leaves smaller micro-batches out"):format(what,
      o.batch))
  end
  local function batch(index)
    local wanted = math.floor(index / batches)
    if wanted ~= epoch then
      epoch, plan, orders = wanted, epoch_of(sorted, o.batch, seed + 7919 * wanted)
    end
    local program, first, rows = unpack(plan[index % batches + 1])
    local length, made = list[program], 0
    local own = o.remainder == "own" and rows < o.batch and ("length-%d-remainder"):format(length)
    local into = arrays[own or program]
    ffi.fill(into.tokens, ffi.sizeof(into.tokens))
    for i = 0, (own and rows or o.batch) * length - 1 do into.targets[i] = IGNORED end
    local bucket = sorted[program]
    for row = 0, rows - 1 do
      local piece = orders[program][first + row] - 1
      local from, size, at = tonumber(bucket.first.data[piece]), tonumber(bucket.count.data[piece]), row * length
      put(into, at, from, size)
      made = made + size
    end
    return into, made, own or program, rows
  end
  return { batches = batches, batch = batch, predictions = predictions, remainders = remainders }
end

return buckets
