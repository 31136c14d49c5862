-- Writes the manual pages and the completions of bash, zsh and fish:  cairn lua make.lua FOLDER VERSION DATE
-- FOLDER has man1, man7, bash, zsh and fish in it.
local folder, version, date = ...
if not date then error("usage: cairn lua make.lua FOLDER VERSION DATE", 0) end
local root = debug.getinfo(1, "S").source:match("^@(.*)/scripts/pages/make%.lua$")
if not root then error("make.lua is run by its full path, which ends in scripts/pages/make.lua", 0) end

local man = require "pages.man"
local prose = require "pages.prose"
local tables = require "pages.tables"

local all = { commands = tables.commands(root), recipes = tables.recipes(root), ops = tables.ops() }

-- Examples are of options that there are.
local known = {}
for _, command in ipairs(all.commands) do
  known[command.name] = {}
  for _, option in ipairs(command.options) do known[command.name][option.name] = true end
end
for name, words in pairs(prose) do
  for _, example in ipairs(type(words) == "table" and words.examples or {}) do
    local command = example[1]:match("cairn (%w+)")
    for option in example[1]:gmatch("%-%-([%w-]+)") do
      if not (known[command] or {})[option] then
        error(("scripts/pages/prose.lua: the example '%s' of %s: there is no --%s"):format(example[1], name, option), 0)
      end
    end
  end
end

local function write(name, text)
  local file = assert(io.open(folder .. "/" .. name, "wb"))
  assert(file:write(text))
  assert(file:close())
end

local about = { version = version, date = date }
for _, pages in ipairs { man.commands(all.commands, about), man.recipes(all.recipes, about) } do
  for name, text in pairs(pages) do write(name, text) end
end
for shell, name in pairs { bash = "bash/cairn", zsh = "zsh/_cairn", fish = "fish/cairn.fish" } do
  write(name, require("pages." .. shell)(all))
end
