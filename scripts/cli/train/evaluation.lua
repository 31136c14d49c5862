-- Evaluation: data of its own, run forward by a program of its own in the run's store, between two steps. No parameter,
-- state, random number or order of data changes by it.
local cairn = require "cairn"
local effective = require "cli.train.effective"
local fail = require "cli.base.fail"
local metrics = require "cli.train.metrics"
local posix = require "cli.base.posix"

local evaluation = {}

local Evaluation = {}
Evaluation.__index = Evaluation

-- What a recipe evaluates with under these options: o (of the graph), and after open: batch, batches; nil: nothing.
function evaluation.of(recipe, o, about)
  o = effective.alone(o)
  local made = recipe.evaluation and recipe.call("evaluation", o, about)
  return made and setmetatable({ o = made.o or o, data = made.data }, Evaluation)
end

function Evaluation:open(recipe)
  local data = recipe.call_data("evaluation", self.data)
  if not data.batches then
    fail.input(recipe.path .. ": evaluation: its data have no end; wanted: batches = N, the micro-batches of all")
  end
  self.batch, self.batches, self.counts = data.batch, data.batches, data.counts
  self.content, self.former_content, self.prepared = data.content, data.former_content, data.prepared
end

-- The graph that evaluates: the model's, with its loss, weight and metrics as outputs. graph.evaluates: their names.
function evaluation.graph(recipe, o)
  local graph = fail.check("graph", cairn.graph())
  local ends = recipe.call("model", o, graph, "evaluation")
  local rows, values = metrics.of(ends, true)
  values[#values + 1], values[#values + 2] = ends.loss, ends.weight
  local outputs, there = {}, {}
  for _, value in ipairs(values) do
    if not there[value.id] then outputs[#outputs + 1], there[value.id] = value, true end
  end
  graph.evaluates = { loss = ends.loss:name(), weight = ends.weight and ends.weight:name(), metrics = rows }
  return fail.check("graph", graph:freeze { outputs = outputs })
end

local function scalar(session, name) return fail.check("evaluation", session:read(name))[1] end

-- Runs all evaluation data, or the first `most` micro-batches of it. stop() is asked between micro-batches. Returns
-- {values (means by name), seconds, tokens, samples (nil: the data do not say), empty: nothing of the data counts}; nil
-- if it was stopped.
function evaluation.run(run, stop, most)
  local program, data, began = run.programs.evaluation, run.evaluation, posix.now()
  local names = program.plan.graph.evaluates
  local sums, loss, weight, tokens, samples = metrics.sums(names.metrics), 0, 0, 0, 0
  for index = 0, math.min(data.batches, most or math.huge) - 1 do
    if stop and stop() then return nil end
    local filled, arrays, count, rows, said = run:fill(data, index, program)
    if not filled then return nil end
    samples = said and samples and samples + rows
    local ran, err = program.session:run()
    if not ran and err.status == "CANCELLED" then return nil end
    fail.check("evaluation", ran, err)
    loss = loss + scalar(program.session, names.loss)
    weight = weight + (names.weight and scalar(program.session, names.weight) or 1)
    sums:add(program.session, arrays, run.recipe.guard)
    program.micro_batches, program.tokens, tokens = program.micro_batches + 1, program.tokens + count, tokens + count
  end
  return { values = sums:means(weight ~= 0 and loss / weight or nil), seconds = posix.now() - began, tokens = tokens,
           samples = samples or nil, empty = weight == 0 }
end

-- Follows the best value of a metric over evaluations.
local Judge = {}
Judge.__index = Judge

-- metric: one of `rows` (cli.train.metrics) or loss.
function evaluation.judge(rows, metric)
  return setmetatable({ metric = metric, better = metrics.better(rows, metric), stale = 0 }, Judge)
end

-- Takes an evaluation {step, values}; whether it is the best so far. stale: evaluations since the best.
function Judge:take(row)
  local value = row.values[self.metric]
  local best = self.best and self.best.value
  local improved = value and (not best or (self.better == "lower" and value < best)
                                       or (self.better == "higher" and value > best)) or false
  self.stale = improved and 0 or self.stale + 1
  if improved then self.best = { step = row.step, value = value } end
  return improved
end

return evaluation
