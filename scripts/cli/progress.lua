-- Progress on stderr, where that is a terminal: a bar, loss, tokens/s, memory, time left.
local format = require "cli.format"
local posix = require "cli.posix"

local progress = {}
local Progress = {}
Progress.__index = Progress

local SECONDS_BETWEEN = 0.1
local BAR = 24

function progress.new(total, done, memory_bytes, quiet)
  local shows = not quiet and posix.is_terminal(2) and os.getenv("TERM") ~= "dumb"
  return setmetatable({ total = total, from = done, memory = memory_bytes, shows = shows, tokens = 0,
                        began = posix.now(), shown = -math.huge }, Progress)
end

function Progress:update(step, loss, tokens)
  self.tokens = self.tokens + tokens
  local now = posix.now()
  local last = step >= self.total
  if not self.shows or (not last and now - self.shown < SECONDS_BETWEEN) then return end
  self.shown = now
  local seconds, made = now - self.began, step - self.from
  local rate = seconds > 0 and self.tokens / seconds or 0
  local left = made > 0 and seconds / made * (self.total - step) or 0
  local facts = ("step %d/%d  loss %.4f  %s tokens/s  %s"):format(step, self.total, loss, format.count(rate),
                                                                  format.bytes(self.memory))
  if not last then facts = facts .. "  " .. format.seconds(left) .. " left" end
  local full = math.floor(BAR * step / self.total)
  local bar = format.colour("green", ("━"):rep(full), 2) .. format.colour("dim", ("─"):rep(BAR - full), 2)
  io.stderr:write("\r\27[K", bar, " ", facts)
end

function Progress:finish()
  if self.shown > 0 then io.stderr:write("\n") end
end

return progress
