-- Whether one wide batch holds the samples of several micro-batches, as `cairn verify` needs to compare the two: a
-- recipe may as well draw by the micro-batch's number, and then a wide batch holds other samples.

local function elements(graph, name)
  local info = graph:info(name)
  if not info or info.kind ~= "input" then return 0 end
  local count = 1
  for _, dim in ipairs(info.shape) do count = count * dim end
  return count
end

-- A copy of arrays (or FFI buffers, which the recipe may fill again) by input name.
local function copies(arrays, graph)
  local list = {}
  for name, data in pairs(arrays) do
    local copy, base = {}, type(data) == "cdata" and -1 or 0
    for i = 1, elements(graph, name) do copy[i] = tonumber(data[base + i]) end
    list[name] = copy
  end
  return list
end

-- narrow, wide: {graph, batch (function of the micro-batch's number)}. Returns nil if micro-batch 0 of `wide` equals
-- micro-batches 0 to count - 1 of `narrow` one after the other, or else why it does not.
return function(narrow, wide, count)
  local parts = {}
  for p = 1, count do parts[p] = copies(narrow.batch(p - 1), narrow.graph) end
  for name, whole in pairs(copies(wide.batch(0), wide.graph)) do
    local share = elements(narrow.graph, name)
    if #whole ~= share and #whole ~= share * count then
      return ("input '%s' does not grow with the batch"):format(name)
    end
    for p, part in ipairs(parts) do
      local offset = #whole == share and 0 or (p - 1) * share
      for i = 1, share do
        if not part[name] or whole[offset + i] ~= part[name][i] then
          return ("with batch=%d times as much, micro-batch 0 has other samples in '%s' than micro-batches 0 to %d " ..
            "have: the recipe draws by the micro-batch's number"):format(count, name, count - 1)
        end
      end
    end
  end
end
