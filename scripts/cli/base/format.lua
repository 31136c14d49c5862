-- Numbers for people.
local posix = require "cli.base.posix"
local screen = require "cli.base.screen"

local format = {}

-- Bytes of the units that sizes are given in.
format.UNITS = { [""] = 1, B = 1, KiB = 2 ^ 10, MiB = 2 ^ 20, GiB = 2 ^ 30, TiB = 2 ^ 40 }

function format.bytes(bytes)
  local units = { "B", "KiB", "MiB", "GiB", "TiB" }
  local at = 1
  while bytes >= 1024 and at < #units do bytes, at = bytes / 1024, at + 1 end
  if at == 1 then return ("%d B"):format(bytes) end
  return ((bytes < 10 and "%.2f" or bytes < 100 and "%.1f" or "%.0f") .. " %s"):format(bytes, units[at])
end

function format.seconds(seconds)
  if seconds < 1e-3 then return ("%.0f us"):format(seconds * 1e6) end
  if seconds < 1 then return ((seconds < 0.01 and "%.2f" or "%.1f") .. " ms"):format(seconds * 1e3) end
  if seconds < 60 then return ("%.2f s"):format(seconds) end
  if seconds < 3600 then return ("%d:%02d min"):format(math.floor(seconds / 60), math.floor(seconds % 60)) end
  return ("%.0f:%02d h"):format(math.floor(seconds / 3600), math.floor(seconds % 3600 / 60))
end

-- 12,345
function format.count(number)
  local digits = ("%.0f"):format(number)
  local grouped = digits:reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", "")
  return grouped
end

-- 1 row, 2 rows
function format.counted(number, noun) return ("%.0f %s%s"):format(number, noun, number == 1 and "" or "s") end

-- 124.4 M (124,439,808); few as they are.
function format.parameters(count)
  local units, at, value = { "", " K", " M", " B", " T" }, 1, count
  while value >= 1000 and at < #units do value, at = value / 1000, at + 1 end
  if at == 1 then return format.count(count) end
  return ("%.1f%s (%s)"):format(value, units[at], format.count(count))
end

-- A rate of something, "12.4" or "12,345".
function format.rate(number) return number < 1000 and ("%.4g"):format(number) or format.count(number) end

function format.percent(share) return ("%.1f%%"):format(share * 100) end

local COLOURS = { bold = "1", dim = "2", red = "31", green = "32", yellow = "33", blue = "34", cyan = "36" }
format.no_color = false

-- The text in a colour, where `fd` (1 or 2) is a terminal that wants colours.
function format.colour(name, text, fd)
  local none = os.getenv("NO_COLOR")
  if format.no_color or (none and none ~= "") or os.getenv("TERM") == "dumb" or not posix.is_terminal(fd or 1) then
    return text
  end
  return screen.control("\27[" .. COLOURS[name] .. "m") .. text .. screen.control("\27[0m")
end

local COLUMNS, LEAST_COLUMNS = 80, 20

-- Columns to write in, where nothing else is said 80; and whether a terminal or $COLUMNS says so.
function format.columns(fd)
  local told = posix.is_terminal(fd) and posix.columns(fd) or tonumber(os.getenv("COLUMNS") or "")
  if not told or told < 1 then return COLUMNS, false end
  return math.max(told, LEAST_COLUMNS), true
end

-- A text in lines of at most so many columns, all but the first behind `indent` blanks; first: columns taken already.
function format.wrapped(text, columns, indent, first)
  local lines, line, used = {}, "", first or 0
  for word in text:gmatch("%S+") do
    local apart = line ~= "" and 1 or 0
    if line ~= "" and used + apart + #word > columns then
      lines[#lines + 1] = line
      line, used, apart = "", indent, 0
    end
    line, used = line .. (apart == 1 and " " or "") .. word, used + apart + #word
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n" .. (" "):rep(indent))
end

-- A line of --help: an option and its words, which go on below themselves.
function format.option(name, words)
  local columns = format.columns(1)
  local indent = columns >= 70 and 27 or 6
  local left = "  " .. name
  if #left >= indent then
    return left .. "\n" .. (" "):rep(indent) .. format.wrapped(words, columns, indent, indent)
  end
  return left .. (" "):rep(indent - #left) .. format.wrapped(words, columns, indent, indent)
end

-- Columns of a table in groups that fit, each beginning with the first column.
local function groups_of(widths, columns)
  local groups, used = { { 1 } }, widths[1] or 0
  for i = 2, #widths do
    local group = groups[#groups]
    if #group > 1 and used + 2 + widths[i] > columns then
      group, used = { 1 }, widths[1]
      groups[#groups + 1] = group
    end
    group[#group + 1], used = i, used + 2 + widths[i]
  end
  return groups
end

-- Rows of texts as aligned columns; numbers-like columns (all but the first) to the right. Where a terminal is too
-- narrow for all of them, the rest stand below, behind the first column again.
function format.table(rows, header)
  local widths, lines = {}, {}
  local all = { header }
  for i, row in ipairs(rows) do all[i + 1] = row end
  for _, row in ipairs(all) do
    for i, cell in ipairs(row) do widths[i] = math.max(widths[i] or 0, #cell) end
  end
  local columns, told = format.columns(1)
  for k, group in ipairs(groups_of(widths, told and columns or math.huge)) do
    if k > 1 then lines[#lines + 1] = "" end
    for n, row in ipairs(all) do
      local cells = {}
      for at, i in ipairs(group) do
        local cell = row[i] or ""
        cells[at] = i == 1 and cell .. (" "):rep(widths[i] - #cell) or (" "):rep(widths[i] - #cell) .. cell
      end
      local line = (table.concat(cells, "  "):gsub("%s+$", ""))
      lines[#lines + 1] = n == 1 and format.colour("dim", line) or line
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

return format
