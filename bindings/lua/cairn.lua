-- cairn: trains neural networks inside a memory budget. The LuaJIT binding over cairn.h.
--   local cairn = require "cairn"
--   local graph = cairn.graph()                      building a graph raises errors at your line;
--   local plan, err = cairn.plan(graph, device, {})  everything else returns nil, err when it fails
-- cairn.nn and cairn.optim hold modules and optimizers by the names that people of Torch7 know.
local has_ffi, ffi = pcall(require, "ffi")
if not has_ffi then
  error(("cairn's binding is written on LuaJIT's module 'ffi', which %s lacks; run the program with luajit, or with " ..
    "`cairn lua FILE`"):format(_VERSION), 0)
end
local amp = require "cairn.amp"
local core = require "cairn.core"
local costs = require "cairn.costs"
local data = require "cairn.data"
local formats = require "cairn.formats"
local generator = require "cairn.generator"
local graph = require "cairn.graph"
local hypers = require "cairn.hypers"
local instance = require "cairn.instance"
local model = require "cairn.model"
local pictures = require "cairn.pictures"
local plan = require "cairn.plan"
local schedules = require "cairn.schedules"
local session = require "cairn.session"
local stepper = require "cairn.stepper"
local template = require "cairn.template"

local cairn = {
  devices = instance.devices, device = instance.device,
  graph = graph.Graph.new, load_graph = graph.Graph.load, ops = graph.ops,
  optimizers = hypers.optimizers, settings = hypers.settings, amp_classes = amp.classes, formats = formats.list,
  schedules = schedules.list, schedule_rates = stepper.schedule_rates, parse_schedule = schedules.parse,
  costs = costs.Costs.new, read_costs = costs.Costs.read,
  plan = plan.Plan.new, plan_set = plan.Plan.set, problem_solve = plan.problem_solve, plan_counters = plan.counters,
  session = session.Session.new, sessions = session.Session.set,
  stepper = stepper.Stepper.new, checkpoint = stepper.Checkpoint.open,
  remove_checkpoint = stepper.Checkpoint.remove,
  tokenizer = data.Tokenizer.open, train_tokenizer = data.Tokenizer.train,
  template = template.Template.new,
  generator = generator.Generator.new, draw = generator.draw, model = model.Model.open,
  pictures = pictures.Pictures.open,
  dataset = data.Dataset.open, random_dataset = data.Dataset.random,
  C = core.C,
}

function cairn.version() return ffi.string(core.C.cairn_version()) end

-- What a file or checkpoint directory is, as a JSON text; or nil, err.
function cairn.inspect(path)
  core.expect_type(path, "string", "path")
  local out = ffi.new("cairn_text_t*[1]")
  local status = core.C.cairn_inspect(instance.get(), path, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return core.take_text(out)
end

-- Whether something is an error of this binding.
function cairn.is_error(value) return core.is(core.Error, value) end

-- cairn.nn and cairn.optim are loaded when they are first used.
return setmetatable(cairn, {
  __index = function(self, name)
    if name ~= "nn" and name ~= "optim" then return nil end
    local module = require("cairn." .. name)
    rawset(self, name, module)
    return module
  end,
})
