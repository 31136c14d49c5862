-- Progress on stderr: a bar on a terminal, a line every few seconds elsewhere.
local format = require "cli.format"
local posix = require "cli.posix"

local progress = {}
local Progress = {}
Progress.__index = Progress

local SECONDS_BETWEEN = { terminal = 0.1, lines = 5 }
local BAR = 24

function progress.new(total, done, memory_bytes, quiet)
  return setmetatable({ total = total, from = done, memory = memory_bytes, quiet = quiet, tokens = 0,
                        terminal = posix.is_terminal(2) and os.getenv("TERM") ~= "dumb", began = posix.now(),
                        shown = -math.huge }, Progress)
end

function Progress:update(step, loss, tokens)
  self.tokens = self.tokens + tokens
  local now = posix.now()
  local last = step >= self.total
  if self.quiet then return end
  local pause = self.terminal and SECONDS_BETWEEN.terminal or SECONDS_BETWEEN.lines
  if not last and now - self.shown < pause then return end
  self.shown = now
  local seconds, made = now - self.began, step - self.from
  local rate = seconds > 0 and self.tokens / seconds or 0
  local left = made > 0 and seconds / made * (self.total - step) or 0
  local facts = ("step %d/%d  loss %.4f  %s tokens/s  %s"):format(step, self.total, loss, format.count(rate),
                                                                  format.bytes(self.memory))
  if not last then facts = facts .. "  " .. format.seconds(left) .. " left" end
  if self.terminal then
    local full = math.floor(BAR * step / self.total)
    local bar = ("━"):rep(full) .. format.colour("dim", ("─"):rep(BAR - full), 2)
    io.stderr:write("\r\27[K", format.colour("green", bar, 2), " ", facts)
  else
    io.stderr:write(facts, "\n")
  end
end

function Progress:note(message)
  if self.quiet then return end
  io.stderr:write(self.terminal and "\r\27[K" or "", message, "\n")
end

function Progress:finish()
  if self.terminal and not self.quiet and self.shown > 0 then io.stderr:write("\n") end
end

return progress
