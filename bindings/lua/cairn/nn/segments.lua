-- Chains of blocks, checkpointed by hand or by the planner.
local containers = require "cairn.nn.containers"

local nn = {}

local WANTED = "wanted: auto, block, sqrt, or how many blocks a segment has"

-- Blocks of a segment where `count` blocks are cut as `segments` says: "block", "sqrt" (as many as the root of count,
-- to the nearest whole number) or a number of blocks. nil where nothing is cut ("auto", or nil); nil and what is wrong
-- with `segments` otherwise.
function nn.segment_size(segments, count)
  if segments == nil or segments == "auto" then return nil end
  if segments == "block" then return 1 end
  if segments == "sqrt" then return math.max(1, math.floor(math.sqrt(count) + 0.5)) end
  local size = type(segments) == "number" and segments or tostring(segments):match("^%d+$") and tonumber(segments)
  if not size or size < 1 or size ~= math.floor(size) then
    return nil, ("segments=%s: %s"):format(tostring(segments), WANTED)
  end
  if size > count then
    return nil, ("segments=%s is more blocks than there are: %d; %s"):format(tostring(segments), count, WANTED)
  end
  return size
end

-- Adds `count` blocks to the chain `net`, each a region "h0", "h1", ... block(i), from 0, returns block i and its name.
-- segments: "auto": what is kept is the planner's choice; else each segment of nn.segment_size blocks is a region whose
-- inside is made again in backward: "s0", "s1", ... around those of its blocks, or, with one block each, the block's
-- own. Returns net.
function nn.add_blocks(net, count, segments, block)
  local size, wrong = nn.segment_size(segments, count)
  if wrong then error(wrong, 2) end
  local policy = size == 1 and "recompute" or nil
  local chain = containers.Sequential()  -- one child, however it is cut: those added to `net` later keep their numbers
  net:add(chain, "")
  local into = chain
  for i = 0, count - 1 do
    if (size or 1) > 1 and i % size == 0 then
      into = containers.Sequential()
      chain:add(containers.Region("s" .. i / size, "recompute", into), "")
    end
    local inner, name = block(i)
    into:add(containers.Region("h" .. i, policy, inner), name)
  end
  return net
end

return nn
