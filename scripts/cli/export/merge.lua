-- --merge: adapters added to the weights that they were trained with, W + s B A.
--   base          to those of the base in full, as its files have them
--   dequantised   to what the run had: numbers of the format that they were stored in
local base = require "cli.checkpoint.base"
local cairn = require "cairn"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local of_run = require "cli.adapter.of_run"
local parameters = require "cli.recipe.parameters"
local store = require "cli.export.store"
local weights = require "cli.recipe.weights"

local merge = {}

merge.WORDS = {
  base = "adapters are added to the base's own weights, as its files have them",
  dequantised = "adapters are added to the weights that they were trained with, as their format has rounded them",
}

-- Ends the command where a run has adapters and nobody said how they are to be written.
function merge.check(opened, options)
  local has = opened.text("adapter") ~= nil
  if has and not options.merge then
    fail.usage(("%s has adapters: --merge base (%s) or --merge dequantised (%s); --to adapter writes them alone")
      :format(opened.directory, merge.WORDS.base, merge.WORDS.dequantised))
  end
  if options.merge and not has then
    fail.usage(("--merge: %s has no adapters, and is written as it is"):format(opened.directory))
  end
  return has
end

-- What frozen parameters were stored as in the run, where that has rounded them: names of formats by parameter.
local function formats_of(opened)
  local read = decode(fail.check(opened.directory, cairn.inspect(opened.directory)))
  local rounds, list = {}, {}
  for _, row in ipairs(cairn.formats()) do rounds[row.name] = not row.trains end
  for _, rows in ipairs { read.tensors, read.base and read.base.tensors or {} } do
    for name, tensor in pairs(rows) do
      if rounds[tensor.dtype] then list[name] = tensor.dtype end
    end
  end
  return list
end

-- Rules for the parameters that the base's own files have in the run's formats, which are taken out of `formats`: what
-- the files have is all that there is, and its bytes are those that the run had.
local function of_files(opened, options, graph, names, formats)
  local rules = {}
  if not base.of(opened) then return rules end
  local there = weights.formats(graph, names, base.path(opened, options.base))
  for name, format in pairs(formats) do
    if there[name] == format then
      rules[#rules + 1], formats[name] = { pattern = name, format = format }, nil
    end
  end
  return rules
end

-- {session, graph, names (rows for Session:export, without what adapters are made of), merges, dequantise, rounded (a
-- format has rounded weights that the base has in full)}.
function merge.open(opened, options)
  local a = of_run.read(opened)
  local formats, parts, merges, seen = formats_of(opened), {}, {}, {}
  local stored = next(formats) ~= nil and not base.of(opened)
  if stored and options.merge == "base" then
    fail.input(("%s holds its base as %s, and not in full: --merge dequantised is what there is of it"):format(
      opened.directory, select(2, next(formats))))
  end
  local rules = stored and parameters.of(opened) or of_files(opened, options, a.graph, a.names, formats)
  for _, row in ipairs(a.modules) do
    for _, key in ipairs { "a", "b", "magnitude" } do
      if row[key] then parts[row[key]] = true end
    end
    seen[row.weight] = true
    merges[#merges + 1] = { weight = row.weight, a = row.a, b = row.b, magnitude = row.magnitude, scale = row.scale,
                            table = row.kind == "embedding", format = not stored and formats[row.weight] or nil }
  end
  for name, format in pairs(stored and {} or formats) do
    if not seen[name] then merges[#merges + 1] = { weight = name, format = format } end
  end
  local function keeps(info) return not info.name:find("%.lora_weight_norms$") end
  local held = store.open(opened, a.graph, not a.pissa and keeps or nil, options,
    #rules > 0 and rules or nil, true)
  local rows = {}
  for _, row in ipairs(a.names) do rows[#rows + 1] = row end
  for _, info in ipairs(held.graph:parameters()) do
    if parts[info.name] or not keeps(info) then rows[#rows + 1] = { ours = info.name } end
  end
  return { session = held.session, names = rows, merges = merges, rounded = not stored and next(formats) ~= nil,
           dequantise = options.merge == "dequantised", graph = held.graph }
end

return merge
