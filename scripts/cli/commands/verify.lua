-- cairn verify RECIPE [key=value ...]: trains the same few steps under many plans and compares what must be equal.
local args = require "cli.base.args"
local cairn = require "cairn"
local comparable = require "cli.verify.comparable"
local costs = require "cli.plan.costs"
local fail = require "cli.base.fail"
local format = require "cli.base.format"
local formats = require "cli.recipe.formats"
local joined = require "cli.train.joined"
local json = require "cli.base.json"
local posix = require "cli.base.posix"
local precision = require "cli.recipe.precision"
local recipes = require "cli.recipe.load"
local refusal = require "cli.plan.refusal"
local runs = require "cli.train.run"
local upsets = require "cli.verify.upsets"
local verdict = require "cli.verify.verdict"

local USAGE = "cairn verify RECIPE [key=value ...] [--steps N] [--budgets N] [--device D] [--amp A] [--seed N]"
local KNOWN = args.known("device threads amp budget format region seed steps json quiet link profile " ..
                         "force-profile rates", {
  budgets = { args.whole "budgets",
    "budgets from the smallest that fits to keeping everything, per tiers (default 5)" },
  steps = { args.whole(2), "optimizer steps of each run, at least 2, as some are resumed between them (default 3)" },
})
local STEPS, BUDGETS = 3, 5
local LINK = 2e9  -- bytes per second of the throttled host link, where --link names no other
local MICRO_BATCHES = 3
local MOST_SKIPS = 50  -- in a row: as many as `cairn train` goes on after

-- Where a budget may send what it does not keep. `slow`: over the throttled link; a GPU's is what it is.
local TIERS = {
  { name = "recompute only" },
  { name = "host", tiers = "host" },
  { name = "slow host", tiers = "host", slow = true, only_throttled = true },
  { name = "host and disk", tiers = "host,disk", slow = true },
}

local Verifier = {}
Verifier.__index = Verifier

local function dataset_of(self, o)
  local about = runs.helpers { seed = self.seed, steps = self.steps, accumulate = 1, note = function() end,
    directory = self.recipe.directory and self.recipe.directory.path }
  return self.recipe.call("dataset", o, about)
end

-- A variant's tiers, and those that --region asks for.
function Verifier:tiers(list)
  for _, row in ipairs(list and self.options.region or {}) do
    local tier = row.policy:match(":(%a+)$")
    if tier and not list:find(tier, 1, true) then list = list .. "," .. tier end
  end
  return list
end

function Verifier:open(variant)
  local options = { amp = self.options.amp, amp_rules = self.options.amp_rules, formats = self.options.formats,
                    optimizer = self.options.optimizer, region = self.options.region,
                    costs = not variant.slow and self.options.costs or nil,
                    force_profile = self.options.force_profile }
  for key, value in pairs(variant.options or {}) do options[key] = value end
  options.tiers = self:tiers(options.tiers)
  local device = variant.slow and self.slow_device or self.device
  local plan
  if variant.budget and not self:joins(variant.accumulate) then  -- the same whatever is accumulated
    plan = self.plans[variant.name] or runs.plan(self.graph, device, options)
    self.plans[variant.name] = plan
  end
  return runs.open {
    recipe = variant.frozen and self.frozen_recipe or self.recipe, o = variant.o or self.o, options = options,
    seed = self.seed,
    accumulate = variant.accumulate, steps = self.steps, schedule_end = recipes.schedule_end(self.recipe, self.steps),
    device = device, plan = plan,
  }
end

-- Whether so many micro-batches of a step have a plan of their own: they are run as one, or have values of all of them.
function Verifier:joins(accumulate)
  return accumulate > 1 and (self.o.effective == true
    or select(2, joined.of(self.recipe, self.o, accumulate, {})) ~= accumulate)
end

-- Saves a run, and goes on in a new one.
function Verifier:resume(run, variant)
  local directory = ("%s/cairn-verify-%d"):format(posix.temporary(), posix.pid())
  fail.check("save", run.stepper:save(directory))
  local next_batch = run.next_batch
  run:close()
  local again = self:open(variant)
  local checkpoint, err = cairn.checkpoint(directory)
  local ok, why
  if checkpoint then ok, why = again.stepper:restore(checkpoint) end
  cairn.remove_checkpoint(directory)
  fail.check("resume", checkpoint, err)
  fail.check("resume", ok, why)
  again.next_batch, again.micro_before = next_batch, fail.check("resume", again.stepper:report()).micro
  return again
end

-- A step of a run that must not be stopped. Steps whose gradients are not finite, as the first ones under a loss scale
-- may be, are gone on after; result.skipped counts them.
local function apply(run, result)
  local first = result.skipped
  while true do
    local made = run:step()
    if made.outcome == "applied" then return made end
    if made.outcome == "skipped_empty" then
      fail.input(("%s: step %d: the weights of its micro-batches add up to 0, so that nothing of them counts; give " ..
        "it data of which something counts"):format(result.name, #result.loss + 1))
    end
    if made.outcome ~= "skipped_nonfinite" or result.skipped - first == MOST_SKIPS then
      fail.with(7, ("%s: step %d was not applied (%s)"):format(result.name, #result.loss + 1, made.outcome))
    end
    result.skipped = result.skipped + 1
  end
end

-- Makes a step that is skipped, on the micro-batches that come next, which are taken again behind it.
local function skip(run, result, count)
  local before = fail.check("report", run.stepper:report()).loss_scale
  result.skipped, result.wrong[#result.wrong + 1] = result.skipped + 1, upsets.skipped_step(run, run.next_batch, count)
  local scale = fail.check("report", run.stepper:report()).loss_scale
  local wanted = run.spec.options.amp == "fp16" and before * run.o.loss_scale_backoff or before
  if scale ~= wanted then
    local text = "the loss scale was %g and is %g after a step that was skipped; wanted: %g"
    result.wrong[#result.wrong + 1] = text:format(before, scale, wanted)
  end
end

-- Runs all steps of a variant. `variant.resumes`: "between" steps or "inside" the one in the middle; `variant.skips`:
-- a step before that one is skipped.
function Verifier:train(variant)
  local began = posix.now()
  local run = self:open(variant)
  run:initialise()
  local frozen = upsets.frozen(run)
  local result = { name = variant.name, group = variant.group, micro_batches = variant.accumulate, loss = {},
                   skipped = 0, wrong = {}, frozen = #frozen, gradients = {},
                   budget = variant.budget, planned = run.summary.peak_bytes, plan = run.summary }
  local middle = math.floor(self.steps / 2) + 1
  -- The end of an epoch may leave a later step with one micro-batch, which has no inside.
  if variant.resumes == "inside" and middle * variant.accumulate > self.micro_batches then middle = 1 end
  for step = 1, self.steps do
    if variant.resumes and step == middle then
      if variant.resumes == "inside" then
        local made = run:step(function() return true end)
        if made.outcome ~= "stopped" then fail.with(1, variant.name .. ": a step has no inside to resume in") end
      end
      run = self:resume(run, variant)
    end
    if variant.skips and step == middle then skip(run, result, run.micro_steps) end
    local made = apply(run, result)
    result.loss[step], result.norm = made.loss, result.norm or made.report.gradient_norm
    result.loss_scale = result.loss_scale or made.report.loss_scale
    result.fell_back = result.fell_back or made.fell_back
  end
  local thawed = upsets.thawed(run, frozen)
  if thawed then result.wrong[#result.wrong + 1] = ("%s, which has no gradient, changed"):format(thawed) end
  result.digest, result.measured = run:digest(), run:usage()
  result.exact = true
  for tier, bytes in pairs(result.planned) do result.exact = result.exact and result.measured[tier] == bytes end
  verdict.compare(self.groups, result, run)
  run:close()
  result.seconds = posix.now() - began
  return result
end

-- The gradients of an effective batch of `count` micro-batches, before anything is updated: {name, buffer, count} of
-- each parameter that has one. how: {frozen, skips (a step before it)}; result: what is wrong goes there.
function Verifier:gradients(o, count, how, result)
  local scaled = {}
  for key, value in pairs(o) do scaled[key] = value end
  if self.options.amp == "fp16" then scaled.loss_scale = result.loss_scale end  -- one that they are finite under
  local run = self:open { accumulate = count + 1, o = scaled, frozen = how.frozen }
  run:initialise()
  if how.skips then skip(run, { wrong = result.wrong, skipped = 0 }, count) end
  local report
  for index = 0, count - 1 do
    report = run:micro(index) or fail.interrupted(self.recipe.path)
  end
  local list = verdict.gradients(run, report.loss_scale)
  run:close()
  return list
end

-- Budgets for a row of TIERS: the smallest that fits and others evenly up to keeping everything, which is left out.
function Verifier:budgets(where)
  local graph = self.graph
  local device = where.slow and self.slow_device or self.device
  local wanted = runs.plan_options { amp = self.options.amp, amp_rules = self.options.amp_rules,
                                     formats = self.options.formats,
                                     optimizer = self.options.optimizer, policy = "keep" }
  local whole = fail.check("plan", cairn.plan(graph, device, wanted))
  wanted.regions = self.options.region
  local peak = fail.check("plan", whole:summary()).peak_bytes.device
  whole:free()
  wanted.policy, wanted.budget_bytes, wanted.tiers = nil, 1, self:tiers(where.tiers)
  local plan, err = cairn.plan(graph, device, wanted)
  if plan then fail.with(1, "a plan for a budget of one byte") end
  local smallest = err.fault and err.fault.smallest_budget_bytes or 0
  if err.status ~= "OVER_BUDGET" or smallest == 0 then fail.plan("plan", nil, err) end
  local list = {}
  for i = 0, self.options.budgets - 1 do
    local bytes = math.floor(smallest + (peak - smallest) * i / self.options.budgets)
    if bytes ~= list[#list] then list[#list + 1] = bytes end
  end
  return list
end

-- The largest difference of gradients of one batch and of its parts, and whose it is. how, result: as in gradients().
function Verifier:apart(wide, how, result)
  return verdict.gradients_apart(self:gradients(wide, 1, how, result),
    self:gradients(self.o, MICRO_BATCHES, how, result))
end

-- Whether the model draws random numbers: the same micro-batch has another loss under another seed. Adapters, which
-- begin with zeros, do not show it.
function Verifier:draws(o)
  if (o.lora_dropout or 0) > 0 then return true end
  local run = self:open { accumulate = 2, o = o }
  run:initialise()
  local report = run:micro(0)
  if not report then fail.interrupted(self.recipe.path) end
  local other = fail.check("stepper", cairn.stepper(run.session, { seed = self.seed + 1, micro_steps = 2 }))
  local draws = fail.check("step", other:micro()).loss ~= report.loss
  other:free()
  run:close()
  return draws
end

-- Option values of one batch that holds the samples of MICRO_BATCHES; nil, with a note, where there is no such batch.
function Verifier:wide_options()
  if not self.o.batch or self.micro_batches < MICRO_BATCHES then return nil end
  local crosses = self.recipe.crosses and self.recipe.call("crosses", self.o)
  local wide = {}
  for key, value in pairs(self.o) do wide[key] = value end
  wide.batch = MICRO_BATCHES * self.o.batch
  local function source(o) return { graph = runs.graph(self.recipe, o), batch = dataset_of(self, o).batch } end
  local difference = crosses or self.recipe.guard(comparable, source(self.o), source(wide), MICRO_BATCHES)
  if not difference and self:draws(self.o) then
    difference = "the model draws random numbers, by the micro-batch's number, as dropout does"
  end
  if not difference then return wide end
  self.notes[#self.notes + 1] = ("one batch of all %d micro-batches is not comparable with them: %s"):format(
    MICRO_BATCHES, difference)
end

-- What runs: {name, group, accumulate, options, resumes, o, slow}. The first of a group is what others must equal.
function Verifier:variants()
  local plain = {
    { name = "keep", options = { policy = "keep" } },
    { name = "auto" },
    { name = "recompute", options = { policy = "recompute" } },
    { name = "offload to host", options = { policy = "offload", tiers = "host" } },
    { name = "offload to disk", options = { policy = "offload", tiers = "disk" } },
  }
  for _, where in ipairs(TIERS) do
    local budgets = (self.throttles or not where.only_throttled) and self:budgets(where) or {}
    for _, bytes in ipairs(budgets) do
      plain[#plain + 1] = { name = ("%s B, %s"):format(format.count(bytes), where.name), slow = where.slow,
                            budget = bytes, options = { budget = { bytes = bytes }, tiers = where.tiers } }
    end
  end
  if self.options.budget then
    plain[#plain + 1] = { name = "the budget given", options = { budget = self.options.budget } }
  end
  local list = {}
  for _, accumulate in ipairs { 1, MICRO_BATCHES } do
    local group = accumulate == 1 and "1 micro-batch" or accumulate .. " micro-batches"
    local function add(row)
      local copy = { group = group, accumulate = accumulate }
      for key, value in pairs(row) do copy[key] = value end
      list[#list + 1] = copy
    end
    local joins = self:joins(accumulate)  -- the budgets are of one micro-batch
    for _, row in ipairs(plain) do
      if not (joins and row.options and row.options.budget) then add(row) end
    end
    add { name = "resumed", resumes = "between" }
    local recompute = { policy = "recompute" }
    add { name = "resumed, recompute", resumes = "between", options = recompute }
    if accumulate > 1 and self.micro_batches > 1 and not joins then
      add { name = "resumed inside a step", resumes = "inside" }
      add { name = "resumed inside a step, recompute", resumes = "inside", options = recompute }
    end
    -- A step that is skipped changes nothing, so what comes behind it has the bits of the run without it; but under a
    -- loss scale, which it halves, and where something is drawn by the number of the micro-batch or of the step: by
    -- the model, or to round parameters that are bfloat16.
    local alone = self.options.amp == "fp16" or self.options.optimizer.parameters == "bf16" or self:draws(self.o)
    local after = alone and { group = group .. ", a step skipped" } or {}
    add { name = "after a skipped step", skips = true, group = after.group }
    add { name = "after a skipped step, recompute", skips = true, options = recompute, group = after.group }
    if self.frozen_recipe and accumulate > 1 then
      after = { group = group .. ", some frozen" }
      add { name = "keep", frozen = true, options = { policy = "keep" }, group = after.group }
      add { name = "recompute", frozen = true, options = recompute, group = after.group }
      add { name = "resumed", frozen = true, resumes = "between", group = after.group }
    end
  end
  local wide = self:wide_options()
  if wide then
    list[#list + 1] = { name = ("1 batch of all %d"):format(MICRO_BATCHES), group = verdict.WIDE, accumulate = 1,
                        o = wide }
  end
  return list
end

return function(arguments, root)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE, function(given)
    return recipes.help(given, root)
  end)
  if not options then return 0 end
  if #words ~= 1 then fail.usage("one recipe is needed; usage: " .. USAGE) end
  costs.load(options, root)
  local began = posix.now()
  options.budgets = options.budgets or BUDGETS
  local recipe = recipes.load(words[1], root)
  local o = recipes.resolve(recipe, settings)
  options.optimizer = recipes.optimizer(recipe, o)
  precision.check(recipe, settings, options.amp)
  options.amp_rules = precision.rules(recipe, o)
  options.formats = formats.rules(recipe, o, options)
  runs.check_one_program(recipe, o, options)
  if o.data == "" then o.data = "random" end  -- what the numbers are does not matter here
  local verifier = setmetatable({
    recipe = recipe, o = o, options = options, seed = options.seed or 1337,
    steps = options.steps or STEPS, device = runs.device(options), groups = {},
    graph = runs.graph(recipe, o, refusal.weights_limit({ device = options.device, no_tiers = true }, true)),
    plans = {}, notes = {},
  }, Verifier)
  verifier.micro_batches = dataset_of(verifier, o).batches or math.huge  -- an epoch ends its last step early
  if #verifier.graph:parameters() > 1 then
    verifier.frozen_recipe = upsets.freezing(recipe, function(changed) return runs.graph(changed, o) end)
  end
  verifier.throttles = not (options.device or "cpu"):find("^cuda")
  local slow = { device = options.device, threads = options.threads, link = options.link or LINK }
  verifier.slow_device = verifier.throttles and runs.device(slow) or verifier.device
  local results, variants = {}, verifier:variants()
  for i, variant in ipairs(variants) do
    if not options.quiet then
      io.stderr:write(("%d/%d  %s: %s ...\n"):format(i, #variants, variant.group, variant.name))
    end
    results[i] = verifier:train(variant)
  end
  local wide = variants[#variants].o
  if wide then
    if not options.quiet then io.stderr:write("gradients of one batch, and of its parts ...\n") end
    local last = results[#results]
    for _, row in ipairs(verdict.GRADIENTS) do
      if not row.frozen or verifier.frozen_recipe then
        local apart, where = verifier:apart(wide, row, last)
        last.gradients[#last.gradients + 1] = { row = row, apart = apart, where = where }
      end
    end
  end
  local problems = verdict.judge(results, options.amp)
  if verdict.same_plans(results) then
    verifier.notes[#verifier.notes + 1] = "every run had the same plan, so it was compared with itself: the " ..
      "policies of the model's regions, or a model of which nothing can be recomputed or offloaded, leave no choice"
  end
  local about = { steps = verifier.steps, seconds = posix.now() - began, notes = verifier.notes,
                  link = verifier.throttles and slow.link or nil }
  local broken = #problems > 0 and ("verify: %d broken promises in %d runs; the first: %s"):format(#problems, #results,
    problems[1])
  if options.json then
    local object = verdict.json(results, problems, about)
    if broken then object.rows[#object.rows + 1] = { "error", fail.object(1, broken) } end
    io.stdout:write(json.encode(object), "\n")
  else
    io.stdout:write(verdict.text(results, problems, about))
  end
  fail.told = true
  if broken then fail.with(1, broken) end
  return 0
end
