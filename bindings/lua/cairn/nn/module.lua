-- What a module is: a description that adds ops to a graph. Building it twice in one graph shares its parameters.
--   module:build(context, x) -> y      context: the graph, the name so far, whether it trains

local module = {}

local Module = {}
Module.__index = Module
Module.__tostring = function(self) return "nn." .. self.kind end
module.Module = Module

-- Defines a kind of module from its construct(self, ...) and its build(self, context, x).
function module.define(kind, construct, build, methods)
  local class = setmetatable(methods or {}, Module)
  class.__index, class.__tostring, class.kind, class.build = class, Module.__tostring, kind, build
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

local Context = {}
Context.__index = Context

-- What modules build into: a graph, and whether it trains.
function module.context(graph, training)
  return setmetatable({ graph = graph, training = training, prefix = "", made = {} }, Context)
end

function Context:op(...) return self.graph:op(...) end

-- The parameter `name` of `owner`: made at its first use, tied at later ones.
function Context:parameter(owner, name, dims, options)
  local of_owner = self.made[owner] or {}
  self.made[owner] = of_owner
  if not of_owner[name] then of_owner[name] = self.graph:parameter(self.prefix .. name, dims, options) end
  return of_owner[name]
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
