-- A trained model for running forward: from a checkpoint directory to a session with its parameters.
local cairn = require "cairn"
local checkpoints = require "cli.checkpoints"
local fail = require "cli.fail"
local recipes = require "cli.recipe"
local runs = require "cli.run"

local model = {}

-- {session, graph, o, opened (see checkpoints.open)}. With `needed`, the recipe must have a generation graph; otherwise
-- one without is taken as it was trained.
function model.open(path, root, options, needed)
  local function note(message)
    if not options.quiet then io.stderr:write(message, "\n") end
  end
  local opened = checkpoints.open(path, root, options.recipe, note)
  local recipe = opened.recipe
  local o = recipes.resolve(recipe, {}, opened.option)
  local graph
  if recipe.generator then
    graph = fail.check("graph", cairn.graph())
    graph = fail.check("graph", graph:freeze(recipe.call("generator", o, graph)))
  elseif needed then
    fail.input(recipe.path .. " has no generation graph, so it generates nothing")
  else
    graph = fail.check(path, opened.checkpoint:graph())
  end
  local device = runs.device(options)
  local plan = fail.check("plan", cairn.plan(graph, device, { no_optimizer = true }))
  local session = fail.check("session", cairn.session(plan))
  fail.check(path, session:load(opened.checkpoint))
  return { session = session, graph = graph, o = o, opened = opened, recipe = recipe }
end

return model
