-- Numbers in [0, 1) from a seed, the same on every machine: a generator with a period of 2^31 - 2 (Lehmer, 1951).
return function(seed)
  local state = seed % 2147483645 + 1
  for _ = 1, 8 do state = state * 48271 % 2147483647 end
  return function()
    state = state * 48271 % 2147483647
    return (state - 1) / 2147483646
  end
end
