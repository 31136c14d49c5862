-- inside_a_step.lua DIR TEXT ROOT: a step with a first pass that is saved in its middle and goes on in another run ends
-- as one that was not. Writes both digests.
local cairn = require "cairn"
local posix = require "cli.base.posix"
local recipes = require "cli.recipe.load"
local runs = require "cli.train.run"
local weights = require "cli.recipe.weights"

local path, text, root = arg[1], arg[2], arg[3]
local recipe = recipes.load(path, root)
local o = recipes.resolve(recipe, { { "data", text }, { "seq", "8" } }, nil, false)

local function open()
  local options = { rates = "model", quiet = true, optimizer = recipes.optimizer(recipe, o) }
  local run = runs.open { recipe = recipe, o = o, options = options, seed = 1, accumulate = 3, steps = 2 }
  weights.import(run, path)
  return run
end

local whole = open()
whole:step()

local first, calls = open(), 0
local made = first:step(function()  -- asked before each micro-batch that is summed, and between those that are trained
  calls = calls + 1
  return calls == 5
end)
assert(made.outcome == "stopped" and first.next_batch == 2, "the step was not left in its middle")
local folder = posix.temporary_directory(posix.temporary()) .. "/half"
assert(first.stepper:save(folder))
local rest = open()
assert(rest.stepper:restore(assert(cairn.checkpoint(folder))))
rest.next_batch, rest.micro_before = 2, rest.stepper:report().micro
rest:step()
io.write((whole:digest()), " ", (rest:digest()), "\n")
