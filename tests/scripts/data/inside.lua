-- inside.lua DIR DATA ROOT: steps of three micro-batches over several epochs, once through, and once saved and gone on
-- from inside the second step. Writes both digests.
local cairn = require "cairn"
local posix = require "cli.base.posix"
local recipes = require "cli.recipe.load"
local runs = require "cli.train.run"
local weights = require "cli.recipe.weights"

local path, data, root = arg[1], arg[2], arg[3]
local STEPS = 5
local recipe = recipes.load(path, root)
local o = recipes.resolve(recipe, { { "data", data }, { "seq", "20" }, { "rate", "1e-3" } }, nil, false)

local function open()
  local options = { rates = "model", quiet = true, threads = 1, optimizer = recipes.optimizer(recipe, o) }
  local run = runs.open { recipe = recipe, o = o, options = options, seed = 1, accumulate = 3, steps = STEPS }
  weights.import(run, path)
  return run
end

local whole = open()
assert(whole.data.batches > 6 and whole.data.batches % 3 ~= 0, "the data are too few")
for _ = 1, STEPS do whole:step() end

local first, asked = open(), 0
first:step()
local left = first:step(function()
  asked = asked + 1
  return asked == 2
end)
assert(left.outcome == "stopped" and first.next_batch == 5, "the step was not left in its middle")
local folder = posix.temporary_directory(posix.temporary()) .. "/half"
assert(first.stepper:save(folder))
local rest = open()
assert(rest.stepper:restore(assert(cairn.checkpoint(folder))))
rest.next_batch, rest.micro_before = 5, rest.stepper:report().micro
for _ = 2, STEPS do rest:step() end
io.write((whole:digest()), " ", (rest:digest()), "\n")
