-- Trains a module: graph, plan, session and stepper of one model, for programs that are not recipes.
local binding = {
  graph = require "cairn.graph", instance = require "cairn.instance", plan = require "cairn.plan",
  session = require "cairn.session", stepper = require "cairn.stepper",
}
local module = require "cairn.nn.module"
local optim = require "cairn.optim"

local nn = {}

-- Builds model (and criterion) into a graph, with inputs "input" and "target". input: {dims..., dtype = "f32"}.
-- Returns what graph:freeze takes: {loss, weight}, and the model's output and the criterion's metrics (nil: none were
-- asked for); without a criterion {outputs = {the value "output"}}.
function nn.attach(graph, model, criterion, input)
  module.expect(model, "model")
  local context = module.context(graph, criterion ~= nil)
  local y = model:build(context, graph:input("input", input, input.dtype))
  if not criterion then return { outputs = { graph:name(y, "output") } } end
  local dims, dtype = criterion:target(y)
  local target = graph:input("target", dims, dtype)
  context.prefix = "criterion."
  local loss, weight, metrics = criterion:build(context, y, target)
  return { loss = loss, weight = weight, output = y, metrics = metrics }
end

-- The same as a new frozen graph; or nil, err.
function nn.build(model, criterion, input)
  local graph, err = binding.graph.Graph.new()
  if not graph then return nil, err end
  return graph:freeze(nn.attach(graph, model, criterion, input))
end

local Trainer = {}
Trainer.__index = Trainer
Trainer.__tostring = function(self) return "nn.Trainer of " .. tostring(self.model) end

local KNOWN = { model = true, criterion = true, input = true, optim = true, device = true, plan = true, seed = true }

-- settings: model, criterion, input ({dims..., dtype}), optim (what optim.adamw makes), device, plan (options of
-- cairn.plan: budget_bytes, policy ...), seed. Returns the trainer, or nil, err.
function nn.Trainer(settings)
  for key in pairs(settings) do
    if not KNOWN[key] then error(("unknown setting '%s'"):format(tostring(key)), 2) end
  end
  module.expect(settings.model, "model")
  module.expect(settings.criterion, "criterion")
  local self = setmetatable({ model = settings.model, input = settings.input }, Trainer)
  local err
  self.device = settings.device
  if not self.device then
    self.device, err = binding.instance.device("cpu")
    if not self.device then return nil, err end
  end
  self.graph, err = nn.build(settings.model, settings.criterion, settings.input)
  if not self.graph then return nil, err end
  local for_plan, for_stepper = optim.split(settings.optim or {}, (settings.plan or {}).groups)
  self.plan, err = binding.plan.Plan.new(self.graph, self.device, optim.with(for_plan, settings.plan))
  if not self.plan then return nil, err end
  self.session, err = binding.session.Session.new(self.plan)
  if not self.session then return nil, err end
  local ok
  ok, err = self.session:initialise(settings.seed or 1337)
  if not ok then return nil, err end
  self.stepper, err = binding.stepper.Stepper.new(self.session, for_stepper)
  if not self.stepper then return nil, err end
  return self
end

-- One micro-batch. Returns the stepper's report, or nil, err.
function Trainer:step(input, target)
  local ok, err = self.session:write("input", input)
  if not ok then return nil, err end
  ok, err = self.session:write("target", target)
  if not ok then return nil, err end
  return self.stepper:micro()
end

-- The model's output for an input, with today's parameters and statistics. Returns an array of numbers, or nil, err.
function Trainer:predict(input)
  local ok, err
  if not self.evaluating then
    local graph, plan, forward
    graph, err = nn.build(self.model, nil, self.input)
    if not graph then return nil, err end
    plan, err = binding.plan.Plan.new(graph, self.device)
    if not plan then return nil, err end
    forward, err = binding.session.Session.new(plan)
    if not forward then return nil, err end
    self.evaluating = forward
  end
  local evaluated = self.evaluating.graph
  for _, list in ipairs { evaluated:parameters(), evaluated:statistics() } do
    for _, info in ipairs(list) do
      local values
      values, err = self.session:read(info.name)
      if not values then return nil, err end
      ok, err = self.evaluating:write(info.name, values)
      if not ok then return nil, err end
    end
  end
  ok, err = self.evaluating:write("input", input)
  if ok then ok, err = self.evaluating:run() end
  if not ok then return nil, err end
  return self.evaluating:read("output")
end

Trainer.forward = Trainer.predict

-- The parameters in the order of the graph: an array of {name, shape, dtype}, each with its numbers as `values` where
-- numbers is true; or nil, err. trainer.session:write(name, values) sets them.
function Trainer:parameters(numbers)
  local list = {}
  for i, info in ipairs(self.graph:parameters()) do
    list[i] = info
    if numbers then
      local values, err = self.session:read(info.name)
      if not values then return nil, err end
      info.values = values
    end
  end
  return list
end

-- Gives all memory back.
function Trainer:free()
  for _, name in ipairs { "stepper", "session", "evaluating", "plan", "graph" } do
    if self[name] then self[name]:free() end
  end
end

return nn
