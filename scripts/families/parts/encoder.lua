-- Encoders: a body that reads in both directions, and one of three heads. To what families.parts.architecture
-- lists, the family of one adds
--   names.types (of the token types, a.types of them), names.embedded (the norm of the embeddings)
--   heads_by_task: {dense, bias, activation, norm} of what comes first, {pooling} of a text, and {last} or, of the
--   tokens' own table, {table_bias}; class: how Transformers begins the names of its classes
--   same: pairs of names of which files may have the first, with the values of the second
-- settle() adds own_task (the head that the files have, or nil) and labels (of that head, or nil).
local labels_of = require("families.parts.labels").of
local network = require "families.parts.network"
local nn = require("cairn").nn

local encoder = {}

encoder.CLASSES = { mlm = "ForMaskedLM", classify = "ForSequenceClassification", tag = "ForTokenClassification",
                    embed = "Model" }
local OF_CLASS = { ForMaskedLM = "mlm", ForPreTraining = "mlm", ForSequenceClassification = "classify",
                   ForTokenClassification = "tag" }

function encoder.settle(c, a)
  for _, name in ipairs(c.architectures or {}) do
    local rest = type(name) == "string" and name:sub(1, #a.class) == a.class and name:sub(#a.class + 1)
    a.own_task = a.own_task or OF_CLASS[rest or ""]
  end
  if a.own_task == "classify" or a.own_task == "tag" then a.labels = labels_of(c, a.where) end
  a.heads_by_task.embed = {}
  a.untied_head, a.names.head = a.names.head, a.own_task == "mlm" and a.names.head or nil
end

local function activated(graph, x, name)
  if name == "tanh" then return (graph:op("tanh", x)) end
  local act = network.ACTIVATIONS[name]
  return (graph:op(act.op, x, act.attributes or {}))
end

-- The last hidden state [batch, seq, width] of tokens[batch, seq], and the tokens' table. shape: {batch, seq, padded
-- (there are lengths[batch]), paired (there are types[batch, seq])}.
function encoder.body(a, context, shape, segments)
  local graph, names = context.graph, a.names
  local dims, drop = { shape.batch, shape.seq }, nn.Dropout(a.dropout or 0)
  local tokens = graph:input("tokens", dims, "i32")
  local table_of = network.matrix
  local tokens_table = table_of(graph, names.tokens, a.vocab, a.width, a.init.scale)
  local x = graph:op("embedding", tokens_table, tokens)
  if names.types then
    local types = table_of(graph, names.types, a.types, a.width, a.init.scale)
    x = x + (shape.paired and (graph:op("embedding", types, graph:input("types", dims, "i32")))
      or a.types > 1 and (graph:op("slice", types, { axis = 0, begin = 0, ["end"] = 1 })) or types)
  end
  if names.positions then
    local positions = table_of(graph, names.positions, a.positions, a.width, a.init.scale)
    x = x + (a.positions > shape.seq and (graph:op("slice", positions, { axis = 0, begin = 0, ["end"] = shape.seq }))
      or positions)
  end
  x = drop:build(context, network.normed(graph, x, names.embedded, a.width, a.norm))
  local lengths = shape.padded and graph:input("lengths", { shape.batch }, "i32") or nil
  x = network.blocks(a, context, x, { batch = shape.batch, seq = shape.seq, key_lengths = lengths }, segments)
  return names.final and network.normed(graph, x, names.final, a.width, a.norm) or x, tokens_table
end

-- Of each text one row [batch, width]: its first token's, or the mean of its tokens' by share[batch, seq], which is
-- 1 / (how many there are) where one is and else 0.
local function pooled(a, graph, x, pooling, shape)
  local y
  if pooling == "cls" then
    y = graph:op("slice", x, { axis = 1, begin = 0, ["end"] = 1 })
  else
    local share = graph:input("share", { shape.batch, shape.seq })
    y = graph:op("matmul", (graph:op("reshape", share, { shape = { shape.batch, 1, shape.seq } })), x)
  end
  return (graph:op("reshape", y, { shape = { shape.batch, a.width } }))
end

-- Of each text one row [batch, width] of length 1; pooling as above.
function encoder.embedded(a, context, x, pooling, shape)
  return nn.L2Normalize():build(context, (pooled(a, context.graph, x, pooling, shape)))
end

-- The scores of a task from the last hidden state: [batch, labels] of a text, or a row for each row of x. rows: those
-- of x, numbered over all samples, that are asked for (optional).
function encoder.scores(a, context, x, tokens_table, task, shape, labels, rows)
  local graph, head = context.graph, a.heads_by_task[task]
  if head.pooling then
    x = pooled(a, graph, x, head.pooling, shape)
  else
    x = graph:op("reshape", x, { shape = { shape.batch * shape.seq, a.width } })
    if rows then x = graph:op("embedding", x, rows) end
  end
  if head.dense then
    x = network.linear(graph, x, head.dense, a.width, a.width, head.bias, a.init.residual)
    x = activated(graph, x, head.activation)
  end
  if head.norm then x = network.normed(graph, x, head.norm, a.width, a.norm) end
  if head.last then
    x = nn.Dropout(a.dropout or 0):build(context, x)
    return network.linear(graph, x, head.last, a.width, labels, true, a.init.scale)
  end
  local w = a.tied and tokens_table or network.matrix(graph, a.untied_head, a.vocab, a.width, a.init.residual)
  local b = head.table_bias and graph:parameter(head.table_bias, { a.vocab }, network.constant(0))
  return (graph:op("linear", x, w, b or nil))
end

-- Patterns, as of --init-missing, of the parameters that files of another task lack.
function encoder.fresh(a, task)
  if task == a.own_task then return {} end
  local head, list = a.heads_by_task[task], {}
  for _, part in ipairs { "dense", "norm", "last" } do
    if head[part] then list[#list + 1] = head[part] .. ".*" end
  end
  list[#list + 1] = head.table_bias
  if task == "mlm" and not a.tied then list[#list + 1] = a.untied_head .. ".weight" end
  return list
end

-- Lua patterns of tensors that nothing needs, as recipes say them: heads of other tasks, and what is there twice.
function encoder.unused(a, task)
  local rows, used = {}, {}
  for i, pattern in ipairs(a.unused) do rows[i] = pattern end
  local function escaped(name) return "^" .. name:gsub("%p", "%%%0") end
  local own = a.heads_by_task[task]
  for _, part in ipairs { "dense", "norm", "last", "table_bias" } do used[own[part] or ""] = true end
  for _, head in pairs(a.heads_by_task) do
    for _, part in ipairs { "dense", "norm", "last" } do
      if head[part] and not used[head[part]] then rows[#rows + 1] = escaped(head[part]) .. "%." end
    end
    if head.table_bias and not used[head.table_bias] then rows[#rows + 1] = escaped(head.table_bias) .. "$" end
  end
  if task ~= "mlm" then
    rows[#rows + 1] = escaped(a.untied_head) .. "%."
    return rows
  end
  if a.tied then
    rows[#rows + 1] = { escaped(a.untied_head) .. "%.weight$", same = a.names.tokens .. ".weight",
                        advice = "tied=false keeps both" }
  end
  for _, pair in ipairs(a.same or {}) do
    rows[#rows + 1] = { escaped(pair[1]) .. "$", same = pair[2], advice = "a head has one bias" }
  end
  return rows
end

return encoder
