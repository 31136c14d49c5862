-- What a run's first weights say of each row of its data, computed once, before the first step: a forward program (the
-- recipe's `prepared`, without adapters) runs over all rows, and what it says becomes a part of the data. A run's
-- directory keeps it, for weights move; a run that goes on reads it there.
local changed = require "cli.base.changed"
local decode = require "cli.base.json_decode"
local effective = require "cli.train.effective"
local fail = require "cli.base.fail"
local json = require "cli.base.json"
local posix = require "cli.base.posix"

local prepared = {}

local FILE, MOST_BYTES = "prepared.json", 2 ^ 30

-- The row of the program among those of a run; nil: these options ask for none.
function prepared.row(recipe, o)
  if not (recipe.prepares and recipe.call("prepares", o)) then return nil end
  return { name = "prepared", kind = "prepared", o = changed(o, { lora = o.lora and 0, dropout = o.dropout and 0 }) }
end

-- first: the graph that trains.
function prepared.graph(recipe, o, first) return effective.forward_graph(recipe, "prepared", o, first) end

local function each(run)
  local list = {}
  for _, name in ipairs { "data", "evaluation" } do
    local data = run[name] and run[name].prepared
    if data then list[#list + 1] = { name = name, data = data } end
  end
  return list
end

-- What the directory knows of these data; false: nothing, or of others.
local function taken(data, known)
  local values = type(known) == "table" and known.key == data.key and known.values
  if type(values) ~= "table" or #values ~= data.count then return false end
  for i, value in ipairs(values) do
    if type(value) ~= "number" then return false end
    data.values[i] = value
  end
  return true
end

local function read(directory)
  local text = directory and posix.read_file(directory .. "/" .. FILE, MOST_BYTES)
  local ok, known = pcall(decode, text or "{}")
  return ok and type(known) == "table" and known or {}
end

-- Runs the program over all rows. Returns false if it was stopped.
local function compute(run, data, stop)
  local program = run.programs.prepared
  for index = 0, data.batches - 1 do
    if stop and stop() then return false end
    for name, array in pairs(run.recipe.guard(data.batch, index)) do
      fail.check("reference", program.session:write(name, array))
    end
    local ran, err = program.session:run()
    if not ran and err.status == "CANCELLED" then return false end
    fail.check("reference", ran, err)
    local outputs = {}
    for name, value in pairs(program.plan.graph.sums) do
      outputs[name] = fail.check("reference", program.session:read(value))
    end
    data.take(index, outputs)
    program.micro_batches = program.micro_batches + 1
  end
  return true
end

-- Fills in what the data need. from: the directory of the run that this one goes on from, or nil: it begins; first: the
-- step; out: where it is kept (optional). Returns false if it was stopped.
function prepared.run(run, from, first, out, note, stop)
  local list, known, kept = each(run), read(from), {}
  if #list == 0 then return true end
  for _, row in ipairs(list) do
    local data = row.data
    if not taken(data, known[row.name]) then
      if first > 0 and (run.o.lora or 0) == 0 then
        fail.input(("--resume: %s has no %s of these data, which came from the weights that training began with")
          :format(from or "the run's directory", FILE))
      end
      note(("reference: %d rows of %s by the model as it is without training"):format(data.count, row.name))
      if not compute(run, data, stop) then return false end
    end
    kept[#kept + 1] = { row.name, json.object { { "key", data.key }, { "values", json.array(data.values) } } }
  end
  if out then
    local ok, problem = posix.write_file(out .. "/" .. FILE, json.encode(json.object(kept)) .. "\n")
    if not ok then fail.with(5, problem) end
  end
  return true
end

return prepared
