-- Numbers for people.
local posix = require "cli.base.posix"
local screen = require "cli.base.screen"

local format = {}

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

-- Rows of texts as aligned columns; numbers-like columns (all but the first) to the right.
function format.table(rows, header)
  local widths, lines = {}, {}
  local all = { header }
  for i, row in ipairs(rows) do all[i + 1] = row end
  for _, row in ipairs(all) do
    for i, cell in ipairs(row) do widths[i] = math.max(widths[i] or 0, #cell) end
  end
  for n, row in ipairs(all) do
    local cells = {}
    for i, cell in ipairs(row) do
      cells[i] = i == 1 and cell .. (" "):rep(widths[i] - #cell) or (" "):rep(widths[i] - #cell) .. cell
    end
    local line = (table.concat(cells, "  "):gsub("%s+$", ""))
    lines[n] = n == 1 and format.colour("dim", line) or line
  end
  return table.concat(lines, "\n") .. "\n"
end

return format
