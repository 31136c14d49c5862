-- An adapter's directory as PEFT writes it: adapter_config.json, adapter_model.safetensors.
local cairn = require "cairn"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local files = require "cli.base.files"
local names = require "cli.adapter.names"
local pattern = require "cli.adapter.pattern"
local posix = require "cli.base.posix"
local unicode = require "cli.base.unicode"

local peft = {}

local CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
local MOST_BYTES = 2 ^ 24
local MOST_LISTED = 8

-- Fields that change what is computed in a way that there is nothing for; each must be as it is without.
local REFUSED = { "lora_bias", "use_qalora", "alora_invocation_tokens", "arrow_config", "use_bdlora", "velora_config",
                  "kasa_config", "monteclora_config", "layer_replication", "trainable_token_indices",
                  "target_parameters", "megatron_config" }

function peft.is(path) return posix.no_file(path) == "a directory" and posix.is_there(path .. "/" .. CONFIG) end

local function is_set(value)
  return value ~= nil and value ~= false and not (type(value) == "table" and next(value) == nil)
end

local function check(path, config)
  local function refuse(words) fail.input(("%s/%s: %s"):format(path, CONFIG, words)) end
  if config.peft_type ~= "LORA" then
    refuse(("peft_type is '%s'; what is read here is LORA"):format(unicode.shown(tostring(config.peft_type))))
  end
  if (config.bias or "none") ~= "none" then
    refuse(("bias is '%s': biases that are trained along are not read; wanted: none"):format(
      unicode.shown(tostring(config.bias))))
  end
  for _, field in ipairs(REFUSED) do
    if is_set(config[field]) then refuse(field .. " is set, which cairn has nothing for") end
  end
  if type(config.r) ~= "number" or type(config.lora_alpha) ~= "number" then
    refuse("r and lora_alpha must be numbers")
  end
end

local function list_of(words)
  table.sort(words)
  if #words <= MOST_LISTED then return table.concat(words, ", ") end
  return ("%s and %d more"):format(table.concat(words, ", ", 1, MOST_LISTED), #words - MOST_LISTED)
end

-- The part of an adapter that a tensor is, and its module; nil: it is a parameter that was trained as it is.
local function part_of(name)
  for _, row in ipairs(names.PARTS) do
    for _, ending in ipairs { row.theirs, row.older } do
      if name:sub(-#ending) == ending then return row, name:sub(1, -#ending - 1) end
    end
  end
end

-- {path, file, config, metadata, tensors (by name without its prefix: {shape, dtype})}.
function peft.open(path)
  local ok, config = pcall(decode, files.read(path .. "/" .. CONFIG, "adapter", MOST_BYTES))
  if not ok or type(config) ~= "table" then
    fail.input(("%s/%s is no object of JSON%s"):format(path, CONFIG, ok and "" or ": " .. tostring(config)))
  end
  check(path, config)
  local file = path .. "/" .. WEIGHTS
  if not posix.is_there(file) then
    fail.input(("%s has no %s%s"):format(path, WEIGHTS, posix.is_there(path .. "/adapter_model.bin") and
      "; adapter_model.bin is a pickle, which is not read: save it again with safe_serialization=True" or ""))
  end
  local text, err = cairn.inspect(file)
  local read = decode(fail.check(file, text, err))
  local self = { path = path, file = file, config = config, metadata = read.metadata or {}, tensors = {} }
  for name, tensor in pairs(read.tensors or {}) do
    if name:sub(1, #names.PREFIX) ~= names.PREFIX then
      fail.input(("%s: '%s' does not begin with %s, as PEFT's tensors do"):format(file, unicode.shown(name),
        names.PREFIX))
    end
    local short = name:sub(#names.PREFIX + 1)
    -- PEFT adds tables that an adapter is of; they are the base's.
    if not short:find("%.base_layer%.") then self.tensors[short] = tensor end
  end
  return self
end

-- Modules of the file against those of a model. known: our weight by the module's name there. Returns rows {name, ours
-- (module), weight, table, rank, parts (theirs by part)}, and what is saved as it is {ours = theirs}.
local function match(self, known, parameters)
  local rows, by_name, saved, strange, halves = {}, {}, {}, {}, {}
  for name, tensor in pairs(self.tensors) do
    local part, module = part_of(name)
    if part and known[module] then
      local row = by_name[module]
      if not row then
        row = { name = module, weight = known[module], ours = names.module(known[module]), parts = {} }
        rows[#rows + 1], by_name[module] = row, row
      end
      row.parts[part.part] = name
      row.table = row.table or part.table or false
      if part.part == "a" then row.rank = tensor.shape[1] end
    elseif not part and parameters[name] then
      saved[parameters[name]] = name
    else
      strange[#strange + 1] = name
    end
  end
  if #strange > 0 then
    fail.input(("%s: tensors that match nothing of the model: %s"):format(self.file, list_of(strange)))
  end
  for _, row in ipairs(rows) do
    if not (row.parts.a and row.parts.b) then halves[#halves + 1] = row.name end
  end
  if #halves > 0 then
    fail.input(("%s: modules with one of lora_A and lora_B only: %s"):format(self.file, list_of(halves)))
  end
  table.sort(rows, function(a, b) return a.name < b.name end)
  return rows, saved
end

-- Modules that the configuration names and the file has nothing of.
local function check_targets(self, rows, known)
  local config, there, lacking = self.config, {}, {}
  for _, row in ipairs(rows) do there[row.name] = true end
  local listed = type(config.target_modules) == "table"
  if not listed or is_set(config.layers_to_transform) or is_set(config.exclude_modules) then return end
  for module in pairs(known) do
    if pattern.listed(config.target_modules, module) and not there[module] then lacking[#lacking + 1] = module end
  end
  for _, target in ipairs(config.target_modules) do
    local found = false
    for module in pairs(known) do found = found or pattern.listed({ target }, module) end
    if not found then lacking[#lacking + 1] = target end
  end
  if #lacking > 0 then
    fail.input(("%s: target_modules names modules without tensors in %s: %s"):format(self.path, WEIGHTS,
      list_of(lacking)))
  end
end

local function number_of(self, field, default, module)
  local value, strange = pattern.look_up(self.config[field], module)
  if strange then
    fail.input(("%s/%s: the key '%s' of %s is an expression that is not read; name the modules"):format(self.path,
      CONFIG, unicode.shown(strange), field))
  end
  return value or default
end

-- What the adapter is of a model: {rows (name, ours, weight, table, rank, alpha, parts), saved, kind, r, dropout}.
-- known: our weight by the name of its module; parameters: our parameter by its name there.
function peft.modules(self, known, parameters)
  local config = self.config
  local rows, saved = match(self, known, parameters)
  check_targets(self, rows, known)
  for _, row in ipairs(rows) do
    local rank = number_of(self, "rank_pattern", config.r, row.name)
    if rank ~= row.rank then
      fail.input(("%s: the rank of %s is %d in %s and %s in %s"):format(self.path, row.name, row.rank, WEIGHTS,
        tostring(rank), CONFIG))
    end
    row.alpha = number_of(self, "alpha_pattern", config.lora_alpha, row.name)
    -- DoRA with the scale of rsLoRA, alpha / sqrt(rank), is DoRA with another alpha.
    if config.use_dora and config.use_rslora then row.alpha = row.alpha * math.sqrt(rank) end
    if (row.parts.magnitude ~= nil) ~= (config.use_dora or false) then
      fail.input(("%s: %s has %s magnitude, and use_dora is %s"):format(self.path, row.name,
        row.parts.magnitude and "a" or "no", tostring(config.use_dora or false)))
    end
  end
  if #rows == 0 then fail.input(self.file .. " has no adapter of the model") end
  return { rows = rows, saved = saved, r = config.r, dropout = config.lora_dropout or 0,
           kind = config.use_dora and "dora" or config.use_rslora and "rslora" or "lora" }
end

return peft
