-- report.html: a run as one page that needs nothing else, no script and no network, in light and dark.
local chart = require "cli.report.chart"
local history = require "cli.report.history"
local format = require "cli.base.format"
local sums_tables = require "cli.report.sums_tables"

local report = {}

local STYLE = [[
:root { color-scheme: light dark; --back: #fdfdfc; --text: #1d1d1b; --dim: #6b6b68; --grid: #e4e4e0; --one: #1f6fb2;
        --two: #d1690e; --bad: #c62828; }
@media (prefers-color-scheme: dark) {
  :root { --back: #161618; --text: #e9e9e6; --dim: #9a9a96; --grid: #313134; --one: #62aef0; --two: #f2a65a;
          --bad: #ff6f61; }
}
body { background: var(--back); color: var(--text); font: 15px/1.5 system-ui, sans-serif; max-width: 1400px;
       margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0 0 1rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(420px, 100%), 1fr)); gap: 1.2rem; }
figure { margin: 0; }
figcaption { font-weight: 600; }
svg { width: 100%; height: auto; }
svg text { font-size: 11px; fill: var(--dim); }
.y { text-anchor: end; }
.x { text-anchor: middle; }
.grid { stroke: var(--grid); fill: none; }
.line { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
.line.one { stroke: var(--one); }
.line.two { stroke: var(--two); }
.dot.one { fill: var(--one); }
.dot.two { fill: var(--two); }
.skip { stroke: var(--bad); stroke-width: 2; }
.key { font-weight: 400; color: var(--dim); margin-left: 1em; }
.key::before { content: ""; display: inline-block; width: 1.2em; border-top: 3px solid; margin: 0 .4em .25em 0;
               vertical-align: middle; }
.key.one::before { color: var(--one); }
.key.two::before { color: var(--two); }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .15rem 1.2rem .15rem 0; vertical-align: top; }
th { font-weight: 400; color: var(--dim); white-space: nowrap; }
.numbers td { font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
.sums { margin: .8rem 0; }
.total td { border-top: 1px solid var(--grid); }
pre { white-space: pre-wrap; overflow-wrap: anywhere; border-left: 3px solid var(--grid); padding-left: .8rem;
      margin: 0; }
]]

local KNOWN = { step = true, loss = true, seconds = true, tokens = true, gradient_norm = true, rate = true,
                outcome = true, stall_seconds = true, tokens_per_second = true, samples = true }
local MOST_ROWS = 200  -- of evaluations in the table

-- Names of the metrics in rows, beside the loss.
local function metric_names(...)
  local names, seen = {}, {}
  for _, list in ipairs { ... } do
    for _, row in ipairs(list) do
      for name in pairs(row) do
        if not KNOWN[name] and not seen[name] then names[#names + 1], seen[name] = name, true end
      end
    end
  end
  table.sort(names)
  return names
end

local function charts_of(self)
  local list, steps = {}, {}
  for i, row in ipairs(self.steps) do steps[i] = row end
  if self.last and steps[#steps] ~= self.last then steps[#steps + 1] = self.last end
  local function draw(title, name, evaluated, marks)
    local evaluations = evaluated and history.points(self.evaluations, name) or {}
    list[#list + 1] = chart.svg(title, {
      { name = "training", class = "one", points = history.points(steps, name) },
      { name = "evaluation", class = "two", points = evaluations, dots = #evaluations <= 60 },
    }, marks)
  end
  draw("Loss", "loss", true, self.skips)
  for _, name in ipairs(metric_names(self.steps, self.evaluations)) do
    draw(name:sub(1, 1):upper() .. name:sub(2):gsub("_", " "), name, true)
  end
  draw("Learning rate", "rate")
  draw("Gradient norm", "gradient_norm", false, self.skips)
  draw(self.unit == "samples" and "Samples per second" or "Tokens per second", "tokens_per_second")
  return table.concat(list, "\n")
end

local function table_of(rows)
  local out = { "<table>" }
  for _, row in ipairs(rows) do
    out[#out + 1] = ("<tr><th>%s</th><td>%s</td></tr>"):format(chart.escape(row[1]), chart.escape(row[2]))
  end
  out[#out + 1] = "</table>"
  return table.concat(out, "\n")
end

local function evaluations_of(list)
  if #list == 0 then return "" end
  local names = metric_names(list)
  local out = { '<h2>Evaluation</h2>\n<table class="numbers"><tr><th>step</th><th>loss</th>' }
  for _, name in ipairs(names) do out[1] = out[1] .. ("<th>%s</th>"):format(chart.escape(name)) end
  local first = math.max(#list - MOST_ROWS, 0) + 1
  if first > 1 then out[#out + 1] = ("<tr><td>... %d before</td></tr>"):format(first - 1) end
  for i = first, #list do
    local row = list[i]
    local cells = { ("<td>%d</td><td>%s</td>"):format(row.step, row.loss and chart.short(row.loss) or "-") }
    for _, name in ipairs(names) do
      cells[#cells + 1] = ("<td>%s</td>"):format(row[name] and chart.short(row[name]) or "-")
    end
    out[#out + 1] = "<tr>" .. table.concat(cells) .. "</tr>"
  end
  return table.concat(out, "\n") .. "\n</table>"
end

local function samples_of(list)
  if #list == 0 then return "" end
  local out = { "<h2>Samples</h2>" }
  for i = #list, 1, -1 do
    out[#out + 1] = ("<p>after step %d</p><pre>%s</pre>"):format(list[i].step, chart.escape(list[i].text))
  end
  return table.concat(out, "\n")
end

-- The page of a history (cli.report.history). about: rows {what, text}; the first is the title. sums: of the run's plan
-- (cli.report.sums; optional).
function report.page(self, about, sums)
  local title, rows = about[1][2], {}
  for i = 2, #about do rows[#rows + 1] = about[i] end
  if self.last then
    rows[#rows + 1] = { "last step", ("%d: loss %s"):format(self.last.step, chart.short(self.last.loss or 0 / 0)) }
  end
  rows[#rows + 1] = { "skipped steps", format.count(self.skipped) }
  return table.concat({
    "<!doctype html>", '<html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    "<title>" .. chart.escape(title) .. "</title>", "<style>", STYLE .. "</style></head><body>",
    "<h1>" .. chart.escape(title) .. "</h1>", table_of(rows), '<h2>Training</h2>\n<div class="charts">',
    charts_of(self), "</div>", evaluations_of(self.evaluations), samples_of(self.samples),
    sums and sums_tables(sums, sums.program) or "", "</body></html>",
  }, "\n") .. "\n"
end

return report
