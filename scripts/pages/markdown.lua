-- Pages of the reference in Markdown, from the tables that manual pages are made of and from the header.
local header = require "pages.header"
local json_keys = require "pages.json_keys"
local prose = require "pages.prose"

local markdown = {}

local WIDTH = 130

local function made(from)
  return ("<!-- Made by scripts/pages/make_reference.lua from %s. Do not edit: a test compares. -->\n"):format(from)
end

-- What stands in backquotes stays code.
local function escaped(text) return (text:gsub("[\\*_<>|%[%]]", "\\%0")) end

local function wrapped(text, indent)
  indent = indent or ""
  local lines, line = {}, ""
  for word in text:gmatch("%S+") do
    if line ~= "" and #indent + #line + 1 + #word > WIDTH then
      lines[#lines + 1], line = line, ""
    end
    line = line == "" and word or line .. " " .. word
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n" .. indent)
end

local Page = {}
Page.__index = Page
local function open(title, from) return setmetatable({ made(from), "# " .. title, "" }, Page) end
function Page:add(...)
  for _, line in ipairs { ... } do self[#self + 1] = line end
end
function Page:paragraph(text) self:add(wrapped(text), "") end
function Page:heading(text, level) self:add(("#"):rep(level or 2) .. " " .. text, "") end
function Page:code(text, language) self:add("```" .. (language or ""), text, "```", "") end
function Page:rows(head, rows)
  self:add("| " .. table.concat(head, " | ") .. " |", ("|---"):rep(#head) .. "|")
  for _, row in ipairs(rows) do self:add("| " .. table.concat(row, " | ") .. " |") end
  self:add("")
end
function Page:text() return (table.concat(self, "\n"):gsub("\n+$", "\n")) end

-- Words of the header: names become code, those of functions links.
local function linked(text, anchors)
  local out = {}
  for blank, word in text:gmatch("(%s*)(%S+)") do
    local before, name, rest = word:match("^([(\"']*)(%*?[%a][%w_]*_[%w_]*%*?)(.*)$")
    if name and anchors[name] then
      word = ("%s[`%s`](#%s)%s"):format(escaped(before), name, anchors[name], escaped(rest))
    elseif name then
      word = escaped(before) .. "`" .. name .. "`" .. escaped(rest)
    else
      word = escaped(word)
    end
    out[#out + 1] = (blank ~= "" and " " or "") .. word
  end
  return table.concat(out)
end

-- Declarations without the macros of exports and warnings, wrapped anew behind commas.
local function declared(code)
  return (code:gsub("CAIRN_API ([^;]*;)", function(text)
    local whole = text:gsub("CAIRN_NODISCARD ", ""):gsub("%s+", " ")
    return (wrapped(whole:gsub("[^,]+", function(part) return part:gsub(" ", "\1") end):gsub(",\1", ", "), "    ")
      :gsub("\1", " "))
  end))
end

local TITLES = { owns = "Owns", borrows = "Borrows", threads = "Threads", blocks = "Blocks", errors = "Errors",
                 since = "Since" }

function markdown.functions(text)
  local rules, chapters = header.read(text)
  local page = open("Functions", "capi/include/cairn/cairn.h")
  local anchors = {}
  for _, chapter in ipairs(chapters) do
    for _, item in ipairs(chapter.items) do
      for _, name in ipairs(item.functions) do anchors[name] = item.name:lower() end
    end
  end
  page:paragraph("Everything that [cairn.h](../../include/cairn/cairn.h) declares, chapter by chapter, in its own " ..
    "words. `INVALID_ARGUMENT`, `OUT_OF_MEMORY` and `INTERNAL` may come from any call, besides those at *Errors*.")
  page:heading "Rules that hold for every function"
  for _, rule in ipairs(rules) do
    page:add(wrapped(("- **%s.** %s"):format(rule[1], linked(rule[2], anchors)), "  "))
  end
  page:add("")
  page:heading "Index"
  for _, chapter in ipairs(chapters) do
    local names = {}
    for _, item in ipairs(chapter.items) do
      for _, name in ipairs(item.functions) do
        if not name:match("_retain$") and not name:match("_release$") then
          names[#names + 1] = ("[`%s`](#%s)"):format(name, anchors[name])
        end
      end
    end
    page:add(wrapped(("- **%s**: %s"):format(chapter.title, table.concat(names, ", ")), "  "))
  end
  page:add("")
  for _, chapter in ipairs(chapters) do
    page:heading(chapter.title)
    for _, item in ipairs(chapter.items) do
      page:heading("`" .. item.name .. "`", 3)
      page:code(declared(item.code), "c")
      local effect, tags = header.split(item.text)
      if effect ~= "" then page:paragraph(linked(effect, anchors)) end
      for _, tag in ipairs(tags) do
        page:add(wrapped(("- *%s*: %s"):format(TITLES[tag[1]], linked(tag[2]:gsub("%.$", ""), anchors)), "  "))
      end
      if #tags > 0 then page:add("") end
    end
  end
  return page:text()
end

function markdown.commands(commands)
  local page = open("Commands", "the tables that `cairn COMMAND --help` prints and scripts/pages/prose.lua")
  for _, paragraph in ipairs(prose.cairn.about) do page:paragraph(escaped(paragraph)) end
  local rows = {}
  for i, command in ipairs(commands) do
    local whole = ("%s %s"):format(command.name, command.operands):gsub(" $", "")
    rows[i] = { ("[`%s`](#cairn-%s)"):format(whole, command.name), command.summary }
  end
  page:rows({ "command", "what it does" }, rows)
  page:paragraph("A value follows its option, or an `=` after it. Of what is given twice, the last counts. The " ..
    "same stands in `cairn COMMAND --help` and in the manual (`man cairn-train`).")
  for _, command in ipairs(commands) do
    local words = prose[command.name]
    page:heading("cairn " .. command.name)
    page:code(command.usage)
    for _, paragraph in ipairs(words.about) do page:paragraph(escaped(paragraph)) end
    rows = {}
    for i, option in ipairs(command.options) do
      rows[i] = { ("`--%s%s`"):format(option.name, option.flag and "" or " " .. option.value:gsub("|", "\\|")),
                  (escaped(option.help)) }
    end
    if #rows > 0 then page:rows({ "option", "what it does" }, rows) end
    local lines = {}
    for i, example in ipairs(words.examples) do
      lines[i] = example[1] .. (example[2] ~= "" and "  # " .. example[2] or "")
    end
    page:code(table.concat(lines, "\n"), "sh")
  end
  page:heading "Exit codes"
  rows = {}
  for i, row in ipairs(prose.exit) do rows[i] = { "`" .. row[1] .. "`", row[2] } end
  page:rows({ "code", "meaning" }, rows)
  page:heading "Environment"
  rows = {}
  for i, row in ipairs(prose.environment) do rows[i] = { "`" .. row[1] .. "`", escaped(row[2]) } end
  page:rows({ "variable", "what it does" }, rows)
  return page:text()
end

function markdown.options(recipes)
  local page = open("Options of recipes", "the tables of scripts/recipes")
  page:paragraph(prose.recipes)
  page:paragraph("Every recipe, one's own included, has those about the learning rate, its schedule, the optimizer, " ..
    "clipping and loss scales. What a recipe file may hold: [scripts](../../../scripts/README.md#a-recipe). What " ..
    "the values of `optimizer=` and `schedule=` do: [ops](../ops.md#optimizers).")
  local count, common = {}, {}
  for _, recipe in ipairs(recipes) do
    for _, option in ipairs(recipe.options) do
      local key = option.name .. "\0" .. option.default .. "\0" .. option.help
      count[key] = (count[key] or 0) + 1
    end
  end
  local function row_of(option)
    return { "`" .. option.name .. "`", option.default ~= "" and "`" .. option.default:gsub("|", "\\|") .. "`" or "",
             (escaped(option.help)) }
  end
  local sections = {}
  for _, recipe in ipairs(recipes) do
    local own = {}
    for _, option in ipairs(recipe.options) do
      local key = option.name .. "\0" .. option.default .. "\0" .. option.help
      if count[key] < #recipes then
        own[#own + 1] = row_of(option)
      elseif not common[key] then
        common[key] = true
        common[#common + 1] = row_of(option)
      end
    end
    sections[#sections + 1] = { recipe.name, own }
  end
  local head = { "option", "default, or what there is, the default first", "meaning" }
  for _, section in ipairs(sections) do
    page:heading(section[1])
    page:rows(head, section[2])
  end
  page:heading "All of them"
  page:rows(head, common)
  return page:text()
end

-- What cairn.nn has beside modules.
local NO_MODULES = { Trainer = true, Module = true }

-- Modules of cairn.nn, by the table in its sources. One without a row there is an error.
function markdown.nn()
  local nn, sections = require("cairn").nn, require "cairn.nn.reference"
  local page, said = open("nn modules", "bindings/lua/cairn/nn/reference.lua"), {}
  page:paragraph("What `cairn.nn` builds networks of: each is a function that returns a module, `nn.Linear(2, 32)`. " ..
    "Settings in braces are a table: `{ bias = false }`. x is what comes in, y what goes out; `[..]` stands for any " ..
    "dimensions. Everything else of the layer is in its [README](../../../bindings/lua/README.md).")
  for _, section in ipairs(sections) do
    local rows = {}
    for _, row in ipairs(section[2]) do
      said[row[1]] = true
      if rawget(nn, row[1]) then
        rows[#rows + 1] = { ("`nn.%s(%s)`"):format(row[1], row[2]), "`" .. row[3] .. "`", (escaped(row[4])) }
      end
    end
    page:heading(section[1])
    page:rows({ "module", "shapes", "what it does" }, rows)
  end
  for name, value in pairs(nn) do
    if name:find("^%u") and type(value) == "function" and not NO_MODULES[name] and not said[name] then
      error(("bindings/lua/cairn/nn/reference.lua has no row for nn.%s"):format(name), 0)
    end
  end
  page:heading "How weights start"
  page:paragraph("`nn.init.NAME(...)` is what a module takes as `init`: `nn.Linear(64, 64, { init = " ..
    "nn.init.kaimingNormal() })`. Of a weight [outputs, inputs, ...], fan_in is inputs times what follows, fan_out " ..
    "outputs times that. A gain is a number or the name of the function after the weight: " ..
    "linear 1, sigmoid 1, tanh 5/3, relu sqrt(2), selu 3/4.")
  page:rows({ "initialiser", "numbers" }, sections.init)
  return page:text()
end

function markdown.json()
  local page = open("JSON keys", "scripts/pages/json_keys.lua")
  page:paragraph("What commands print on standard output with `--json`. Sizes are bytes, times are seconds. `[]` " ..
    "stands for each element of an array, `NAME` for a name that the recipe or the table gives. Keys are added in " ..
    "later versions; none is removed. A command that fails prints an object with `error`: its exit code as " ..
    "`code`, `status` (`USAGE`, `BAD_INPUT`, `OVER_BUDGET` ...), the `message` of standard error, and of memory " ..
    "`requested_bytes`, `in_use_bytes`, `budget_bytes` and `smallest_budget_bytes`, as far as they are known; a run " ..
    "that was interrupted or stopped by numbers that are not finite has `error` among its other keys.")
  for _, section in ipairs(json_keys) do
    page:heading(section.command)
    if section.about then page:paragraph(section.about) end
    local rows = {}
    for i, row in ipairs(section.keys) do rows[i] = { "`" .. row[1] .. "`", row[2] } end
    page:rows({ "key", "what it says" }, rows)
  end
  return page:text()
end

return markdown
