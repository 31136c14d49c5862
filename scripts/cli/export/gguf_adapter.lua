-- cairn export RUN FILE --to gguf-adapter: an adapter that llama.cpp loads beside the model's own file.
local checkpoints = require "cli.checkpoint.checkpoints"
local fail = require "cli.base.fail"
local gguf = require "cli.export.gguf"
local of_run = require "cli.adapter.of_run"
local store = require "cli.export.store"
local writer = require "cli.model.gguf_writer"

local adapter = { words = "an adapter that llama.cpp reads" }

function adapter.write(path, out, root, options)
  local opened = checkpoints.open(path)
  local a = of_run.read(opened)
  if not a then fail.input(opened.directory .. " has no adapter: it was not trained with lora=") end
  if a.pissa then
    fail.input(("%s: PiSSA's adapters go with a base that is not the file's: --to gguf --merge base writes the model")
      :format(opened.directory))
  end
  local held = store.open(opened, a.graph, function(info) return not info.frozen end, options)
  local about = gguf.about(opened, root, options, a.names, held.graph:parameters())
  about.modules = a.modules
  local metadata, rows = writer.adapter(about)
  fail.check("", held.session:export(out, rows, { dtype = options.dtype or "f32", gguf = metadata }))
  return { kind = "file", opened = opened, tensors = gguf.count(rows) }
end

return adapter
