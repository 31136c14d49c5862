-- Policies for regions by the patterns of their paths; chains of blocks that are checkpointed by hand.
local cairn = require "cairn"
local harness = require "harness"
local nn = cairn.nn
local test, equal, raises, fails = harness.test, harness.equal, harness.raises, harness.fails

local device = assert(cairn.device("reference", { threads = 1 }))

local function layer(inside)
  local function part(name) return nn.Region(name, nil, nn.Sequential():add(nn.Linear(8, 8)):add(nn.GELU())) end
  return inside and nn.Sequential():add(part("a")):add(part("b")) or part("a")
end

local function model(segments, count)
  local net = nn.Sequential()
  nn.add_blocks(net, count or 4, segments, function(i) return layer(true), "blocks." .. i end)
  local graph = assert(cairn.graph())
  return assert(graph:freeze(nn.attach(graph, net:add(nn.Linear(8, 1)), nn.MSECriterion(), { 64, 8 })))
end

-- The regions of which something is decided so, in order, with blanks between.
local function regions_of(decision, graph, options)
  local plan = assert(cairn.plan(graph, device, options))
  local seen, list = {}, {}
  for _, row in ipairs(plan:values()) do
    if row.decision == decision and row.region ~= "" and not seen[row.region] then
      seen[row.region], list[#list + 1] = true, row.region
    end
  end
  table.sort(list)
  return table.concat(list, " ")
end

test("rows give regions policies, the last that matches counts, and all count before the plan's policy", function()
  equal(regions_of("recompute", model(), {}), "")
  equal(regions_of("recompute", model(), { regions = { { pattern = "h1/*", policy = "recompute" } } }), "h1/a h1/b")
  local rows = { { pattern = "h[0-2]", policy = "keep" } }
  equal(regions_of("recompute", model(), { policy = "recompute", regions = rows }), "h3/a h3/b")
  rows = { { pattern = "**/b", policy = "recompute" }, { pattern = "h3/*", policy = "keep" } }
  equal(regions_of("recompute", model(), { regions = rows }), "h0/b h1/b h2/b")
  equal(regions_of("recompute", model(), { regions = {} }), "")
end)

test("a row names a tier", function()
  local plan = assert(cairn.plan(model(), device, { regions = { { pattern = "h1/a", policy = "offload:disk" } } }))
  local tiers = {}
  for _, row in ipairs(plan:values()) do
    if row.decision == "offload" then tiers[#tiers + 1] = row.region .. " " .. row.tier end
  end
  for _, text in ipairs(tiers) do equal(text, "h1/a disk") end
end)

test("rows that are none raise, and rows that fit nothing fail", function()
  local function with(rows) return function() return cairn.plan(model(), device, { regions = rows }) end end
  raises(with("h0=keep"), "regions: table expected")
  raises(with { pattern = "h0", policy = "keep" }, "unknown 'p")
  raises(with { "h0" }, "regions[1]: table expected")
  raises(with { { policy = "keep" } }, "regions[1].pattern")
  raises(with { { pattern = "h0" } }, "regions[1].policy")
  raises(with { { pattern = "h0", policy = "kep" } }, "'kep' is none of")
  raises(with { { pattern = "h0", policy = "offload:tape" } }, "'tape' is none of")
  raises(with { { pattern = "h0", policy = "keep", tier = "host" } }, "unknown 'tier'")
  fails("INVALID_ARGUMENT", with { { pattern = "h0", policy = "planner" } }())
  fails("INVALID_ARGUMENT", with { { pattern = "h0", policy = "keep:host" } }())
  local err = fails("NOT_FOUND", with { { pattern = "h*/c", policy = "keep" } }())
  for _, text in ipairs { "'h*/c'", "'h0/a'" } do assert(tostring(err):find(text, 1, true), tostring(err)) end
end)

test("segments are cut as they are asked for", function()
  for _, row in ipairs { { "auto", 9, nil }, { nil, 9, nil }, { "block", 9, 1 }, { "sqrt", 9, 3 }, { "sqrt", 1, 1 },
                         { "sqrt", 2, 1 }, { "sqrt", 3, 2 }, { "sqrt", 12, 3 }, { "sqrt", 13, 4 }, { "4", 9, 4 },
                         { 4, 9, 4 }, { "9", 9, 9 } } do
    local size, wrong = nn.segment_size(row[1], row[2])
    equal(size, row[3], ("%s of %d"):format(tostring(row[1]), row[2]))
    equal(wrong, nil)
  end
  for _, bad in ipairs { "0", "-1", "1.5", "", "two", "10", 0, 2.5, "1e0", " 2", "blocks" } do
    local size, wrong = nn.segment_size(bad, 9)
    equal(size, nil)
    assert(wrong and wrong:find("segments=" .. bad, 1, true) and wrong:find("wanted: auto, block, sqrt"), bad)
  end
  raises(function() nn.add_blocks(nn.Sequential(), 4, "none", layer) end, "regions_test.lua:", "segments=none")
end)

test("a segment's inside is made again, and names of parameters stay", function()
  local function names(graph)
    local list = {}
    for i, row in ipairs(graph:parameters()) do list[i] = row.name end
    return table.concat(list, " ")
  end
  local all = names(model())
  for _, segments in ipairs { "block", "sqrt", "3", "4" } do equal(names(model(segments)), all, segments) end
  equal(regions_of("recompute", model("block"), {}), "h0/a h0/b h1/a h1/b h2/a h2/b h3/a h3/b")
  equal(regions_of("recompute", model("2"), {}),
    "s0/h0/a s0/h0/b s0/h1/a s0/h1/b s1/h2/a s1/h2/b s1/h3/a s1/h3/b")
  equal(regions_of("recompute", model("3"), { regions = { { pattern = "**/h1", policy = "keep" } } }),
    "s0/h0/a s0/h0/b s0/h2/a s0/h2/b s1/h3/a s1/h3/b")
  local function peak(segments)
    return assert(assert(cairn.plan(model(segments, 9), device, {})):summary()).peak_bytes.device
  end
  assert(peak("sqrt") < peak("auto"))
end)

return harness.finish()
