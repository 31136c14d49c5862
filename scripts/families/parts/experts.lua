-- Experts in the place of a feed-forward layer: a router chooses some of them for each row, rows are sorted by expert,
-- products go group by group, and what the chosen ones make of a row is added by the router's weights.
local experts = {}

local function shaped(graph, x, ...) return (graph:op("reshape", x, { shape = { ... } })) end

-- One product for each expert, of rows that are sorted by it. File names: NAME.weight, as of a Linear; of matrices that
-- are [in, out], or [out, in] with e.by_rows, NAME and NAME_bias.
local function product(e, graph, x, groups, name, inputs, outputs, scale)
  local turned = e.gate_up ~= nil and not e.by_rows
  local dims = turned and { e.count, inputs, outputs } or { e.count, outputs, inputs }
  local w = graph:parameter(e.gate_up and name or name .. ".weight", dims, { init = "normal", scale = scale })
  local b = e.bias and graph:parameter(name .. "_bias", { e.count, outputs },
    { init = "constant", scale = 0, no_decay = true })
  return (graph:op("grouped_linear", x, w, groups.starts, b or nil, { transposed = turned and 1 or nil }))
end

-- Gate and up of a product whose columns take turns.
local function halves(graph, both, rows, hidden)
  local pairs_of = shaped(graph, both, rows, hidden, 2)
  local function half(i)
    return shaped(graph, (graph:op("slice", pairs_of, { axis = 2, begin = i, ["end"] = i + 1 })), rows, hidden)
  end
  return half(0), half(1)
end

-- x[batch, seq, width]; gated(gate, up): the activation of both; look(logits): is shown the router's logits[rows,
-- count] (optional).
function experts.build(a, graph, x, prefix, shape, gated, look)
  local e, rows = a.experts, shape.batch * shape.seq
  local inside = prefix .. "experts."
  x = shaped(graph, x, rows, a.width)
  local w = graph:parameter(prefix .. e.router .. ".weight", { e.count, a.width },
    { init = "normal", scale = a.init.scale })
  local b = e.bias and graph:parameter(prefix .. e.router .. ".bias", { e.count },
    { init = "constant", scale = 0, no_decay = true })
  local logits = graph:op("linear", x, w, b or nil)
  if look then look(logits) end
  local weights, chosen = graph:op("route", logits, { k = e.chosen, normalise = e.normalise and 1 or 0 })
  local groups = {}
  groups.order, groups.places, groups.starts = graph:op("group_rows", chosen, { experts = e.count })
  local y = graph:op("gather_rows", x, groups.order, groups.places)
  local gate, up
  if e.gate_up then
    gate, up = halves(graph, product(e, graph, y, groups, inside .. e.gate_up, a.width, 2 * e.hidden, a.init.scale),
      rows * e.chosen, e.hidden)
  else
    gate = product(e, graph, y, groups, inside .. e.gate, a.width, e.hidden, a.init.scale)
    up = product(e, graph, y, groups, inside .. e.up, a.width, e.hidden, a.init.scale)
  end
  y = product(e, graph, gated(gate, up), groups, inside .. e.down, e.hidden, a.width, a.init.residual)
  y = graph:op("combine_rows", y, groups.order, groups.places, weights)
  return shaped(graph, y, shape.batch, shape.seq, a.width)
end

-- Rows of names, where files have a tensor for each expert.
function experts.names(a, rows)
  local e = a.experts
  for layer = 1, e and e.split and a.layers or 0 do
    local prefix = ("%s.%s.experts."):format(a.names.block:format(layer - 1), a.names.mlp)
    for _, part in ipairs(e.layers[layer] and { e.gate, e.up, e.down } or {}) do
      for i = 0, e.count - 1 do
        rows[#rows + 1] = { ours = ("%s%s.weight"):format(prefix, part), stacked = true,
                            theirs = ("%s%d.%s.weight"):format(prefix, i, part) }
      end
    end
  end
  return rows
end

return experts
