-- cairn ops [NAME ...]: the ops that graphs are built of, what mixed precision makes of them, the optimizers and
-- schedules, from the library's own tables.
local args = require "cli.base.args"
local cairn = require "cairn"
local fail = require "cli.base.fail"
local format = require "cli.base.format"
local json = require "cli.base.json"
local nearest = require "cli.base.nearest"

local USAGE = "cairn ops [NAME ...] [--amp | --formats | --optimizers | --schedules | --counters] [--json] [--markdown]"
local KNOWN = args.known("json quiet", { markdown = { args.FLAG, "as capi/docs/ops.md" },
  amp = { args.FLAG, "the classes that ops have under --amp, and which op has which" },
  formats = { args.FLAG, "the formats that tensors are stored in, and which of them a trained parameter may have" },
  optimizers = { args.FLAG, "the optimizers, their states and hyper-parameters" },
  counters = { args.FLAG, "what plans count of how they do things: `plan.counters` of --json" },
  schedules = { args.FLAG, "the schedules of the learning rate and their parameters" } })
local WIDTH = 100

local HEAD = [[
# Ops

What `cairn_graph_op` (C), `graph:op` (Lua) and `Graph::op` (C++) know. Made by `cairn ops --markdown` from
`runtime/ops/ops.def`; a test compares.

Operands are given in this order; `?` after one: an input that may be left out, an output that is made only where the
text says so. Attributes: `name: type`, those that must be given in bold. `x[.., C]` means any leading dimensions.
Activations are f32, bf16 or f16 (f64 in f64 graphs), weights and norm parameters f32 (f64); which type activations have
in a plan with mixed precision follows from the [AMP class](#mixed-precision).
]]

local AMP_HEAD = [[
# Mixed precision

What ops do under the `amp` of a plan's options (`cairn ops --amp`; the classes are from `runtime/ops/amp.def`). Half is
bf16 or fp16, whichever `amp` says. Weights, biases, norm parameters, gradients of parameters and optimizer states are
float32, and every sum is taken in float32 or wider. Backward has the precision of forward. Ops of the host's own are
`full`.

A plan's rules give other classes by the name of an op, of a region, or both, and `default` an op's own again; of the
rules that match, the last one counts: `amp_rules` in C, in Lua
`amp = { "bf16", { op = "softmax", class = "half" }, { region = "h0", class = "full" } }`, `amp_rules` of a recipe.
]]

local FORMATS_HEAD = [[
# Formats

How tensors are stored (`cairn ops --formats`; from `runtime/formats/formats.def`). A plan stores parameters as
`parameters` of its options says, or as the last rule of `formats` (`--format 'h.*.weight=int8'`) whose pattern matches
their name; a format alone (`--format nf4`) is for all frozen matrices of linear ops, and frozen parameters without a
rule keep the type of the file that they come from. Formats that are dequantised are for frozen parameters of two or
more dimensions, whose rows are full blocks: the plan decodes them before ops read them, and keeps or recomputes what
it decoded like an activation.
]]

local OPTIMIZERS_HEAD = [[
# Optimizers

What the `optimizer` of a plan's options names (`cairn ops --optimizers`; from `runtime/ops/optimizers.def`). States are
tensors of the parameter's shape, or as the text says, saved as `PARAMETER/STATE`; one with a condition is there only
where that hyper-parameter was not 0 when the plan was made. `rate_scale` multiplies the schedule's rate. Parameters
that an optimizer leaves to another are a group "PATTERN/OTHER" next to its own (next to the first: "/OTHER"), whose
hyper-parameters can be set by that name.
]]

local SCHEDULES_HEAD = [[
# Schedules

What a schedule of a stepper's options names (`cairn ops --schedules`; from `runtime/step/schedules.def`). They are
functions of the updates that were applied, which count from 0 at the end of the warm-up, or of the schedule before. One
that has an end is laid out over the steps up to `total_steps`, and constant after that. A parameter without a default
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

-- Tables that the command prints: kind, head (of the page), all() their rows; of a row: title, facts (lines of text,
-- below the title), code and about (of the page), fields (of its JSON object).
local OPS = {
  kind = "op", head = HEAD,
  all = function() return fail.check("ops", cairn.ops()) end,
  title = signature,
  facts = function(op)
    local attrs = attributes(op, function(word) return word .. " (required)" end)
    local class = "    under --amp: " .. op.amp_class
    return attrs ~= "" and { wrapped(attrs, "    "), class } or { class }
  end,
  code = signature,
  about = function(op)
    local attrs = attributes(op, function(word) return "**" .. word .. "**" end)
    return (attrs ~= "" and "Attributes: " .. attrs .. ". " or "") .. ("AMP class: `%s`."):format(op.amp_class)
  end,
  fields = function(op)
    return { { "inputs", json.array(op.inputs) }, { "outputs", json.array(op.outputs) },
             { "attributes", json.array(op.attributes) }, { "amp_class", op.amp_class } }
  end,
}

-- A class and the ops that have it.
local function amp_rows()
  local rows, by_name = {}, {}
  for i, class in ipairs(cairn.amp_classes()) do
    rows[i] = { name = class.name, description = class.description, by_rule = class.by_rule, ops = {} }
    by_name[class.name] = rows[i].ops
  end
  for _, op in ipairs(fail.check("ops", cairn.ops())) do table.insert(by_name[op.amp_class], op.name) end
  return rows
end

local function amp_facts(row)
  return (row.by_rule and "Rules may give it. " or "") .. "Ops: " .. table.concat(row.ops, ", ")
end

local AMP = {
  kind = "AMP class", head = AMP_HEAD,
  all = amp_rows,
  title = function(row) return row.name end,
  facts = function(row) return { wrapped(amp_facts(row), "    ") } end,
  about = function(row) return (amp_facts(row):gsub("[%*_]", "\\%0")) .. "." end,
  fields = function(row) return { { "by_rule", row.by_rule }, { "ops", json.array(row.ops) } } end,
}
local READS = {
  ["as stored"] = "Ops read a parameter of it as stored.", ["by updates"] = "Only updates of optimizers read it.",
  dequantised = "Ops read what the plan decodes of it.",
}
local function format_facts(row)
  local trains = row.trains and "A parameter that is trained may be stored so."
    or (row.read == "dequantised" or row.name == "f16") and "For frozen parameters." or "No choice for parameters."
  return ("%s %s"):format(READS[row.read], trains)
end

local FORMATS = {
  kind = "format", head = FORMATS_HEAD,
  all = function()
    local rows = cairn.formats()
    for _, row in ipairs(rows) do
      row.description = row.block == 1 and ("%d bits."):format(row.bits)
        or ("%d bits; %d values are stored together, with %d bytes of scale."):format(row.bits, row.block,
          row.scale_bytes)
      row.description = ("%s Computed as %s."):format(row.description, row.computed_as)
    end
    return rows
  end,
  title = function(row) return row.name end,
  facts = function(row) return { wrapped(format_facts(row), "    ") } end,
  about = format_facts,
  fields = function(row)
    return { { "bits", row.bits }, { "block", row.block }, { "scale_bytes", row.scale_bytes },
             { "computed_as", row.computed_as }, { "read", row.read }, { "trains", row.trains } }
  end,
}
local OPTIMIZERS = {
  kind = "optimizer", head = OPTIMIZERS_HEAD,
  all = cairn.optimizers,
  title = function(optimizer) return optimizer.name end,
  facts = function(optimizer)
    local lines = { "    states: " .. states_of(optimizer), wrapped(hypers_of(optimizer), "    ") }
    if optimizer.otherwise then lines[3] = "    other parameters: " .. optimizer.otherwise end
    return lines
  end,
  about = function(optimizer)
    return ("States: %s. Hyper-parameters: `%s`.%s"):format(states_of(optimizer), hypers_of(optimizer),
      optimizer.otherwise and (" Other parameters: %s."):format(optimizer.otherwise) or "")
  end,
  fields = function(optimizer)
    local states, hypers = {}, {}
    for j, state in ipairs(optimizer.states) do
      states[j] = json.object { { "name", state.name }, { "when", state.when } }
    end
    local settings = cairn.settings("optimizer", optimizer.name)
    for j, hyper in ipairs(optimizer.hypers) do
      hypers[j] = json.object { { "name", hyper.name }, { "default", hyper.default },
                                { "allowed", settings[j].allowed }, { "description", settings[j].description } }
    end
    return { { "states", json.array(states) }, { "hypers", json.array(hypers) },
             { "otherwise", optimizer.otherwise } }
  end,
}

local function default_of(parameter)
  if parameter.list then return "" end
  return parameter.words and table.concat(parameter.words, "|") or ("%.15g"):format(parameter.default)
end

local function parameters_of(row)
  local words = {}
  for i, parameter in ipairs(row.parameters) do words[i] = ("%s=%s"):format(parameter.name, default_of(parameter)) end
  return table.concat(words, " ")
end

local SCHEDULES = {
  kind = "schedule", head = SCHEDULES_HEAD,
  all = cairn.schedules,
  title = function(row) return row.name end,
  facts = function(row) return { wrapped(parameters_of(row), "    ") } end,
  about = function(row)
    return ("Parameters: `%s`.%s"):format(parameters_of(row), row.ends and " It has an end." or "")
  end,
  fields = function(row)
    local parameters = {}
    for j, parameter in ipairs(row.parameters) do
      parameters[j] = json.object { { "name", parameter.name }, { "default", parameter.default },
                                    { "words", parameter.words and json.array(parameter.words) },
                                    { "list", parameter.list or false } }
    end
    return { { "parameters", json.array(parameters) }, { "ends", row.ends } }
  end,
}

local COUNTERS = {
  kind = "counter", head = "# Counters of plans\n",
  all = cairn.plan_counters,
  title = function(row) return row.name end,
  facts = function(row) return { "    unit: " .. row.unit } end,
  about = function(row) return ("Unit: %s."):format(row.unit) end,
  fields = function(row) return { { "unit", row.unit } } end,
}

local function to_markdown(shape, list)
  local out = { shape.head }
  for _, row in ipairs(list) do
    out[#out + 1] = ("## %s\n"):format(row.name) .. (shape.code and ("\n`%s`\n"):format(shape.code(row)) or "")
    local about = shape.about(row)
    if about then out[#out + 1] = wrapped(about, "") .. "\n" end
    out[#out + 1] = wrapped((row.description:gsub("[%*_]", "\\%0")), "") .. "\n"
  end
  return table.concat(out, "\n")
end

local function to_text(shape, list)
  local out = {}
  for _, row in ipairs(list) do
    out[#out + 1] = format.colour("bold", shape.title(row))
    for _, line in ipairs(shape.facts(row)) do out[#out + 1] = line end
    out[#out + 1] = wrapped(row.description, "    ") .. "\n"
  end
  return table.concat(out, "\n")
end

local function to_json(shape, list)
  local rows = {}
  for i, row in ipairs(list) do
    local fields = { { "name", row.name } }
    for _, field in ipairs(shape.fields(row)) do fields[#fields + 1] = field end
    fields[#fields + 1] = { "description", row.description }
    rows[i] = json.object(fields)
  end
  return json.encode(json.array(rows)) .. "\n"
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
  local shape, flag = OPS, nil
  for _, table in ipairs { { "amp", AMP }, { "formats", FORMATS }, { "optimizers", OPTIMIZERS },
                           { "schedules", SCHEDULES }, { "counters", COUNTERS } } do
    if options[table[1]] then
      if flag then fail.usage(("--%s and --%s exclude each other"):format(flag, table[1])) end
      flag, shape = unpack(table)
    end
  end
  local list = chosen(shape.all(), words, shape.kind)
  local render = options.json and to_json or options.markdown and to_markdown or to_text
  io.stdout:write(render(shape, list))
  if shape == OPS and render == to_markdown and #words == 0 then  -- the whole page
    for _, other in ipairs { AMP, FORMATS, OPTIMIZERS, SCHEDULES } do
      io.stdout:write("\n", to_markdown(other, other.all()))
    end
  end
  return 0
end
