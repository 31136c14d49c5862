-- The pictures of a plan's page as files of their own:  luajit scripts/pictures.lua PLAN.html DIR
-- Writes DIR/budget.svg, seconds over the budget, and DIR/memory.svg, memory over time. `./dev quickstart --pictures
-- DIR` draws those of the documentation with it.
local pictures = {}

local NAMES = { ["Seconds of forward and backward over the budget"] = "budget.svg",
                ["Device memory over one forward and backward"] = "memory.svg" }

-- What only answers a mouse: nothing does where a page shows a picture as an image.
local function without_hovers(svg)
  for _, shape in ipairs { "rect", "circle" } do
    svg = svg:gsub(("<%s class='h'.-</%s>"):format(shape, shape), "")
  end
  return (svg:gsub("<title>.-</title>", ""))
end

-- { file name = text } of a page that `cairn plan --html` or `cairn train --out` wrote.
function pictures.of(html)
  local style = html:match("<style>[^<]*%.ink{[^<]*</style>")
  if not style then error("no page about a plan: its pictures have no style", 0) end
  local found = {}
  for svg in html:gmatch("<svg.-</svg>") do
    local name = NAMES[svg:match("aria%-label='([^']*)'")]
    if name then found[name] = without_hovers(svg):gsub(">", ">" .. style:gsub("%%", "%%%%"), 1) .. "\n" end
  end
  for label, name in pairs(NAMES) do
    if not found[name] then error(("the page has no picture '%s'"):format(label), 0) end
  end
  return found
end

function pictures.write(page, folder)
  local file = assert(io.open(page, "rb"))
  local html = file:read("*a")
  file:close()
  for name, text in pairs(pictures.of(html)) do
    local out = assert(io.open(folder .. "/" .. name, "wb"))
    assert(out:write(text))
    assert(out:close())
  end
end

if arg and arg[0] and arg[0]:match("pictures%.lua$") then pictures.write(arg[1], arg[2]) end
return pictures
