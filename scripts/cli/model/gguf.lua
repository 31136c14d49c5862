-- A GGUF file in the place of a model's directory: its metadata as a config.json, the names of its tensors, and where
-- its rows lie in another order. What differs by architecture is in families/gguf.
local cairn = require "cairn"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local ffi = require "ffi"
local files = require "cli.base.files"
local json = require "cli.base.json"
local keys = require "families.gguf.keys"
local nearest = require "cli.base.nearest"
local posix = require "cli.base.posix"
local unicode = require "cli.base.unicode"

local gguf = {}

local MAGIC = "GGUF"
local TOLERANCE = 1e-5  -- of factors that llama3's rule gives, which are stored as f32

-- Whether a file begins as one.
function gguf.is(path)
  local found = posix.look(path)
  -- Files of /proc have no size, and a read of some of them waits.
  if not found or found.kind or found.size < #MAGIC then return false end
  local file = io.open(path, "rb")
  local head = file and file:read(#MAGIC)
  if file then file:close() end
  return head == MAGIC
end

local seen = {}  -- by path, what was read last: a vocabulary is large
-- What `cairn inspect` says of the file.
function gguf.inspect(path)
  local found = posix.look(path) or {}
  local key = ("%s %s %s"):format(path, tostring(found.size), tostring(found.modified))
  if seen.key ~= key then
    local text, err = cairn.inspect(path)
    if not text and err.status == "UNSUPPORTED" then fail.input(tostring(err)) end
    seen = { key = key, read = decode(fail.check(path, text, err)) }
  end
  return seen.read
end

-- The numbers of an f32 vector; nil: the file has none of that name.
local function vector(path, read, name)
  local tensor = read.tensors[name]
  if not tensor then return nil end
  if tensor.dtype ~= "f32" or #tensor.shape ~= 1 then
    fail.input(("%s: %s is %s; wanted: a vector of f32"):format(unicode.shown(path), name, tensor.dtype))
  end
  local file = files.open(path, "model")
  file:seek("set", tensor.offset)
  local bytes = file:read(tensor.bytes) or ""
  file:close()
  if #bytes ~= tensor.bytes then fail.with(5, ("%s: %s is cut short"):format(path, name)) end
  local numbers, list = ffi.new("float[?]", tensor.shape[1]), {}
  ffi.copy(numbers, bytes, #bytes)
  for i = 1, tensor.shape[1] do list[i] = tonumber(numbers[i - 1]) end
  return list
end

-- rope_freqs.weight as Llama 3's rule, where the rule's usual numbers give these factors; or as they are.
local function frequencies(config, factors, head_dim)
  local base, original, low, high, most = config.rope_theta or 10000, 8192, 1, 4, 1
  for _, factor in ipairs(factors) do most = math.max(most, factor) end
  local same = #factors == head_dim / 2
  for i, factor in ipairs(factors) do
    local turns = original * base ^ (-2 * (i - 1) / head_dim) / (2 * math.pi)
    local share = math.min(math.max((turns - low) / (high - low), 0), 1)
    local wanted = 1 / ((1 - share) / most + share)
    same = same and math.abs(wanted - factor) <= TOLERANCE * factor
  end
  if not same then return { rope_type = "factors", factors = json.array(factors) } end
  return { rope_type = "llama3", factor = most, low_freq_factor = low, high_freq_factor = high,
           original_max_position_embeddings = original }
end

-- What the metadata say of rotary positions beyond a base, as rope_scaling; nil: nothing.
local function scaling(m, config, head_dim)
  local kind, rows = m.key("rope.scaling.type"), { "factor", "attention_factor", "beta_fast", "beta_slow",
                                                   "original_max_position_embeddings" }
  local given = {}
  for _, name in ipairs(rows) do given[name] = m.key(keys.SCALING[name]) end
  if m.key("rope.scaling.yarn_ext_factor") and m.key("rope.scaling.yarn_ext_factor") ~= 1 then
    fail.input(m.where .. ": rope.scaling.yarn_ext_factor is not 1")
  end
  local factors, long = m.vector("rope_freqs.weight"), m.vector("rope_factors_long.weight")
  if long then
    return { rope_type = "longrope", long_factor = json.array(long), attention_factor =
             m.key("rope.scaling.attn_factor"), short_factor = json.array(m.vector("rope_factors_short.weight") or {}) }
  end
  if factors then return frequencies(config, factors, head_dim) end
  if kind == "linear" and given.factor then return { rope_type = "linear", factor = given.factor } end
  if kind == "yarn" then
    given.rope_type = "yarn"
    return given
  end
  if kind ~= nil and kind ~= "none" and kind ~= "linear" and kind ~= "longrope" then
    fail.input(("%s: rope.scaling.type is '%s'; known: none linear yarn longrope"):format(m.where,
      unicode.shown(tostring(kind))))
  end
end

-- The architectures that there are, sorted.
local function architectures()
  local names = {}
  for _, file in ipairs(posix.list(keys.root()) or {}) do
    local name = file:match("^([%w_%-]+)%.lua$")
    if name and name ~= "keys" then names[#names + 1] = name end
  end
  table.sort(names)
  return names
end

-- The table of families/gguf for an architecture of files; ends the command where there is none.
local function architecture(name, where)
  local known = architectures()
  for _, each in ipairs(known) do
    if each == name then return require("families.gguf." .. name) end
  end
  fail.input(("%s: general.architecture is '%s', which is not known%s (known: %s)"):format(where,
    unicode.shown(tostring(name)), nearest.hint(tostring(name), known), table.concat(known, " ")))
end

-- That of files of one of our families; nil: none is.
function gguf.of_family(family)
  for _, name in ipairs(architectures()) do
    local rows = require("families.gguf." .. name)
    for _, each in ipairs(rows.families) do
      if each == family then return name, rows end
    end
  end
end

-- What an architecture asks of a file: {where, key(name without the architecture), has(tensor), shape(tensor),
-- vector(tensor)}.
local function metadata_of(path, read)
  local all, m = read.metadata, { where = unicode.shown(path), asked = {} }
  m.name = all["general.architecture"]
  if type(m.name) ~= "string" then
    fail.input(m.where .. ": it does not say what it is: general.architecture is not there")
  end
  if all["general.type"] ~= nil and all["general.type"] ~= "model" then
    fail.input(("%s is no model: general.type is '%s'"):format(m.where, unicode.shown(tostring(all["general.type"]))))
  end
  if tonumber(all["split.count"]) and all["split.count"] > 1 then
    fail.input(("%s is one of %d files; llama.cpp's llama-gguf-split --merge makes one of them"):format(m.where,
      all["split.count"]))
  end
  function m.key(name)
    m.asked[name] = true
    return all[m.name .. "." .. name]
  end
  function m.has(name) return read.tensors[name] ~= nil end
  function m.shape(name) return (read.tensors[name] or { shape = {} }).shape end
  function m.vector(name)
    if read.vectors then return read.vectors[name] end
    return vector(path, read, name)
  end
  return m
end

-- One number of a key that may have one for each layer, all the same.
local function one(m, name, value)
  if type(value) ~= "table" then return value end
  for _, each in ipairs(value) do
    if each ~= value[1] then fail.input(("%s: %s differs by layer, which no family here has"):format(m.where, name)) end
  end
  return value[1]
end

-- The config as a table. rows: of the architecture; family: its table.
local function config_of(m, rows, family, name)
  local config = { model_type = name }
  for _, row in ipairs(keys.of(rows)) do
    local value = one(m, row[1], m.key(row[1]))
    if value ~= nil and row[2] and (family.defaults[row[2]] ~= nil or not row.own) then config[row[2]] = value end
  end
  local defaults, heads = family.defaults, config.num_attention_heads
  if not (config.hidden_size and heads and config.num_hidden_layers) then
    fail.input(("%s: %s.embedding_length, .attention.head_count or .block_count is not there"):format(m.where, m.name))
  end
  if defaults.num_key_value_heads == nil then
    config.num_key_value_heads = nil
  else
    config.num_key_value_heads = config.num_key_value_heads or heads
  end
  local turning = m.key("rope.dimension_count")
  local head_dim = m.key("attention.key_length") or rows.turns_all and turning or config.hidden_size / heads
  if defaults.head_dim ~= nil or head_dim ~= config.hidden_size / heads then config.head_dim = head_dim end
  if turning and turning ~= head_dim then config.partial_rotary_factor = turning / head_dim end
  if not family.learned then config.rope_scaling = scaling(m, config, head_dim) end
  config.vocab_size = m.shape("token_embd.weight")[1] or config.vocab_size
  config.tie_word_embeddings = not m.has("output.weight")
  for key, tensor in pairs { attention_bias = "attn_q.bias", mlp_bias = "ffn_up.bias", use_bias = "attn_q.bias" } do
    if defaults[key] ~= nil then config[key] = m.has("blk.0." .. tensor) or m.has("blk.0.attn_qkv.bias") end
  end
  return config, head_dim
end

local SPECIAL = { bos_token_id = "bos", pad_token_id = "padding" }

-- The text of a config.json, of what inspect says of a file. read.vectors: numbers of tensors that are not read from
-- the file (optional).
function gguf.config(path, read)
  local m = metadata_of(path, read)
  local rows = architecture(m.name, m.where)
  local family_name = rows.family and rows.family(m) or rows.families[1]
  local family = require("families." .. family_name)
  local config, head_dim = config_of(m, rows, family, family_name)
  if rows.complete then rows.complete(config, m, head_dim) end
  for key, word in pairs(SPECIAL) do config[key] = read.metadata[("tokenizer.ggml.%s_token_id"):format(word)] end
  local ends = {}
  for _, word in ipairs { "eos", "eot", "eom" } do
    ends[#ends + 1] = read.metadata[("tokenizer.ggml.%s_token_id"):format(word)]
  end
  config.eos_token_id = #ends > 1 and json.array(ends) or ends[1]
  local unknown = {}
  for key in pairs(read.metadata) do
    local own = key:sub(1, #m.name + 1) == m.name .. "." and key:sub(#m.name + 2)
    if own and not m.asked[own] and not keys.HARMLESS[own] then unknown[#unknown + 1] = key end
  end
  table.sort(unknown)
  if #unknown > 0 then
    fail.input(("%s: the architecture %s knows nothing of: %s"):format(m.where, m.name, table.concat(unknown, ", ")))
  end
  return json.pretty(json.encode(config)) .. "\n"
end

-- {path, name (for messages), text (of a config.json), tensors (a set of names), gguf (what inspect says)}, as
-- cli.model.directory has it.
function gguf.open(name)
  local path = posix.real_path(name) or name
  local read = gguf.inspect(path)
  return { path = path, name = name, text = gguf.config(path, read), tensors = read.tensors, gguf = read }
end

-- How a tensor of the parameter `base` (a name without .weight or .bias) is called there: by name a row {theirs,
-- interleaved, groups, ways, unit, offset}. a: of families.parts.architecture; rows: of the architecture.
local function tensor_names(a, rows)
  local names, map = a.names, {}
  local shift = a.norm.offset and a.norm.offset ~= 0 and a.norm.offset or nil
  local function put(base, theirs, more)
    local row = more or {}
    row.theirs = theirs
    if base then map[base] = row end  -- of a part that there is
  end
  put(names.tokens, "token_embd")
  put(names.positions, "position_embd")
  put(names.head, "output")
  put(names.final, "output_norm", { offset = shift })
  for layer = 0, a.layers - 1 do
    local block, prefix = names.block:format(layer) .. ".", ("blk.%d."):format(layer)
    local function inside(part, name) return name and block .. (part ~= "" and part .. "." or "") .. name end
    for part, theirs in pairs(keys.NORMS) do
      local name = a.norms[part]
      if name then put(block .. name, prefix .. (rows.norms and rows.norms[part] or theirs), { offset = shift }) end
    end
    for part, theirs in pairs(keys.ATTENTION) do
      local more = {}
      if rows.permuted and part == "q" then more.interleaved = a.heads end
      if rows.permuted and part == "k" then more.interleaved = a.kv_heads end
      if a.fused_qkv == "heads" and part == "qkv" then more = { groups = 1, ways = a.heads, unit = a.head_dim } end
      if part == "q_norm" or part == "k_norm" then more.offset = shift end
      put(inside(names.attention, names[part]), prefix .. theirs, more)
    end
    for part, theirs in pairs(keys.MLP) do put(inside(names.mlp, names[part]), prefix .. theirs) end
    if a.sinks then put(inside(names.attention, "sinks"), prefix .. "attn_sinks.weight", { complete = true }) end
    local e = a.experts
    if e and e.layers[layer + 1] then
      put(inside(names.mlp, e.router), prefix .. "ffn_gate_inp")
      for part, theirs in pairs(keys.EXPERTS) do
        local base = not e.gate_up and inside(names.mlp, "experts." .. e[part])
        put(base, prefix .. theirs)
        put(base and base .. "_bias", prefix .. theirs .. ".bias", { complete = true })
      end
    end
  end
  return map
end

-- Rows of names for a file of `architecture_name`: {ours, theirs, shape, ...}, of parameters rows {name, shape}. by:
-- names of other libraries for parameters, by ours (optional). Parameters that such a file cannot have: theirs is nil.
function gguf.names(a, name, parameters, by)
  local map, rows = tensor_names(a, architecture(name, a.where)), {}
  for i, info in ipairs(parameters) do
    local row = { ours = info.name, shape = info.shape }
    for _, each in ipairs { info.name, by and by[info.name] } do
      local base, suffix = each:match("^(.*)%.(%a+)$")
      local found = map[each] or map[base]
      if found and not row.theirs then
        for key, value in pairs(found) do row[key] = value end
        if not found.complete then row.theirs = found.theirs .. "." .. suffix end
      end
    end
    rows[i] = row
  end
  return rows
end

-- Patterns of tensors that say what the config says already.
gguf.UNUSED = { "^rope_freqs%.weight$", "^rope_factors_long%.weight$", "^rope_factors_short%.weight$" }

return gguf
