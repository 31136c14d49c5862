-- Seconds of updates of a GPT-2's parameters, one number a line, and last the bytes of the states:
--   cairn lua bench/step/optimizers.lua OPTIMIZER ROUNDS THREADS [layers width vocab]
-- The forward pass is over one token, so that a step is little but its update.
local cairn = require "cairn"
local optimizer, rounds, threads = arg[1], tonumber(arg[2]), tonumber(arg[3])
local layers, width, vocab = tonumber(arg[4] or 12), tonumber(arg[5] or 768), tonumber(arg[6] or 50257)
local g = assert(cairn.graph())
local tokens, targets = g:input("tokens", { 1, 1 }, "i32"), g:input("targets", { 1, 1 }, "i32")
local wte, wpe = g:parameter("wte", { vocab, width }, { init = "normal", scale = 0.02 }),
  g:parameter("wpe", { 1024, width }, { init = "normal", scale = 0.02 })
local x = g:op("embedding", wte, tokens)
x = g:op("add", x, g:op("slice", wpe, { axis = 0, begin = 0, ["end"] = 1 }))
local function linear(name, input, outputs, inputs)
  return g:op("linear", input, g:parameter(name .. ".weight", { outputs, inputs }, { init = "normal", scale = 0.02 }),
    g:parameter(name .. ".bias", { outputs }, { no_decay = true }))
end
local function norm(name, input)
  local gain = g:parameter(name .. ".weight", { width }, { init = "constant", scale = 1, no_decay = true })
  return (g:op("layernorm", input, gain, g:parameter(name .. ".bias", { width }, { no_decay = true })))
end
for layer = 1, layers do
  local name = "h" .. layer
  local y = linear(name .. ".attn", norm(name .. ".ln_1", x), 3 * width, width)
  local part = g:op("slice", y, { axis = 2, begin = 0, ["end"] = width })
  x = g:op("add", x, linear(name .. ".proj", part, width, width))
  y = g:op("gelu", linear(name .. ".fc", norm(name .. ".ln_2", x), 4 * width, width))
  x = g:op("add", x, linear(name .. ".out", y, width, 4 * width))
end
local loss, weight = g:op("linear_cross_entropy", norm("ln_f", x), wte, targets)
assert(g:freeze { loss = loss, weight = weight })
local device = assert(cairn.device("cpu", { threads = threads }))
local plan = assert(cairn.plan(g, device, { optimizer = optimizer }))
local session = assert(cairn.session(plan))
assert(session:initialise(1))
local stepper = assert(cairn.stepper(session, { rate = 1e-3 }))
for round = 1, rounds + 1 do
  assert(session:write("tokens", { round }))
  assert(session:write("targets", { round + 1 }))
  local report = assert(stepper:micro())
  if round > 1 then print(report.optimizer_seconds) end
end
print(plan:summary().optimizer_bytes)
