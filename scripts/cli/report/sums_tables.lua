-- The sums of a plan (cli.report.sums) as tables of a page.
local chart = require "cli.report.chart"
local format = require "cli.base.format"
local sums = require "cli.report.sums"

local BYTES = { { "keep", "kept" }, { "recompute", "recomputed" }, { "host", "offloaded to host" },
                { "disk", "offloaded to disk" } }
local SECONDS = { { "forward", "forward" }, { "again", "recomputed" }, { "backward", "backward" } }
local TABLES = { { "types", "op type" }, { "regions", "region" }, { "layers", "layer type" } }

-- A cell for people, whose exact number is its title.
local function cell(words, exact) return ('<td title="%s">%s</td>'):format(exact, words) end

local function seconds_cell(seconds)
  return cell(seconds > 0 and format.seconds(seconds) or "-", ("%.9g s"):format(seconds))
end

local function row_of(row, class)
  local cells = { ("<td>%s</td><td>%d</td>"):format(chart.escape(row.name ~= "" and row.name or "outside of regions"),
    row.values) }
  for _, column in ipairs(BYTES) do
    local bytes = row[column[1]]
    cells[#cells + 1] = cell(bytes > 0 and format.bytes(bytes) or "-", ("%.0f bytes"):format(bytes))
  end
  for _, column in ipairs(SECONDS) do cells[#cells + 1] = seconds_cell(row[column[1]]) end
  cells[#cells + 1] = seconds_cell(sums.seconds(row))
  return (class and ('<tr class="%s">'):format(class) or "<tr>") .. table.concat(cells) .. "</tr>"
end

local function table_of(what, rows, total)
  local head = { ("<th>%s</th><th>values</th>"):format(what) }
  for _, columns in ipairs { BYTES, SECONDS } do
    for _, column in ipairs(columns) do head[#head + 1] = ("<th>%s</th>"):format(column[2]) end
  end
  head[#head + 1] = "<th>seconds</th>"
  local out = { '<div class="wide"><table class="numbers sums">', "<tr>" .. table.concat(head) .. "</tr>" }
  for _, row in ipairs(rows) do out[#out + 1] = row_of(row) end
  out[#out + 1] = row_of(total, "total")
  out[#out + 1] = "</table></div>"
  return table.concat(out, "\n")
end

-- program: the name of the program that the sums are of, if there are several; nil.
return function(self, program)
  local of = program and " of program " .. chart.escape(program) or ""
  local out = { ("<h2>The plan%s, by op type, region and layer type</h2>"):format(of) }
  local waiting = self.waiting_seconds > 0 and (" Besides these, %s of waiting for copies are predicted."):format(
    format.seconds(self.waiting_seconds)) or ""
  out[2] = ("<p>What one micro-batch holds for backward, and the seconds that its ops are predicted to take. " ..
    "Backward counts with the op that it is of.%s</p>"):format(waiting)
  for _, each in ipairs(TABLES) do out[#out + 1] = table_of(each[2], self[each[1]], self.total) end
  return table.concat(out, "\n")
end
