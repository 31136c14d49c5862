-- cairn ops [NAME ...]: the ops that graphs are built of, from the library's own table.
local args = require "cli.args"
local cairn = require "cairn"
local fail = require "cli.fail"
local format = require "cli.format"
local json = require "cli.json"

local USAGE = "cairn ops [NAME ...] [--json] [--markdown]"
local KNOWN = args.known("json quiet", { markdown = { args.FLAG, "as capi/docs/ops.md" } })
local WIDTH = 100

local HEAD = [[
# Ops

What `cairn_graph_op` (C), `graph:op` (Lua) and `Graph::op` (C++) know. Made by `cairn ops --markdown` from
`runtime/ops/ops.def`; a test compares.

Operands are given in this order; `?` behind one: an input that may be left out, an output that is made only where the
text says so. Attributes: `name: type`, those that must be given in bold. `x[.., C]` means any leading dimensions.
Activations are f32 or bf16 (f64 in f64 graphs), weights and norm parameters f32 (f64).
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

-- Those of `all` that `words` name.
local function chosen(all, words)
  if #words == 0 then return all end
  local by_name, names, list = {}, {}, {}
  for i, op in ipairs(all) do by_name[op.name], names[i] = op, op.name end
  for i, word in ipairs(words) do
    if not by_name[word] then
      fail.usage(("there is no op '%s' (known: %s)"):format(word, table.concat(names, " ")))
    end
    list[i] = by_name[word]
  end
  return list
end

return function(arguments)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  if #settings > 0 then fail.usage("usage: " .. USAGE) end
  local list = chosen(fail.check("ops", cairn.ops()), words)
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
  end
  return 0
end
