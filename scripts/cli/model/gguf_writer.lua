-- What a GGUF file says besides the tensors of a session: metadata, rows of names, by llama.cpp's rules.
local config_reader = require "families.parts.config"
local decode = require "cli.base.json_decode"
local directory = require "cli.model.directory"
local fail = require "cli.base.fail"
local gguf = require "cli.model.gguf"
local json = require "cli.base.json"
local keys = require "families.gguf.keys"
local rope = require "families.parts.rope"

local writer = {}

-- general.file_type, by what matrices are written as.
local FILE_TYPES = { f32 = 0, f16 = 1, q4_0 = 2, q8_0 = 7, bf16 = 32 }
local ADAPTER_ENDS = { a = ".lora_a", b = ".lora_b" }

-- Collects metadata, in order: put(key, type, value), and text(tensors) as the library wants it.
local function collector()
  local rows, seen = {}, {}
  local function put(key, kind, value)
    if value == nil then return end
    local list = type(value) == "table"
    local given = list and json.array(value) or value
    local told = list and kind == "text" and #value > 0 or not list and (kind == "text" or kind == "bool")
    if not told then given = json.object { { kind, given } } end  -- the type does not show in the value
    seen[key] = seen[key] or #rows + 1
    rows[seen[key]] = { key, given, value = value }
  end
  return put, function(tensors)
    return json.encode(json.object { { "metadata", json.object(rows) }, { "tensors", json.object(tensors or {}) } })
  end, rows
end

-- Rotary positions that reach further: keys, or tensors of factors.
local function put_scaling(put, a, tensors)
  local p = a.ropes.all or a.ropes.full_attention
  if not p then return end
  put("rope.freq_base", "f32", p.base)
  if p.name == "linear" then
    put("rope.scaling.type", "text", "linear")
    put("rope.scaling.factor", "f32", p.factor)
  elseif p.name == "yarn" then
    put("rope.scaling.type", "text", "yarn")
    put("rope.scaling.factor", "f32", p.factor or p.positions / p.original)
    put(keys.SCALING.original_max_position_embeddings, "u32", p.original)
    for _, name in ipairs { "attention_factor", "beta_fast", "beta_slow" } do
      put(keys.SCALING[name], "f32", p[name])
    end
  elseif p.name == "llama3" or p.name == "factors" then
    local made, factors = rope.attributes(a, a.ropes.all and "all" or "full_attention", 1).frequencies, {}
    for i, frequency in ipairs(made) do factors[i] = p.base ^ (-2 * (i - 1) / p.dim) / frequency end
    tensors[#tensors + 1] = { "rope_freqs.weight", json.array(factors) }
  elseif p.name == "longrope" then
    local factor = p.factor or p.positions / p.original
    put("rope.scaling.attn_factor", "f32", p.attention_factor or
      (factor <= 1 and 1 or math.sqrt(1 + math.log(factor) / math.log(p.original))))
    tensors[#tensors + 1] = { "rope_factors_long.weight", json.array(p.long_factor) }
    tensors[#tensors + 1] = { "rope_factors_short.weight", json.array(p.short_factor) }
  elseif p.name ~= "default" then
    fail.input(("%s: rotary positions of the type %s have no place in a GGUF file"):format(a.where, p.name))
  end
end

-- What a file must say of a model, so that it is the same again.
local SAME = { "width", "layers", "heads", "kv_heads", "head_dim", "hidden", "norm", "qk_norm", "norms", "parallel",
  "bias", "fused_qkv", "gated", "fused_gate_up", "activation", "rotary", "attention_scales", "attention_softcap",
  "query_growth", "sinks", "embedding_scale", "residual_scale", "logits_scale", "logits_softcap", "tied", "turning",
  "routed" }
local ROUNDED = 1e-6  -- of numbers that a file has as f32

local function same(one, other)
  if type(one) == "number" and type(other) == "number" then return math.abs(one - other) <= ROUNDED * math.abs(one) end
  if type(one) ~= "table" or type(other) ~= "table" then return (one or false) == (other or false) end
  for _, keys_of in ipairs { one, other } do
    for key in pairs(keys_of) do
      if not same(one[key], other[key]) then return false end
    end
  end
  return true
end

-- What of a model no names and no options change, with its rotary positions as numbers.
local function comparable(a)
  a.turning, a.routed = {}, nil
  for kind in pairs(a.ropes) do
    a.turning[kind] = { rope.attributes(a, kind, 1), rope.attributes(a, kind, a.positions) }
  end
  local e = a.experts
  a.routed = e and { e.count, e.chosen, e.normalise, e.hidden, e.bias, e.limit, e.layers }
  return a
end

-- Ends the command where the file would be read as another model. rows: metadata {key, value}, put so far.
local function check_again(of, self, rows, tensors, names)
  local read = { metadata = {}, tensors = {}, vectors = {} }
  for _, row in ipairs(rows) do read.metadata[row[1]] = row.value end
  for _, row in ipairs(names) do read.tensors[row.theirs] = { shape = row.shape } end
  for _, row in ipairs(tensors) do
    read.tensors[row[1]], read.vectors[row[1]] = { shape = { #row[2] } }, row[2]
  end
  local again = require("families.parts.architecture").of(gguf.config(of.where, read), of.where)
  local one, other, lost = comparable(self.a), comparable(again), {}
  for _, key in ipairs(SAME) do
    if not same(one[key], other[key]) then lost[#lost + 1] = key end
  end
  if #lost > 0 then
    fail.input(("%s: a GGUF file of the architecture %s cannot say of this model: %s"):format(of.where, self.name,
      table.concat(lost, ", ")))
  end
  return same(one.windows, other.windows)
end

-- {name (of the architecture there), rows (of it), a, c (values of the config)}, of a config's text; ends the command
-- where such a model is no GGUF file.
local function described(text, where)
  local a = require("families.parts.architecture").of(text, where)
  local c = config_reader.read(text, where)
  local name, rows = gguf.of_family(a.family)
  if not name then
    fail.input(("%s: models of the family %s are not written as GGUF files"):format(where, a.family))
  end
  return { name = name, rows = rows, a = a, c = c }
end

-- Names of a session's parameters there; tied: the head is no tensor. Ends the command where one has no place.
local function named(self, parameters, names)
  local by = {}
  for _, row in ipairs(names or {}) do by[row.ours or row[1]] = row.theirs or row[2] end
  local rows = gguf.names(self.a, self.name, parameters, by)
  for _, row in ipairs(rows) do
    if not row.theirs then
      fail.input(("%s: the parameter '%s' has no place in a GGUF file of the architecture %s"):format(self.a.where,
        row.ours, self.name))
    end
  end
  return rows
end

-- Metadata (a text for Session:export) and rows of names of a model. of: {text (config.json), where, source (where the
-- tokenizer is: a directory, a GGUF file, or nil), name, dtype (of matrices; nil: as they are stored), parameters,
-- names (rows of other libraries), note(message)}.
function writer.model(of)
  local self = described(of.text, of.where)
  local a, c = self.a, self.c
  local put, text, told = collector()
  local tensors, names = {}, named(self, of.parameters, of.names)
  local function put_own(key, kind, value) put(self.name .. "." .. key, kind, value) end
  put("general.architecture", "text", self.name)
  put("general.type", "text", "model")
  put("general.name", "text", of.name)
  for _, row in ipairs(keys.of(self.rows)) do
    if row[3] then put_own(row[1], row[3], c[row[2]]) end
  end
  put_own("feed_forward_length", "u32", a.hidden)
  if c.num_key_value_heads ~= nil then put_own("attention.head_count_kv", "u32", a.kv_heads) end
  if c.head_dim or a.head_dim * a.heads ~= a.width then
    put_own("attention.key_length", "u32", a.head_dim)
    put_own("attention.value_length", "u32", a.head_dim)
  end
  put_scaling(put_own, a, tensors)
  if self.rows.more then self.rows.more(put_own, c, a) end
  put("general.file_type", "u32", FILE_TYPES[of.dtype or "f32"] or 0)
  put("general.quantization_version", "u32", 2)
  if not check_again(of, self, told, tensors, names) then
    of.note(("note: %s: a GGUF file of the architecture %s has no windows: longer texts come out otherwise"):format(
      of.where, self.name))
  end
  if of.source and not directory.words(put, of.source, c.vocab_size, decode(of.text)) then
    of.note(("note: %s has no tokenizer.json; the file is written without a tokenizer"):format(of.source.path))
  end
  return text(tensors), names
end

-- The same of an adapter. modules: rows {a, b (names of parameters), weight, rank, scale, kind, dora}; parameters: all
-- of the session, of which those of the adapter are written.
function writer.adapter(of)
  local self = described(of.text, of.where)
  local put, text = collector()
  local targets, taken, alpha = {}, {}, nil
  for _, row in ipairs(of.modules) do targets[#targets + 1] = { name = row.weight, shape = {} } end
  local there = {}
  for _, row in ipairs(named(self, targets, of.names)) do there[row.ours] = row end
  for _, module in ipairs(of.modules) do
    if module.dora or module.kind == "embedding" then
      fail.input(("%s: %s, which llama.cpp has none of; --merge writes a complete model"):format(module.weight,
        module.dora and "a magnitude (DoRA)" or "an adapter of a table of rows"))
    end
    local own = module.scale * module.rank
    if alpha and math.abs(alpha - own) > 1e-6 * alpha then
      fail.input(("%s has another scale times rank (%g) than the modules before it (%g), and such a file has one alpha")
        :format(module.weight, own, alpha))
    end
    alpha = alpha or own
    local row = there[module.weight]
    taken[module.a] = { ours = module.a, theirs = row.theirs .. ADAPTER_ENDS.a }
    taken[module.b] = { ours = module.b, theirs = row.theirs .. ADAPTER_ENDS.b, interleaved = row.interleaved,
                        groups = row.groups, ways = row.ways, unit = row.unit }
  end
  put("general.architecture", "text", self.name)
  put("general.type", "text", "adapter")
  put("adapter.type", "text", "lora")
  put("adapter.lora.alpha", "f32", alpha)
  put("general.file_type", "u32", FILE_TYPES[of.dtype or "f32"] or 0)
  put("general.quantization_version", "u32", 2)
  local rows = {}
  for i, info in ipairs(of.parameters) do rows[i] = taken[info.name] or { ours = info.name } end
  return text(), rows
end

return writer
