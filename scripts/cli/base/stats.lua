-- Medians and spreads of lists.
local stats = {}

-- Between two values by their distance.
local function quantile(list, q)
  if #list == 0 then return 0 end
  local sorted = {}
  for i, value in ipairs(list) do sorted[i] = value end
  table.sort(sorted)
  local at = 1 + q * (#sorted - 1)
  local low = math.floor(at)
  local high = math.min(low + 1, #sorted)
  return sorted[low] + (at - low) * (sorted[high] - sorted[low])
end

function stats.median(list) return quantile(list, 0.5) end
function stats.interquartile(list) return quantile(list, 0.75) - quantile(list, 0.25) end

return stats
