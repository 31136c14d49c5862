-- The recipe gpt2.lua on batches=FILE: raw int32 [micro-batches, batch, seq + 1], in the machine's byte order; inputs
-- and, one further, targets. So that cairn and another program train on the same tokens.
local ffi = require "ffi"
local here = debug.getinfo(1, "S").source:match("^@(.*/)") or "./"
local recipe = dofile(here .. "../../scripts/recipes/gpt2.lua")
table.insert(recipe.options, { "batches", "", "file of tokens" })

recipe.dataset = function(o)
  local file = assert(io.open(o.batches, "rb"))
  local bytes = file:read("*a")
  file:close()
  local all = ffi.new("int32_t[?]", #bytes / 4)
  ffi.copy(all, bytes, #bytes)
  return { batch = function(index)
    local tokens, targets = {}, {}
    for row = 0, o.batch - 1 do
      local from = (index * o.batch + row) * (o.seq + 1)
      assert((from + o.seq + 1) * 4 <= #bytes, o.batches .. " has no more batches")
      for i = 0, o.seq - 1 do
        tokens[#tokens + 1], targets[#targets + 1] = all[from + i], all[from + i + 1]
      end
    end
    return { tokens = tokens, targets = targets }, #tokens
  end }
end
return recipe
