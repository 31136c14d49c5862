-- cairn ops [NAME ...]: the ops that graphs are built of, the optimizers and schedules, from the library's own tables.
local args = require "cli.args"
local cairn = require "cairn"
local fail = require "cli.fail"
local format = require "cli.format"
local json = require "cli.json"
local nearest = require "cli.nearest"

local USAGE = "cairn ops [NAME ...] [--optimizers | --schedules] [--json] [--markdown]"
local KNOWN = args.known("json quiet", { markdown = { args.FLAG, "as capi/docs/ops.md" },
  optimizers = { args.FLAG, "the optimizers, their states and hyper-parameters" },
  schedules = { args.FLAG, "the schedules of the learning rate and their parameters" } })
local WIDTH = 100

local HEAD = [[
# Ops

What `cairn_graph_op` (C), `graph:op` (Lua) and `Graph::op` (C++) know. Made by `cairn ops --markdown` from
`runtime/ops/ops.def`; a test compares.

Operands are given in this order; `?` behind one: an input that may be left out, an output that is made only where the
text says so. Attributes: `name: type`, those that must be given in bold. `x[.., C]` means any leading dimensions.
Activations are f32 or bf16 (f64 in f64 graphs), weights and norm parameters f32 (f64).
]]

local OPTIMIZERS = [[
# Optimizers

What the `optimizer` of a plan's options names (`cairn ops --optimizers`; from `runtime/ops/optimizers.def`). States are
tensors of the parameter's shape, saved as `PARAMETER/STATE`; one with a condition is there only where that
hyper-parameter was not 0 when the plan was made. `rate_scale` multiplies the schedule's rate.
]]

local SCHEDULES = [[
# Schedules

What a schedule of a stepper's options names (`cairn ops --schedules`; from `runtime/step/schedules.def`). They are
functions of the updates that were applied, which count from 0 at the end of the warm-up, or of the schedule before. One
that has an end is laid out over the steps up to `total_steps`, and stays where it ends. A parameter without a default
is a list.
]]

local function operands(list)
  local names = {}
  for i, operand in ipairs(list) do names[i] = operand.name .. (operand.optional and "?" or "") end
  return table.concat(names, ", ")
end

-- op(inputs) -> outputs
local function signature(op)
  return ("%s(%s) -> %s"):format(op.name, operands(op.inputs), operands(op.outputs))
end

local function attributes(op, bold)
  local names = {}
  for i, attribute in ipairs(op.attributes) do
    local text = ("%s: %s"):format(attribute.name, attribute.type)
    names[i] = attribute.required and bold(text) or text
  end
  return table.concat(names, ", ")
end

local function wrapped(text, indent)
  local lines, line = {}, indent
  for word in text:gmatch("%S+") do
    if #line > #indent and #line + 1 + #word > WIDTH then
      lines[#lines + 1], line = line, indent
    end
    line = line .. (#line > #indent and " " or "") .. word
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

local function markdown(list)
  local out = { HEAD }
  for _, op in ipairs(list) do
    out[#out + 1] = ("## %s\n\n`%s`\n"):format(op.name, signature(op))
    local attrs = attributes(op, function(text) return "**" .. text .. "**" end)
    if attrs ~= "" then out[#out + 1] = wrapped("Attributes: " .. attrs .. ".", "") .. "\n" end
    out[#out + 1] = wrapped((op.description:gsub("[%*_]", "\\%0")), "") .. "\n"
  end
  return table.concat(out, "\n")
end

local function states_of(optimizer)
  local words = {}
  for i, state in ipairs(optimizer.states) do
    words[i] = state.name .. (state.when and (" (where %s is not 0)"):format(state.when) or "")
  end
  return #words > 0 and table.concat(words, ", ") or "none"
end

local function hypers_of(optimizer)
  local words = {}
  for i, hyper in ipairs(optimizer.hypers) do words[i] = ("%s=%.15g"):format(hyper.name, hyper.default) end
  return table.concat(words, " ")
end

local function optimizers_markdown(list)
  local out = { OPTIMIZERS }
  for _, optimizer in ipairs(list) do
    out[#out + 1] = ("## %s\n"):format(optimizer.name)
    local about = ("States: %s. Hyper-parameters: `%s`."):format(states_of(optimizer), hypers_of(optimizer))
    out[#out + 1] = wrapped(about, "") .. "\n"
    out[#out + 1] = wrapped((optimizer.description:gsub("[%*_]", "\\%0")), "") .. "\n"
  end
  return table.concat(out, "\n")
end

local function optimizers_text(list)
  local out = {}
  for _, optimizer in ipairs(list) do
    out[#out + 1] = format.colour("bold", optimizer.name)
    out[#out + 1] = "    states: " .. states_of(optimizer)
    out[#out + 1] = wrapped(hypers_of(optimizer), "    ")
    out[#out + 1] = wrapped(optimizer.description, "    ") .. "\n"
  end
  return table.concat(out, "\n")
end

local function optimizers_json(list)
  local rows = {}
  for i, optimizer in ipairs(list) do
    local states, hypers = {}, {}
    for j, state in ipairs(optimizer.states) do
      states[j] = json.object { { "name", state.name }, { "when", state.when } }
    end
    for j, hyper in ipairs(optimizer.hypers) do
      hypers[j] = json.object { { "name", hyper.name }, { "default", hyper.default } }
    end
    rows[i] = json.object { { "name", optimizer.name }, { "states", json.array(states) },
                            { "hypers", json.array(hypers) }, { "description", optimizer.description } }
  end
  return json.encode(json.array(rows)) .. "\n"
end

local function default_of(parameter)
  if parameter.list then return "" end
  return parameter.words and table.concat(parameter.words, "|") or ("%.15g"):format(parameter.default)
end

local function parameters_of(row)
  local words = {}
  for i, parameter in ipairs(row.parameters) do words[i] = ("%s=%s"):format(parameter.name, default_of(parameter)) end
  return table.concat(words, " ")
end

local function schedules_markdown(list)
  local out = { SCHEDULES }
  for _, row in ipairs(list) do
    out[#out + 1] = ("## %s\n"):format(row.name)
    local about = ("Parameters: `%s`.%s"):format(parameters_of(row), row.ends and " It has an end." or "")
    out[#out + 1] = wrapped(about, "") .. "\n"
    out[#out + 1] = wrapped((row.description:gsub("[%*_]", "\\%0")), "") .. "\n"
  end
  return table.concat(out, "\n")
end

local function schedules_text(list)
  local out = {}
  for _, row in ipairs(list) do
    out[#out + 1] = format.colour("bold", row.name)
    out[#out + 1] = wrapped(parameters_of(row), "    ")
    out[#out + 1] = wrapped(row.description, "    ") .. "\n"
  end
  return table.concat(out, "\n")
end

local function schedules_json(list)
  local rows = {}
  for i, row in ipairs(list) do
    local parameters = {}
    for j, parameter in ipairs(row.parameters) do
      parameters[j] = json.object { { "name", parameter.name }, { "default", parameter.default },
                                    { "words", parameter.words and json.array(parameter.words) },
                                    { "list", parameter.list or false } }
    end
    rows[i] = json.object { { "name", row.name }, { "parameters", json.array(parameters) }, { "ends", row.ends },
                            { "description", row.description } }
  end
  return json.encode(json.array(rows)) .. "\n"
end

-- What is listed beside ops, by the option that asks for it.
local OTHERS = {
  optimizers = { "optimizer", cairn.optimizers, json = optimizers_json, markdown = optimizers_markdown,
                 text = optimizers_text },
  schedules = { "schedule", cairn.schedules, json = schedules_json, markdown = schedules_markdown,
                text = schedules_text },
}

local function text(list)
  local out = {}
  for _, op in ipairs(list) do
    out[#out + 1] = format.colour("bold", signature(op))
    local attrs = attributes(op, function(word) return word .. " (required)" end)
    if attrs ~= "" then out[#out + 1] = wrapped(attrs, "    ") end
    out[#out + 1] = wrapped(op.description, "    ") .. "\n"
  end
  return table.concat(out, "\n")
end

-- Those of `all` that `words` name; kind: what they are.
local function chosen(all, words, kind)
  if #words == 0 then return all end
  local by_name, names, list = {}, {}, {}
  for i, op in ipairs(all) do by_name[op.name], names[i] = op, op.name end
  for i, word in ipairs(words) do
    if not by_name[word] then
      fail.usage(("there is no %s '%s'%s (known: %s)"):format(kind, word, nearest.hint(word, names),
        table.concat(names, " ")))
    end
    list[i] = by_name[word]
  end
  return list
end

return function(arguments)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  if #settings > 0 then fail.usage("usage: " .. USAGE) end
  if options.optimizers and options.schedules then fail.usage("--optimizers and --schedules exclude each other") end
  for name, other in pairs(OTHERS) do
    if options[name] then
      local render = other[options.json and "json" or options.markdown and "markdown" or "text"]
      io.stdout:write(render(chosen(other[2](), words, other[1])))
      return 0
    end
  end
  local list = chosen(fail.check("ops", cairn.ops()), words, "op")
  if options.json then
    local rows = {}
    for i, op in ipairs(list) do
      rows[i] = json.object { { "name", op.name }, { "inputs", json.array(op.inputs) },
                              { "outputs", json.array(op.outputs) }, { "attributes", json.array(op.attributes) },
                              { "description", op.description } }
    end
    io.stdout:write(json.encode(json.array(rows)), "\n")
  else
    io.stdout:write(options.markdown and markdown(list) or text(list))
    if options.markdown and #words == 0 then
      io.stdout:write("\n", optimizers_markdown(cairn.optimizers()), "\n", schedules_markdown(cairn.schedules()))
    end
  end
  return 0
end
