-- Graphs: values, ops, parameters, regions. A mistake in a graph is a mistake in the program that builds it, so the
-- building calls raise errors at the caller's line; freezing, saving and loading return nil, err.
local ffi = require "ffi"
local core = require "cairn.core"
local instance = require "cairn.instance"
local C = core.C

local Graph = core.class "graph"
local Value = {}

local function build(status, level)
  if status ~= 0 then error(select(2, core.failed(status)).message, level + 1) end
end

-- A value of a graph: value:shape(), value:dtype(), value:name(), a + b, a - b, -a, a * b, a / b, a * 0.5, a / 2.
Value.__index = Value
local function value_of(graph, id)
  if id == 0 then return nil end
  return setmetatable({ graph = graph, id = tonumber(id) }, Value)
end
function Value:info() return self.graph:info(self) end
function Value:shape() return self:info().shape end
function Value:dtype() return self:info().dtype end
function Value:name() return self:info().name end
Value.__tostring = function(self)
  local info = self:info()
  return ("%s %s[%s]"):format(info.name, info.dtype, table.concat(info.shape, ", "))
end
-- The graph of two operands, both of which must be values.
local function graph_of(sign, a, b)
  for _, each in ipairs { a, b } do
    if not core.is(Value, each) then
      error(("'%s' takes two values of a graph, not a %s; a number only scales: x * 0.5, x / 2"):format(sign,
        type(each)), 3)
    end
  end
  if a.graph ~= b.graph then error(("'%s': the two values are of different graphs"):format(sign), 3) end
  return a.graph
end
local function scaled(x, factor) return (x.graph:op("scale", x, { factor = factor })) end

Value.__add = function(a, b) return (graph_of("+", a, b):op("add", a, b)) end
Value.__sub = function(a, b) return (graph_of("-", a, b):op("add", a, scaled(b, -1))) end
Value.__unm = function(a) return scaled(a, -1) end
Value.__mul = function(a, b)
  if type(b) == "number" then return scaled(a, b) end
  if type(a) == "number" then return scaled(b, a) end
  return (graph_of("*", a, b):op("mul", a, b))
end
Value.__div = function(a, b)
  if b == 0 then error("'/' takes a value or a number other than 0, not 0", 2) end
  if type(b) == "number" then return scaled(a, 1 / b) end
  return (graph_of("/", a, b):op("div", a, b))
end

function Graph.new()
  local out = ffi.new("cairn_graph_t*[1]")
  local status = C.cairn_graph_create(instance.get(), out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return Graph.wrap(out[0])
end

local function describe(name, dims, dtype, level)
  core.expect_type(name, "string", "name", level + 1)
  core.expect_type(dims, "table", "dims", level + 1)
  local number = core.DTYPES[dtype or "f32"]
  if not number then error(("unknown dtype '%s'"):format(tostring(dtype)), level + 1) end
  local shape = ffi.new("int64_t[?]", math.max(#dims, 1))
  for i, dim in ipairs(dims) do
    core.expect_type(dim, "number", "dim " .. i, level + 1)
    if dim ~= math.floor(dim) or math.abs(dim) >= 2 ^ 53 then
      error(("'%s': dimension %d is %.15g; a whole number of at least 1 expected"):format(name, i, dim), level + 1)
    end
    shape[i - 1] = dim
  end
  local desc = ffi.new("cairn_tensor_desc_t")
  desc.name, desc.dims, desc.rank, desc.dtype = name, shape, #dims, number
  return { desc = desc, shape = shape }  -- desc borrows shape
end

-- A value the host writes before each run.
function Graph:input(name, dims, dtype)
  local tensor = describe(name, dims, dtype, 2)
  local out = ffi.new("cairn_value_t[1]")
  build(C.cairn_graph_input(self:raw(), tensor.desc, out, core.raw_error), 2)
  return value_of(self, out[0])
end

local PARAMETER = {
  init = core.word("init", (core.enum("CAIRN_INIT_", "constant normal uniform truncated_normal orthogonal"))),
  scale = "init_scale", frozen = "frozen", no_decay = "no_decay",
}
-- A trainable tensor. options: init ("constant", "normal", "uniform", "truncated_normal", "orthogonal"), scale (the
-- constant, the standard deviation, the bound or the factor), frozen, no_decay, dtype.
function Graph:parameter(name, dims, options)
  local rest, dtype = {}, nil
  for key, value in pairs(options or {}) do
    if key == "dtype" then dtype = value else rest[key] = value end
  end
  local struct = core.options("cairn_parameter_options_t", rest, PARAMETER)
  local tensor = describe(name, dims, dtype, 2)
  local out = ffi.new("cairn_value_t[1]")
  build(C.cairn_graph_parameter(self:raw(), tensor.desc, struct, out, core.raw_error), 2)
  return value_of(self, out[0])
end

local ADAPTER = {
  kind = core.word("kind", (core.enum("CAIRN_ADAPTER_", "lora rslora dora pissa"))), rank = "rank", alpha = "alpha",
  dropout = "dropout", targets = "targets", except = "except", saved = "saved", ranks = "ranks", alphas = "alphas",
}
-- From here on ops whose weights the rule names get an adapter; freezing freezes all other parameters. rule: kind
-- ("lora", "rslora", "dora", "pissa"), rank, alpha, dropout, and texts of patterns with commas between them: targets,
-- except, saved, ranks and alphas ("PATTERN=8,...").
function Graph:adapt(rule)
  core.expect_type(rule, "table", "rule")
  local given = { rank = 8 }
  for key, value in pairs(rule) do given[key] = value end
  build(C.cairn_graph_adapt(self:raw(), core.options("cairn_adapter_t", given, ADAPTER), core.raw_error), 2)
end

local function resident(self, kind, name, dims, options)
  local tensor = describe(name, dims, options and options.dtype, 3)
  local out = ffi.new("cairn_value_t[1]")
  build(C.cairn_graph_resident(self:raw(), tensor.desc, kind, options and options.fill or 0, out, core.raw_error), 3)
  return value_of(self, out[0])
end
-- What keeps its numbers from run to run: a statistic is moved by steps (op "running_mean") and saved, a cache is
-- changed by runs (op "append"). options: fill (the number it begins with), dtype.
function Graph:statistic(name, dims, options)
  return (resident(self, C.CAIRN_RESIDENT_STATISTIC, name, dims, options))
end
function Graph:cache(name, dims, options) return (resident(self, C.CAIRN_RESIDENT_CACHE, name, dims, options)) end

local MOST_OPERANDS = 8  -- of the op concat

-- Any number of values one after the other along an axis.
function Graph:concat(values, axis)
  local parts = values
  while #parts > 1 do
    local longer = {}
    for first = 1, #parts, MOST_OPERANDS do
      local group = { unpack(parts, first, math.min(first + MOST_OPERANDS - 1, #parts)) }
      local one = group[1]
      group[#group + 1] = { axis = axis }
      longer[#longer + 1] = #group == 2 and one or (self:op("concat", unpack(group)))
    end
    parts = longer
  end
  return parts[1]
end

local function pack_attr(slot, name, value, anchors, level)
  slot.name = name
  if type(value) == "boolean" then value = value and 1 or 0 end
  if type(value) == "number" then
    slot.real = value
    if value == math.floor(value) and math.abs(value) < 2 ^ 53 then
      slot.integer, slot.kind = value, C.CAIRN_ATTR_INTEGER
    else
      slot.kind = C.CAIRN_ATTR_REAL
    end
  elseif type(value) == "string" then
    slot.word, slot.kind = value, C.CAIRN_ATTR_WORD
  elseif type(value) == "table" then
    local kind, field, of = C.CAIRN_ATTR_LIST, "list", "int64_t[?]"
    for _, item in ipairs(value) do
      if core.expect_type(item, "number", name, level + 1) ~= math.floor(item) or math.abs(item) >= 2 ^ 53 then
        kind, field, of = C.CAIRN_ATTR_REALS, "reals", "double[?]"
      end
    end
    local list = ffi.new(of, math.max(#value, 1), value)
    anchors[#anchors + 1] = list
    slot[field], slot.list_count, slot.kind = list, #value, kind
  else
    error(("attribute '%s' is a %s"):format(name, type(value)), level + 1)
  end
end

local MOST_OUTPUTS = 8

-- Adds an op: graph:op("linear", x, w, b, {activation = "relu"}). An optional operand left out is false; an
-- attribute that is a list is a table of numbers.
-- Returns the op's outputs in the order of its row; those it does not make are nil.
function Graph:op(name, ...)
  core.expect_type(name, "string", "op name")
  local operands, count = { ... }, select("#", ...)
  local attrs = {}
  if count > 0 and type(operands[count]) == "table" and not core.is(Value, operands[count]) then
    attrs, count = operands[count], count - 1
  end
  local inputs = ffi.new("cairn_value_t[?]", math.max(count, 1))
  for i = 1, count do
    local operand = operands[i]
    if operand then
      if not core.is(Value, operand) then
        error(("%s: operand %d must be a value of a graph, not a %s"):format(name, i, type(operand)), 2)
      end
      if operand.graph ~= self then error(("%s: operand %d is of another graph"):format(name, i), 2) end
      inputs[i - 1] = operand.id
    elseif operand == nil and i == 1 then
      error(("%s: operand 1 is nil"):format(name), 2)
    end
  end
  local names = {}
  for key in pairs(attrs) do names[#names + 1] = core.expect_type(key, "string", "attribute name") end
  table.sort(names)
  local packed, anchors = ffi.new("cairn_attr_t[?]", math.max(#names, 1)), {}
  for i, key in ipairs(names) do pack_attr(packed[i - 1], key, attrs[key], anchors, 2) end
  local out = ffi.new("cairn_value_t[?]", MOST_OUTPUTS)
  build(C.cairn_graph_op(self:raw(), name, inputs, count, packed, #names, out, MOST_OUTPUTS, core.raw_error), 2)
  local values, last = {}, 0
  for i = 1, MOST_OUTPUTS do
    values[i] = value_of(self, out[i - 1])
    if values[i] then last = i end
  end
  return unpack(values, 1, last)
end

-- Gives a value a name of its own; returns the value.
function Graph:name(value, name)
  core.expect(Value, value, "value")
  build(C.cairn_graph_name(self:raw(), value.id, name, core.raw_error), 2)
  return value
end

local POLICIES = core.enum("CAIRN_REGION_", "keep recompute offload")
POLICIES.planner, POLICIES.auto = C.CAIRN_REGION_PLANNER_DECIDES, C.CAIRN_REGION_PLANNER_DECIDES
local REGION = { name = "name", policy = core.word("policy", POLICIES),
                 tier = core.word("tier", core.LOWER_TIERS) }

-- "offload:disk" as its two words: "offload" and "disk"; nil where no tier is named.
function Graph.policy_words(policy)
  local word, tier = policy:match("^(%w+):(%w+)$")
  return word or policy, tier
end

-- What `body` adds belongs to the region, which ends with body, also where that raises an error: who catches it can
-- build on. policy: "planner" (or nil), "keep", "recompute", "offload", "offload:disk". Returns what body returns.
function Graph:region(name, policy, body)
  if type(policy) == "function" then policy, body = nil, policy end
  core.expect_type(body, "function", "region body")
  local word, tier = Graph.policy_words(policy or "planner")
  local options = core.options("cairn_region_options_t",
    { name = core.expect_type(name, "string", "region name"), policy = word, tier = tier }, REGION)
  local out = ffi.new("cairn_region_t[1]")
  build(C.cairn_graph_region_begin(self:raw(), options, out, core.raw_error), 2)
  local function finish(ok, ...)
    if not ok then
      -- body may have freed the graph
      pcall(function() C.cairn_graph_region_end(self:raw(), out[0], core.raw_error) end)
      error((...), 0)
    end
    build(C.cairn_graph_region_end(self:raw(), out[0], core.raw_error), 2)
    return ...
  end
  return finish(xpcall(body, core.explain))
end

-- Ends building. options: loss, weight (values), outputs (array of values to read after a run).
-- Returns the graph, or nil, err.
function Graph:freeze(options)
  options = options or {}
  local struct = ffi.new("cairn_freeze_options_t", { ffi.sizeof("cairn_freeze_options_t") })
  for _, key in ipairs { "loss", "weight" } do
    if options[key] then struct[key] = core.expect(Value, options[key], key).id end
  end
  local outputs = options.outputs or {}
  local list = ffi.new("cairn_value_t[?]", math.max(#outputs, 1))
  for i, value in ipairs(outputs) do list[i - 1] = core.expect(Value, value, "output " .. i).id end
  struct.outputs, struct.output_count = list, #outputs
  local status = C.cairn_graph_freeze(self:raw(), struct, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  self.loss = options.loss
  return self
end

-- {name, shape, dtype, kind, bytes, frozen (a parameter that is not trained)} of a value, an id or a name; nil if there
-- is none.
function Graph:info(which)
  local id = core.is(Value, which) and which.id or which
  if type(id) == "string" then id = C.cairn_graph_find(self:raw(), id) end
  if id == 0 then return nil end
  return (core.value_info(function(info) return C.cairn_graph_value_info(self:raw(), id, info, core.raw_error) end))
end

function Graph:find(name) return value_of(self, C.cairn_graph_find(self:raw(), name)) end

-- How many values it has.
function Graph:count() return tonumber(C.cairn_graph_value_count(self:raw())) end

local function of_kind(self, kind)
  local list = {}
  for id = 1, self:count() do
    local info = self:info(id)
    if info and info.kind == kind then list[#list + 1] = info end
  end
  return list
end

-- All parameters, all inputs, or all statistics, in order: an array of info tables.
function Graph:parameters() return of_kind(self, "parameter") end
function Graph:inputs() return of_kind(self, "input") end
function Graph:statistics() return of_kind(self, "statistic") end

-- Parameters, then statistics: what files of weights have.
function Graph:saved()
  local list = self:parameters()
  for _, info in ipairs(self:statistics()) do
    if not info.name:find("%.lora_weight_norms$") then list[#list + 1] = info end  -- made of the weights
  end
  return list
end

function Graph:save(path) return core.done(C.cairn_graph_save(self:raw(), path, core.raw_error)) end

function Graph.load(path)
  core.expect_type(path, "string", "path")
  local out = ffi.new("cairn_graph_t*[1]")
  local status = C.cairn_graph_load(instance.get(), path, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return Graph.wrap(out[0])
end

local function words(text, make)
  local list = {}
  for word in ffi.string(text):gmatch("%S+") do list[#list + 1] = make(word) end
  return list
end
local function operand(word) return { name = word:match("^[%w_]+"), optional = word:find("?", 1, true) ~= nil } end
local TYPES = { i = "integer", f = "real", s = "word", l = "list", r = "reals" }
local function attribute(word)
  local name, letter = word:match("^([%w_]+):(%a)")
  return { name = name, type = TYPES[letter], required = word:find("!", 1, true) ~= nil }
end

-- The ops that graph:op knows: an array of {name, inputs, outputs, attributes, description, amp_class}; operands are
-- {name, optional}, attributes {name, type ("integer", "real", "word", "list", "reals"), required}.
local function ops()
  local list = {}
  while true do
    local info = ffi.new("cairn_op_info_t", { ffi.sizeof("cairn_op_info_t") })
    local status = C.cairn_op_describe(#list, info, core.raw_error)
    if status == C.CAIRN_STATUS_NOT_FOUND then return list end
    if status ~= 0 then return core.failed(status) end
    list[#list + 1] = {
      name = ffi.string(info.name), inputs = words(info.inputs, operand), outputs = words(info.outputs, operand),
      attributes = words(info.attributes, attribute), description = ffi.string(info.description),
      amp_class = ffi.string(info.amp_class),
    }
  end
end

return { Graph = Graph, Value = Value, POLICIES = POLICIES, ops = ops }
