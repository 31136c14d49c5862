-- Objects made and freed for ever: the process does not grow. A million of each under CAIRN_TEST=long.
local cairn = require "cairn"
local harness = require "harness"

local MOST = 1000000
local SLACK = 16 * 2 ^ 20  -- what the collector and the C library's heap may move by
local PAGE = 4096

local function resident_bytes()
  local file = assert(io.open("/proc/self/statm"))
  local pages = file:read("*l"):match("^%d+ (%d+)")
  file:close()
  return tonumber(pages) * PAGE
end

local function collect()
  collectgarbage()
  collectgarbage()
end

-- one(i) makes and frees; `share`: how many of a million a short run leaves out for each that it takes.
local function for_ever(name, share, one)
  harness.test(name, function()
    local count = os.getenv("CAIRN_TEST") == "long" and MOST or MOST / share
    for i = 1, 200 do one(i) end
    collect()
    local before = resident_bytes()
    for i = 1, count do one(i) end
    collect()
    local grown = resident_bytes() - before
    assert(grown < SLACK, ("%d bytes more after %d objects"):format(grown, count))
  end)
end

local CHEAP, DEAR = 100, 5000
local device = assert(cairn.device("cpu", { threads = 1 }))

local function small_graph()
  local graph = cairn.graph()
  local x = graph:input("x", { 4, 4 })
  local w = graph:parameter("w", { 4, 4 }, { init = "normal", scale = 0.5 })
  assert(graph:freeze { loss = (graph:op("mse", graph:op("mul", x, w), x)) })
  return graph
end

for_ever("graphs", CHEAP, function() small_graph():free() end)
for_ever("graphs left to the collector", CHEAP, function() small_graph() end)
for_ever("errors", CHEAP, function() harness.fails("NOT_FOUND", cairn.device("nothing")) end)
for_ever("tokenizers and data sets", CHEAP, function()
  local tokenizer = assert(cairn.tokenizer("bytes"))
  assert(tokenizer:encode("words"))
  tokenizer:free()
end)
for_ever("devices", DEAR, function() assert(cairn.device("cpu", { threads = 1 })):free() end)

local graph = small_graph()
for_ever("plans", DEAR, function() assert(cairn.plan(graph, device)):free() end)
local plan = assert(cairn.plan(graph, device))
for_ever("sessions and steppers", DEAR, function()
  local session = assert(cairn.session(plan, device))
  assert(cairn.stepper(session)):free()
  session:free()
end)

return harness.finish()
