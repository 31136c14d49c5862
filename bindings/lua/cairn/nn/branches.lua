-- Modules with several branches, as Torch7 has them: a list of values where ConcatTable and ParallelTable make one and
-- the others take one.
local module = require "cairn.nn.module"
local define, expect = module.define, module.expect

local nn = {}

local function take(self, ...)
  self.modules, self.names = {}, {}
  for _, child in ipairs { ... } do self:add(child) end
end

local ADD = { add = function(self, child, name)
  self.modules[#self.modules + 1] = expect(child, self.kind .. ":add")
  self.names[#self.modules] = name or tostring(#self.modules)
  return self
end }
local function methods() return { add = ADD.add } end

local function all(self, context, x, each)
  local made = {}
  for i, child in ipairs(self.modules) do made[i] = context:child(self.names[i], child, each and x[i] or x) end
  return made
end

local function listed(kind, x)
  if type(x) ~= "table" or x.graph then error(kind .. ": a list of values expected, as ConcatTable makes", 0) end
  return x
end

-- Each module's result on the same x: a list.
nn.ConcatTable = define("ConcatTable", take, function(self, context, x) return all(self, context, x) end, methods())
-- Module i on element i of a list.
nn.ParallelTable = define("ParallelTable", take,
  function(self, context, x) return all(self, context, listed("ParallelTable", x), true) end, methods())
-- The sum, or the product, of a list.
nn.CAddTable = define("CAddTable", function() end, function(_, _, x)
  local sum = listed("CAddTable", x)[1]
  for i = 2, #x do sum = sum + x[i] end
  return sum
end)
nn.CMulTable = define("CMulTable", function() end, function(_, _, x)
  local product = listed("CMulTable", x)[1]
  for i = 2, #x do product = product * x[i] end
  return product
end)
-- A list one after the other along an axis; default: the last, the channels.
nn.JoinTable = define("JoinTable", function(self, axis) self.axis = axis end, function(self, context, x)
  return context.graph:concat(listed("JoinTable", x), self.axis or #x[1]:shape() - 1)
end)
-- The results of modules on the same x, along an axis; default: the channels.
nn.Concat = define("Concat", function(self, axis, ...)
  if module.is(axis) then return take(self, axis, ...) end
  take(self, ...)
  self.axis = axis
end, function(self, context, x)
  local made = all(self, context, x)
  return context.graph:concat(made, self.axis or #made[1]:shape() - 1)
end, methods())

return nn
