-- The same numbers of a plan, for JSON and for people.
local cairn = require "cairn"
local core = require "cairn.core"
local format = require "cli.base.format"
local json = require "cli.base.json"

local summary = {}

function summary.tiers(bytes)
  return json.object { { "device", bytes.device }, { "host", bytes.host }, { "disk", bytes.disk } }
end

local CATEGORIES = { "parameters", "gradients", "optimizer", "activations", "workspace" }

function summary.memory(plan)
  local rows = {}
  for i, name in ipairs(CATEGORIES) do rows[i] = { name, plan[name .. "_bytes"] } end
  return json.object(rows)
end

local AWAY = { "parameters", "gradients", "optimizer", "activations" }

-- What lies in the lower tiers, at their peaks.
function summary.tier_bytes(plan)
  local tiers = {}
  for i, tier in ipairs { "host", "disk" } do
    local rows = {}
    for k, name in ipairs(AWAY) do rows[k] = { name, plan.tier_bytes[tier][name] } end
    tiers[i] = { tier, json.object(rows) }
  end
  return json.object(tiers)
end

-- The tier where the optimizer updates what the host tier holds: "device" or "host".
function summary.update_at(plan) return core.TIERS[plan.counters.update_at] end

-- What the library's plans count, by name.
function summary.counters(plan)
  local rows = {}
  for i, row in ipairs(cairn.plan_counters()) do rows[i] = { row.name, plan.counters[row.name] } end
  return json.object(rows)
end

-- Those that are not 0, as one line.
function summary.counters_text(plan)
  local words = {}
  for _, row in ipairs(cairn.plan_counters()) do
    local value = plan.counters[row.name]
    if value ~= 0 then words[#words + 1] = ("%s %s"):format(row.name, format.count(value)) end
  end
  return #words > 0 and table.concat(words, ", ") or "all 0"
end

-- Seconds of a step whose micro-batches take `seconds` each in their plan: no plan changes what is around it.
function summary.step_seconds(plan, seconds, micro_steps)
  return (seconds + plan.host_seconds + (plan.sums_seconds or 0)) * micro_steps + plan.update_seconds
end

-- micro_steps: micro-batches of a step; the library's seconds are of one.
function summary.plan(plan, micro_steps)
  local rows = {}
  for i, name in ipairs { "keep_bytes", "recompute_bytes", "offload_host_bytes", "offload_disk_bytes" } do
    rows[i] = { name, plan[name] }
  end
  local predicted = summary.step_seconds(plan, plan.predicted_seconds, micro_steps)
  local bound = summary.step_seconds(plan, plan.bound_seconds, micro_steps)
  rows[5] = { "predicted_step_seconds", predicted }
  rows[6] = { "bound_step_seconds", bound }
  rows[7] = { "gap", bound > 0 and predicted / bound - 1 or plan.gap }
  rows[8] = { "solve_seconds", plan.solve_seconds }
  rows[9] = { "keep_all_step_seconds", summary.step_seconds(plan, plan.keep_all_seconds, micro_steps) }
  rows[10] = { "optimizer_host_bytes", plan.optimizer_host_bytes }
  rows[11] = { "optimizer_disk_bytes", plan.optimizer_disk_bytes }
  for i, name in ipairs { "packed_bytes", "unpacked_bytes", "deferred_updates", "host_updates", "host_adds" } do
    rows[11 + i] = { name, plan.counters[name] }
  end
  rows[17] = { "rates", plan.rates.source }
  rows[18] = { "update_at", summary.update_at(plan) }
  rows[19] = { "counters", summary.counters(plan) }
  return json.object(rows)
end

local function share(part, whole) return whole > 0 and format.percent(part / whole) or "0.0%" end

-- Lines about memory: categories at the peak, decisions, peaks. `measured`: peaks by tier, or nil before a run.
function summary.lines(plan, measured)
  local peak = plan.peak_bytes.device
  local rows = {}
  for i, name in ipairs(CATEGORIES) do
    local bytes = plan[name .. "_bytes"]
    rows[i] = { "  " .. name, format.bytes(bytes), share(bytes, peak) }
  end
  local text = { format.table(rows, { "memory at the peak", "", "" }) }
  local decided = {}
  for _, row in ipairs { { "kept", plan.keep_bytes }, { "recomputed", plan.recompute_bytes },
                         { "offloaded to host", plan.offload_host_bytes },
                         { "offloaded to disk", plan.offload_disk_bytes } } do
    if row[2] > 0 then decided[#decided + 1] = format.bytes(row[2]) .. " " .. row[1] end
  end
  text[#text + 1] = "for backward      " .. (#decided > 0 and table.concat(decided, ", ") or "nothing to hold") .. "\n"
  local homes = {}
  for _, row in ipairs { { "host", plan.optimizer_host_bytes }, { "disk", plan.optimizer_disk_bytes } } do
    local there = row[1] == summary.update_at(plan) and "updated there" or "through the device in every update"
    if row[2] > 0 then homes[#homes + 1] = ("%s on the %s, %s"):format(format.bytes(row[2]), row[1], there) end
  end
  local deferred, on_host = plan.counters.deferred_updates, plan.counters.host_updates
  local beside, by_host = on_host - deferred, ""
  if beside > 0 then
    by_host = (", and of %s during backward, by the host's processors"):format(format.count(beside))
  elseif on_host > 0 then
    by_host = (", %s by the host's processors"):format(format.count(on_host))
  end
  if deferred + on_host > 0 then
    text[#text + 1] = ("updates           of %s parameters during the next forward part%s, to the same bits\n"):format(
      format.count(deferred), by_host)
  end
  if plan.counters.host_adds > 0 then
    text[#text + 1] = ("gradients         of %s parameters added up by the host's processors\n"):format(
      format.count(plan.counters.host_adds))
  end
  if #homes > 0 then text[#text + 1] = ("optimizer state   %s\n"):format(table.concat(homes, "; ")) end
  for _, tier in ipairs { "host", "disk" } do
    local bytes, parts = plan.tier_bytes[tier], {}
    local in_place = tier == summary.update_at(plan) and plan.counters.host_updates == 0
    for _, row in ipairs { { "parameters", "fetched for every use" },
                           { "gradients", in_place and "added to there" or "fetched for every use" },
                           { "optimizer", "fetched for updates" } } do
      local name, how = row[1], row[2]
      local streamed = name == "optimizer" and plan["optimizer_" .. tier .. "_bytes"] or 0  -- said above
      local here = bytes[name] - streamed
      if here > 0 then parts[#parts + 1] = ("%s of %s, %s"):format(format.bytes(here), name, how) end
    end
    if #parts > 0 then text[#text + 1] = ("stored on %-7s %s\n"):format(tier, table.concat(parts, "; ")) end
  end
  if plan.counters.unpacked_bytes > 0 then
    text[#text + 1] = ("packed weights    %s kept, %s given up: packed at every use\n"):format(
      format.bytes(plan.counters.packed_bytes), format.bytes(plan.counters.unpacked_bytes))
  end
  local decoded = plan.counters.derived_bytes - plan.counters.packed_bytes
  if decoded > 0 then text[#text + 1] = ("decoded weights   %s kept\n"):format(format.bytes(decoded)) end
  for _, tier in ipairs { "device", "host", "disk" } do
    local planned = plan.peak_bytes[tier]
    local found = measured and measured[tier]
    if planned > 0 or (found and found > 0) then
      local line = ("peak, %-11s planned %s bytes"):format(tier, format.count(planned))
      if found then
        line = line .. (", measured %s bytes"):format(format.count(found))
        line = line .. (found == planned and format.colour("green", "  equal") or format.colour("red", "  DIFFERENT"))
      end
      text[#text + 1] = line .. "\n"
    end
  end
  return table.concat(text)
end

return summary
