-- Writes the reference of capi/docs that comes from tables and from the header:
--   cairn lua scripts/pages/make_reference.lua FOLDER
local folder = ...
if not folder then error("usage: cairn lua make_reference.lua FOLDER", 0) end
local root = debug.getinfo(1, "S").source:match("^@(.*)/scripts/pages/make_reference%.lua$")
if not root then error("it is run by its full path, which ends in scripts/pages/make_reference.lua", 0) end

local markdown = require "pages.markdown"
local tables = require "pages.tables"

local function read(path)
  local file = assert(io.open(path, "rb"))
  local text = file:read("*a")
  file:close()
  return text
end

local function write(name, text)
  local file = assert(io.open(folder .. "/" .. name, "wb"))
  assert(file:write(text))
  assert(file:close())
end

write("functions.md", markdown.functions(read(root .. "/capi/include/cairn/cairn.h")))
write("commands.md", markdown.commands(tables.commands(root)))
write("options.md", markdown.options(tables.recipes(root)))
write("json.md", markdown.json())
write("nn.md", markdown.nn())
