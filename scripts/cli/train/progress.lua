-- Progress on stderr. On a terminal a bar, loss, speed, memory and time left, on one line never wider than it;
-- elsewhere a line of the same every ten seconds, or as --progress-every says.
local format = require "cli.base.format"
local posix = require "cli.base.posix"
local screen = require "cli.base.screen"

local progress = {}
local Progress = {}
Progress.__index = Progress

local SECONDS_BETWEEN = { [true] = 0.1, [false] = 10 }  -- by whether it is a terminal
local BAR, SHORTEST_BAR = 24, 8
local function ERASE() return screen.control("\r\27[K") end  -- the line
local COLUMNS = 80  -- where neither the terminal nor $COLUMNS says

-- settings: total, done and skipped (steps), memory (bytes), quiet, seconds (between lines where there is no terminal),
-- batches (micro-batches of an epoch, or nil), unit ("tokens" or "samples", of which update says how many a step had).
function progress.new(settings)
  local terminal = posix.is_terminal(2) and os.getenv("TERM") ~= "dumb"
  local now = posix.now()
  local between = terminal and SECONDS_BETWEEN[true] or settings.seconds or SECONDS_BETWEEN[false]
  return setmetatable({ total = settings.total, from = settings.done, step = settings.done, memory = settings.memory,
                        quiet = settings.quiet, batches = settings.batches, unit = settings.unit,
                        terminal = terminal, between = between,
                        skipped = settings.skipped or 0, count = 0, began = now, paused = 0,
                        shown = terminal and -math.huge or now, lines = 0 }, Progress)
end

-- The width of a line on the terminal, of which the last column stays free: what reaches it may wrap.
local function columns_of_line()
  return (posix.columns(2) or tonumber(os.getenv("COLUMNS") or "") or COLUMNS) - 1
end

-- Calls work(...), of which a terminal says meanwhile what it does. options: of the command.
function progress.meanwhile(options, what, work, ...)
  local shown = not options.quiet and posix.is_terminal(2) and os.getenv("TERM") ~= "dumb"
  if shown then io.stderr:write((what .. " ..."):sub(1, math.max(columns_of_line(), 0))) end
  local results = { pcall(work, ...) }
  if shown then io.stderr:write(ERASE()) end
  if not results[1] then error(results[2], 0) end
  return unpack(results, 2, table.maxn(results))
end

-- The facts that fit `columns`, in the order in which they are shown; the least important go first.
local function fitting(facts, columns)
  while true do
    local words, worst, width = {}, nil, -2
    for i, fact in ipairs(facts) do
      words[i], width = fact.text, width + 2 + #fact.text
      if fact.rank > 1 and (not worst or fact.rank > facts[worst].rank) then worst = i end
    end
    if width <= columns or not worst then return table.concat(words, "  "):sub(1, math.max(columns, 0)) end
    table.remove(facts, worst)
  end
end

function Progress:facts(now)
  local seconds, made = now - self.began - self.paused, self.step - self.from
  local facts = { { text = ("step %d/%d"):format(self.step, self.total), rank = 1 } }
  if self.loss then facts[2] = { text = ("loss %.4f"):format(self.loss), rank = 2 } end
  if self.count > 0 and seconds > 0 then
    facts[#facts + 1] = { text = ("%s %s/s"):format(format.count(self.count / seconds), self.unit), rank = 4 }
  end
  if self.evaluated then facts[#facts + 1] = { text = ("evaluated %.4f"):format(self.evaluated), rank = 5 } end
  if self.skipped > 0 then facts[#facts + 1] = { text = ("%d skipped"):format(self.skipped), rank = 3 } end
  if self.batches and self.done_batches then
    facts[#facts + 1] = { text = ("epoch %.2f"):format(self.done_batches / self.batches), rank = 6 }
  end
  facts[#facts + 1] = { text = format.bytes(self.memory), rank = 7 }
  if self.doing then
    facts[#facts + 1] = { text = self.doing, rank = 3 }
  elseif made > 0 and self.step < self.total then
    -- What lies between steps (evaluation, samples) goes on at the pace that it had.
    local left = (seconds + self.paused) / made * (self.total - self.step)
    facts[#facts + 1] = { text = format.seconds(left) .. " left", rank = 3 }
  end
  return facts
end

function Progress:show(now)
  self.shown, self.lines = now, self.lines + 1
  if not self.terminal then
    io.stderr:write(fitting(self:facts(now), 1000), "\n")
    return
  end
  local columns = columns_of_line()
  local facts = fitting(self:facts(now), columns)
  local bar, room = "", math.min(columns - #facts - 1, BAR)
  if room >= SHORTEST_BAR then
    local full = math.floor(room * self.step / self.total)
    bar = format.colour("green", ("━"):rep(full), 2) .. format.colour("dim", ("─"):rep(room - full), 2) .. " "
  end
  io.stderr:write(ERASE(), bar, facts)
end

-- The first step is under way, which nothing else tells of until it is done.
function Progress:start()
  if not self.terminal or self.quiet or self.step >= self.total then return end
  self.doing = ("step %d ..."):format(self.step + 1)
  self:show(posix.now())
  self.doing, self.shown = nil, -math.huge  -- the first step that is done is shown at once
end

function Progress:due(now) return not self.quiet and now - self.shown >= self.between end

-- A step of `count` tokens or samples is done, and `batches` micro-batches in all, `skipped` of the steps without an
-- update (optional).
function Progress:update(step, loss, count, batches, skipped)
  self.step, self.loss, self.count, self.done_batches = step, loss, self.count + count, batches
  self.skipped = skipped or self.skipped
  local now = posix.now()
  if self:due(now) or (self.terminal and not self.quiet and step >= self.total) then self:show(now) end
end

-- Something is done inside a step.
function Progress:tick()
  local now = posix.now()
  if not self.terminal and self:due(now) then self:show(now) end
end

-- Something other than training is under way, until pause says how long it took.
function Progress:say(what)
  self.doing = what
  if self.terminal and not self.quiet and self.lines > 0 then self:show(posix.now()) end
end

-- What took `seconds` was no training. last: an evaluation {values}, which is shown from now on (optional).
function Progress:pause(seconds, last)
  self.doing, self.paused = nil, self.paused + seconds
  if last then self.evaluated = last.values.loss end
end

-- Takes the line off a terminal, for a text that follows.
function Progress:clear()
  if self.terminal and not self.quiet and self.lines > 0 then io.stderr:write(ERASE()) end
end

function Progress:finish()
  if self.terminal and self.lines > 0 then io.stderr:write("\n") end
end

return progress
