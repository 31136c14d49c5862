-- The known word that a mistyped one probably meant, for messages.
local nearest = {}

-- Insertions, deletions, changes and swaps of neighbours that turn a into b.
local function distance(a, b)
  local before, last = {}, {}
  for j = 0, #b do last[j] = j end
  for i = 1, #a do
    local row = { [0] = i }
    for j = 1, #b do
      local same = a:byte(i) == b:byte(j)
      row[j] = math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (same and 0 or 1))
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        row[j] = math.min(row[j], before[j - 2] + 1)
      end
    end
    before, last = last, row
  end
  return last[#b]
end

-- The nearest of `known` within a third of the word's letters, of those as near one that begins and ends as the word
-- does; nil if none is that near.
function nearest.of(word, known)
  local best, least, best_alike = nil, math.max(1, math.floor(#word / 3)) + 1, false
  if #word > 64 then return nil end
  for _, each in ipairs(known) do
    local far = distance(word:lower(), each:lower())
    local alike = each:sub(1, 1) == word:sub(1, 1) and each:sub(-1) == word:sub(-1)
    if far < least or (far == least and best and alike and not best_alike) then
      best, least, best_alike = each, far, alike
    end
  end
  return best
end

-- "; did you mean 'layers'?", or nothing.
function nearest.hint(word, known)
  local found = nearest.of(word, known)
  return found and ("; did you mean '%s'?"):format(found) or ""
end

return nearest
