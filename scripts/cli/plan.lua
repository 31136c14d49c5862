-- cairn plan RECIPE [key=value ...]: what a run would take. Or --problem FILE: solves a planning problem.
local args = require "cli.args"
local cairn = require "cairn"
local fail = require "cli.fail"
local format = require "cli.format"
local json = require "cli.json"
local recipes = require "cli.recipe"
local runs = require "cli.run"
local summary = require "cli.summary"

local USAGE = "cairn plan RECIPE [key=value ...] [options], or cairn plan --problem FILE [--budget BYTES|N%]"
local KNOWN = args.known("device threads budget amp policy tiers link seed steps json quiet accumulate", {
  sweep = { args.FLAG, "plans over budgets, from keeping everything down to the smallest that fits" },
  html = { args.text, "writes the plan as one HTML page", "FILE" },
  problem = { args.text, "plans this problem (JSON, cairn.problem/1) instead of a recipe", "FILE" },
  ["problem-out"] = { args.text, "writes the recipe's problem as JSON", "FILE" },
  ["plan-out"] = { args.text, "writes the plan as a binary file, for cairn inspect", "FILE" },
})
local SWEEP = { 1, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6, 0.55, 0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1,
                0.05 }
local NO_LIMIT = 2 ^ 62

local function read_file(path, what)
  local file, problem = io.open(path, "rb")
  if not file then fail.input(what .. ": " .. problem) end
  local text, reason = file:read("*a")
  file:close()
  if not text then fail.with(5, ("%s: %s: %s"):format(what, path, reason)) end
  return text
end

local function write_file(path, text)
  local file, problem = io.open(path, "wb")
  if not file then fail.with(5, problem) end
  local ok, reason = file:write(text)
  ok = file:close() and ok
  if not ok then fail.with(5, ("%s: %s"):format(path, reason or "cannot be written")) end
end

-- A number of the plan form, from its text.
local function field(text, name) return tonumber(text:match('"' .. name .. '"%s*:%s*([%d.eE+-]+)')) end

local function solve_problem(options)
  local problem = read_file(options.problem, "--problem")
  local budget = options.budget and options.budget.bytes or 0
  if options.budget and options.budget.share then
    local whole = fail.check(options.problem, cairn.problem_solve(problem, NO_LIMIT, "json"))
    budget = math.floor(field(whole, "arena_bytes") * options.budget.share)
  end
  local text = fail.check(options.problem, cairn.problem_solve(problem, budget, "json"))
  if options.html then
    write_file(options.html, fail.check(options.problem, cairn.problem_solve(problem, budget, "html")))
  end
  if options.json then
    io.stdout:write(text, text:sub(-1) == "\n" and "" or "\n")
    return 0
  end
  io.stdout:write(("budget     %s bytes\narena      %s bytes\n"):format(format.count(field(text, "budget_bytes")),
    format.count(field(text, "arena_bytes"))))
  io.stdout:write(("predicted  %s, keeping everything %s\nbound      %s, gap %s\nsolved in  %s\n"):format(
    format.seconds(field(text, "predicted_seconds")), format.seconds(field(text, "keep_all_seconds")),
    format.seconds(field(text, "bound_seconds")), format.percent(field(text, "gap")),
    format.seconds(field(text, "solve_seconds"))))
  return 0
end

local function rows_of(plan, micro_steps)
  return {
    { "budget_bytes", plan.budget_bytes }, { "plan", summary.plan(plan, micro_steps) },
    { "planned_peak_bytes", summary.tiers(plan.peak_bytes) }, { "activation_peak_bytes", plan.activation_peak_bytes },
    { "memory_bytes", summary.memory(plan) }, { "live_peak_bytes", plan.live_peak_bytes },
    { "persistent_bytes", plan.persistent_bytes }, { "values", plan.value_count }, { "ops", plan.op_count },
    { "instructions", plan.instruction_count }, { "regions", plan.region_count },
  }
end

-- Plans from keeping everything down to the smallest budget that fits.
local function sweep(graph, device, options)
  local base = runs.plan_options(options)
  local function try(change)
    local wanted = {}
    for key, value in pairs(base) do wanted[key] = value end
    wanted.budget_bytes, wanted.budget_share = change.bytes, change.share
    local plan, err = cairn.plan(graph, device, wanted)
    if not plan then
      if err.status ~= "OVER_BUDGET" then fail.check("plan", nil, err) end
      return nil, err.fault and err.fault.smallest_budget_bytes
    end
    local found = fail.check("plan", plan:summary())
    plan:free()
    return found
  end
  local list, whole = {}, nil
  for _, share in ipairs(SWEEP) do
    local found, smallest = try { share = share }
    if not found then
      found = smallest and smallest > 0 and try { bytes = smallest }
      if not found then break end
    end
    whole = whole or found.peak_bytes.device
    found.share = found.budget_bytes > 0 and found.budget_bytes / whole or share
    list[#list + 1] = found
    if smallest then break end
  end
  return list
end

local function print_sweep(list, options, micro_steps)
  if options.json then
    local rows = {}
    for i, plan in ipairs(list) do
      rows[i] = json.object(rows_of(plan, micro_steps))
      table.insert(rows[i].rows, 2, { "budget_share", plan.share })
    end
    io.stdout:write(json.encode(json.array(rows)), "\n")
    return
  end
  local rows = {}
  for i, plan in ipairs(list) do
    rows[i] = {
      format.percent(plan.share), format.bytes(plan.peak_bytes.device), format.seconds(plan.predicted_seconds),
      format.percent(plan.predicted_seconds / plan.keep_all_seconds - 1), format.percent(plan.gap),
      format.bytes(plan.keep_bytes), format.bytes(plan.recompute_bytes),
      format.bytes(plan.offload_host_bytes + plan.offload_disk_bytes),
    }
  end
  io.stdout:write(format.table(rows,
    { "budget", "peak", "predicted", "slower", "gap", "kept", "recomputed", "offloaded" }))
end

return function(arguments, root)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE, function(given)
    return recipes.help(given, root)
  end)
  if not options then return 0 end
  if options.problem then
    if #words + #settings > 0 then fail.usage("--problem goes without a recipe; usage: " .. USAGE) end
    for _, name in ipairs { "sweep", "problem_out", "plan_out", "amp", "policy", "tiers", "accumulate" } do
      if options[name] then fail.usage(("--%s does not go with --problem"):format((name:gsub("_", "-")))) end
    end
    return solve_problem(options)
  end
  if not words[1] then fail.usage("a recipe is needed; usage: " .. USAGE) end
  if #words > 1 then fail.usage(("unexpected '%s'; usage: %s"):format(words[2], USAGE)) end
  local recipe = recipes.load(words[1], root)
  local o = recipes.resolve(recipe, settings)
  local device = runs.device(options)
  local graph = runs.graph(recipe, o)
  local micro_steps = options.accumulate or 1
  if options.sweep then
    for _, name in ipairs { "budget", "html", "problem_out", "plan_out" } do
      if options[name] then fail.usage(("--%s does not go with --sweep"):format((name:gsub("_", "-")))) end
    end
    print_sweep(sweep(graph, device, options), options, micro_steps)
    return 0
  end
  local plan = runs.plan(graph, device, options)
  local numbers = fail.check("plan", plan:summary())
  local title = "cairn plan " .. recipe.name
  for option, kind in pairs { html = "html", problem_out = "problem", plan_out = "file" } do
    if options[option] then write_file(options[option], fail.check("plan", plan:render(kind, title))) end
  end
  if options.json then
    local text = json.encode(json.object(rows_of(numbers, micro_steps)))
    if options.problem_out then
      -- The whole plan in the form of cairn.plan/1, too, so that both files can be judged together.
      local whole = fail.check("plan", plan:render("json", title))
      text = json.encode(json.object {
        { "plan", summary.plan(numbers, micro_steps) }, { "planned_peak_bytes", summary.tiers(numbers.peak_bytes) },
        { "memory_bytes", summary.memory(numbers) } }):sub(1, -2) .. "," .. whole:match("^%s*{(.*)$")
    end
    io.stdout:write(text, "\n")
    return 0
  end
  io.stdout:write(("%s  %s per micro-batch predicted, %s if everything is kept\n"):format(format.colour("bold", "time"),
    format.seconds(numbers.predicted_seconds), format.seconds(numbers.keep_all_seconds)))
  io.stdout:write(("bound             %s: no plan under this budget is faster; gap %s\n"):format(
    format.seconds(numbers.bound_seconds), format.percent(numbers.gap)))
  io.stdout:write(summary.lines(numbers))
  if options.html then io.stdout:write("picture           " .. options.html .. "\n") end
  return 0
end
