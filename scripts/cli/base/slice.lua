-- The values [first, last] of a list; last: default the list's end. A prompt may have more than unpack takes.
return function(list, first, last)
  local part, count = {}, 0
  for i = first, last or #list do
    count = count + 1
    part[count] = list[i]
  end
  return part
end
