-- cairn export RUN FILE --to gguf: a file of llama.cpp, with tokenizer and template where the weights' origin has them.
local config = require "cli.export.config"
local decode = require "cli.base.json_decode"
local directory = require "cli.model.directory"
local fail = require "cli.base.fail"
local hf_config = require "cli.model.hf_config"
local posix = require "cli.base.posix"
local safetensors = require "cli.export.safetensors"
local writer = require "cli.model.gguf_writer"

local gguf = { words = "a file that llama.cpp reads" }

-- What cli.model.gguf_writer is told of a run. names: rows of its parameters; parameters: of the graph.
function gguf.about(opened, root, options, names, parameters)
  local found, problem = config.find(opened, root, options)
  if not found then fail.input(problem .. ", without which no GGUF file can be written") end
  local from = opened.text("model.directory")
  local source = from and directory.is(from) and directory.open(from) or nil
  return {
    note = function(message)
      if not options.quiet then io.stderr:write(message, "\n") end
    end,
    text = hf_config.texts(found, source and decode(source.text), "f32"), where = opened.directory, source = source,
    dtype = options.dtype, names = names, name = posix.real_path(opened.directory):match("([^/]+)/[^/]+$"),
    parameters = parameters,
  }
end

-- Tensors that rows of names write.
function gguf.count(rows)
  local count = 0
  for _, row in ipairs(rows) do count = count + (row.theirs and 1 or 0) end
  return count
end

function gguf.write(path, out, root, options)
  local model, given, merged, opened = safetensors.open(path, root, options)
  local left, list = {}, {}  -- without what adapters consist of
  for _, row in ipairs(model.names or {}) do
    local ours = row.ours or row[1]
    if not (row.theirs or row[2]) then left[#left + 1], left[ours] = { ours = ours }, true end
  end
  for _, info in ipairs(model.graph:parameters()) do
    if not left[info.name] then list[#list + 1] = info end
  end
  local metadata, rows = writer.model(gguf.about(opened, root, options, model.names, list))
  for _, row in ipairs(left) do rows[#rows + 1] = row end
  given.dtype, given.gguf = options.dtype, metadata
  local told = fail.check("", model.session:export(out, rows, given))
  local more, line = safetensors.told(merged, options, told)
  return { kind = "file", opened = opened, tensors = gguf.count(rows), rows = more, line = line }
end

return gguf
