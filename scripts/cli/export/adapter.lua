-- cairn export RUN OUT --to adapter: the directory of an adapter, as PEFT reads it.
local base = require "cli.checkpoint.base"
local checkpoints = require "cli.checkpoint.checkpoints"
local config = require "cli.export.config"
local fail = require "cli.base.fail"
local names = require "cli.adapter.names"
local of_run = require "cli.adapter.of_run"
local peft_config = require "cli.adapter.peft_config"
local principal = require "cli.export.principal"
local posix = require "cli.base.posix"
local store = require "cli.export.store"

local adapter = { words = "an adapter that PEFT reads: adapter_config.json and adapter_model.safetensors" }

local function transposed_of(row, theirs) return select(2, theirs(row.weight)) end

-- Rows for the export {ours, theirs, transposed}, and for the config: {name, rank, alpha} of modules, the modules that
-- are saved as they are, and whether files have matrices as [in, out].
local function rows_of(a, theirs)
  local rows, modules, saved, seen, transposed = {}, {}, {}, {}, nil
  for i, row in ipairs(a.modules) do
    local name = names.module((theirs(row.weight)))
    if row.kind == "experts" then
      fail.input(("the adapter of '%s' is one of experts, for which PEFT has no form that other programs read; --to " ..
        "hf --merge base|dequantised writes it into the model"):format(row.weight))
    end
    modules[i] = { name = name, rank = row.rank, alpha = row.alpha }
    if row.kind ~= "embedding" then transposed = transposed_of(row, theirs) end
    for _, part in ipairs(names.PARTS) do
      if row[part.part] and (part.table or false) == (row.kind == "embedding" and part.part ~= "magnitude") then
        rows[#rows + 1] = { ours = row[part.part], theirs = names.PREFIX .. name .. part.theirs,
                            transposed = part.transposed }
      end
    end
  end
  for _, ours in ipairs(a.saved) do
    local theirs_name, is_transposed = theirs(ours)
    local module = theirs_name:gsub("%.[^%.]+$", "")
    rows[#rows + 1] = { ours = ours, theirs = names.PREFIX .. theirs_name, transposed = is_transposed }
    if not seen[module] then
      saved[#saved + 1], seen[module] = module, true
    end
  end
  return rows, modules, saved, transposed or false
end

function adapter.write(path, out, root, options)
  local opened = checkpoints.open(path)
  local a = of_run.read(opened)
  if not a then
    fail.input(("%s has no adapters: it was trained without lora=; --to hf or --to safetensors writes its weights")
      :format(opened.directory))
  end
  local object = config.object(opened, root, options)
  local theirs = names.of_model(a.names, object.model_type)
  local held = a.pissa and principal.open(opened, a, options)
    or store.open(opened, a.graph, function(info) return not info.frozen end, options)
  local rows, modules, saved, transposed = rows_of(a, theirs)
  local known = {}
  for _, row in ipairs(rows) do known[row.ours] = true end
  for _, info in ipairs(held.graph:parameters()) do
    if not known[info.name] then rows[#rows + 1] = { ours = info.name } end
  end
  -- What PiSSA's run has as its base is not what the file goes with.
  local digest = not a.pissa and base.of(opened) or nil
  local stored = names.stored_as(opened.option("parameters"), opened.text("base.formats"))
  local text = peft_config.text(a, modules, saved, a.graph, theirs,
    { config = object, base = opened.text("base.path"), transposed = transposed,
      tied = object.tie_word_embeddings == true })
  local folder = fail.check("export", posix.temporary_directory(posix.temporary()))
  local file = folder .. "/adapter_config.json"
  local ok, problem = pcall(function()
    local written, reason = posix.write_file(file, text)
    if not written then fail.with(5, reason) end
    fail.check("", held.session:export(out, rows, { dtype = options.dtype, directory = true,
      file_name = "adapter_model.safetensors", files = { file },
      metadata = { base_digest = digest and digest.digest or nil,
                   base_formats = digest and stored ~= "" and stored or nil } }))
  end)
  posix.remove_file(file)
  posix.remove_empty_directory(folder)
  if not ok then error(problem, 0) end
  local count = 0
  for _, row in ipairs(rows) do count = count + (row.theirs and 1 or 0) end
  return { tensors = count, kind = "directory", opened = opened }
end

return adapter
