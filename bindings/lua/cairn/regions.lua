-- Policies for regions by the patterns of their paths, as plans take them.
local ffi = require "ffi"
local core = require "cairn.core"
local graphs = require "cairn.graph"

local regions = {}

local set_policy = core.word("policy", graphs.POLICIES)
local set_tier = core.word("tier", core.LOWER_TIERS)

-- The option `regions`: { { pattern = "h*/attn", policy = "recompute" }, { pattern = "h0", policy = "offload:disk" } }.
function regions.set(struct, list, anchors)
  core.expect_type(list, "table", "regions", 4)
  for key in pairs(list) do
    if type(key) ~= "number" or key < 1 or key > #list then
      error(("regions: unknown '%s'; wanted: a list of { pattern =, policy = }"):format(tostring(key)), 4)
    end
  end
  local array = ffi.new("cairn_region_policy_t[?]", math.max(#list, 1))
  for i, row in ipairs(list) do
    local what = ("regions[%d]"):format(i)
    core.expect_type(row, "table", what, 4)
    for key in pairs(row) do
      if key ~= "pattern" and key ~= "policy" then
        error(("%s: unknown '%s' (known: pattern policy)"):format(what, tostring(key)), 4)
      end
    end
    array[i - 1].pattern = core.expect_type(row.pattern, "string", what .. ".pattern", 4)
    local word, tier = graphs.Graph.policy_words(core.expect_type(row.policy, "string", what .. ".policy", 4))
    set_policy(array[i - 1], word)
    if tier then set_tier(array[i - 1], tier) end
  end
  struct.region_policies, struct.region_policy_count = array, #list
  anchors[#anchors + 1], anchors[#anchors + 2] = array, list
end

return regions
