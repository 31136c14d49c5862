-- cairn convert DIR|FILE.gguf OUT.gguf
local args = require "cli.base.args"
local directory = require "cli.model.directory"
local fail = require "cli.base.fail"
local forward = require "cli.model.forward"
local json = require "cli.base.json"
local recipes = require "cli.recipe.load"
local unicode = require "cli.base.unicode"
local writer = require "cli.model.gguf_writer"

local USAGE = "cairn convert DIR|FILE.gguf OUT.gguf [--format q8_0|q4_0|bf16|f16|f32]"

local KNOWN = args.known("device threads json quiet", {
  format = { args.choice("q8_0", "q4_0", "bf16", "f16", "f32"), "what matrices are written as (default bf16); " ..
    "vectors, norms, routers and positions are f32" },
  ["no-tokenizer"] = { args.FLAG, "write the model without its tokenizer and chat templates" },
})

return function(arguments, root)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  if #words ~= 2 or #settings > 0 then fail.usage("a model and where to write are needed; usage: " .. USAGE) end
  local from, out = words[1], words[2]
  if not directory.is(from) then
    fail.input(("%s is no model's directory and no GGUF file; a run is written by cairn export RUN OUT --to gguf")
      :format(unicode.shown(from)))
  end
  local function note(message)
    if not options.quiet then io.stderr:write(message, "\n") end
  end
  local recipe = recipes.load(from, root)
  local o = recipes.resolve(recipe, { { "seq", "1" } }, nil, false)
  local model = forward.open(recipe, o, options, 1, note)
  local source, dtype = recipe.directory, options.format or "bf16"
  local metadata, rows = writer.model { note = note,
    text = source.text, where = source.name, source = not options.no_tokenizer and source or nil, dtype = dtype,
    name = source.path:match("([^/]+)$"):gsub("%.gguf$", ""), parameters = model.graph:parameters(),
    names = recipe.names and recipe.call("names", o) or {} }
  fail.check("convert", model.session:export(out, rows, { dtype = dtype, gguf = metadata }))
  if options.json then
    io.stdout:write(json.encode(json.object { { "file", out }, { "format", dtype }, { "tensors", #rows } }), "\n")
  else
    note(("%d tensors of %s in %s"):format(#rows, unicode.shown(from), unicode.shown(out)))
  end
  return 0
end
