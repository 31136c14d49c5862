-- cairn profile RECIPE [key=value ...]: trains a few steps and measures. Two files come of it: a profile, whose seconds
-- `cairn plan`, `train` and `verify` plan with (--profile FILE), and a Chrome trace of the last step's compute and copy
-- lanes and memory, which Perfetto (https://ui.perfetto.dev) opens.
local args = require "cli.base.args"
local cairn = require "cairn"
local costs = require "cli.plan.costs"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local format = require "cli.base.format"
local formats = require "cli.recipe.formats"
local json = require "cli.base.json"
local posix = require "cli.base.posix"
local precision = require "cli.recipe.precision"
local recipes = require "cli.recipe.load"
local refusal = require "cli.plan.refusal"
local runs = require "cli.train.run"
local stats = require "cli.base.stats"
local summary = require "cli.plan.summary"
local trace = require "cli.report.trace"

local USAGE = "cairn profile RECIPE [key=value ...] [--profile-out FILE] [--trace FILE] [options]"
local KNOWN = args.known("device threads budget amp format policy region tiers link seed steps json quiet", {
  trace = { args.text, "where the trace goes (default: cairn-trace.json)", "FILE" },
  ["profile-out"] = { args.text, "where the profile goes (default: cairn-profile.json); what is there is added to",
    "FILE" },
  predicted = { args.FLAG, "no run: only a trace of what the plan predicts" },
})
local WARM_UP, STEPS = 1, 8
local RECORDED_WARM_UP = 5  -- rounds until a GPU replays what it has recorded
local SETTLE = 0.02  -- seconds
local SLOWEST = 8  -- rows of the table
local NOISY = 0.15  -- of the median: where half of the steps are further apart, something else ran

local function write_file(path, text)
  local file, problem = io.open(path, "wb")
  if not file then fail.with(5, problem) end
  local ok = file:write(text)
  if not (file:close() and ok) then fail.with(5, path .. ": cannot be written") end
end

local function write_trace(path, events)
  local text = json.encode(json.object { { "displayTimeUnit", "ms" }, { "traceEvents", json.array(events) } })
  write_file(path, text .. "\n")
end

local function predict(recipe, o, options)
  local plan = runs.plan(runs.graph(recipe, o), runs.device(options), options, 1)
  local problem_text = fail.check("plan", plan:render("problem"))
  local events, seconds = trace.predicted(problem_text, fail.check("plan", plan:render("json")))
  local path = options.trace or "cairn-trace.json"
  write_trace(path, events)
  if options.json then
    io.stdout:write(json.encode(json.object { { "trace", path }, { "events", #events },
                                              { "predicted_seconds", seconds } }), "\n")
  else
    io.stdout:write(("%s: %d events over %s; open it in https://ui.perfetto.dev\n"):format(path, #events,
      format.seconds(seconds)))
  end
  return 0
end

-- Everything is kept where that fits, so that every op runs once and nothing is copied beside it.
local function policy_to_measure(graph, device, options)
  if options.policy then return options.policy end
  local wanted = runs.plan_options(options, 1)
  wanted.policy = "keep"
  local plan, err = cairn.plan(graph, device, wanted)
  if plan then
    plan:free()
    return "keep"
  end
  if err.status ~= "OVER_BUDGET" then fail.plan("plan", nil, err) end
  return nil
end

-- Rounds of a step whose whole time is taken and a step that is traced; returns the seconds and the last spans. A round
-- begins with as many steps as it takes to be at speed again: short ones suffer from threads that went to sleep.
local function measure(run, profile, rounds, warm_up, note)
  local seconds = {}
  local function step()
    local made = run:step()
    if made.outcome ~= "applied" then fail.with(7, "a step was not applied (" .. made.outcome .. ")") end
    return made
  end
  for i = 1 - warm_up, rounds do
    local began = posix.now()
    local whole
    repeat whole = step() until posix.now() - began > SETTLE
    if i >= 1 then
      fail.check("trace", run.session:trace(true))
      step()
      fail.check("trace", run.session:trace(false))
      fail.check("profile", profile:add_run(run.session, whole.seconds, whole.report.optimizer_seconds))
      seconds[i] = whole.seconds
      note(("step %d of %d: %s"):format(i, rounds, format.seconds(whole.seconds)))
    end
  end
  return seconds, fail.check("trace", run.session:spans())
end

-- Measured seconds of a step by op, from the spans: rows of {name, seconds, count}, slowest first.
local function by_op(spans, op_of)
  local rows, index = {}, {}
  for _, span in ipairs(spans) do
    if span.lane == "compute" then
      local op = op_of(span.name)
      if not index[op] then
        rows[#rows + 1] = { op, 0, 0 }
        index[op] = rows[#rows]
      end
      index[op][2] = index[op][2] + span.end_seconds - span.begin_seconds
      index[op][3] = index[op][3] + 1
    end
  end
  table.sort(rows, function(a, b) return a[2] > b[2] end)
  return rows
end

-- "h0/attn/linear_3" is a linear, and "h0/attn/linear_3.linear_grad_weight" what its last part says.
local function op_of(name) return (name:match("([^/.]*)$"):gsub("_?%d+$", "")) end

-- Kernels that may be computed in several ways: the fastest, which the run to be measured then takes. Returns how many.
local function choose_kernels(profile, graph, device, options)
  local plan = runs.plan(graph, device, options)
  local count = fail.check("profile", profile:measure_kernels(plan, device))
  plan:free()
  if count > 0 then options.costs = profile end
  return count
end

local function print_text(result, profile, options)
  io.stdout:write(("%s  %s a step, half of them within %s; predicted from the profile %s\n"):format(
    format.colour("bold", "time"), format.seconds(result.median), format.seconds(result.spread),
    format.seconds(result.predicted)))
  local rows = {}
  local ops = by_op(result.spans, op_of)
  ops = { unpack(ops, 1, math.min(#ops, SLOWEST)) }
  ops[#ops + 1] = { "update", result.plan.update_seconds, 1 }
  ops[#ops + 1] = { "host", result.plan.host_seconds, 1 }
  for i, op in ipairs(ops) do
    rows[i] = { op[1], format.seconds(op[2]), format.percent(op[2] / result.median), ("%d"):format(op[3]) }
  end
  io.stdout:write(format.table(rows, { "op", "seconds", "of the step", "times" }))
  rows = {}
  local function rate(bytes) return bytes > 0 and format.bytes(bytes) .. "/s" or "-" end
  for i, link in ipairs(profile.links) do
    rows[i] = { link.tier, rate(link.out_bytes_per_second), rate(link.in_bytes_per_second),
                format.seconds(link.latency_seconds), format.percent(link.both_ways_factor),
                format.percent(link.busy_rate_factor or 1), format.percent(link.busy_factor or 1),
                rate(link.stated_bytes_per_second) }
  end
  io.stdout:write(format.table(rows, { "link", "out", "in", "latency", "both at once", "with kernels",
                                       "kernels with it", "throttle" }))
  io.stdout:write(("profile  %s: plan with --profile %s\n"):format(result.profile_path, result.profile_path))
  io.stdout:write(("trace    %s: open it in https://ui.perfetto.dev\n"):format(result.trace_path))
  if options.budget then io.stdout:write(summary.lines(result.plan)) end
end

return function(arguments, root)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  if #words ~= 1 then fail.usage("one recipe is needed; usage: " .. USAGE) end
  costs.load(options, root)
  local recipe = recipes.load(words[1], root)
  local o = recipes.resolve(recipe, settings)
  options.optimizer = recipes.optimizer(recipe, o)
  precision.check(recipe, settings, options.amp)
  options.amp_rules = precision.rules(recipe, o)
  options.formats = formats.rules(recipe, o, options)
  runs.check_one_program(recipe, o, options)
  if options.predicted then
    if options.profile_out or options.steps then fail.usage("--predicted goes without --profile-out and --steps") end
    return predict(recipe, o, options)
  end
  local function note(message)
    if not options.quiet and not options.json then io.stderr:write(message, "\n") end
  end
  if o.data == "" then o.data = "random" end  -- what the numbers are does not matter here
  options.rates = "model"  -- what is planned is what will be measured
  local device = runs.device(options)
  local graph = runs.graph(recipe, o, refusal.weights_limit(options, true))
  local result = { profile_path = options.profile_out or "cairn-profile.json",
                   trace_path = options.trace or "cairn-trace.json" }
  local profile = posix.readable(result.profile_path) and costs.read(result.profile_path, "--profile-out")
    or fail.check("profile", cairn.costs(device))
  for _, tier in ipairs { "host", "disk" } do
    note("measuring the link to " .. tier)
    local ok, err = profile:measure_link(device, tier)
    if not ok and err.status == "OUT_OF_MEMORY" then  -- a tier that cannot be had is offloaded to by no plan
      note(("note: the link to %s is not measured: %s"):format(tier, err.message))
    else
      fail.check(result.profile_path, ok, err)
    end
  end
  options.policy = policy_to_measure(graph, device, options)
  local chosen = choose_kernels(profile, graph, device, options)
  if chosen > 0 then note(("timed what the kernels of %d ops have to choose from"):format(chosen)) end
  local steps = options.steps or STEPS
  local warm_up = (options.device or ""):find("^cuda") and RECORDED_WARM_UP or WARM_UP
  local run = runs.open { recipe = recipe, o = o, options = options, seed = options.seed or 1337, accumulate = 1,
                          steps = steps + warm_up, schedule_end = recipes.schedule_end(recipe, steps + warm_up),
                          device = device, note = note }
  run:initialise()
  local seconds
  seconds, result.spans = measure(run, profile, steps, warm_up, note)
  result.median, result.spread = stats.median(seconds), stats.interquartile(seconds)
  if result.spread > NOISY * result.median then
    note(("note: half of the steps are within %s of each other only; measure again when nothing else runs"):format(
      format.seconds(result.spread)))
  end
  local text = fail.check("profile", profile:json())
  write_file(result.profile_path, text)
  write_trace(result.trace_path, trace.measured(result.spans))
  -- The same plan again, with what was measured.
  options.costs = profile
  result.plan = fail.check("plan", runs.plan(run.graph, device, options):summary())
  result.predicted = summary.step_seconds(result.plan, result.plan.predicted_seconds, 1)
  run:close()
  local found = decode(text)
  if options.json then
    io.stdout:write(json.encode(json.object {
      { "profile", result.profile_path }, { "trace", result.trace_path }, { "steps", steps },
      { "step_seconds_median", result.median }, { "step_seconds_spread", result.spread },
      { "predicted_step_seconds", result.predicted }, { "ops", #found.ops },
      { "links", json.array(found.links) } }), "\n")
  else
    print_text(result, found, options)
  end
  return 0
end
