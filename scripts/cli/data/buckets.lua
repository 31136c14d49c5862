-- Texts sorted by length: each goes into the shortest window that holds it, and a micro-batch is of one length.
local ffi = require "ffi"
local fail = require "cli.base.fail"
local lengths = require "cli.recipe.lengths"
local random = require "cairn.random"

local buckets = {}

local IGNORED = -100  -- a target that counts for nothing

-- Texts of a file: what stands between empty lines, or between lines of "%" alone.
local function texts(path, what)
  local file, problem = io.open(path, "rb")
  if not file then fail.with(5, what .. ": " .. problem) end
  local list, lines = {}, {}
  local function close()
    if #lines > 0 then list[#list + 1] = table.concat(lines, "\n") end
    lines = {}
  end
  for line in file:lines() do
    if line:find("^%%?%s*$") then close() else lines[#lines + 1] = line end
  end
  file:close()
  close()
  return list
end

-- Cuts tokens into pieces of at most `longest` predictions; the last token of one is the first of the next, so that
-- every token but the first is predicted once.
local function pieces(tokens, longest)
  local list, first = {}, 1
  while first < #tokens do
    local last = math.min(first + longest, #tokens)
    local piece = ffi.new("int32_t[?]", last - first + 1)
    for i = first, last do piece[i - first] = tokens[i] end
    list[#list + 1] = { tokens = piece, count = last - first }
    first = last
  end
  return list
end

local function shuffled(list, seed)
  local draw = random(seed)
  for i = #list, 2, -1 do
    local j = math.floor(draw() * i) + 1
    list[i], list[j] = list[j], list[i]
  end
  return list
end

-- Micro-batches of one epoch: {program, first piece of its bucket's order, how many}.
local function epoch_of(sorted, batch, seed)
  local plan, orders = {}, {}
  for program, bucket in ipairs(sorted) do
    local order = {}
    for i = 1, #bucket do order[i] = i end
    orders[program] = shuffled(order, seed + program)
    for first = 1, #bucket, batch do plan[#plan + 1] = { program, first, math.min(batch, #bucket - first + 1) } end
  end
  return shuffled(plan, seed), orders
end

-- A dataset as text.dataset makes them, whose batch(index) also returns its program. encode(text): an array of tokens,
-- or nil where tokens are drawn from the seed. part: {path, what (the option that names it), from, to (shares of the
-- texts)}.
function buckets.dataset(o, run, encode, part)
  local list, what = lengths.parse(o.lengths), part.what or "data"
  local sorted, count, predictions = {}, 0, 0
  for i = 1, #list do sorted[i] = {} end
  local function add(tokens)
    for _, piece in ipairs(pieces(tokens, list[1])) do
      local program = #list
      while list[program] < piece.count do program = program - 1 end
      local bucket = sorted[program]
      bucket[#bucket + 1] = piece
      count, predictions = count + 1, predictions + piece.count
    end
  end
  if encode then
    local found = texts(part.path, what)
    local first, last = math.floor(#found * (part.from or 0) + 0.5) + 1, math.floor(#found * (part.to or 1) + 0.5)
    for i = first, last do add(encode(found[i])) end
  else
    local draw = random(run.seed)
    for _ = 1, 64 * o.batch do
      local tokens = {}
      for i = 1, 2 + math.floor(draw() * list[1]) do tokens[i] = math.floor(draw() * o.vocab) end
      add(tokens)
    end
  end
  if count == 0 then fail.input(("%s: %s holds no text of two tokens"):format(what, part.path)) end
  local arrays, epoch, plan, orders = {}, -1, nil, nil
  for program, length in ipairs(list) do
    local n = o.batch * length
    arrays[program] = { tokens = ffi.new("int32_t[?]", n), targets = ffi.new("int32_t[?]", n) }
  end
  local batches, remainders = 0, {}
  for program, bucket in ipairs(sorted) do
    local rest = #bucket % o.batch
    if o.remainder == "drop" then
      for _ = 1, rest do
        predictions = predictions - bucket[#bucket].count
        bucket[#bucket] = nil
      end
    elseif o.remainder == "own" and rest > 0 then
      local length, n = list[program], rest * list[program]
      local name = ("length-%d-remainder"):format(length)
      remainders[#remainders + 1] = { name = name, length = length,
                                      changes = { batch = rest, seq = length, lengths = "" } }
      arrays[name] = { tokens = ffi.new("int32_t[?]", n), targets = ffi.new("int32_t[?]", n) }
    end
    batches = batches + math.ceil(#bucket / o.batch)
  end
  if batches == 0 then
    fail.input(("%s: no length of %s has batch=%d windows, and remainder=drop leaves smaller micro-batches out"):format(
      what, part.path, o.batch))
  end
  local function batch(index)
    local wanted = math.floor(index / batches)
    if wanted ~= epoch then
      epoch, plan, orders = wanted, epoch_of(sorted, o.batch, run.seed + 7919 * wanted)
    end
    local program, first, rows = unpack(plan[index % batches + 1])
    local length, tokens = list[program], 0
    local own = o.remainder == "own" and rows < o.batch and ("length-%d-remainder"):format(length)
    local into = arrays[own or program]
    ffi.fill(into.tokens, ffi.sizeof(into.tokens))
    for i = 0, (own and rows or o.batch) * length - 1 do into.targets[i] = IGNORED end
    for row = 0, rows - 1 do
      local piece = sorted[program][orders[program][first + row]]
      ffi.copy(into.tokens + row * length, piece.tokens, 4 * piece.count)
      ffi.copy(into.targets + row * length, piece.tokens + 1, 4 * piece.count)
      tokens = tokens + piece.count
    end
    return into, tokens, own or program, rows
  end
  return { batches = batches, batch = batch, predictions = predictions, remainders = remainders }
end

return buckets
