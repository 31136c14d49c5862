-- gguf_adapter.lua DIR OUT DORA: writes the adapter of one query of a model, and prints its second matrix.
local cairn = require "cairn"
local directory = require "cli.model.directory"
local writer = require "cli.model.gguf_writer"

local QUERY = "model.layers.0.self_attn.q_proj"
local A, B = QUERY .. ".lora_A.weight", QUERY .. ".lora_B.weight"

local model, graph = directory.open(arg[1]), assert(cairn.graph())
local x = graph:input("x", { 4, 16 })
local function product(y, name, outputs, inputs)
  return (graph:op("linear", y, graph:parameter(name, { outputs, inputs }, { init = "normal", scale = 1 })))
end
local y = product(product(product(x, A, 2, 16), B, 24, 2), "other", 16, 24)
graph = assert(graph:freeze { outputs = { y } })
local device = assert(cairn.device("cpu", { threads = 1 }))
local session = assert(cairn.session(assert(cairn.plan(graph, device, { no_optimizer = true }))))
assert(session:initialise(3))
local metadata, rows = writer.adapter { text = model.text, where = "test", parameters = graph:parameters(), modules = {
  { a = A, b = B, weight = QUERY .. ".weight", rank = 2, scale = 4, kind = "linear", dora = arg[3] == "true" } } }
assert(session:export(arg[2], rows, { dtype = "f32", gguf = metadata }))
for _, value in ipairs(assert(session:read(B))) do print(("%.9g"):format(value)) end
