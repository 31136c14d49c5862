-- Trace events: a compute lane and two copy lanes per tier, with memory as counters.
local decode = require "cli.base.json_decode"
local json = require "cli.base.json"

local trace = {}

local MICRO = 1e6

local function complete(lane, name, begin, stop)
  return json.object { { "ph", "X" }, { "pid", 1 }, { "tid", lane }, { "name", name }, { "ts", begin * MICRO },
                       { "dur", (stop - begin) * MICRO } }
end

local function lane_name(lane, name)
  return json.object { { "ph", "M" }, { "pid", 1 }, { "tid", lane }, { "name", "thread_name" },
                       { "args", { name = name } } }
end

local function memory_at(at, bytes)
  return json.object { { "ph", "C" }, { "pid", 1 }, { "name", "device bytes" }, { "ts", at * MICRO },
                       { "args", { alive = bytes } } }
end

-- Lanes that are known without the tier; the others copy between it and the device.
local NAMES = { compute = "compute", host = "updates on the host", host_in = "read by the host",
                host_out = "written by the host" }

-- Events of a run, from its spans. Where compute waited for a copy, its lane is empty.
function trace.measured(spans)
  local events, lanes = { lane_name(1, "compute") }, { compute = 1 }
  local next_lane = 2
  for _, span in ipairs(spans) do
    local name = NAMES[span.lane]
      or ("copy %s %s"):format(span.lane == "copy_out" and "to" or "from", span.tier)
    if not lanes[name] then
      lanes[name], next_lane = next_lane, next_lane + 1
      events[#events + 1] = lane_name(lanes[name], name)
    end
    if span.lane == "compute" then events[#events + 1] = memory_at(span.begin_seconds, span.live_bytes) end
    events[#events + 1] = complete(lanes[name], span.name, span.begin_seconds, span.end_seconds)
  end
  return events
end

-- Events and the predicted seconds of a plan, from the JSON texts of its problem and of itself. The rules are those of
-- the plan form: a copy starts when it is issued and its lane is free, and takes latency + bytes / rate; compute waits
-- where the plan says so.
function trace.predicted(problem_text, plan_text)
  local problem, plan = decode(problem_text), decode(plan_text)
  local bytes, ops, links, persistent = {}, {}, {}, 0
  for _, value in ipairs(problem.values) do
    bytes[value.name] = value.bytes
    if value.persistent then persistent = persistent + value.bytes end
  end
  for _, op in ipairs(problem.ops) do ops[op.name] = op end
  local events = { lane_name(1, "compute") }
  for i, link in ipairs(problem.links) do
    links[link.tier] = { link = link, out = { lane = 2 * i, free = 0 }, ["in"] = { lane = 2 * i + 1, free = 0 } }
    events[#events + 1] = lane_name(2 * i, "copy to " .. link.tier)
    events[#events + 1] = lane_name(2 * i + 1, "copy from " .. link.tier)
  end
  local now, resident, live, ends = 0, {}, persistent, {}
  local function memory(at) events[#events + 1] = memory_at(at, live) end
  local function take(value)
    if not resident[value] then
      resident[value] = true
      live = live + bytes[value]
    end
  end
  local replay = {}
  function replay.run(step)
    local op = ops[step[2]]
    for value in pairs(step[3]) do take(value) end
    live = live + op.workspace_bytes
    memory(now)
    events[#events + 1] = complete(1, op.name, now, now + op.seconds)
    now = now + op.seconds
    live = live - op.workspace_bytes
  end
  function replay.free(step)
    resident[step[2]] = nil
    live = live - bytes[step[2]]
    memory(now)
  end
  local function copy(step, way)
    local value, tier = step[2], links[step[3]]
    local lane = tier[way]
    local begin = math.max(now, lane.free)
    lane.free = begin + tier.link.latency_seconds + bytes[value] / tier.link[way .. "_bytes_per_second"]
    events[#events + 1] = complete(lane.lane, value, begin, lane.free)
    ends[value] = lane.free
  end
  function replay.out(step) copy(step, "out") end
  replay["in"] = function(step)
    take(step[2])
    memory(now)
    copy(step, "in")
  end
  local function wait(step)
    local stop = ends[step[2]] or now
    if stop > now then
      events[#events + 1] = complete(1, "wait: " .. step[2], now, stop)
      now = stop
    end
  end
  replay.wait_out, replay.wait_in = wait, wait
  function replay.drop() end
  for _, step in ipairs(plan.steps) do replay[step[1]](step) end
  memory(now)
  return events, now
end

return trace
