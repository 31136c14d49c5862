-- A network as text, in the form that Torch7 prints:
--   nn.Sequential {
--     [input -> (1) -> (2) -> output]
--     (1): nn.Linear(2 -> 32)
--     (2): nn.ReLU
--   }

-- What stands behind the kind of a module, by the fields that its kind has.
local DETAILS = {
  Linear = function(self)
    return ("(%d -> %d)%s"):format(self.inputs, self.outputs, self.bias and "" or " without bias")
  end,
  Embedding = function(self) return ("(%d, %d)"):format(self.vocabulary, self.width) end,
  Positions = function(self) return ("(%d, %d)"):format(self.time, self.width) end,
  LayerNorm = function(self) return ("(%d)"):format(self.width) end,
  RMSNorm = function(self) return ("(%d)"):format(self.width) end,
  Dropout = function(self) return ("(%g)"):format(self.rate) end,
  View = function(self) return "(" .. table.concat(self.shape, ", ") .. ")" end,
  CausalSelfAttention = function(self) return (" of %d heads"):format(self.heads) end,
  MultiHeadAttention = function(self)
    return (" of %d heads%s"):format(self.heads, self.causal and ", causal" or "")
  end,
  LSTM = function(self) return ("(%d -> %d)"):format(self.inputs, self.hidden) end,
  GRU = function(self) return ("(%d -> %d)"):format(self.inputs, self.hidden) end,
  Region = function(self) return (" '%s', %s"):format(self.name, self.policy or "planner") end,
}

return function(self)
  local detail = DETAILS[self.kind]
  local head = "nn." .. self.kind .. (detail and detail(self) or "")
  if not self.modules then return head end
  local lines, chain = { head .. " {" }, {}
  for i, child in ipairs(self.modules) do
    local name = "(" .. (self.names and self.names[i] or i) .. ")"
    chain[i] = name .. " -> "
    lines[#lines + 1] = "  " .. name .. ": " .. tostring(child):gsub("\n", "\n  ")
  end
  if self.kind == "Sequential" then
    table.insert(lines, 2, "  [input -> " .. table.concat(chain) .. "output]")
  end
  lines[#lines + 1] = "}"
  return table.concat(lines, "\n")
end
