-- Parameters of a checkpoint, without the model that computes with them: a graph in which each is read once, so that a
-- plan may keep all but one at a time on the disk tier, where a frozen one is the base's own file.
local base = require "cli.checkpoint.base"
local cairn = require "cairn"
local fail = require "cli.base.fail"
local runs = require "cli.train.run"

local store = {}

-- Adds an op that reads a parameter, if a product does. Returns its output, or nil.
local function read(graph, inputs, info, value)
  local dims = info.shape
  if #dims < 2 or info.dtype ~= "f32" then return nil end
  local width, rows = dims[#dims], 1
  for i = 1, #dims - 1 do rows = rows * dims[i] end
  local input = inputs[width] or graph:input("row" .. width, { 1, width }, "f32")
  inputs[width] = input
  if #dims > 2 then value = graph:op("reshape", value, { shape = { rows, width } }) end
  return graph:op("linear", input, value)
end

local function graph_of(trained, keeps)
  local graph, inputs, outputs = fail.check("graph", cairn.graph()), {}, {}
  for _, info in ipairs(trained:parameters()) do
    if keeps(info) then
      local value = graph:parameter(info.name, info.shape, { frozen = info.frozen, dtype = info.dtype })
      outputs[#outputs + 1] = read(graph, inputs, info, value)
    end
  end
  if #outputs == 0 then
    local one = graph:input("row1", { 1 }, "f32")
    outputs[1] = graph:op("add", one, one)
  end
  return fail.check("graph", graph:freeze { outputs = outputs })
end

-- {session, graph, plan} with the parameters of `opened` (a checkpoint) for which keeps(info); nil: of its own graph,
-- in which adapters begin by the weights. trained: its graph; formats: of frozen ones, as cairn.plan takes them. small:
-- in as little memory as one parameter takes. brought(session): see base.load.
function store.open(opened, trained, keeps, options, formats, small, brought)
  options.rates = options.rates or "model"  -- nothing runs
  local graph, device = keeps and graph_of(trained, keeps) or trained, runs.device(options)
  local wanted = { no_optimizer = true, formats = formats }
  if opened.option("parameters") == "bf16" then wanted.amp, wanted.parameters = "bf16", "bf16" end
  if small then wanted.tiers, wanted.budget_bytes = options.tiers or { "disk" }, 1 end
  local plan, err = cairn.plan(graph, device, wanted)
  if not plan and small and err.fault and err.fault.smallest_budget_bytes > 0 then
    wanted.budget_bytes = err.fault.smallest_budget_bytes
    plan, err = cairn.plan(graph, device, wanted)
  end
  fail.plan("plan", plan, err)
  local session = fail.check("session", cairn.session(plan))
  base.load(opened, session, graph, options, brought and function() brought(session) end)
  return { session = session, graph = graph, plan = plan }
end

return store
