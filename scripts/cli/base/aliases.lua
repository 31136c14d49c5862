-- What people call things elsewhere, and what they are called here: names of a recipe's options, or with -- of the
-- command's.
local aliases = {}

local NAMES = {
  rate = "lr learning_rate base_lr max_lr step_size_lr",
  minimum_rate = "min_lr minimum_lr lr_min end_lr",
  warmup = "warmup_steps num_warmup_steps lr_warmup",
  schedule = "lr_schedule lr_scheduler scheduler lr_scheduler_type decay",
  batch = "batch_size batchsize bs micro_batch micro_batch_size per_device_train_batch_size",
  global_batch = "global_batch_size total_batch_size",
  layers = "num_layers n_layer n_layers num_hidden_layers depth nlayers",
  heads = "num_heads n_head n_heads num_attention_heads nheads",
  kv_heads = "num_kv_heads n_kv_heads num_key_value_heads",
  width = "hidden_size n_embd d_model dim hidden_dim embed_dim embedding_size",
  hidden = "intermediate_size ffn_dim d_ff n_inner",
  seq = "seq_len seq_length sequence_length block_size context context_length max_seq_len n_ctx ctx",
  vocab = "vocab_size n_vocab vocabulary",
  weight_decay = "wd decay_weight",
  clip = "grad_clip clip_grad clip_norm max_grad_norm gradient_clipping",
  optimizer = "optim opt",
  momentum = "mu",
  beta1 = "b1 adam_beta1",
  beta2 = "b2 adam_beta2",
  data = "dataset train_data train_file input corpus text",
  eval_data = "validation_file val_data valid_data eval_file",
  tokens = "tokenizer",
  dropout = "drop p_drop dropout_rate",
  ["--steps"] = "max_steps num_steps n_steps iterations iters max_iters train_steps total_steps",
  ["--epochs"] = "epoch num_epochs n_epochs num_train_epochs max_epochs",
  ["--out"] = "output output_dir out_dir save_dir outdir run_dir checkpoint_dir",
  ["--accumulate"] = "accumulation grad_accum gradient_accumulation gradient_accumulation_steps accumulation_steps",
  ["--seed"] = "random_seed manual_seed",
  ["--threads"] = "num_threads n_threads workers num_workers jobs",
  ["--save-every"] = "save_steps save_interval checkpoint_every",
  ["--eval-every"] = "eval_steps eval_interval evaluate_every val_interval",
  ["--log-every"] = "logging_steps log_interval log_steps",
  ["--keep"] = "save_total_limit keep_last",
  ["--amp"] = "precision mixed_precision bf16 fp16 dtype",
  ["--budget"] = "memory memory_limit max_memory mem memory_budget",
  ["--resume"] = "resume_from resume_from_checkpoint load",
  ["--init"] = "weights pretrained init_from",
  ["--tiers"] = "offload tier",
  ["--prompt"] = "text_prompt start",
  ["--tokens"] = "max_tokens max_new_tokens num_tokens n_predict length",
  ["--temperature"] = "temp",
  ["--top-k"] = "top_k topk",
}

local BY_ALIAS = {}
for name, words in pairs(NAMES) do
  for word in words:gmatch("%S+") do
    BY_ALIAS[word] = BY_ALIAS[word] or {}
    table.insert(BY_ALIAS[word], name)
  end
end
-- A recipe's before the command's.
for _, list in pairs(BY_ALIAS) do table.sort(list, function(a, b) return a > b end) end

-- Names of options that recipes have, as far as they are known before one is loaded.
aliases.SETTINGS = {}
for name in pairs(NAMES) do
  if name:sub(1, 2) ~= "--" then aliases.SETTINGS[name] = true end
end

-- Whether the name of an option, in any of its spellings, is this: lr, --lr, learning-rate.
local function plain(name) return (name:lower():gsub("^%-+", ""):gsub("-", "_")) end

-- What somebody means who gives `name`, with `text` as its value: as it is typed here; nil: nothing is known of it.
-- is_setting(name), option(name): whether there is such an option of the recipe, and its row of the command's (whose
-- flags take no value).
function aliases.typed(name, text, is_setting, option)
  local function setting(of) return ("%s=%s"):format(of, text ~= nil and text or "...") end
  local function flag(of, row)
    return "--" .. of .. (row.flag and "" or " " .. (text ~= nil and text or "..."))
  end
  local same = plain(name)
  if name:sub(1, 1) ~= "-" then
    local row = option(same:gsub("_", "-"))
    if row then return flag(same:gsub("_", "-"), row) end
  elseif is_setting(same) then
    return setting(same)
  end
  for _, known in ipairs(BY_ALIAS[same] or {}) do
    local of = known:match("^%-%-(.*)$")
    local row = of and option(of)
    if row then return flag(of, row) end
    if not of and is_setting(known) then return setting(known) end
  end
end

return aliases
