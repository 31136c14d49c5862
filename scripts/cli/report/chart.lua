-- Curves over steps as inline SVG; colours come from the page's style.
local chart = {}

local WIDTH, HEIGHT = 640, 220
local LEFT, RIGHT, TOP, BOTTOM = 62, 14, 10, 26
local TICKS = 4

function chart.escape(text)
  return (tostring(text):gsub("[&<>\"]", { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }))
end

-- Numbers for people, short.
function chart.short(value)
  local size = math.abs(value)
  if value == math.floor(value) and size < 1e6 then return ("%d"):format(value) end
  if size >= 1e-3 and size < 1e6 then return (("%.4g"):format(value)) end
  return ("%.3g"):format(value)
end

-- Round numbers that part [low, high] in about `count` pieces.
local function ticks(low, high, count)
  local raw = (high - low) / count
  local scale = 10 ^ math.floor(math.log10(raw))
  local step = 10 * scale
  for _, factor in ipairs { 1, 2, 5 } do
    if raw <= factor * scale * 1.0001 then
      step = factor * scale
      break
    end
  end
  local list, at = {}, math.ceil(low / step - 1e-9)
  while at * step <= high + 1e-9 * step do
    list[#list + 1] = at * step
    at = at + 1
  end
  return list
end

local function range(series, at)
  local low, high = math.huge, -math.huge
  for _, each in ipairs(series) do
    for _, point in ipairs(each.points) do low, high = math.min(low, point[at]), math.max(high, point[at]) end
  end
  return low, high
end

-- series: {name, class, points ({step, value} in order), dots}. marks: steps to mark at the bottom. nil: there is
-- nothing to draw.
function chart.svg(title, series, marks)
  local shown = {}
  for _, each in ipairs(series) do
    if #each.points > 0 then shown[#shown + 1] = each end
  end
  if #shown == 0 then return nil end
  local x0, x1 = range(shown, 1)
  local y0, y1 = range(shown, 2)
  if x1 == x0 then x0, x1 = x0 - 1, x1 + 1 end
  local room = (y1 - y0) * 0.05
  if room == 0 then room = math.max(math.abs(y0) * 0.1, 1e-12) end
  y0, y1 = (y0 >= 0 and y0 - room < 0) and 0 or y0 - room, y1 + room
  local function x(step) return LEFT + (step - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT) end
  local function y(value) return TOP + (y1 - value) / (y1 - y0) * (HEIGHT - TOP - BOTTOM) end
  local out = { ('<figure><figcaption>%s'):format(chart.escape(title)) }
  if #shown > 1 then
    for _, each in ipairs(shown) do
      out[#out + 1] = (' <span class="key %s">%s</span>'):format(each.class, chart.escape(each.name))
    end
  end
  out[#out + 1] = ('</figcaption><svg viewBox="0 0 %d %d" role="img" aria-label="%s over steps">'):format(WIDTH, HEIGHT,
    chart.escape(title))
  for _, value in ipairs(ticks(y0, y1, TICKS)) do
    out[#out + 1] = ('<path class="grid" d="M%d %.1fH%d"/><text x="%d" y="%.1f" class="y">%s</text>'):format(LEFT,
      y(value), WIDTH - RIGHT, LEFT - 6, y(value) + 4, chart.short(value))
  end
  for _, step in ipairs(ticks(x0, x1, TICKS + 2)) do
    if step == math.floor(step) and step >= 0 then
      out[#out + 1] = ('<text x="%.1f" y="%d" class="x">%d</text>'):format(x(step), HEIGHT - 8, step)
    end
  end
  for _, each in ipairs(shown) do
    local path = {}
    for i, point in ipairs(each.points) do
      path[i] = ("%s%.1f %.1f"):format(i == 1 and "M" or "L", x(point[1]), y(point[2]))
    end
    out[#out + 1] = ('<path class="line %s" d="%s"/>'):format(each.class, table.concat(path))
    if each.dots or #each.points == 1 then
      for _, point in ipairs(each.points) do
        out[#out + 1] = ('<circle class="dot %s" cx="%.1f" cy="%.1f" r="3"><title>step %d: %s</title></circle>'):format(
          each.class, x(point[1]), y(point[2]), point[1], chart.short(point[2]))
      end
    end
  end
  for _, step in ipairs(marks or {}) do
    if step >= x0 and step <= x1 then
      out[#out + 1] = ('<path class="skip" d="M%.1f %dv-8"><title>skipped after step %d</title></path>'):format(x(step),
        HEIGHT - BOTTOM, step)
    end
  end
  out[#out + 1] = "</svg></figure>"
  return table.concat(out)
end

return chart
