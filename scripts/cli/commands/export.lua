-- cairn export RUN OUT
local args = require "cli.base.args"
local decode = require "cli.base.json_decode"
local checkpoints = require "cli.checkpoint.checkpoints"
local fail = require "cli.base.fail"
local hf_config = require "cli.model.hf_config"
local json = require "cli.base.json"
local models = require "cli.checkpoint.model"
local posix = require "cli.base.posix"
local unicode = require "cli.base.unicode"

local USAGE = "cairn export RUN OUT [--to safetensors|hf]"
local MOST_CONFIG_BYTES = 2 ^ 24
local SHARD_BYTES = 5e9

-- 5GB, as Transformers writes it, or as sizes are written here.
local function shard_size(text, what)
  local number, power = text:match("^([%d%.]+)([KMG])B$")
  local bytes = tonumber(number or "")
  if not bytes then return args.bytes(text, what) end
  return math.max(1, math.floor(bytes * 1000 ^ (("KMG"):find(power))))
end

local KNOWN = args.known("device threads json quiet", models.OPTIONS)
KNOWN.to = { args.choice("safetensors", "hf"), "safetensors: one file (default); hf: a directory that Transformers " ..
  "reads, with config.json" }
KNOWN.dtype = { args.choice("f32", "bf16", "f16"), "type that is written (default: as the weights are stored; with " ..
  "--to hf, parameters that were not trained have the type that they came in)" }
KNOWN["shard-size"] = { shard_size, "with --to hf: the most bytes of one file (KB, MB, GB, KiB, MiB, GiB; default " ..
  "5GB)", "BYTES" }

-- What files of these names are taken for: what is written here is none of that.
local OTHERS = {}
for name in ("gguf ggml bin pt pth ckpt pkl pickle npz npy h5 hdf5 onnx zip tar gz json msgpack pb tflite mlmodel")
    :gmatch("%S+") do OTHERS[name] = true end

local function check_name(path)
  local ending = path:match("%.([%w_]+)$")
  if not ending or not OTHERS[ending:lower()] then return end
  fail.usage(("%s: safetensors is what is written, which nobody looks for in a .%s file; give a name that ends in " ..
    ".safetensors, and let the other program make its form of that"):format(path, ending))
end

-- Files of a tokenizer, in the directory that a run's weights came from, that go with the model.
local TOKENIZER = { "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
                    "tokenizer.model", "spiece.model", "vocab.json", "merges.txt", "vocab.txt", "chat_template.jinja",
                    "chat_template.json" }

-- What a recipe says of its model in the terms of Transformers; the checkpoint's own words, where it has some.
local function config_of(opened, root, options)
  local text = opened.text("hf_config")
  if text then return text end
  local recipe = checkpoints.recipe(opened, root, options.recipe, options.recipe_changed, function(message)
    if not options.quiet then io.stderr:write(message, "\n") end
  end)
  if not recipe.hf_config then
    fail.input(("%s: its recipe says nothing of a config.json (no `hf_config`), without which Transformers knows no " ..
      "model; --to safetensors writes the weights alone"):format(opened.directory))
  end
  return recipe.call("hf_config", checkpoints.options(opened, recipe))
end

-- The object in a file of the directory that the weights came from; nil: there is none.
local function object_in(directory, name)
  local text = directory and posix.read_file(directory .. "/" .. name, MOST_CONFIG_BYTES)
  local ok, object = pcall(decode, text or "")
  return ok and type(object) == "table" and object or nil
end

local function export_directory(model, out, root, options)
  local opened = model.opened
  local from = opened.text("model.directory")
  local folder = fail.check("export", posix.temporary_directory(posix.temporary()))
  local made, files = {}, {}
  local function add(name, text)
    made[#made + 1] = folder .. "/" .. name
    local ok, problem = posix.write_file(made[#made], text)
    if not ok then fail.with(5, problem) end
    files[#files + 1] = made[#made]
  end
  local ok, problem = pcall(function()
    local config, generation = hf_config.texts(config_of(opened, root, options), object_in(from, "config.json"),
      options.dtype or "f32")
    add("config.json", config)
    if object_in(from, "generation_config.json") then
      files[#files + 1] = from .. "/generation_config.json"
    else
      add("generation_config.json", generation)
    end
    for _, name in ipairs(TOKENIZER) do
      local path = from and from .. "/" .. name
      if path and posix.is_there(path) then files[#files + 1] = path end
    end
    fail.check("", model.session:export(out, model.names, {
      dtype = options.dtype, frozen_dtype = options.dtype or opened.text("model.dtype"), directory = true,
      shard_bytes = options.shard_size or SHARD_BYTES, files = files }))
  end)
  for _, path in ipairs(made) do posix.remove_file(path) end
  posix.remove_empty_directory(folder)
  if not ok then error(problem, 0) end
end

return function(arguments, root)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  if #words ~= 2 or #settings > 0 then fail.usage("a run and where to write are needed; usage: " .. USAGE) end
  local directory = options.to == "hf"
  if options.shard_size and not directory then fail.usage("--shard-size goes with --to hf") end
  if not directory then check_name(words[2]) end
  local model = models.open(words[1], root, options, false)
  if directory then
    export_directory(model, words[2], root, options)
  else
    fail.check("", model.session:export(words[2], model.names, options.dtype and { dtype = options.dtype }))
  end
  local count, from, named = #model.graph:parameters(), model.opened.directory, {}
  for _, row in ipairs(model.names or {}) do  -- a parameter may be several tensors
    if named[row[1]] then count = count + 1 end
    named[row[1]] = true
  end
  if options.json then
    local rows = { { directory and "directory" or "file", words[2] }, { "checkpoint", from }, { "tensors", count } }
    io.stdout:write(json.encode(json.object(rows)), "\n")
  elseif not options.quiet then
    io.stderr:write(("%d tensors of %s in %s\n"):format(count, from, unicode.shown(words[2])))
  end
  return 0
end
