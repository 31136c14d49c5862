-- cairn plan RECIPE [key=value ...]: what a run would take. Or --problem FILE: solves a planning problem.
local args = require "cli.base.args"
local cairn = require "cairn"
local changed = require "cli.base.changed"
local costs = require "cli.plan.costs"
local facts = require "cli.plan.facts"
local effective = require "cli.train.effective"
local fail = require "cli.base.fail"
local files = require "cli.base.files"
local fit = require "cli.plan.fit"
local format = require "cli.base.format"
local formats = require "cli.recipe.formats"
local joined = require "cli.train.joined"
local joint = require "cli.plan.joint"
local json = require "cli.base.json"
local lengths = require "cli.recipe.lengths"
local precision = require "cli.recipe.precision"
local rates = require "cli.plan.rates"
local refusal = require "cli.plan.refusal"
local recipes = require "cli.recipe.load"
local runs = require "cli.train.run"
local store = require "cli.plan.store"
local summary = require "cli.plan.summary"
local sweep = require "cli.plan.sweep"
local together = require "cli.plan.together"
local tmpfs = require "cli.plan.tmpfs"

local USAGE = "cairn plan RECIPE [key=value ...] [options], or cairn plan --problem FILE [--budget BYTES|N%]"
local KNOWN = args.known("device threads budget amp format policy region tiers link profile force-profile seed " ..
                         "steps json quiet rates accumulate fuse-update", {
  ["device-model"] = { args.text, "plan for a device that is not there: h100, ... (`cairn devices --models`), " ..
    "or a file", "NAME|FILE", names = costs.known },
  sweep = { args.FLAG, "plans over budgets, from keeping everything down to the smallest that fits, compared with " ..
    "checkpointing by hand" },
  fit = { args.FLAG, "a table of smallest budgets: with everything kept, recomputing, tiers, updates inside " ..
    "backward; what a step then takes, and what fits --budget or the device" },
  html = { args.text, "write the plan as one HTML page, with a curve over budgets for its form of the run", "FILE" },
  problem = { args.text, "plan this problem (JSON, cairn.problem/1 or /2) instead of a recipe", "FILE" },
  ["problem-out"] = { args.text, "write the recipe's problem as JSON", "FILE" },
  ["plan-out"] = { args.text, "write the plan as a binary file, for cairn inspect", "FILE" },
})
local NO_LIMIT = 2 ^ 62

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
  local problem = files.read(options.problem, "--problem")
  if options.sweep then
    sweep.problem(options.problem, problem, options)
    return 0
  end
  local budget = options.budget and options.budget.bytes or 0
  if options.budget and options.budget.share then
    local whole = fail.check(options.problem, cairn.problem_solve(problem, NO_LIMIT, "json"))
    budget = math.floor(field(whole, "arena_bytes") * options.budget.share)
  end
  local text = fail.check(options.problem, cairn.problem_solve(problem, budget, "json"))
  if options.html then
    write_file(options.html, fail.check(options.problem, cairn.problem_solve(problem, budget, "report")))
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
    { "memory_bytes", summary.memory(plan) }, { "tier_bytes", summary.tier_bytes(plan) },
    { "live_peak_bytes", plan.live_peak_bytes },
    { "persistent_bytes", plan.persistent_bytes }, { "values", plan.value_count }, { "ops", plan.op_count },
    { "in_place_ops", plan.counters.in_place_ops }, { "row_tiles", plan.counters.row_tiles },
    { "measured_ops", plan.counters.measured_ops }, { "instructions", plan.instruction_count },
    { "regions", plan.region_count },
  }
end

return function(arguments, root)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE, function(given)
    return recipes.help(given, root)
  end)
  if not options then return 0 end
  if options.fit then fit.check(options) end
  for _, name in ipairs { "budget", "html", "problem_out", "plan_out" } do
    if options.sweep and options[name] then
      fail.usage(("--%s does not go with --sweep"):format((name:gsub("_", "-"))))
    end
  end
  if options.problem then
    if #words + #settings > 0 then fail.usage("--problem goes without a recipe; usage: " .. USAGE) end
    for _, name in ipairs { "problem_out", "plan_out", "amp", "policy", "region", "tiers", "accumulate", "profile",
                          "device_model", "link", "fuse_update" } do
      if options[name] then fail.usage(("--%s does not go with --problem"):format((name:gsub("_", "-")))) end
    end
    return solve_problem(options)
  end
  if not words[1] then fail.usage("a recipe is needed; usage: " .. USAGE) end
  if #words > 1 then fail.usage(("unexpected '%s'; usage: %s"):format(words[2], USAGE)) end
  costs.load(options, root)
  local recipe = recipes.load(words[1], root)
  local given = recipes.resolve(recipe, settings, nil, true)
  lengths.tell(settings, given, function(message)
    if not options.quiet then io.stderr:write(message, "\n") end
  end)
  for _, name in ipairs { "sweep", "fit" } do
    if given.batch == "auto" and options[name] then fail.usage(("--%s does not go with batch=auto"):format(name)) end
  end
  options.optimizer = recipes.optimizer(recipe, given)
  precision.check(recipe, settings, options.amp)
  options.amp_rules = precision.rules(recipe, given)
  options.formats = formats.rules(recipe, given, options)
  local device = runs.device(options)
  local o, micro_steps, candidates
  o, micro_steps, options, candidates = joint.resolve(recipe, given, device, options)
  micro_steps = micro_steps or 1
  o = effective.told(recipe, o, micro_steps)
  local asked, of_step = o, micro_steps
  o, micro_steps = joined.of(recipe, o, micro_steps, options)
  together(changed(options, { plans_alone = true }), o, micro_steps)
  if options.fuse_update and (o.clip or 0) ~= 0 and not options.quiet then
    io.stderr:write(("note: to train with --fuse-update needs clip=0; here clip is %g\n"):format(o.clip))
  end
  local rows = store.rows(recipe, o, options, micro_steps)
  for _, name in ipairs { "sweep", "fit", "problem_out", "plan_out" } do
    if rows and options[name] then
      fail.usage(("--%s is of one program; this run has %d on one store (%s)"):format((name:gsub("_", "-")), #rows,
        store.names(rows)))
    end
  end
  if options.fit then
    fit.run(recipe, o, device, options, micro_steps)
    return 0
  end
  if options.sweep then
    sweep.recipe(runs.graph(recipe, o), device, options, micro_steps, rows_of)
    return 0
  end
  local plan, numbers, list
  if rows then
    plan, numbers, list = store.plan(recipe, rows, device, options, micro_steps, o)
  else
    plan = runs.plan(runs.graph(recipe, o, refusal.weights_limit(options)), device, options, micro_steps,
      { recipe = recipe, o = o })
    numbers = fail.check("plan", plan:summary())
  end
  local count, trained = runs.parameter_count(plan.graph)
  local in_memory = not options.device_model and not options.quiet and tmpfs(numbers)
  if in_memory then io.stderr:write(in_memory, "\n") end
  local title = facts("cairn plan " .. recipe.name, recipe, o, options, numbers, micro_steps)
  for option, kind in pairs { html = "report", problem_out = "problem", plan_out = "file" } do
    if options[option] then write_file(options[option], fail.check("plan", plan:render(kind, title))) end
  end
  if options.json then
    local out = rows_of(numbers, micro_steps)
    out[#out + 1] = { "parameter_count", count }
    out[#out + 1] = { "trainable_parameters", trained }
    for _, row in ipairs(joint.rows(asked, of_step, numbers, candidates)) do out[#out + 1] = row end
    if options.amp_rules then out[#out + 1] = { "amp", precision.json(plan, options) } end
    if list then out[#out + 1] = { "programs", store.json(list, micro_steps) } end
    local text = json.encode(json.object(out))
    if options.problem_out then
      -- The whole plan in the form of cairn.plan/1, too, so that both files can be judged together.
      local whole = fail.check("plan", plan:render("json", title))
      text = json.encode(json.object {
        { "plan", summary.plan(numbers, micro_steps) }, { "planned_peak_bytes", summary.tiers(numbers.peak_bytes) },
        { "memory_bytes", summary.memory(numbers) }, { "tier_bytes", summary.tier_bytes(numbers) },
      }):sub(1, -2) .. "," .. whole:match("^%s*{(.*)$")
    end
    io.stdout:write(text, "\n")
    return 0
  end
  if candidates then
    io.stdout:write(joint.text(candidates))
    io.stdout:write(("batch             %d samples in %d micro-batches of %d: %s samples/s predicted\n"):format(
      given.global_batch, micro_steps, o.batch, format.rate(candidates[1].samples_per_second)))
  end
  io.stdout:write(("%s  %s per micro-batch predicted, %s if everything is kept\n"):format(format.colour("bold", "time"),
    format.seconds(numbers.predicted_seconds), format.seconds(numbers.keep_all_seconds)))
  local step = summary.step_seconds(numbers, numbers.predicted_seconds, micro_steps)
  io.stdout:write(("step              %s: %d of these, %s around each, %s for the update\n"):format(
    format.seconds(step), micro_steps,
    format.seconds(numbers.host_seconds), format.seconds(numbers.update_seconds)))
  if options.profile then
    io.stdout:write(("costs             %d of %d ops measured, the others modelled\n"):format(
      numbers.counters.measured_ops, numbers.op_count))
  end
  io.stdout:write(("rates             %s\n"):format(rates.line(numbers.rates)))
  local bound = summary.step_seconds(numbers, numbers.bound_seconds, micro_steps)
  io.stdout:write(("bound             %s: no step of the forms tried can be faster; gap %s\n"):format(
    format.seconds(bound), format.percent(bound > 0 and step / bound - 1 or numbers.gap)))
  io.stdout:write(precision.lines(plan, options))
  local parts = trained and trained < count and (", of which %s are trained and %s frozen"):format(
    format.parameters(trained), format.parameters(count - trained)) or ""
  io.stdout:write(("parameters        %s%s\n"):format(format.parameters(count), parts), summary.lines(numbers))
  if list then io.stdout:write(store.text(list)) end
  if options.html then io.stdout:write("picture           " .. options.html .. "\n") end
  return 0
end
