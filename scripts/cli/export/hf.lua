-- cairn export RUN OUT --to hf: a directory that Transformers reads.
local config = require "cli.export.config"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local hf_config = require "cli.model.hf_config"
local json = require "cli.base.json"
local posix = require "cli.base.posix"
local safetensors = require "cli.export.safetensors"

local hf = { words = "a directory that Transformers reads, with config.json" }

local MOST_CONFIG_BYTES = 2 ^ 24
local SHARD_BYTES = 5e9
local FLOATS = { f32 = true, bf16 = true, f16 = true }

-- Files of a tokenizer, in the directory that a run's weights came from, that go with the model.
hf.TOKENIZER = { "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
                 "tokenizer.model", "spiece.model", "vocab.json", "merges.txt", "vocab.txt", "chat_template.jinja",
                 "chat_template.json" }

-- merged: the weights are written as numbers, whatever the base was quantised as.
local function config_of(opened, root, options, merged)
  local found, problem = config.find(opened, root, options)
  if not found then
    fail.input(problem .. ", without which Transformers knows no model; --to safetensors writes the weights alone")
  end
  local object = merged and (type(found) == "string" and decode(found, json.raw("null")) or found)
  if not object or object.quantization_config == nil then return found end
  object.quantization_config = nil
  return object
end

-- The object in a file of the directory that the weights came from; nil: there is none.
local function object_in(directory, name)
  local text = directory and posix.read_file(directory .. "/" .. name, MOST_CONFIG_BYTES)
  local ok, object = pcall(decode, text or "")
  return ok and type(object) == "table" and object or nil
end

function hf.write(path, out, root, options)
  local model, given, merged, opened = safetensors.open(path, root, options)
  local from = opened.text("model.directory")
  local folder = fail.check("export", posix.temporary_directory(posix.temporary()))
  local made, files, told = {}, {}, nil
  local function add(name, text)
    made[#made + 1] = folder .. "/" .. name
    local ok, problem = posix.write_file(made[#made], text)
    if not ok then fail.with(5, problem) end
    files[#files + 1] = made[#made]
  end
  local ok, problem = pcall(function()
    local text, generation = hf_config.texts(config_of(opened, root, options, merged), object_in(from, "config.json"),
      options.dtype or "f32")
    add("config.json", text)
    if object_in(from, "generation_config.json") then
      files[#files + 1] = from .. "/generation_config.json"
    else
      add("generation_config.json", generation)
    end
    for _, name in ipairs(hf.TOKENIZER) do
      local file = from and from .. "/" .. name
      if file and posix.is_there(file) then files[#files + 1] = file end
    end
    local came = opened.text("model.dtype")
    given.dtype, given.frozen_dtype = options.dtype, options.dtype or FLOATS[came or ""] and came or nil
    given.directory, given.shard_bytes, given.files = true, options.shard_size or SHARD_BYTES, files
    told = fail.check("", model.session:export(out, model.names, given))
  end)
  for _, file in ipairs(made) do posix.remove_file(file) end
  posix.remove_empty_directory(folder)
  if not ok then error(problem, 0) end
  local rows, line = safetensors.told(merged, options, told)
  return { kind = "directory", opened = opened, tensors = safetensors.count(model.graph, model.names), rows = rows,
           line = line }
end

return hf
