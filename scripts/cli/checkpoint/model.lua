-- A trained model for running forward: from a checkpoint directory to a session with its parameters. What it needs is
-- in the checkpoint as data. Checkpoints of 1.0 hold no generation graph: there, or if the user names one, a recipe
-- gives it.
local cairn = require "cairn"
local args = require "cli.base.args"
local base = require "cli.checkpoint.base"
local bundle = require "cli.checkpoint.bundle"
local checkpoints = require "cli.checkpoint.checkpoints"
local fail = require "cli.base.fail"
local parameters = require "cli.recipe.parameters"
local predictors = require "cli.checkpoint.predictor"
local recipes = require "cli.recipe.load"
local runs = require "cli.train.run"

local model = {}

-- Options of the commands that open a model.
model.OPTIONS = {
  recipe = { args.text, "a recipe to take the generation graph and names from, instead of the checkpoint's", "FILE" },
  ["recipe-changed"] = { args.FLAG, "take a --recipe whose text is not the one the model was trained with" },
  base = base.OPTION,
  ema = base.EMA,
}

local function parts_of(opened, trained, root, options, generates)
  if bundle.is_in(opened) and not options.recipe then
    return bundle.generator(opened, trained), bundle.names(opened, trained)
  end
  -- A program of one's own saved it: its parameters have the names that it gave them.
  if not generates and not options.recipe and not opened.text("recipe") then return nil, nil end
  local recipe = checkpoints.recipe(opened, root, options.recipe, options.recipe_changed, function(message)
    if not options.quiet then io.stderr:write(message, "\n") end
  end)
  local o = checkpoints.options(opened, recipe)
  return bundle.build_generator(recipe, o, trained), bundle.build_names(recipe, o, trained)
end

-- What a checkpoint's graph was asked for runs forward: the session with its parameters.
local function session_of(opened, graph, options, wanted)
  if not options.rates then options.rates = "model" end  -- nobody asks how long this plan takes
  local plan = fail.plan("plan", cairn.plan(graph, runs.device(options), wanted))
  local session = fail.check("session", cairn.session(plan))
  base.load(opened, session, graph, options)
  return session, plan
end

-- Why a checkpoint has no predictor, and what to do instead.
local function why_none(opened, root)
  if recipes.built_in(opened.text("recipe") or "", root) then
    local recipe = checkpoints.recipe(opened, root, nil, nil, function() end)
    if recipe.no_texts then return "it has no label for all of a text; cairn logits prints its scores" end
  end
  if (opened.text("generator") or "") ~= "" then return "it writes text; cairn generate does that" end
  return "its recipe had no `predictor` when it was saved; --recipe FILE names one that has"
end

-- What predicts, with session and opened: see cli.checkpoint.predictor.
function model.predictor(path, root, options)
  if options.recipe_changed and not options.recipe then fail.usage("--recipe-changed goes with --recipe FILE") end
  local opened = checkpoints.open(path)
  local trained = fail.check(opened.directory, opened.checkpoint:graph())
  local made
  if options.recipe then
    local recipe = checkpoints.recipe(opened, root, options.recipe, options.recipe_changed, function(message)
      if not options.quiet then io.stderr:write(message, "\n") end
    end)
    made = predictors.build(recipe, checkpoints.options(opened, recipe), function(graph)
      return bundle.mismatch(graph, trained)
    end)
  else
    made = bundle.predictor(opened, trained)
  end
  if not made then
    fail.input(("%s predicts nothing: %s"):format(opened.directory, why_none(opened, root)))
  end
  local wanted = runs.plan_options(options)
  wanted.no_optimizer = true
  made.session, made.opened = session_of(opened, made.graph, options, wanted), opened
  return made
end

-- The generation graph of a checkpoint, and the graph that was trained; ends the command where it has none that fits.
function model.generation(opened, root, options)
  local trained = fail.check(opened.directory, opened.checkpoint:graph())
  local graph = parts_of(opened, trained, root, options, true)
  if not graph then
    fail.input(opened.directory .. " has no generation graph, for its recipe had none: it generates nothing")
  end
  return graph, trained
end

-- {session, plan, graph, opened (see checkpoints.open)} of a generation graph.
function model.generating(opened, graph, options)
  local session, plan = session_of(opened, graph, options, { no_optimizer = true, formats = parameters.of(opened) })
  return { session = session, plan = plan, graph = graph, opened = opened }
end

-- {session, plan, graph, names, opened (see checkpoints.open)}. generates: with the generation graph, which there must
-- be; otherwise with a graph that has all of the model's parameters.
function model.open(path, root, options, generates)
  if options.recipe_changed and not options.recipe then fail.usage("--recipe-changed goes with --recipe FILE") end
  local opened = checkpoints.open(path)
  if generates then return model.generating(opened, (model.generation(opened, root, options)), options) end
  local trained = fail.check(opened.directory, opened.checkpoint:graph())
  local graph, names = parts_of(opened, trained, root, options, false)
  if not (graph and bundle.is_whole(graph, trained)) then graph = trained end
  local wanted = { no_optimizer = true }
  -- Weights are exported as they are stored.
  if opened.option("parameters") == "bf16" then wanted.amp, wanted.parameters = "bf16", "bf16" end
  local session, plan = session_of(opened, graph, options, wanted)
  return { session = session, plan = plan, graph = graph, names = names, opened = opened }
end

return model
