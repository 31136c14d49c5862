-- cairn export RUN OUT
local args = require "cli.base.args"
local fail = require "cli.base.fail"
local json = require "cli.base.json"
local models = require "cli.checkpoint.model"
local unicode = require "cli.base.unicode"

-- What there is to write: each {words, write(run, out, root, options) -> {kind ("file" or "directory"), opened,
-- tensors, rows (more fields of --json, optional), line (more words, optional)}}.
local TARGETS = { safetensors = require "cli.export.safetensors", hf = require "cli.export.hf",
                  adapter = require "cli.export.adapter", gguf = require "cli.export.gguf",
                  ["gguf-adapter"] = require "cli.export.gguf_adapter" }
local ORDER = { "safetensors", "hf", "adapter", "gguf", "gguf-adapter" }
local MERGES = { safetensors = true, hf = true, gguf = true }

local USAGE = ("cairn export RUN OUT [--to %s]"):format(table.concat(ORDER, "|"))

-- 5GB, as Transformers writes it, or as sizes are written here.
local function shard_size(text, what)
  local number, power = text:match("^([%d%.]+)([KMG])B$")
  local bytes = tonumber(number or "")
  if not bytes then return args.bytes(text, what) end
  return math.max(1, math.floor(bytes * 1000 ^ (("KMG"):find(power))))
end

local function words_of_targets()
  local words = {}
  for i, name in ipairs(ORDER) do words[i] = ("%s: %s"):format(name, TARGETS[name].words) end
  return table.concat(words, "; ")
end

local KNOWN = args.known("device threads json quiet", models.OPTIONS)
KNOWN.to = { args.choice(unpack(ORDER)), words_of_targets() }
KNOWN.dtype = { args.choice("f32", "bf16", "f16", "q8_0", "q4_0"), "type that is written (default: as the weights " ..
  "are stored; with --to hf, parameters that were not trained have the type that they came in; q8_0, q4_0: of the " ..
  "matrices of a GGUF file)" }
KNOWN["shard-size"] = { shard_size, "with --to hf: the most bytes of one file (KB, MB, GB, KiB, MiB, GiB; default " ..
  "5GB)", "BYTES" }
KNOWN.merge = { args.choice("base", "dequantised"), "of a run with adapters: add them to the base's own weights, or " ..
  "to the numbers that the format they were trained in makes of these" }

return function(arguments, root)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  if #words ~= 2 or #settings > 0 then fail.usage("a run and where to write are needed; usage: " .. USAGE) end
  if options.recipe_changed and not options.recipe then fail.usage("--recipe-changed goes with --recipe FILE") end
  local name = options.to or "safetensors"
  if options.shard_size and name ~= "hf" then fail.usage("--shard-size goes with --to hf") end
  if options.merge and not MERGES[name] then fail.usage("--merge goes with --to hf, safetensors and gguf") end
  if name ~= "gguf" and (options.dtype or ""):find("^q") then
    fail.usage(("--dtype %s goes with --to gguf"):format(options.dtype))
  end
  local made = TARGETS[name].write(words[1], words[2], root, options)
  local from = made.opened.directory
  if options.json then
    local rows = { { made.kind, words[2] }, { "checkpoint", from }, { "tensors", made.tensors } }
    for _, row in ipairs(made.rows or {}) do rows[#rows + 1] = row end
    io.stdout:write(json.encode(json.object(rows)), "\n")
  elseif not options.quiet then
    io.stderr:write(("%d tensors of %s in %s\n"):format(made.tensors, from, unicode.shown(words[2])))
    if made.line then io.stderr:write(made.line, "\n") end
  end
  return 0
end
