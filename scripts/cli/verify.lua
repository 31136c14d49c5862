-- cairn verify RECIPE [key=value ...]: trains the same few steps under many plans and compares what must be equal.
local args = require "cli.args"
local cairn = require "cairn"
local fail = require "cli.fail"
local format = require "cli.format"
local json = require "cli.json"
local posix = require "cli.posix"
local recipes = require "cli.recipe"
local runs = require "cli.run"

local USAGE = "cairn verify RECIPE [key=value ...] [--steps N] [--device D] [--amp A] [--seed N]"
local KNOWN = args.known("device threads amp budget seed steps json quiet link")
local STEPS = 4
local LOSS_TOLERANCE = 1e-4  -- relative: one batch and its parts add up in different orders

local Verifier = {}
Verifier.__index = Verifier

-- Runs `steps` steps under a variant's options. between(run) may replace the run after half of them.
function Verifier:train(variant)
  local options = { amp = self.options.amp }
  for key, value in pairs(variant.options or {}) do options[key] = value end
  local function open()
    local run = runs.open {
      recipe = self.recipe, o = variant.o or self.o, options = options, seed = self.seed,
      accumulate = variant.accumulate or 1, steps = self.steps, device = self.device,
    }
    return run
  end
  local run = open()
  run:initialise()
  local result = { name = variant.name, group = variant.group, loss = {}, planned = run.summary.peak_bytes }
  for step = 1, self.steps do
    if variant.resumes and step == math.floor(self.steps / 2) + 1 then
      run = self:resume(run, open)
    end
    local made = run:step()
    if made.outcome ~= "applied" then
      fail.with(7, ("%s: step %d was not applied (%s)"):format(variant.name, step, made.outcome))
    end
    result.loss[step], result.norm = made.loss, result.norm or made.report.gradient_norm
  end
  result.digest, result.measured = run:digest(), run:usage()
  result.exact = true
  for tier, bytes in pairs(result.planned) do result.exact = result.exact and result.measured[tier] == bytes end
  run:close()
  return result
end

-- Saves a run, and goes on in a new one.
function Verifier:resume(run, open) -- luacheck: ignore self
  local directory = ("%s/cairn-verify-%d"):format(os.getenv("TMPDIR") or "/tmp", posix.pid())
  fail.check("save", run.stepper:save(directory))
  local next_batch = run.next_batch
  run:close()
  local again = open()
  local checkpoint, err = cairn.checkpoint(directory)
  local ok = checkpoint and again.stepper:restore(checkpoint)
  posix.remove_directory(directory)
  fail.check("resume", checkpoint, err)
  fail.check("resume", ok, "the checkpoint could not be restored")
  again.next_batch = next_batch
  return again
end

-- The smallest budget that fits, and one half-way to keeping everything.
function Verifier:budgets()
  local graph = runs.graph(self.recipe, self.o)
  local whole = fail.check("plan", cairn.plan(graph, self.device, { amp = self.options.amp, policy = "keep" }))
  local peak = fail.check("plan", whole:summary()).peak_bytes.device
  local _, err = cairn.plan(graph, self.device, { amp = self.options.amp, budget_bytes = 1 })
  local smallest = err and err.fault and err.fault.smallest_budget_bytes or 0
  if smallest == 0 or smallest > peak then return {} end
  return { smallest, math.floor((smallest + peak) / 2) }
end

local function variants_of(verifier)
  local list = {
    { name = "keep", options = { policy = "keep" } },
    { name = "auto" },
    { name = "recompute", options = { policy = "recompute" } },
    { name = "offload to host", options = { policy = "offload", tiers = "host" } },
    { name = "offload to disk", options = { policy = "offload", tiers = "disk" } },
  }
  for _, bytes in ipairs(verifier:budgets()) do
    list[#list + 1] = { name = "budget " .. format.bytes(bytes), options = { budget = { bytes = bytes } } }
  end
  if verifier.options.budget then
    list[#list + 1] = { name = "the budget given", options = { budget = verifier.options.budget } }
  end
  list[#list + 1] = { name = "resumed", resumes = true }
  for _, variant in ipairs(list) do variant.group = "steps" end
  for _, policy in ipairs { "keep", "recompute", "offload" } do
    list[#list + 1] = { name = "2 micro-batches, " .. policy, group = "2 micro-batches", accumulate = 2,
                        options = { policy = policy } }
  end
  if verifier.o.batch then
    local double = {}
    for key, value in pairs(verifier.o) do double[key] = value end
    double.batch = 2 * verifier.o.batch
    list[#list + 1] = { name = "1 batch of both", group = "1 batch", o = double }
  end
  return list
end

local function near(a, b) return math.abs(a - b) <= LOSS_TOLERANCE * math.max(math.abs(a), math.abs(b)) end

-- Problems found in the results, as texts.
local function judge(results)
  local problems, first, by_group = {}, {}, {}
  for _, result in ipairs(results) do
    first[result.group] = first[result.group] or result
    by_group[result.group] = result
    result.equal = result.digest == first[result.group].digest
    if not result.equal then
      problems[#problems + 1] = ('%s: not the parameters of "%s"'):format(result.name, first[result.group].name)
    end
    if not result.exact then problems[#problems + 1] = result.name .. ": the measured peak is not the planned one" end
  end
  local parts, one = first["2 micro-batches"], by_group["1 batch"]
  if one then
    one.equal = near(parts.norm, one.norm) and near(parts.loss[1], one.loss[1])
    if not one.equal then
      problems[#problems + 1] = ("one batch: loss %.9g, gradient norm %.9g; its two halves accumulated: %.9g, %.9g")
        :format(one.loss[1], one.norm, parts.loss[1], parts.norm)
    end
  end
  return problems
end

local function print_rows(results, problems)
  local rows = {}
  for i, result in ipairs(results) do
    rows[i] = { result.name, result.digest:sub(1, 16), ("%.6f"):format(result.loss[#result.loss]),
                format.bytes(result.measured.device), result.exact and "= planned" or "NOT planned",
                result.equal and "ok" or "DIFFERS" }
  end
  io.stdout:write(format.table(rows, { "run", "parameters", "last loss", "peak", "", "" }))
  for _, problem in ipairs(problems) do io.stdout:write(format.colour("red", problem), "\n") end
  if #problems == 0 then
    io.stdout:write(format.colour("green", "all plans give the same bits, and take the memory they promise"), "\n")
  end
end

return function(arguments, root)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  if #words ~= 1 then fail.usage("one recipe is needed; usage: " .. USAGE) end
  local recipe = recipes.load(words[1], root)
  local verifier = setmetatable({
    recipe = recipe, o = recipes.resolve(recipe, settings), options = options, seed = options.seed or 1337,
    steps = math.max(options.steps or STEPS, 2), device = runs.device(options),
  }, Verifier)
  local results = {}
  for _, variant in ipairs(variants_of(verifier)) do
    if not options.quiet then io.stderr:write(variant.name, " ...\n") end
    results[#results + 1] = verifier:train(variant)
  end
  local problems = judge(results)
  if options.json then
    local list = {}
    for i, result in ipairs(results) do
      list[i] = json.object {
        { "name", result.name }, { "parameter_digest", result.digest }, { "loss", json.array(result.loss) },
        { "gradient_norm", result.norm }, { "equal", result.equal }, { "peak_is_planned", result.exact },
        { "peak_bytes", result.measured } }
    end
    io.stdout:write(json.encode(json.object { { "ok", #problems == 0 }, { "problems", json.array(problems) },
                                              { "runs", json.array(list) } }), "\n")
  else
    print_rows(results, problems)
  end
  return #problems == 0 and 0 or 1
end
