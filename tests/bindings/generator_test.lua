-- Text, token by token. The model counts the tokens that its cache holds: the next is the one after that which was
-- there most often.
local cairn = require "cairn"
local harness = require "harness"
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails

local V = 5

-- rows: of each of two caches; nil: one of 4 rows.
local function model(length, rows)
  local graph = assert(cairn.graph())
  local tokens, position = graph:input("tokens", { 2, length }, "i32"), graph:input("position", { 2 }, "i32")
  local count = graph:input("count", { 2 }, "i32")
  local x = graph:op("embedding", graph:parameter("table", { V, V }), tokens)
  local counts
  for _, name in ipairs { "cache", rows and "another" } do
    local all = graph:op("append", graph:cache(name, { 2, rows or 4, V }), x, position, count)
    local sum = graph:op("reduce_sum", all, { axes = { 1 } })
    counts = counts and counts + sum or sum
  end
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

test("tokens are drawn from logits of one's own", function()
  equal(cairn.draw({ 0.5, 2, 1 }, {}, { temperature = 0 }), 1)
  equal(cairn.draw({ 0.5, 2, 1 }, { 1 }, { temperature = 0, repetition_penalty = 4 }), 2)
  fails("INVALID_ARGUMENT", cairn.draw({ 0.5, 2, 1 }, { 3 }))
  fails("NON_FINITE", cairn.draw({ 0 / 0 }, {}))
end)

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

test("caches go to a tier if the budget asks", function()
  local checked, texts = assert(cairn.device("cpu", { threads = 1, verify = true })), {}
  for i, given in ipairs { {}, { budget_bytes = 60000, tiers = { "host" } } } do
    local programs = { { name = "one", graph = model(1, 1024) }, { name = "many", graph = model(3, 1024) } }
    local plans = assert(cairn.plan_set(programs, checked, given))
    local sessions = assert(cairn.sessions(plans))
    assert(sessions[1]:initialise(5))
    local made = assert(cairn.generator(sessions))
    assert(made:begin(0, { 1, 4, 2, 0 }, { seed = 1 }))
    for step = 1, 12 do
      if step == 4 then assert(made:begin(1, { 3 }, { seed = 2 })) end
      texts[#texts + 1] = table.concat(assert(made:next()), " ")
      if i == 2 then equal(texts[#texts], texts[step]) end
    end
    local peaks = assert(plans[1]:summary()).peak_bytes
    equal(assert(sessions[1]:usage("host")).peak_bytes, peaks.host)
    equal(peaks.host >= made:info().cache_bytes / 2, i == 2)
  end
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
