-- The auxiliary loss that keeps experts in equal use: coefficient * E * sum over experts of f_e p_e, where f_e is how
-- often a row chose expert e and p_e its mean probability, over all rows of an effective batch and all layers with
-- experts (load_balancing_loss_func of Transformers). Rows without a target count for nothing. f has no gradient and is
-- of the complete step, so that it is summed first (cli.train.effective); then the loss is linear in the rows.
local ffi = require "ffi"
local changed = require "cli.base.changed"

local balance = {}

local IGNORED = -100  -- a target that does not count

local function rows_of(graph, shape)
  local counted = graph:input("counted", { shape.batch, shape.seq }, "f32")
  return counted, (graph:op("reshape", counted, { shape = { shape.batch * shape.seq, 1 } }))
end

local function plus(sum, own) return sum and sum + own or own end

-- How often a layer's experts are chosen. A row of zeros, which one without a target is here, chooses the first ones.
local function choices_of(a, graph, logits, counts)
  local _, chosen = graph:op("route", logits * counts, { k = a.experts.chosen, normalise = 0 })
  return (graph:op("count_choices", chosen, { experts = a.experts.count }))
end

local function layers_of(a)
  local layers = 0
  for i = 1, a.layers do layers = layers + (a.experts.layers[i] and 1 or 0) end
  return layers
end

-- The input `balance` of a step that is this micro-batch alone, from the choices in all layers.
local function own_values(a, graph, choices, counted, rows)
  local e, layers = a.experts, layers_of(a)
  local function cut(begin, end_) return (graph:op("slice", choices, { axis = 0, begin = begin, ["end"] = end_ })) end
  local count = graph:op("reduce_sum", counted)
  local without = graph:op("reduce_sum", (graph:op("equal", counted, counted * 0)))
  local first = cut(0, e.chosen) - without * layers
  local all = e.chosen < e.count and graph:concat({ first, cut(e.chosen, e.count) }, 0) or first
  return graph:op("div", all * (a.balance * e.count / layers ^ 2), (graph:op("clamp", count, { min = 1, max = rows })))
end

-- What a training graph is built with, and add(loss): the loss with the auxiliary one. alone: the step has no other
-- micro-batch, so that its choices are counted in the graph itself.
function balance.training(a, graph, shape, alone)
  local sum, choices
  local counted, counts = rows_of(graph, shape)
  local function look(logits)
    sum = plus(sum, (graph:op("reduce_sum", (graph:op("softmax", logits)) * counts, { axes = { 0 } })))
    if alone then choices = plus(choices, choices_of(a, graph, logits, counts)) end
  end
  local function add(loss)
    local values = alone and own_values(a, graph, choices, counted, shape.batch * shape.seq)
      or graph:input("balance", { a.experts.count }, "f32")
    return loss + graph:op("cast", (graph:op("reduce_sum", sum * values)), { dtype = "f64" })
  end
  return { batch = shape.batch, seq = shape.seq, look = look }, add
end

-- The same for the graph that sums: ends() returns its outputs.
function balance.sums(a, graph, shape)
  local choices
  local counted, counts = rows_of(graph, shape)
  local function look(logits) choices = plus(choices, choices_of(a, graph, logits, counts)) end
  local function ends() return { outputs = { choices = choices, rows = (graph:op("reduce_sum", counted)) } } end
  return { batch = shape.batch, seq = shape.seq, look = look }, ends
end

-- What the sums of a step make of the input `balance`.
function balance.values(a, sums)
  local e, layers, all, list = a.experts, layers_of(a), 0, {}
  for _, choices in ipairs(sums.choices) do all = all + choices end
  local rows = sums.rows[1]
  local without = all / e.chosen - layers * rows  -- rows that do not count, in all layers
  for i, choices in ipairs(sums.choices) do
    choices = choices - (i <= e.chosen and without or 0)
    list[i] = rows > 0 and a.balance * e.count * choices / (layers ^ 2 * rows) or 0
  end
  return { balance = list }
end

-- A dataset whose micro-batches say which of their rows count.
function balance.dataset(data)
  local batch, buffer, size = data.batch, nil, 0
  return changed(data, { batch = function(index)
    local arrays, tokens, which, samples = batch(index)
    local count = ffi.sizeof(arrays.targets) / 4
    if count ~= size then buffer, size = ffi.new("float[?]", count), count end
    for i = 0, count - 1 do buffer[i] = arrays.targets[i] ~= IGNORED and 1 or 0 end
    return changed(arrays, { counted = buffer }), tokens, which, samples
  end })
end

return balance
