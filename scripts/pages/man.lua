-- Manual pages in man(7) macros.
local prose = require "pages.prose"

local man = {}

local function escaped(text)
  return (text:gsub("\\", "\\e"):gsub("%-", "\\-"):gsub("`", "\\(ga"):gsub("%^", "\\(ha"):gsub("~", "\\(ti"))
end
-- A line that is no request, whatever it begins with.
local function guarded(line) return (line:gsub("^[.']", "\\&%0")) end
local function plain(line) return guarded(escaped(line)) end

-- Argument of a macro.
local function quoted(text) return '"' .. plain(text):gsub('"', '""') .. '"' end

local function wrapped(text)  -- lines of at most 78 as written, so that differences are readable
  local lines, line = {}, ""
  for word in text:gmatch("%S+") do
    word = escaped(word)
    if line ~= "" and #line + #word + 1 > 78 then
      lines[#lines + 1], line = line, word
    else
      line = line == "" and word or line .. " " .. word
    end
  end
  lines[#lines + 1] = line
  for i, each in ipairs(lines) do lines[i] = guarded(each) end
  return table.concat(lines, "\n")
end

local Page = {}
Page.__index = Page
function Page:add(...)
  for _, line in ipairs { ... } do self[#self + 1] = line end
end
function Page:section(name) self:add(".SH " .. quoted(name)) end
function Page:paragraphs(list)
  for i, text in ipairs(list) do
    if i > 1 then self:add ".PP" end
    self:add(wrapped(text))
  end
end
function Page:term(head, text)
  self:add(".TP", head)
  self:add(text == "" and "\\&" or wrapped(text))
end
function Page:examples(list)
  self:section "EXAMPLES"
  for i, example in ipairs(list) do
    if i > 1 then self:add ".PP" end
    if example[2] ~= "" then self:add(wrapped(example[2]:gsub("^%l", string.upper) .. ":"), ".PP") end
    self:add(".RS 4", ".nf", plain(example[1]), ".fi", ".RE")
  end
end
function Page:text() return table.concat(self, "\n") .. "\n" end

local function open(name, section, about)
  local page = setmetatable({}, Page)
  page:add('.\\" Made from the tables of the command\'s options. Do not edit.',
    (".TH %s %d %s %s"):format(quoted(name:upper()), section, about.date, quoted("cairn " .. about.version)),
    ".nh", ".ad l")
  return page
end

local function name_section(page, name, summary)
  page:section "NAME"
  page:add(plain(name) .. " \\- " .. escaped(summary))
end

local function see_also(page, names)
  page:section "SEE ALSO"
  for i, name in ipairs(names) do
    page:add((".BR %s (%s)%s"):format(plain(name[1]), name[2], i < #names and "," or ""))
  end
end

-- about: { version =, date = }. Returns the pages of the command and its subcommands, as { file name = text }.
function man.commands(commands, about)
  local pages = {}
  local top = open("cairn", 1, about)
  name_section(top, "cairn", "train neural networks inside a memory budget")
  top:section "SYNOPSIS"
  top:add(".B cairn", plain "COMMAND [argument ...] [option ...]", ".br", ".B cairn", plain "--help | --version")
  top:section "DESCRIPTION"
  top:paragraphs(prose.cairn.about)
  top:section "COMMANDS"
  for _, command in ipairs(commands) do
    top:term((".B %s"):format(quoted(("%s %s"):format(command.name, command.operands):gsub("%s+$", ""))),
      command.summary .. ("; see cairn-%s(1)"):format(command.name))
  end
  top:section "OPTIONS"
  top:term(".B \\-\\-help", "prints the commands; after a command, its options")
  top:term(".B \\-\\-version", "prints the version of the library in use")
  top:section "EXIT STATUS"
  for _, row in ipairs(prose.exit) do top:term(".B " .. row[1], row[2]) end
  top:section "ENVIRONMENT"
  for _, row in ipairs(prose.environment) do top:term(".B " .. row[1], row[2]) end
  top:examples(prose.cairn.examples)
  local names = {}
  for i, command in ipairs(commands) do names[i] = { "cairn-" .. command.name, "1" } end
  names[#names + 1] = { "cairn-recipes", "7" }
  see_also(top, names)
  pages["man1/cairn.1"] = top:text()

  for _, command in ipairs(commands) do
    local page, words = open("cairn-" .. command.name, 1, about), prose[command.name]
    if not words then error(("scripts/pages/prose.lua says nothing about '%s'"):format(command.name), 0) end
    name_section(page, "cairn-" .. command.name, words.name or command.summary)
    page:section "SYNOPSIS"
    page:add(wrapped(command.usage))
    page:section "DESCRIPTION"
    page:paragraphs(words.about)
    if #command.options > 0 then
      page:section "OPTIONS"
      page:add(wrapped("A value follows its option, or an = after it. Of what is given twice, the last counts."))
      for _, option in ipairs(command.options) do
        local head = option.flag and (".B %s"):format(quoted("--" .. option.name))
          or (".BI %s %s"):format(quoted("--" .. option.name .. " "), quoted(option.value))
        page:term(head, option.help)
      end
    end
    page:section "EXIT STATUS"
    local codes = {}
    for i, row in ipairs(prose.exit) do codes[i] = row[1] .. " " .. row[2] end
    page:add(wrapped(table.concat(codes, "; ") .. "."))
    page:examples(words.examples)
    local others = { { "cairn", "1" } }
    if command.operand == "recipe" then others[2] = { "cairn-recipes", "7" } end
    see_also(page, others)
    pages[("man1/cairn-%s.1"):format(command.name)] = page:text()
  end
  return pages
end

function man.recipes(recipes, about)
  local page = open("cairn-recipes", 7, about)
  name_section(page, "cairn-recipes", "options of the recipes that come with cairn")
  page:section "DESCRIPTION"
  page:paragraphs { prose.recipes }
  for _, recipe in ipairs(recipes) do
    page:section(recipe.name:upper())
    for _, option in ipairs(recipe.options) do
      local default = quoted(option.default):gsub("|", "|\\:")  -- where a line may break
      page:term((".BI %s %s"):format(quoted(option.name .. "="), default), option.help)
    end
  end
  see_also(page, { { "cairn", "1" }, { "cairn-train", "1" }, { "cairn-plan", "1" } })
  return { ["man7/cairn-recipes.7"] = page:text() }
end

return man
