-- Progress on stderr. On a terminal a bar, loss, tokens/s, memory and time left, on one line never wider than it;
-- elsewhere a line of the same every ten seconds.
local format = require "cli.format"
local posix = require "cli.posix"

local progress = {}
local Progress = {}
Progress.__index = Progress

local SECONDS_BETWEEN = { [true] = 0.1, [false] = 10 }  -- by whether it is a terminal
local BAR, SHORTEST_BAR = 24, 8
local COLUMNS = 80  -- where neither the terminal nor $COLUMNS says

function progress.new(total, done, memory_bytes, quiet)
  local terminal = posix.is_terminal(2) and os.getenv("TERM") ~= "dumb"
  local now = posix.now()
  return setmetatable({ total = total, from = done, step = done, memory = memory_bytes, quiet = quiet,
                        terminal = terminal, tokens = 0, began = now,
                        shown = terminal and -math.huge or now, lines = 0 }, Progress)
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
  local seconds, made = now - self.began, self.step - self.from
  local facts = { { text = ("step %d/%d"):format(self.step, self.total), rank = 1 } }
  if self.loss then
    facts[2] = { text = ("loss %.4f"):format(self.loss), rank = 2 }
    facts[3] = { text = format.count(seconds > 0 and self.tokens / seconds or 0) .. " tokens/s", rank = 4 }
  end
  facts[#facts + 1] = { text = format.bytes(self.memory), rank = 5 }
  if made > 0 and self.step < self.total then
    facts[#facts + 1] = { text = format.seconds(seconds / made * (self.total - self.step)) .. " left", rank = 3 }
  end
  return facts
end

function Progress:show(now)
  self.shown, self.lines = now, self.lines + 1
  if not self.terminal then
    io.stderr:write(fitting(self:facts(now), 1000), "\n")
    return
  end
  local columns = (posix.columns(2) or tonumber(os.getenv("COLUMNS") or "") or COLUMNS) - 1
  local facts = fitting(self:facts(now), columns)
  local bar, room = "", math.min(columns - #facts - 1, BAR)
  if room >= SHORTEST_BAR then
    local full = math.floor(room * self.step / self.total)
    bar = format.colour("green", ("━"):rep(full), 2) .. format.colour("dim", ("─"):rep(room - full), 2) .. " "
  end
  io.stderr:write("\r\27[K", bar, facts)
end

function Progress:due(now) return not self.quiet and now - self.shown >= SECONDS_BETWEEN[self.terminal] end

-- A step is done.
function Progress:update(step, loss, tokens)
  self.step, self.loss, self.tokens = step, loss, self.tokens + tokens
  local now = posix.now()
  if self:due(now) or (self.terminal and not self.quiet and step >= self.total) then self:show(now) end
end

-- Something is done inside a step.
function Progress:tick()
  local now = posix.now()
  if not self.terminal and self:due(now) then self:show(now) end
end

function Progress:finish()
  if self.terminal and self.lines > 0 then io.stderr:write("\n") end
end

return progress
