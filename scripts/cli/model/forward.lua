-- A model's directory running forward: its generation graph on a session that has the directory's weights.
local attach = require "cli.adapter.attach"
local base = require "cli.checkpoint.base"
local cairn = require "cairn"
local directory = require "cli.model.directory"
local fail = require "cli.base.fail"
local formats = require "cli.recipe.formats"
local recipes = require "cli.recipe.load"
local runs = require "cli.train.run"
local weights = require "cli.recipe.weights"

local forward = {}

-- The recipe and option values of a directory. settings: {key, text} pairs; adapter: path of one (optional).
function forward.recipe(name, root, settings, adapter)
  local recipe = recipes.load(name, root)
  if adapter then settings = attach.to(recipe, adapter, settings) end
  return recipe, recipes.resolve(recipe, settings, nil, false)
end

-- {session, graph, o, recipe, plan}: for windows of o.seq tokens, of which `count` positions are read at once (default
-- 1). note(message) is told of what is worth a word.
-- part: the function of the recipe that builds the graph (default: generator).
function forward.open(recipe, o, options, count, note, part)
  local graph = fail.check("graph", cairn.graph())
  base.no_ema(options, recipe.directory.path)
  graph = fail.check("graph", graph:freeze(recipe.call(part or "generator", o, graph, count)))
  options.rates = options.rates or "model"  -- nobody asks how long this plan takes
  local wanted = runs.plan_options(options)
  wanted.no_optimizer = true
  wanted.formats = formats.forward(recipe, o, recipe.directory.path, note)
  local plan = fail.plan("plan", cairn.plan(graph, runs.device(options), wanted))
  local self = { recipe = recipe, o = o, graph = graph, plan = plan, spec = { note = note },
                 session = fail.check("session", cairn.session(plan)) }
  weights.import(self, directory.weights(recipe.directory))
  return self
end

return forward
