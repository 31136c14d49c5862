-- A copy of a table, with some of its values changed.
return function(list, changes)
  local copy = {}
  for key, value in pairs(list) do copy[key] = value end
  for key, value in pairs(changes) do copy[key] = value end
  return copy
end
