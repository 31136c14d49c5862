-- What `cairn verify` compares: bits inside a group of runs, planned and measured bytes in every run, and one batch
-- with the same samples in parts.
local ffi = require "ffi"
local fail = require "cli.base.fail"
local format = require "cli.base.format"
local json = require "cli.base.json"
local summary = require "cli.plan.summary"

local verdict = {}

verdict.PARTS = "3 micro-batches"  -- a group: one effective batch in parts
verdict.WIDE = "1 batch"  -- compared with its parts by value, not by bits: sums add up in another order
-- Relative, by --amp: of losses and norms, and of the gradients of one tensor. Where products add up in another
-- order, rounding to 16 bits may fall the other way.
local TOLERANCES = { off = { loss = 1e-6, gradient = 1e-5 }, bf16 = { loss = 1e-4, gradient = 2e-2 },
                     fp16 = { loss = 1e-4, gradient = 2e-2 } }
-- The least that the gradient of a tensor is taken for, as a share of the whole: what is nothing but rounding, since
-- the true gradient is 0, has no digits to compare.
local LEAST_SHARE = 1e-2
-- What gradients of one batch and of its parts are compared of: the key in the JSON, words, and how they are taken.
verdict.GRADIENTS = {
  { key = "gradients_apart", words = "gradients of one batch and of its parts" },
  { key = "gradients_apart_after_skip", words = "the same after a step that was skipped", skips = true },
  { key = "gradients_apart_frozen", words = "the same with some parameters frozen", frozen = true },
}
local TIERS = { "device", "host", "disk" }

-- All parameters; or what each has under its name and `suffix`, those left out that have nothing there.
local function parameters(run, suffix)
  local list = {}
  for _, info in ipairs(run.graph:parameters()) do
    local count = 1
    for _, dim in ipairs(info.shape) do count = count * dim end
    local buffer = ffi.new(info.dtype == "f64" and "double[?]" or "float[?]", count)
    local ok, err = run.session:read(info.name .. (suffix or ""), buffer, count * (info.dtype == "f64" and 8 or 4))
    if ok then
      list[#list + 1] = { name = info.name, buffer = buffer, count = count }
    elseif not suffix or err.status ~= "NOT_FOUND" then
      fail.check(info.name, nil, err)
    end
  end
  return list
end

-- The gradients of all parameters, which lie there times `scale`.
function verdict.gradients(run, scale)
  local list = parameters(run, "/gradient")
  for _, one in ipairs(scale ~= 1 and list or {}) do
    for at = 0, one.count - 1 do one.buffer[at] = one.buffer[at] / scale end
  end
  return list
end

-- The largest difference of a tensor's two gradients, as a share of the gradient, and whose it is.
function verdict.gradients_apart(ours, theirs)
  local rows, whole = {}, 0
  for i, one in ipairs(ours) do
    local difference, square = 0, 0
    for at = 0, one.count - 1 do
      local a, b = one.buffer[at], theirs[i].buffer[at]
      difference, square = difference + (a - b) * (a - b), square + b * b
    end
    rows[i], whole = { math.sqrt(difference), math.sqrt(square) }, whole + square
  end
  local most, where = 0, nil
  for i, row in ipairs(rows) do
    local share = row[1] == 0 and 0 or row[1] / math.max(row[2], LEAST_SHARE * math.sqrt(whole))
    if share ~= share then return math.huge, ours[i].name end
    if share > most then most, where = share, ours[i].name end
  end
  return most, where
end

-- The largest absolute difference of any parameter, and whose it is.
local function largest_difference(ours, theirs)
  local most, where = 0, nil
  for i, one in ipairs(ours) do
    local other = theirs[i]
    for at = 0, one.count - 1 do
      local difference = math.abs(one.buffer[at] - other.buffer[at])
      if difference > most or difference ~= difference then
        most, where = difference, one.name
        if difference ~= difference then return math.huge, where end
      end
    end
  end
  return most, where
end

-- Compares a finished run with the first of its group, whose parameters are kept; a wide batch with its parts.
function verdict.compare(groups, result, run)
  local first = groups[result.group]
  if result.group == verdict.WIDE then
    first = groups[verdict.PARTS]
  elseif not first then
    groups[result.group] = { name = result.name, digest = result.digest, loss = result.loss, norm = result.norm,
                             loss_scale = result.loss_scale, micro_batches = result.micro_batches,
                             parameters = parameters(run) }
    result.same_bits, result.difference = true, 0
    return
  end
  result.against = first
  result.same_bits, result.difference = result.digest == first.digest, 0
  if not result.same_bits then
    result.difference, result.where = largest_difference(parameters(run), first.parameters)
  end
end

local function near(a, b, tolerance) return math.abs(a - b) <= tolerance * math.max(math.abs(a), math.abs(b)) end

local function same_losses(a, b)
  for i, loss in ipairs(a) do
    if loss ~= b[i] then return false end
  end
  return true
end

-- Fills result.ok; returns problems as texts.
function verdict.judge(results, amp)
  local problems, tolerances = {}, TOLERANCES[amp or "off"]
  for _, result in ipairs(results) do
    local before, name, first = #problems, result.group .. ", " .. result.name, result.against
    local function problem(text, ...) problems[#problems + 1] = name .. ": " .. text:format(...) end
    if not result.exact then problem("the measured peak is not the planned one") end
    if result.budget and result.measured.device > result.budget then
      problem("took %d bytes of its budget of %d", result.measured.device, result.budget)
    end
    for _, text in ipairs(result.wrong) do problem("%s", text) end
    if result.fell_back then problem("the disk tier failed and a plan without it went on") end
    if result.group == verdict.WIDE then
      if not (near(first.norm, result.norm, tolerances.loss) and near(first.loss[1], result.loss[1], tolerances.loss))
      then
        problem("loss %.9g, gradient norm %.9g; its parts accumulated: %.9g, %.9g", result.loss[1], result.norm,
          first.loss[1], first.norm)
      end
      if first.loss_scale ~= result.loss_scale then  -- of the first step that was not skipped
        problem("loss scale %g; its parts accumulated: %g", result.loss_scale, first.loss_scale)
      end
      for _, each in ipairs(result.gradients) do
        if each.apart > tolerances.gradient then
          problem("%s: the gradient of %s is %.3g apart from its parts' accumulated", each.row.words, each.where,
            each.apart)
        end
      end
    elseif not result.same_bits then
      problem('not the parameters of "%s": up to %.3g apart, in %s', first.name, result.difference, result.where or "?")
    elseif first and not same_losses(first.loss, result.loss) then
      problem('not the losses of "%s"', first.name)
    end
    result.ok = #problems == before
  end
  return problems
end

-- Whether nothing told the plans of all runs with one micro-batch apart.
function verdict.same_plans(results)
  local first
  for _, result in ipairs(results) do
    if result.micro_batches == 1 and result.group ~= verdict.WIDE then
      local plan = result.plan
      first = first or plan
      for _, key in ipairs { "keep_bytes", "recompute_bytes", "offload_host_bytes", "offload_disk_bytes" } do
        if plan[key] ~= first[key] then return false end
      end
    end
  end
  return true
end

local function counts(results)
  local equal, exact = 0, 0
  for _, result in ipairs(results) do
    equal, exact = equal + (result.same_bits and 1 or 0), exact + (result.exact and 1 or 0)
  end
  return equal, exact
end

function verdict.json(results, problems, about)
  local list, apart = {}, {}
  for i, row in ipairs(verdict.GRADIENTS) do
    apart[i] = { row.key }
    for _, each in ipairs(results[#results].gradients) do
      if each.row == row then apart[i][2] = each.apart end
    end
  end
  for i, result in ipairs(results) do
    local plan = result.plan
    list[i] = json.object {
      { "name", result.name }, { "group", result.group }, { "accumulate", result.micro_batches },
      { "ok", result.ok }, { "equal", result.same_bits }, { "largest_difference", result.difference },
      { "parameter_digest", result.digest }, { "loss", json.array(result.loss) }, { "gradient_norm", result.norm },
      { "skipped_steps", result.skipped }, { "frozen_parameters", result.frozen },
      { "peak_is_planned", result.exact }, { "peak_bytes", summary.tiers(result.measured) },
      { "planned_peak_bytes", summary.tiers(result.planned) }, { "budget_bytes", plan.budget_bytes },
      { "keep_bytes", plan.keep_bytes }, { "recompute_bytes", plan.recompute_bytes },
      { "offload_host_bytes", plan.offload_host_bytes }, { "offload_disk_bytes", plan.offload_disk_bytes },
      { "seconds", result.seconds } }
  end
  local equal, exact = counts(results)
  return json.object {
    { "ok", #problems == 0 }, { "problems", json.array(problems) },
    { "notes", json.array(about.notes) }, { "steps", about.steps },
    apart[1], apart[2], apart[3],
    { "link_bytes_per_second", about.link }, { "bit_equal_runs", equal }, { "peaks_as_planned", exact },
    { "runs", json.array(list) }, { "seconds", about.seconds } }
end

local function difference_text(result)
  if result.same_bits then return "same bits" end
  return ("%.2g apart"):format(result.difference)
end

function verdict.text(results, problems, about)
  local text, rows, group = {}, {}, nil
  local function flush()
    if group then
      text[#text + 1] = format.colour("bold", group) .. "\n" .. format.table(rows,
        { "run", "parameters", "bits", "last loss", "recomputed", "offloaded", "device", "host", "disk", "peaks", "" })
    end
    rows = {}
  end
  for _, result in ipairs(results) do
    if result.group ~= group then
      flush()
      group = result.group
    end
    local row = { result.name, result.digest:sub(1, 12), difference_text(result),
                  ("%.6f"):format(result.loss[#result.loss]), format.bytes(result.plan.recompute_bytes),
                  format.bytes(result.plan.offload_host_bytes + result.plan.offload_disk_bytes) }
    for _, tier in ipairs(TIERS) do row[#row + 1] = format.bytes(result.measured[tier]) end
    row[#row + 1], row[#row + 2] = result.exact and "= planned" or "NOT planned", result.ok and "ok" or "WRONG"
    rows[#rows + 1] = row
  end
  flush()
  local equal = counts(results)
  text[#text + 1] = ("%d runs of %d steps in %s; %d with the bits of their group's first%s\n"):format(
    #results, about.steps, format.seconds(about.seconds), equal,
    about.link and ("; slow host: %s/s"):format(format.bytes(about.link)) or "")
  for _, each in ipairs(results[#results].gradients) do
    text[#text + 1] = ("%s: %s\n"):format(each.row.words,
      each.where and ("at most %.2g apart, in %s"):format(each.apart, each.where) or "same bits")
  end
  for _, note in ipairs(about.notes) do text[#text + 1] = format.colour("yellow", "note: " .. note) .. "\n" end
  for _, problem in ipairs(problems) do text[#text + 1] = format.colour("red", problem) .. "\n" end
  if #problems == 0 then
    text[#text + 1] = format.colour("green", "all plans give the same bits, and take the memory they promise") .. "\n"
  end
  return table.concat(text)
end

return verdict
