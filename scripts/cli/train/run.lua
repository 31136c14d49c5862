-- One training run from a recipe: graph, plan, session, stepper, data. Commands that train are built on it.
local cairn = require "cairn"
local changed = require "cli.base.changed"
local check = require "cli.recipe.check"
local effective = require "cli.train.effective"
local evaluation = require "cli.train.evaluation"
local fail = require "cli.base.fail"
local joined = require "cli.train.joined"
local lengths = require "cli.recipe.lengths"
local metrics = require "cli.train.metrics"
local parts = require "cli.data.parts"
local planning = require "cli.train.planning"
local posix = require "cli.base.posix"
local prefetch = require "cli.data.prefetch"
local prepared = require "cli.train.prepared"
local programs = require "cli.train.programs"
local progress = require "cli.train.progress"
local rates = require "cli.plan.rates"
local recipes = require "cli.recipe.load"
local refusal = require "cli.plan.refusal"
local sample_rows = require("cli.train.samples").rows
local sources = require "cli.data.sources"
local together = require "cli.plan.together"
local weights = require "cli.recipe.weights"

local run = { DEFAULT_SEED = 1337 }
for name, call in pairs(planning) do run[name] = call end
local Run = {}
Run.__index = Run

-- What recipes are given to make data and programs of their options with. about, all optional: tokenizer (the file of a
-- vocabulary, in the place of one made for the data), directory (of a model, which may have a tokenizer), trained (the
-- model is: data may be gone), check_content.
function run.helpers(about)
  local content, text = require "cli.data.content", require "cli.data.text"
  about.files = {}
  sources.add(about)
  function about.text(o) return text.dataset(o, about) end
  function about.lengths(o) return lengths.programs(o) end
  function about.evaluation(o) return text.evaluation(o, about) end
  function about.file(path)
    if type(path) ~= "string" then error("run.file: " .. type(path) .. " given; wanted: the name of a file", 2) end
    return content.open(about, path, "file").path
  end
  return about
end

-- Ends a command that is of one program where the recipe asks for several.
function run.check_one_program(recipe, o, options)
  local rows = recipe.programs and recipe.call("programs", o, run.helpers {
    seed = options.seed or run.DEFAULT_SEED, steps = options.steps or recipe.training.steps, accumulate = 1,
    note = function() end })
  local first = effective.of(recipe, o)
  if first then
    fail.usage(("%s sums over each step before it trains, in a program of its own: it goes with `cairn plan` and " ..
      "`cairn train`%s"):format(recipe.path, first.without and ("; %s leaves that out"):format(first.without) or ""))
  end
  if not rows or #rows < 2 then return end
  local names = {}
  for i, row in ipairs(rows) do names[i] = row.name end
  fail.usage(("%s has %d programs on one store (%s): it goes with `cairn plan` and `cairn train`"):format(recipe.path,
    #rows, table.concat(names, ", ")))
end

-- What a run's speed is counted in: tokens, where its micro-batches have rows of whole numbers; else samples.
function run.unit_of(inputs)
  for _, input in ipairs(inputs) do
    if (input.dtype == "i32" or input.dtype == "i64") and #input.shape > 1 then return "tokens" end
  end
  return "samples"
end

-- Sets a run up. spec: recipe, o (its option values), options (of the command line), seed, accumulate, steps, note
-- (function for messages), schedule_end (where a schedule ends by default; optional: steps), epochs (instead of steps),
-- evaluates and generates (text; or a function(run) that returns the rows of programs for it): between steps, tokenizer
-- and check_content (of a run that goes on: the file of its vocabulary, and what refuses texts that are no longer those
-- it was trained on), parts (in which each micro-batch of the data is trained on; optional), and what stays the
-- caller's: device (an open one, optional), plan (a ready one for all of these, optional). Parameters are filled by
-- initialise, import or restore.
function run.open(spec)
  spec.o = effective.told(spec.recipe, spec.o, spec.accumulate)
  local o, micro_steps = joined.of(spec.recipe, spec.o, spec.accumulate, spec.options)
  local self = setmetatable({ spec = spec, recipe = spec.recipe, o = o, next_batch = 0, micro_steps = micro_steps,
                              joined = spec.accumulate / micro_steps }, Run)
  local note = spec.note or function() end
  local about = { seed = spec.seed, steps = spec.steps, accumulate = spec.accumulate, note = note,
                  tokenizer = spec.tokenizer, check_content = spec.check_content,
                  directory = spec.recipe.directory and spec.recipe.directory.path }
  run.helpers(about)
  self.files = about.files
  local function training()
    return changed(recipes.stepper_options(spec.recipe, spec.o, {
      seed = spec.seed, steps = spec.schedule_end or spec.steps, accumulate = spec.accumulate }),
      { micro_steps = micro_steps })
  end
  local options = not spec.epochs and training()  -- a mistake in them is found before anything is planned
  together(spec.options, spec.o, micro_steps)
  self.device = spec.device or run.device(spec.options)
  -- Data are opened once it is known that the run fits, but where the sizes of programs depend on them.
  local function dataset()
    local count = spec.parts or 1
    local given = count == 1 and o or changed(o, { batch = o.batch * count })
    local data = spec.recipe.call("dataset", given, about)
    local prepares, ahead = data.prepared, spec.options.prefetch
    if ahead and not prepares then data = prefetch.dataset(data, self, given, about, ahead) end
    local made = count == 1 and data or parts.dataset(data, count)
    made.prepared = prepares
    return made
  end
  if spec.o.remainder == "own" or spec.generates then self.data = dataset() end
  self.effective = effective.of(spec.recipe, spec.o)
  local forward = {}
  self.evaluation = spec.evaluates and evaluation.of(spec.recipe, spec.o, about) or nil
  if self.evaluation then forward[1] = { name = "evaluation", kind = "evaluation", o = self.evaluation.o } end
  local made = spec.generates == true and sample_rows(self) or spec.generates and spec.generates(self) or {}
  for _, row in ipairs(made) do forward[#forward + 1] = row end
  forward[#forward + 1] = prepared.row(spec.recipe, spec.o)
  local rows = not spec.plan and programs.rows(spec.recipe, o, about, self.data, forward)
  if rows then
    self:plan_programs(rows)
  else
    self.plan = spec.plan or run.plan(run.graph(spec.recipe, o, refusal.weights_limit(spec.options, true)),
      self.device, spec.options, micro_steps, changed(spec, { o = o }))
    self.summary = fail.check("plan", self.plan:summary())
  end
  self.graph, self.two_passes = self.plan.graph, self.summary.counters.two_passes == 1
  self.sums = metrics.sums(self.graph.metrics or {})
  run.check_fits(self.plan, self.summary, spec.options, micro_steps, not rows and changed(spec, { o = o }) or nil)
  self.inputs = self.graph:inputs()
  self.unit = spec.recipe.unit and "samples" or run.unit_of(self.inputs)
  self.data = self.data or dataset()
  if self.evaluation then self.evaluation:open(spec.recipe) end
  if spec.epochs then
    if not self.data.batches then
      fail.usage("--epochs: the recipe's data have no end: its dataset states no `batches`; give --steps")
    end
    spec.steps = spec.epochs * math.ceil(self.data.batches / micro_steps)
    about.steps = spec.steps
  end
  posix.trim_heap()
  if rows then
    self:open_programs()
  else
    self.session = fail.check("session", cairn.session(self.plan))
  end
  self.stepper = fail.check("stepper", cairn.stepper(self.session, options or training()))
  return self
end

-- What evaluates a trained model and trains nothing: self has recipe, o, evaluation (opened) and programs.evaluation.
function run.forward(self) return setmetatable(self, Run) end

-- Plans several programs on one store. The run's plan and summary are those of the largest that trains.
function Run:plan_programs(rows)
  local spec = self.spec
  local list, largest, peaks = progress.meanwhile(spec.options, "planning", run.plan_set,
    spec.recipe, rows, self.device, spec.options, self.micro_steps, self.o,
    refusal.weights_limit(spec.options, true))
  self.programs = list
  self.plan, self.summary = largest.plan, largest.summary
  self.summary.peak_bytes = peaks
  rates.tell(self.summary.rates, spec.options)
end

function Run:open_programs()
  local plans = {}
  for i, program in ipairs(self.programs) do plans[i] = program.plan end
  for i, session in ipairs(fail.check("session", cairn.sessions(plans))) do
    self.programs[i].session = session
    self.programs[i].inputs = effective.given(session.graph:inputs(), self.effective)
  end
  self.trained = {}
  for i, program in ipairs(self.programs) do
    if program.kind == "train" then self.trained[i], program.sums = program, self.programs[program.name .. "-sums"] end
  end
  self.session = self.programs[1].session
end

function Run:initialise() fail.check("initial weights", self.session:initialise(self.spec.seed)) end

-- Parameters of a safetensors file or of a model's directory (optional), by the names of the recipe or of Hugging Face;
-- those that `missing` says it may lack begin fresh, as all do without it.
function Run:begin(path, missing)
  if not path or missing or #self.graph:statistics() > 0 then self:initialise() end
  if path then weights.import(self, path, missing) end
end

-- Writes micro-batch number `index` of data ({batch, batches}) into the session of its program; `program`: the one it
-- must be of, or nil: batch says it; sums: into the one that sums before that one trains. Returns the program, the
-- arrays, their tokens and samples, and whether the data say these; false if a signal ended the recipe's code.
function Run:fill(data, index, program, sums)
  local recipe, batch, asked = self.recipe, data.batch, posix.now()
  local called, arrays, tokens, which, samples = pcall(recipe.guard, batch, index)
  if data == self.data then self.data_seconds = self.data_seconds + posix.now() - asked end
  if not called then
    if fail.is(arrays) and arrays.interrupted then return false end
    error(arrays, 0)
  end
  local place = recipes.place_of(recipe.path, data.plain or batch)
  if not program and self.programs then
    program = self.programs[which == nil and self.programs.plain and 1 or which]
    if not program or program.kind ~= "train" or type(which) == "string" and not program.remainder then
      fail.input(("%s: micro-batch %d: the number of its program (batch's third result) is %s; wanted: 1 to %d")
        :format(place, index, check.shown(which), #self.trained))
    end
  end
  program = program or self
  check.batch(place, index, arrays, tokens, program.inputs, data.batches)
  if data.parts then
    arrays = parts.of(place, arrays, index, data.parts, program.inputs)
    tokens, samples = (tokens or 0) / data.parts, samples and samples / data.parts
  end
  if sums then program, arrays = program.sums, effective.taken(arrays, program.sums.inputs) end
  for name, array in pairs(arrays) do
    local what = ("micro-batch %d, input '%s'"):format(index, name)
    local wrote, ok, err = pcall(program.session.write, program.session, name, array)
    if not wrote then  -- the wrong type or count: a mistake in the recipe
      fail.input(("%s: %s: %s"):format(place, what, (tostring(ok):gsub("^[^\n]-%.lua:%d+: ", ""))))
    end
    fail.check(("micro-batch %d"):format(index), ok, err)  -- which names the input
  end
  check.complete(place, index, arrays, program.inputs)
  return program, arrays, tokens or 0, samples or tonumber(program.o.batch), samples ~= nil
end

-- Runs micro-batch number `index`. Returns the report, its tokens, its samples (nil: not known), and what the recipe's
-- measuring raised, for the micro-batch is done by then; nil, err if it was cancelled, or refused memory under --on-oom
-- shrink; false if a signal ended the recipe's code.
function Run:try_micro(index)
  local program, arrays, tokens, samples = self:fill(self.data, index)
  if not program then return false end
  for name, array in pairs(self.of_step or {}) do fail.check("step", program.session:write(name, array)) end
  local report, err = self.stepper:micro(self.programs and program.session)
  local shrinks = self.spec.options.on_oom == "shrink"
  if not report and (err.status == "CANCELLED" or err.status == "OUT_OF_MEMORY" and shrinks) then return nil, err end
  -- What was updated before a gradient was found that is not finite is no state to keep.
  if not report and err.status == "NON_FINITE" then self.unsound = true end
  fail.check("step", report, err)
  if report.outcome == "gathered" then return report, tokens, samples end
  if self.programs then
    program.micro_batches, program.tokens = program.micro_batches + 1, program.tokens + tokens
  end
  local measured, problem = pcall(self.sums.add, self.sums, program.session, arrays, self.recipe.guard,
    program.session.graph.metrics)
  return report, tokens, samples, not measured and problem or nil
end

-- The same for who has nothing to finish before what was raised ends the command.
function Run:micro(index)
  local report, tokens, samples, problem = self:try_micro(index)
  if problem then error(problem, 0) end
  return report, tokens, samples
end

-- Throws away what was run of the effective batch that is under way: the next step begins with its first micro-batch.
function Run:forget()
  if self.gathered or fail.check("step", self.stepper:report()).micro > 0 then
    fail.check("step", self.stepper:discard())
  end
  self.gathered = nil
  if self.step_from then self.next_batch = self.step_from end
  self.micro_before, self.of_step = 0, nil
  self.sums:clear()
end

-- The first pass over the micro-batches of a step whose loss is of all of them together (plans with two passes).
-- Returns the seconds that they waited for copies; nil, outcome, err where it ends early and nothing of it is left.
function Run:gather(stop)
  local stall = 0
  self.gathered = true
  for index = self.step_from, self.step_from + self.spec.accumulate - 1 do
    local made, err
    if not (stop and stop()) then made, err = self:try_micro(index) end
    if not made then
      self:forget()
      return nil, err and err.status ~= "CANCELLED" and "memory" or err and "cancelled" or "stopped", err
    end
    stall = stall + made.stall_seconds
  end
  return stall
end

-- One optimizer step: micro-batches until the update, which the end of an epoch brings early. stop() is asked between
-- micro-batches. Returns {loss, metrics (means by name), tokens, samples (nil: not known), seconds, stall_seconds,
-- data_seconds, submit_seconds (an array, by micro-batch), copies, fell_back, report, outcome, problem (what the
-- recipe's measuring of its last micro-batch raised)}; outcome "stopped" in the middle, "cancelled" and "memory" (with
-- why) where the effective batch was thrown away.
function Run:step(stop)
  local began, data_before = posix.now(), self.data_seconds
  local first, tokens, stall, submit, samples, report = self.next_batch, 0, 0, {}, 0, nil
  local copies, fell_back, problem = { host = {}, disk = {} }, false
  self.step_from = first - self.micro_before  -- its first micro-batch
  if self.effective and not self.of_step then
    self.of_step = effective.run(self.effective, self, self.step_from, stop)
    if not self.of_step then return { outcome = "stopped" } end
  end
  local two_passes = self.two_passes
  if two_passes then
    local waited, outcome, err = self:gather(stop)
    if not waited then return { outcome = outcome, why = err and tostring(err) } end
    stall = waited
  end
  local function stopped()
    if two_passes then self:forget() end  -- it is saved between steps alone
    return { outcome = "stopped", report = report }
  end
  repeat
    if report and stop and stop() then return stopped() end
    local made, count, rows  -- count: nil, err where nothing was made
    made, count, rows, problem = self:try_micro(self.next_batch)
    if made == false then return stopped() end
    if not made then
      self:forget()  -- as the library did
      return { outcome = count.status == "CANCELLED" and "cancelled" or "memory", why = tostring(count) }
    end
    report, tokens, stall = made, tokens + count, stall + made.stall_seconds
    samples = rows and samples and samples + rows
    submit[#submit + 1] = made.submit_seconds
    fell_back = fell_back or made.fell_back
    for tier, sums in pairs(copies) do
      for name, n in pairs(made.copies[tier]) do sums[name] = (sums[name] or 0) + n end
    end
    self.next_batch = self.next_batch + 1
    if problem and report.outcome == "accumulated" then error(problem, 0) end
    local epoch_ends = self.data.batches and self.next_batch % self.data.batches == 0
    if report.outcome == "accumulated" and epoch_ends and not two_passes then
      report = fail.check("step", self.stepper:apply())
    end
  until report.outcome ~= "accumulated"
  self.micro_before, self.step_from, self.of_step, self.gathered = 0, self.next_batch, nil, nil
  local loss = report.outcome ~= "skipped_empty" and report.step_loss or 0 / 0  -- without a weight there is no mean
  local means = self.sums:means(loss)
  self.sums:clear()
  return { outcome = report.outcome, report = report, problem = problem, loss = loss, tokens = tokens,
           samples = samples, metrics = means, seconds = posix.now() - began, stall_seconds = stall,
           data_seconds = self.data_seconds - data_before,
           submit_seconds = submit, copies = copies, fell_back = fell_back }
end
Run.data_seconds = 0  -- that training took to get its data
Run.micro_before = 0  -- micro-batches of the step under way that were run before a resume

-- Peaks by tier, and what the device's driver counts: {before, now}.
function Run:usage()
  local peaks = {}
  for _, tier in ipairs { "device", "host", "disk" } do
    peaks[tier] = fail.check("usage", self.session:usage(tier)).peak_bytes
  end
  local device = fail.check("usage", self.session:usage("device"))
  return peaks, { before = device.driver_before_bytes, now = device.driver_bytes }
end

function Run:base_digest() return fail.check("digest", self.session:base_digest()) end
function Run:digest() return fail.check("digest", self.session:digest()) end

function Run:close()
  prefetch.close()
  if self.writer then self.writer:free() end
  for _, part in ipairs { "stepper", "session" } do self[part]:free() end
  for _, program in ipairs(self.programs or {}) do
    if program.session ~= self.session then program.session:free() end
    if program.plan ~= self.plan then
      program.plan:free()
      program.plan.graph:free()
    end
  end
  if not self.spec.plan then
    for _, part in ipairs { "plan", "graph" } do self[part]:free() end
  end
  if not self.spec.device then self.device:free() end
end

return run
