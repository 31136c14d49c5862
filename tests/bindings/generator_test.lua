-- Text, token by token. The model counts the tokens that its cache holds: the next is the one after that which was
-- there most often.
local cairn = require "cairn"
local harness = require "harness"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails

local V = 5

local function model(length)
  local graph = assert(cairn.graph())
  local tokens, position = graph:input("tokens", { 2, length }, "i32"), graph:input("position", { 2 }, "i32")
  local count = graph:input("count", { 2 }, "i32")
  local x = graph:op("embedding", graph:parameter("table", { V, V }), tokens)
  local all = graph:op("append", graph:cache("cache", { 2, 4, V }), x, position, count)
  local counts = graph:op("reduce_sum", all, { axes = { 1 } })
  local logits = graph:name(graph:op("linear", counts, graph:parameter("after", { V, V })), "logits")
  return assert(graph:freeze { outputs = { logits } })
end

local device = assert(cairn.device("cpu", { threads = 1 }))

local function generator()
  local programs = { { name = "one", graph = model(1) }, { name = "many", graph = model(3) } }
  local plans = assert(cairn.plan_set(programs, device))
  local sessions = assert(cairn.sessions(plans))
  assert(sessions[1]:initialise(1))
  local table_, after = {}, {}
  for i = 0, V - 1 do
    for j = 0, V - 1 do
      table_[i * V + j + 1], after[i * V + j + 1] = i == j and 1 or 0, i == (j + 1) % V and 1 or 0
    end
  end
  assert(sessions[1]:write("table", table_))
  assert(sessions[1]:write("after", after))
  return assert(cairn.generator(sessions)), sessions
end

test("samples go on each by itself", function()
  local made = generator()
  assert(made:begin(1, { 2, 2 }, { temperature = 0 }))
  local tokens = assert(made:next())
  equal(tokens[1], -1)
  equal(tokens[2], 3)
  assert(made:begin(0, { 4 }, { temperature = 0, seed = 3 }))
  tokens = assert(made:next())
  equal(tokens[1], 0)
  equal(tokens[2], 3)
  equal(made:logits(1)[4], 2)
  assert(made:finish(1))
  equal(assert(made:next())[2], -1)
  local info = assert(made:info())
  equal(info.samples, 2)
  equal(info.capacity, 4)
  equal(info.prefill_tokens, 3)
  equal(info.decode_tokens, 2)
  equal(info.cache_bytes, 2 * 4 * V * 4)
end)

test("what is wrong is told", function()
  local made, sessions = generator()
  fails("INVALID_ARGUMENT", cairn.generator({}))
  fails("INVALID_ARGUMENT", cairn.generator({ sessions[2] }))
  raises(function() cairn.generator({ 1 }) end, "session expected")
  fails("INVALID_ARGUMENT", made:begin(0, { 0, 0, 0, 0, 0 }))
  fails("INVALID_ARGUMENT", made:begin(0, { V }))
  fails("INVALID_ARGUMENT", made:begin(0, { 0 }, { top_p = 2 }))
  raises(function() made:begin(0, { 0 }, { heat = 2 }) end, "unknown option 'heat'")
  fails("WRONG_STATE", made:logits(0))
  made:free()
  raises(function() made:next() end, "was freed")
end)

harness.finish()
