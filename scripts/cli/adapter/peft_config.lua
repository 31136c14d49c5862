-- adapter_config.json of PEFT, written.
local json = require "cli.base.json"
local names = require "cli.adapter.names"

local peft_config = {}

local NULL = json.raw("null")
local VERSION = "0.21.2"  -- of PEFT, whose fields these are

-- By what the name of the model's class ends with. with_head: PEFT then wants the head in the file, trained or not.
local TASKS = { { "ForSequenceClassification$", "SEQ_CLS", with_head = true },
                { "ForTokenClassification$", "TOKEN_CLS", with_head = true },
                { "ForConditionalGeneration$", "SEQ_2_SEQ_LM" }, { "ForCausalLM$", "CAUSAL_LM" },
                { "LMHeadModel$", "CAUSAL_LM" } }

-- saved: modules that are in the file as they are.
local function task_of(config, saved)
  local class = type(config.architectures) == "table" and config.architectures[1] or ""
  for _, row in ipairs(TASKS) do
    if class:find(row[1]) then return (#saved > 0 or not row.with_head) and row[2] or NULL end
  end
  return NULL
end

-- What models call the table of tokens, which a tied head is, too.
local TABLES = { embed_tokens = true, wte = true, word_embeddings = true, tok_embeddings = true, shared = true }

local function last_of(name) return name:match("[^%.]+$") end

-- Modules by their last words, where these mean no other matrix of the model; else by all of their names.
-- theirs(parameter): its name in the model of Transformers.
function peft_config.short(modules, graph, theirs)
  local chosen, count, ends, list = {}, {}, {}, {}
  for _, name in ipairs(modules) do
    chosen[name] = true
    count[last_of(name)] = (count[last_of(name)] or 0) + 1
  end
  for _, info in ipairs(graph:parameters()) do
    local module = names.module(theirs(info.name))
    if info.frozen and #info.shape > 1 and not chosen[module] then count[last_of(module)] = nil end
  end
  for _, name in ipairs(modules) do
    local short = count[last_of(name)] and last_of(name) or name
    if not ends[short] then list[#list + 1], ends[short] = short, true end
  end
  table.sort(list)
  return list
end

-- What a pattern of PEFT's takes as it is.
local function literal(name) return (name:gsub("%.", "\\.")) end

-- The text. a: see cli.adapter.of_run; modules: rows {name, rank, alpha}; saved: names of modules that are trained as
-- they are; about: {config (the model's), base, transposed (files have matrices as [in, out]), tied (the head is the
-- token table)}.
function peft_config.text(a, modules, saved, graph, theirs, about)
  local all, ranks, alphas = {}, {}, {}
  for i, row in ipairs(modules) do
    all[i] = row.name
    if row.rank ~= a.r then ranks[#ranks + 1] = { literal(row.name), row.rank } end
    if row.alpha ~= a.alpha then alphas[#alphas + 1] = { literal(row.name), row.alpha } end
  end
  local tied = false
  for _, name in ipairs(saved) do tied = tied or about.tied and TABLES[last_of(name)] or false end
  local rows = {
    { "peft_type", "LORA" }, { "auto_mapping", NULL }, { "peft_version", VERSION },
    { "base_model_name_or_path", about.base or "" }, { "revision", NULL },
    { "task_type", task_of(about.config, saved) }, { "inference_mode", true }, { "r", a.r },
    { "target_modules", json.array(peft_config.short(all, graph, theirs)) }, { "exclude_modules", NULL },
    { "lora_alpha", a.alpha }, { "lora_dropout", a.dropout or 0 }, { "fan_in_fan_out", about.transposed },
    { "bias", "none" }, { "use_rslora", a.rslora and true or false },
    { "modules_to_save", #saved > 0 and json.array(saved) or NULL }, { "init_lora_weights", true },
    { "layers_to_transform", NULL }, { "layers_pattern", NULL }, { "rank_pattern", json.object(ranks) },
    { "alpha_pattern", json.object(alphas) }, { "use_dora", a.dora and true or false },
    { "trainable_token_indices", NULL }, { "target_parameters", NULL }, { "lora_bias", false },
    { "ensure_weight_tying", tied },
  }
  return json.pretty(json.encode(json.object(rows))) .. "\n"
end

return peft_config
