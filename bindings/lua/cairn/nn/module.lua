-- What a module is: a description that adds ops to a graph. Building it twice in one graph shares its parameters.
--   module:build(context, x) -> y      context: the graph, the name so far, whether it trains

local print_module = require "cairn.nn.print"
local torch = require "cairn.nn.torch"

local module = {}

-- train: whether it is built as for training where a graph trains; false after :evaluate().
local Module = { train = true }
Module.__index = Module
Module.__tostring = print_module
for name, call in pairs(torch.methods) do Module[name] = call end
module.Module = Module

-- Defines a kind of module from its construct(self, ...) and its build(self, context, x).
function module.define(kind, construct, build, methods)
  local class = setmetatable(methods or {}, Module)
  class.__index, class.__tostring, class.kind, class.build = class, Module.__tostring, kind, build
  class.__typename = "nn." .. kind  -- what torch.typename would say
  return function(...)
    local self = setmetatable({}, class)
    construct(self, ...)
    return self
  end
end

function module.is(object)
  return type(object) == "table" and type(object.kind) == "string" and type(object.build) == "function"
end

function module.expect(object, what)
  if not module.is(object) then error(("%s: a module expected, got %s"):format(what, type(object)), 3) end
  return object
end

function module.positive(value, what)
  if type(value) ~= "number" or value < 1 or value ~= math.floor(value) then
    error(("%s: a positive whole number expected, got %s"):format(what, tostring(value)), 4)
  end
  return value
end

-- Applies fn to this module and all below it.
function Module:apply(fn)
  fn(self)
  for _, child in ipairs(self.modules or {}) do child:apply(fn) end
  return self
end

-- All modules of a kind, "Linear", in order.
function Module:findModules(kind)
  local found = {}
  self:apply(function(each)
    if each.kind == kind then found[#found + 1] = each end
  end)
  return found
end

-- This module and all below it, in order; one that is there twice, twice.
function Module:listModules()
  local list = {}
  self:apply(function(each) list[#list + 1] = each end)
  return list
end

-- The module with fn(module) in the place of every module below it and of itself, the innermost first.
function Module:replace(fn)
  for i, child in ipairs(self.modules or {}) do
    self.modules[i] = module.expect(child:replace(fn), "replace: what fn returns")
  end
  return module.expect(fn(self), "replace: what fn returns")
end

-- Graphs that are built from now on have this module, and all below it, as for training (the default), or as for
-- evaluation: without dropout, also where the graph trains. Graphs that are built already stay as they are.
function Module:training() return self:apply(function(each) each.train = true end) end
function Module:evaluate() return self:apply(function(each) each.train = false end) end

-- A module of the same kind with parameters of its own; modules that are one in here are one in the clone.
function Module:clone(...)
  if select("#", ...) > 0 then
    error(("nn.%s:clone('%s'): clones share nothing; one module that is added twice has one set of parameters"):format(
      self.kind, tostring((...))), 2)
  end
  local made = {}
  local function copy(value)
    if type(value) ~= "table" then return value end
    if made[value] then return made[value] end
    local new = setmetatable({}, getmetatable(value))
    made[value] = new
    for key, each in pairs(value) do new[key] = copy(each) end
    return new
  end
  return copy(self)
end

local Context = {}
Context.__index = Context

-- What modules build into: a graph, and whether it trains.
function module.context(graph, training)
  return setmetatable({ graph = graph, training = training, prefix = "", made = {} }, Context)
end

function Context:op(...) return self.graph:op(...) end

-- What `owner` has by this name: made by make(name in the graph) at its first use, tied at later ones.
local function of_owner_by(self, owner, name, make)
  local of_owner = self.made[owner] or {}
  self.made[owner] = of_owner
  if not of_owner[name] then
    local whole = self.prefix .. name
    if self.graph:find(whole) then
      error(("a value named '%s' exists already; modules of one graph need names of their own: " ..
        "context:child(\"left\", module, x) instead of module:build(context, x)"):format(whole), 3)
    end
    of_owner[name] = make(whole)
  end
  return of_owner[name]
end

-- The parameter `name` of `owner`.
function Context:parameter(owner, name, dims, options)
  return of_owner_by(self, owner, name, function(whole) return self.graph:parameter(whole, dims, options) end)
end

-- The statistic `name` of `owner`, which begins with `fill`.
function Context:statistic(owner, name, dims, fill)
  return of_owner_by(self, owner, name, function(whole) return self.graph:statistic(whole, dims, { fill = fill }) end)
end

-- Builds a child under a name of its own; "": under its parent's.
function Context:child(name, child, x)
  local prefix = self.prefix
  if name ~= "" then self.prefix = prefix .. name .. "." end
  local y = child:build(self, x)
  self.prefix = prefix
  return y
end

-- Dims of x, and its last one.
function Context.width(_, x)
  local shape = x:shape()
  return shape[#shape], shape
end

return module
