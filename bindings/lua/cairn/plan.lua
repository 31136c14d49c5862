-- Plans: every byte decided before anything runs.
local ffi = require "ffi"
local amp = require "cairn.amp"
local core = require "cairn.core"
local costs = require "cairn.costs"
local formats = require "cairn.formats"
local instance = require "cairn.instance"
local graphs = require "cairn.graph"
local hypers = require "cairn.hypers"
local regions = require "cairn.regions"
local C = core.C

local Plan = core.class "plan"

local function set_tiers(struct, list)
  if type(list) == "string" then
    local words = {}
    for word in list:gmatch("[^,]+") do words[#words + 1] = word end
    list = words
  end
  if #list == 0 or #list > 4 then error("tiers: one to four of host, disk", 4) end
  for i, word in ipairs(list) do
    local number = core.LOWER_TIERS[word]
    if not number then error(("tiers: '%s' is none of: host, disk"):format(tostring(word)), 4) end
    struct.tiers[i - 1] = number
  end
  struct.tier_count = #list
end

local function set_costs(struct, value)
  struct.costs = core.expect(costs.Costs, value, "costs", 4):raw()
end

local OPTIONS = {
  budget_bytes = "budget_bytes", budget_share = "budget_share", smallest_budget = "smallest_budget",
  link_bytes_per_second = "link_bytes_per_second",
  amp = amp.set, no_optimizer = "no_optimizer",
  policy = core.word("policy", graphs.POLICIES), regions = regions.set, tiers = set_tiers,
  costs = set_costs,
  force_costs = "force_costs", micro_steps = "micro_steps", fuse_update = "fuse_update",
  ema = "ema",
  optimizer = "optimizer", hypers = hypers.set, groups = hypers.set_groups,
  parameters = core.word("parameters", { f32 = 0, bf16 = 1, split = 10 }), formats = formats.set,
}

-- Plans a frozen graph on a device. options: budget_bytes or budget_share, smallest_budget
-- (instead: the smallest that a plan fits, which the summary names), no_optimizer, policy, regions (policies by
-- the paths of regions, { { pattern = "h*/attn", policy = "offload:disk" } }, of which the last that matches counts,
-- and which count before `policy`), tiers ("host,disk" or an array), link_bytes_per_second, costs (a profile
-- or device model), force_costs (a profile of another machine will do), micro_steps (micro-batches per update that the
-- plan is for),
-- amp ("off", "bf16", "fp16", or a list of that and of rules, of which the last that matches counts:
-- { "bf16", { op = "softmax", class = "half" }, { region = "h0", class = "full" } }),
-- parameters ("f32", or with amp "bf16" "bf16": stored so, and rounded stochastically by updates, or "split": float32
-- as its bfloat16, which ops read, and the 16 bits below),
-- formats (of parameters by name, { { pattern = "h.*.weight", format = "int8" } }, of which the last that matches
-- counts; cairn.formats() lists them, and those that do not train are for frozen parameters),
-- fuse_update (parameters are updated inside backward), ema (decay of an average of every parameter, which is
-- "PARAMETER/ema" in session:read and in checkpoints), optimizer (a name of cairn.optimizers()), hypers
-- ({ momentum = 0.9 }), groups ({ { pattern = "*.bias", optimizer =, weight_decay = 0 } }:
-- parameters by name, * for any text).
-- Returns the plan, or nil, err (OVER_BUDGET: err.fault.smallest_budget_bytes).
function Plan.new(graph, device, options)
  core.expect(graphs.Graph, graph, "graph")
  core.expect(instance.Device, device, "device")
  local struct, anchors = core.options("cairn_plan_options_t", options, OPTIONS)
  local out = ffi.new("cairn_plan_t*[1]")
  local status = C.cairn_plan_create(graph:raw(), device:raw(), struct, out, core.raw_error)
  core.alive(anchors)
  if status ~= 0 then return core.failed(status) end
  return Plan.wrap(out[0], { graph = graph, device = device })
end

-- Plans several graphs for one store: programs {name, graph} on the same parameters, of which the first has all.
-- options as above. Returns an array of plans, for cairn.sessions; or nil, err.
function Plan.set(programs, device, options)
  core.expect(instance.Device, device, "device")
  local struct, anchors = core.options("cairn_plan_options_t", options, OPTIONS)
  local array = ffi.new("cairn_program_t[?]", math.max(#programs, 1))
  for i, program in ipairs(programs) do
    array[i - 1].name = core.expect_type(program.name, "string", ("programs[%d].name"):format(i))
    array[i - 1].graph = core.expect(graphs.Graph, program.graph, ("programs[%d].graph"):format(i)):raw()
  end
  local out = ffi.new("cairn_plan_t*[?]", math.max(#programs, 1))
  local status = C.cairn_plan_create_set(array, #programs, device:raw(), struct, out, core.raw_error)
  core.alive(anchors, programs)
  if status ~= 0 then return core.failed(status) end
  local plans = {}
  for i, program in ipairs(programs) do
    plans[i] = Plan.wrap(out[i - 1], { graph = program.graph, device = device })
  end
  return plans
end

local NUMBERS = {
  "budget_bytes", "live_peak_bytes", "persistent_bytes", "parameters_bytes", "gradients_bytes", "optimizer_bytes",
  "activations_bytes", "workspace_bytes", "activation_peak_bytes", "keep_bytes", "recompute_bytes",
  "offload_host_bytes", "offload_disk_bytes", "predicted_seconds", "keep_all_seconds", "bound_seconds", "gap",
  "solve_seconds", "value_count", "op_count", "instruction_count", "region_count", "update_seconds", "host_seconds",
  "optimizer_host_bytes", "optimizer_disk_bytes",
}

-- What plans count of how they do things: an array of {name, unit ("count", "bytes", "seconds" or "tier"),
-- description}.
local function counters()
  local list = {}
  while true do
    local info = ffi.new("cairn_plan_counter_info_t", { ffi.sizeof("cairn_plan_counter_info_t") })
    if not core.more(C.cairn_plan_counter_describe(#list, info, core.raw_error)) then return list end
    list[#list + 1] = { name = ffi.string(info.name), unit = ffi.string(info.unit),
                        description = ffi.string(info.description) }
  end
end

-- The counters of the plan: numbers by name.
function Plan:counters()
  local values, out = {}, ffi.new("double[1]")
  for _, row in ipairs(counters()) do
    local status = C.cairn_plan_counter(self:raw(), row.name, out, core.raw_error)
    if status ~= 0 then return core.failed(status) end
    values[row.name] = out[0]
  end
  return values
end

-- All numbers of the plan; peak_bytes is {device, host, disk}, tier_bytes what these are for by tier (Plan:memory),
-- peak_at the op at the device's peak, counters what Plan:counters() returns, rates what Plan:rates() returns.
function Plan:summary()
  local struct = ffi.new("cairn_plan_summary_t", { ffi.sizeof("cairn_plan_summary_t") })
  local status = C.cairn_plan_summary(self:raw(), struct, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  local summary = { peak_bytes = {} }
  for i, tier in pairs(core.TIERS) do summary.peak_bytes[tier] = tonumber(struct.peak_bytes[i]) end
  for _, name in ipairs(NUMBERS) do summary[name] = tonumber(struct[name]) end
  local counted, problem = self:counters()
  if not counted then return nil, problem end
  summary.counters = counted
  summary.tier_bytes = {}
  for _, tier in pairs(core.TIERS) do
    local memory, err = self:memory(tier)
    if not memory then return nil, err end
    summary.tier_bytes[tier] = memory
  end
  summary.peak_at = summary.tier_bytes.device.peak_at
  summary.rates = self:rates()
  return summary
end

-- Bytes of a tier ("device", "host", "disk") by what they are for, at its peak, which they add up to: {parameters,
-- gradients, optimizer, activations, workspace}; peak_at: the op there, nil where what persists is all.
function Plan:memory(tier)
  local number = core.TIER_NUMBERS[tier]
  if not number then error(("tier: '%s' is none of: device, host, disk"):format(tostring(tier)), 2) end
  local struct = ffi.new("cairn_plan_memory_t", { ffi.sizeof("cairn_plan_memory_t") })
  local status = C.cairn_plan_memory(self:raw(), number, struct, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  local memory = { peak_at = struct.peak_at[0] ~= 0 and ffi.string(struct.peak_at) or nil }
  for _, name in ipairs { "parameters", "gradients", "optimizer", "activations", "workspace" } do
    memory[name] = tonumber(struct[name .. "_bytes"])
  end
  return memory
end

-- What predicted seconds rest on: {source, path, notice, f32_flops_per_second, bf16_flops_per_second,
-- memory_bytes_per_second, measuring_seconds}.
function Plan:rates()
  local row = ffi.new("cairn_plan_rates_t", { ffi.sizeof("cairn_plan_rates_t") })
  local status = C.cairn_plan_rates(self:raw(), row, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return { source = ffi.string(row.source), path = ffi.string(row.path), notice = ffi.string(row.notice),
           f32_flops_per_second = row.f32_flops_per_second, bf16_flops_per_second = row.bf16_flops_per_second,
           memory_bytes_per_second = row.memory_bytes_per_second, measuring_seconds = row.measuring_seconds }
end

local _, DECISIONS = core.enum("CAIRN_DECISION_", "keep recompute offload persistent")
-- The table of values: an array of {name, region, reason, category, bytes, offset_bytes, decision, tier, first_step,
-- last_step}.
function Plan:values()
  local list = {}
  while true do
    local row = ffi.new("cairn_plan_value_t", { ffi.sizeof("cairn_plan_value_t") })
    local status = C.cairn_plan_value(self:raw(), #list, row, core.raw_error)
    if status == C.CAIRN_STATUS_NOT_FOUND then return list end
    if status ~= 0 then return core.failed(status) end
    list[#list + 1] = {
      name = ffi.string(row.name), region = ffi.string(row.region), reason = ffi.string(row.reason),
      category = ffi.string(row.category), bytes = tonumber(row.bytes), offset_bytes = tonumber(row.offset_bytes),
      decision = DECISIONS[row.decision],
      tier = row.decision == C.CAIRN_DECISION_OFFLOAD and core.TIERS[row.tier] or nil,
      first_step = row.first_step, last_step = row.last_step,
    }
  end
end

-- The ops of the graph: an array of {name, op, region, amp_class, amp_rule (number of the rule of `amp` that gives the
-- class, from 1; nil: it is the op's own)}.
function Plan:ops()
  local list = {}
  while true do
    local row = ffi.new("cairn_plan_op_t", { ffi.sizeof("cairn_plan_op_t") })
    local status = C.cairn_plan_op(self:raw(), #list, row, core.raw_error)
    if status == C.CAIRN_STATUS_NOT_FOUND then return list end
    if status ~= 0 then return core.failed(status) end
    list[#list + 1] = {
      name = ffi.string(row.name), op = ffi.string(row.op), region = ffi.string(row.region),
      amp_class = ffi.string(row.amp_class), amp_rule = row.amp_rule >= 0 and row.amp_rule + 1 or nil,
    }
  end
end

local RENDERINGS = { json = 0, problem = 1, html = 2, svg = 3, file = 4, sweep = 5, report = 6 }

local function rendering(kind, level)
  local number = RENDERINGS[kind]
  if not number then error("kind: one of json, problem, html, svg, file, sweep, report", level + 1) end
  return number
end

-- The plan as a text: kind is "json", "problem", "html", "svg", "file" (bytes of a plan file), "sweep" (the trade-off
-- curve as JSON) or "report" (the HTML page with the curve). The last two solve the problem under some 20 budgets.
function Plan:render(kind, title)
  local out = ffi.new("cairn_text_t*[1]")
  local status = C.cairn_plan_render(self:raw(), rendering(kind, 2), title, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return core.take_text(out)
end

-- Solves a problem given as JSON; budget_bytes 0 or nil: the problem's own. Returns the rendering, or nil, err.
local function problem_solve(json, budget_bytes, kind)
  core.expect_type(json, "string", "problem")
  local out = ffi.new("cairn_text_t*[1]")
  local number = rendering(kind or "json", 2)
  local status = C.cairn_problem_solve(instance.get(), json, #json, budget_bytes or 0, number, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return core.take_text(out)
end

return { Plan = Plan, problem_solve = problem_solve, counters = counters }
