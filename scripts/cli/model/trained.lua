-- What texts are made with: a run of `cairn train`, or a model's directory, as one thing.
local bundle = require "cli.checkpoint.bundle"
local checkpoints = require "cli.checkpoint.checkpoints"
local decode = require "cli.base.json_decode"
local directory = require "cli.model.directory"
local fail = require "cli.base.fail"
local files = require "cli.base.files"
local forward = require "cli.model.forward"
local models = require "cli.checkpoint.model"
local parameters = require "cli.recipe.parameters"
local posix = require "cli.base.posix"
local recipes = require "cli.recipe.load"
local tokenizers = require "cli.data.tokenizers"
local unicode = require "cli.base.unicode"
local weights = require "cli.recipe.weights"

local trained = {}

local MOST_BYTES = 2 ^ 20  -- of a config

-- Tokens that end a text, as a set: what generation_config.json says, or else config.json.
local function ends_of(path)
  for _, name in ipairs { "generation_config.json", "config.json" } do
    local file = path .. "/" .. name
    local ok, config = pcall(function()
      return posix.is_there(file) and decode(files.read(file, "model", MOST_BYTES))
    end)
    local ids = ok and type(config) == "table" and config.eos_token_id
    if type(ids) == "number" then ids = { ids } end
    if type(ids) == "table" then
      local set = {}
      for _, id in ipairs(ids) do set[id] = true end
      return set
    end
  end
  return {}
end

local function refuse_no_texts(path, recipe)
  if recipe.no_texts then fail.input(("%s writes no text: %s"):format(unicode.shown(path), recipe.no_texts)) end
end

local function of_directory(path, root, options, note)
  local recipe, o = forward.recipe(path, root, {})
  refuse_no_texts(path, recipe)
  local self = { recipe = recipe, o = o, tokenizer = tokenizers.of_directory(path).opened, ends = ends_of(path),
                 begins = recipe.begins and recipe.call("begins", o) }
  self.parameters = options.amp == "bf16" and "bf16" or nil  -- products read nothing else
  function self.mismatch() return nil end
  function self.fill(session, graph)
    weights.import({ recipe = recipe, o = o, graph = graph, session = session, spec = { note = note } },
      directory.weights(recipe.directory))
  end
  function self.windowed(rows, source)
    local settings = { { source and "target_seq" or "seq", ("%d"):format(rows) } }
    settings[2] = source and { "seq", ("%d"):format(source) }
    local _, longer = forward.recipe(path, root, settings)
    return forward.open(recipe, longer, options, 1, note)
  end
  return self
end

-- A recipe that does not come with cairn is not run unless the user names it: texts are then made by the graph that the
-- checkpoint holds.
local function of_run(path, root, options, note)
  local opened = checkpoints.open(path)
  local generator, graph = models.generation(opened, root, options)
  local self = { ends = {}, tokenizer = checkpoints.tokenizer(opened), formats = parameters.of(opened) }
  if options.recipe or recipes.built_in(opened.text("recipe") or "", root) then
    self.recipe = checkpoints.recipe(opened, root, options.recipe, options.recipe_changed, note)
    refuse_no_texts(path, self.recipe)
    self.o = checkpoints.options(opened, self.recipe)
    self.begins = self.recipe.begins and self.recipe.call("begins", self.o)
    if self.begins then self.ends[self.begins.last] = true end
  end
  function self.mismatch(made) return bundle.mismatch(made, graph) end
  function self.fill(session) fail.check(opened.directory, session:load(opened.checkpoint)) end
  function self.windowed() return models.generating(opened, generator, options) end
  return self
end

-- {recipe (nil: not known), o, tokenizer, ends (a set of tokens), formats, parameters, begins ({first, last}, of texts
-- that follow from a source; nil: that go on with a prompt), mismatch(graph) -> why it is not the model's,
-- fill(session, graph), windowed(tokens, those of a source) -> {session, graph, plan}}.
function trained.open(path, root, options)
  local function note(message)
    if not options.quiet then io.stderr:write(message, "\n") end
  end
  if options.recipe_changed and not options.recipe then fail.usage("--recipe-changed goes with --recipe FILE") end
  return (directory.is(path) and of_directory or of_run)(path, root, options, note)
end

return trained
