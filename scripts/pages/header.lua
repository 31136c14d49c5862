-- cairn.h as chapters of items: a comment, and the declarations that stand below it without a blank line between.
local header = {}

-- "/* a\n * b */" -> "a b"
local function plain(comment)
  local words = {}
  for line in comment:gsub("^/%*", ""):gsub("%*/%s*$", ""):gmatch("[^\n]+") do
    words[#words + 1] = line:gsub("^%s*%*? ?", ""):gsub("%s+$", "")
  end
  return (table.concat(words, " "):gsub("%s+", " "):gsub("^ ", ""):gsub(" $", ""))
end

local function functions_of(code)
  local names = {}
  for name in code:gmatch("CAIRN_API[^;(]-([%w_]+)%(") do names[#names + 1] = name end
  return names
end

-- What an item is known by: its first function, the type it declares, or what its constants have in common.
local function name_of(item)
  if item.functions[1] then return item.functions[1] end
  local type_name = item.code:match("}%s*([%w_]+_t);") or item.code:match("typedef [^{]-([%w_]+_t);")
  if type_name then return type_name end
  local constant = item.code:match("enum%s*{%s*([%u_%d]+)")
  local family = constant and constant:match("^(CAIRN_[%u]+_)")
  return family and family .. "*" or constant or item.code:match("#define ([%w_]+)")
end

-- The header's lines as blocks { comment =, code = }; a comment begins a block, and so does code behind a blank line.
local function blocks_of(text)
  local list, block, inside = {}, nil, false
  local function open()
    block = { comment = {}, code = {} }
    list[#list + 1] = block
  end
  for line in (text .. "\n"):gmatch("(.-)\n") do
    if inside then
      block.comment[#block.comment + 1] = line
      inside = not line:find("*/", 1, true)
    elseif line:match("^/%*") then
      open()
      block.comment[1] = line
      inside = not line:find("*/", 1, true)
    elseif line == "" then
      block = nil
    else
      local code = block and table.concat(block.code) or ""
      local closed = code:find("CAIRN_API", 1, true) or code:find("} cairn_", 1, true)
      -- A comment is of the first struct below it, or of functions, and not of a struct behind these.
      if not block or closed and line:match("^typedef struct [%w_]+ {") then open() end
      block.code[#block.code + 1] = line
    end
  end
  return list
end

-- Returns the introduction's rules as rows { word, text }, and chapters { title, items = { { name, text, code,
-- functions } } }.
function header.read(text)
  local rules, chapters = {}, {}
  local introduction = text:match("^/%*(.-)%*/")
  for line in introduction:match("Rules that hold for every function\n(.*)"):gmatch("[^\n]+") do
    local word, rest = line:match("^ %*   (%u%l+)%s+(.*)")
    if word then
      rules[#rules + 1] = { word, rest }
    elseif line:match("^ %*    ") then
      rules[#rules][2] = rules[#rules][2] .. " " .. line:match("^ %*%s+(.*)")
    end
  end
  local chapter, before = nil, ""
  for _, block in ipairs(blocks_of(text)) do
    local comment, code = table.concat(block.comment, "\n"), table.concat(block.code, "\n")
    local title = comment:match("^/%* (%d+%. .-) %-%-%-")
    if title then
      chapter = { title = title, items = {} }
      chapters[#chapters + 1] = chapter
    elseif chapter and code:match("^#ifdef __cplusplus") then
      break
    elseif chapter and comment == "" and code:match("^typedef struct [%w_]+ [%w_]+;$") then
      before = code .. "\n"  -- a handle, of which the next comment tells
    elseif chapter and code ~= "" then
      local item = { text = comment ~= "" and plain(comment) or "", code = before .. code }
      item.functions, before = functions_of(item.code), ""
      item.name = name_of(item)
      chapter.items[#chapter.items + 1] = item
    end
  end
  return rules, chapters
end

local TAGS = { "owns", "borrows", "threads", "blocks", "errors", "since" }

-- The effect, and rows { tag, text } of what is said behind "owns:", "errors:" and so on.
function header.split(text)
  local marks = {}
  for _, tag in ipairs(TAGS) do
    local at = (" " .. text):find("[ .]" .. tag .. ": ")
    if at then marks[#marks + 1] = { at = at, tag = tag } end
  end
  table.sort(marks, function(a, b) return a.at < b.at end)
  local rows = {}
  for i, mark in ipairs(marks) do
    local last = marks[i + 1] and marks[i + 1].at - 1 or #text
    local value = text:sub(mark.at, last):match("^%s*%a+:%s*(.-)%s*$")
    rows[i] = { mark.tag, value }
  end
  local effect = marks[1] and text:sub(1, marks[1].at - 1) or text
  return (effect:gsub("%s+$", "")), rows
end

return header
