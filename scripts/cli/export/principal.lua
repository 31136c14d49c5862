-- PiSSA's adapters as plain ones of the base as it was: the run has W - s B0 A0 as its base, so that it computes
-- W + s (B A - B0 A0), an adapter of twice the rank. B0 and A0 follow from W, and are computed anew.
local base = require "cli.checkpoint.base"
local cairn = require "cairn"
local fail = require "cli.base.fail"
local runs = require "cli.train.run"
local store = require "cli.export.store"

local principal = {}

-- Two tables of numbers as the rows of one matrix, or side by side: [rows, width] each.
local function below(first, second)
  local list = {}
  for i = 1, #first do list[i] = first[i] end
  for i = 1, #second do list[#first + i] = second[i] end
  return list
end
local function beside(first, second, width, sign)
  local list, rows = {}, #first / width
  for row = 0, rows - 1 do
    for i = 1, width do
      list[row * 2 * width + i] = first[row * width + i]
      list[(row * 2 + 1) * width + i] = sign * second[row * width + i]
    end
  end
  return list
end

-- {session, graph} as store.open returns them, of what is trained. Doubles rank and alpha in `a` (cli.adapter.of_run).
function principal.open(opened, a, options)
  if not base.of(opened) then
    fail.input(("%s holds the base without what its adapters began with, and does not name the base as it was: " ..
      "--to hf --merge base writes the model"):format(opened.directory))
  end
  local began, parts = {}, {}
  for _, row in ipairs(a.modules) do parts[row.a], parts[row.b] = row, row end
  local held = store.open(opened, a.graph, nil, options, nil, false, function(session)
    for name in pairs(parts) do began[name] = fail.check("export", session:read(name)) end
  end)
  local graph = fail.check("graph", cairn.graph())
  local one = graph:input("row1", { 1 }, "f32")
  for _, info in ipairs(a.graph:parameters()) do
    local row, shape = parts[info.name], { unpack(info.shape) }
    local along = row and ((info.name == row.a) ~= (row.kind == "embedding")) and #shape - 1 or #shape
    if row then shape[along] = 2 * shape[along] end
    if not info.frozen then graph:parameter(info.name, shape, { dtype = info.dtype }) end
  end
  graph = fail.check("graph", graph:freeze { outputs = { graph:op("add", one, one) } })
  local plan = fail.plan("plan", cairn.plan(graph, runs.device(options), { no_optimizer = true }))
  local session = fail.check("session", cairn.session(plan))
  for _, info in ipairs(graph:parameters()) do
    local now, row = fail.check("export", held.session:read(info.name)), parts[info.name]
    if row and info.name == row.a and row.kind ~= "embedding" then
      now = below(now, began[info.name])
    elseif row then
      now = beside(now, began[info.name], a.graph:info(info.name).shape[2], info.name == row.b and -1 or 1)
    end
    fail.check("export", session:write(info.name, now))
  end
  held.session:free()
  for _, row in ipairs(a.modules) do row.rank, row.alpha = 2 * row.rank, 2 * row.alpha end
  a.r, a.alpha = 2 * a.r, 2 * a.alpha
  return { session = session, graph = graph }
end

return principal
