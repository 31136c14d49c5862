-- Rotary positions: what a config says of them, by type of layer, as attributes of the op rope. All ways of reaching
-- further than a model was first trained for are a vector of frequencies, in radians per position, and a factor.
local fail = require "cli.base.fail"
local unicode = require "cli.base.unicode"

local rope = {}

local SHARED = { "rope_theta", "rope_type", "type", "partial_rotary_factor", "original_max_position_embeddings" }

local function powers(base, dim)
  local list = {}
  for i = 0, math.ceil(dim / 2) - 1 do list[i + 1] = base ^ (-2 * i / dim) end
  return list
end

local function each(list, change)
  for i, value in ipairs(list) do list[i] = change(value, i) end
  return list
end

-- Rows: by type the keys that it needs, those it knows, and (p, base, dim, seq) -> frequencies, factor. p: the
-- parameters, with positions (max_position_embeddings) and original.
local TYPES = {
  default = { needs = {}, knows = {} },
  linear = { needs = { "factor" }, knows = {}, make = function(p, base, dim)
    return each(powers(base, dim), function(f) return f / p.factor end)
  end },
  -- One for each pair of columns, as GGUF files have them.
  factors = { needs = { "factors" }, knows = {}, make = function(p, base, dim)
    return each(powers(base, dim), function(f, i) return f / p.factors[i] end)
  end },
  -- The base grows with what a window has beyond max_position_embeddings.
  dynamic = { needs = { "factor" }, knows = {}, make = function(p, base, dim, seq)
    local length = math.max(seq, p.positions)
    local growth = p.factor * length / p.positions - (p.factor - 1)
    return powers(base * growth ^ (dim / (dim - 2)), dim)
  end },
  llama3 = { needs = { "factor", "low_freq_factor", "high_freq_factor" }, knows = {}, make = function(p, base, dim)
    return each(powers(base, dim), function(f)
      local turns = p.original * f / (2 * math.pi)  -- within the first training's window
      if turns > p.high_freq_factor then return f end
      if turns < p.low_freq_factor then return f / p.factor end
      local share = (turns - p.low_freq_factor) / (p.high_freq_factor - p.low_freq_factor)
      return (1 - share) * f / p.factor + share * f
    end)
  end },
  yarn = { needs = {}, knows = { "factor", "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim",
                                 "truncate" },
    make = function(p, base, dim)
      local factor = p.factor or p.positions / p.original
      local function scale(weight) return factor <= 1 and 1 or 0.1 * weight * math.log(factor) + 1 end
      local both = p.mscale and p.mscale ~= 0 and p.mscale_all_dim and p.mscale_all_dim ~= 0
      local gain = p.attention_factor or both and scale(p.mscale) / scale(p.mscale_all_dim) or scale(1)
      local function place(turns)  -- the column whose angle turns so often within the first training's window
        return dim * math.log(p.original / (turns * 2 * math.pi)) / (2 * math.log(base))
      end
      local low, high = place(p.beta_fast or 32), place(p.beta_slow or 1)
      if p.truncate ~= false then low, high = math.floor(low), math.ceil(high) end
      low, high = math.max(low, 0), math.min(high, dim - 1)
      if low == high then high = high + 0.001 end
      return each(powers(base, dim), function(f, i)
        local share = math.min(math.max((i - 1 - low) / (high - low), 0), 1)
        return share * f / factor + (1 - share) * f
      end), gain
    end },
  longrope = { needs = { "short_factor", "long_factor" }, knows = { "factor", "attention_factor" },
    make = function(p, base, dim, seq)
      local factor = p.factor or p.positions / p.original
      local gain = p.attention_factor or factor <= 1 and 1 or math.sqrt(1 + math.log(factor) / math.log(p.original))
      local stretch = seq > p.original and p.long_factor or p.short_factor
      return each(powers(base, dim), function(f, i) return f / stretch[i] end), gain
    end },
}

-- Numbers that a type divides by or takes the logarithm of.
local POSITIVE = { factor = true, rope_theta = true, beta_fast = true, beta_slow = true, low_freq_factor = true,
                   high_freq_factor = true, original_max_position_embeddings = true, attention_factor = true }
local WORDS = { rope_type = true, type = true, truncate = true }  -- what is no number
local LISTS = { short_factor = true, long_factor = true, factors = true }

-- Ends the command where the parameters of `where` are not those of their type. Returns the type's name.
local function check(p, where, extra, dim)
  local name = p.rope_type or p.type or "default"
  local kind = TYPES[name]
  if not kind then
    local known = {}
    for each_name in pairs(TYPES) do known[#known + 1] = each_name end
    table.sort(known)
    fail.input(("%s: rope_type is '%s'; known: %s"):format(where, unicode.shown(tostring(name)),
      table.concat(known, " ")))
  end
  local known = {}
  for _, list in ipairs { SHARED, kind.needs, kind.knows, extra or {} } do
    for _, key in ipairs(list) do known[key] = true end
  end
  for _, key in ipairs(kind.needs) do
    if p[key] == nil then fail.input(("%s: %s needs '%s'"):format(where, name, key)) end
  end
  for key, value in pairs(p) do
    if not known[key] then
      fail.input(("%s: the key '%s' is not known of %s"):format(where, unicode.shown(tostring(key)), name))
    end
    local list = LISTS[key]
    if list and (type(value) ~= "table" or #value ~= math.ceil(dim / 2)) then
      fail.input(("%s: %s has %s; wanted: %d numbers, one for each pair of columns"):format(where, key,
        type(value) == "table" and #value or "no list", math.ceil(dim / 2)))
    end
    for _, number in ipairs(list and value or WORDS[key] and {} or { value }) do
      local positive = list or POSITIVE[key]
      if type(number) ~= "number" or math.abs(number) == math.huge or positive and number <= 0 then
        fail.input(("%s: %s is %s; wanted: a number%s"):format(where, key, unicode.shown(tostring(number)),
          positive and " above 0" or ""))
      end
    end
  end
  return name
end

-- Settles what one type of layer has: p: the parameters as a config has them; defaults: base, share (of a head's
-- columns), original, positions (max_position_embeddings), head_dim, interleaved, extra (keys known elsewhere).
function rope.settle(p, where, defaults)
  local made = {}
  for key, value in pairs(p) do made[key] = value end
  made.base = p.rope_theta or defaults.base
  made.share = p.partial_rotary_factor or defaults.share or 1
  if type(made.share) ~= "number" or not (made.share > 0 and made.share <= 1) then
    fail.input(("%s: partial_rotary_factor is %s; wanted: above 0 and at most 1"):format(where,
      unicode.shown(tostring(made.share))))
  end
  made.dim = math.floor(defaults.head_dim * made.share)
  if made.dim < 1 or 2 * math.ceil(made.dim / 2) > defaults.head_dim then
    fail.input(("%s: %d of a head's %d columns turn; wanted: an even number of them"):format(where, made.dim,
      defaults.head_dim))
  end
  made.name = check(p, where, defaults.extra, made.dim)
  made.positions = defaults.positions
  made.original = defaults.original or p.original_max_position_embeddings or defaults.positions
  made.interleaved = defaults.interleaved
  return made
end

-- Attributes of the op rope for windows of seq tokens, without heads. settled: what rope.settle returned.
function rope.attributes(a, layer_type, seq)
  local p = a.ropes[layer_type]
  local columns = 2 * math.ceil(p.dim / 2)
  local made = { base = p.base, columns = columns ~= a.head_dim and columns or nil,
                 interleaved = p.interleaved and 1 or nil }
  local make = TYPES[p.name].make
  if make then
    made.frequencies, made.factor = make(p, p.base, p.dim, seq)
    for _, frequency in ipairs { made.factor or 1, unpack(made.frequencies) } do
      if frequency ~= frequency or math.abs(frequency) == math.huge then
        fail.input(("%s: rotary positions of the type %s come out as numbers that are not finite"):format(a.where,
          p.name))
      end
    end
  elseif columns ~= p.dim then
    made.frequencies = powers(p.base, p.dim)
  end
  if made.frequencies then made.base = nil end
  if made.factor == 1 then made.factor = nil end
  return made
end

return rope
