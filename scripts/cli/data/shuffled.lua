-- A list in an order drawn from a seed (Fisher and Yates): in place, and returned.
local random = require "cairn.random"

return function(list, seed)
  local draw = random(seed)
  for i = #list, 2, -1 do
    local j = math.floor(draw() * i) + 1
    list[i], list[j] = list[j], list[i]
  end
  return list
end
