-- What texts are made with: a run of `cairn train`, or a model's directory, as one thing.
local base = require "cli.checkpoint.base"
local bundle = require "cli.checkpoint.bundle"
local checkpoints = require "cli.checkpoint.checkpoints"
local decode = require "cli.base.json_decode"
local directory = require "cli.model.directory"
local fail = require "cli.base.fail"
local files = require "cli.base.files"
local formats = require "cli.recipe.formats"
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

-- Tokens that end a text, as a set: what generation_config.json says, or else the model's config. model: as
-- cli.model.directory opens it.
function trained.ends_of(model)
  local file = model.path .. "/generation_config.json"
  for _, text in ipairs { posix.is_there(file) and files.read(file, "model", MOST_BYTES) or "", model.text } do
    local ok, config = pcall(decode, text)
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
  local recipe, o = forward.recipe(path, root, {}, options.adapter)
  refuse_no_texts(path, recipe)
  local self = { recipe = recipe, o = o, tokenizer = tokenizers.of_directory(path).opened,
                 ends = trained.ends_of(recipe.directory), begins = recipe.begins and recipe.call("begins", o),
                 formats = formats.forward(recipe, o, recipe.directory.path, note) }
  self.parameters = options.amp == "bf16" and "bf16" or nil  -- products read nothing else
  function self.mismatch() return nil end
  function self.fill(session, graph)
    weights.import({ recipe = recipe, o = o, graph = graph, session = session,
      spec = { note = note, parameters = self.parameters } },
      directory.weights(recipe.directory))
  end
  function self.windowed(rows, source)
    local settings = { { source and "target_seq" or "seq", ("%d"):format(rows) } }
    settings[2] = source and { "seq", ("%d"):format(source) }
    local _, longer = forward.recipe(path, root, settings, options.adapter)
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
  function self.fill(session, made) base.load(opened, session, made, options) end
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
  if options.adapter and not directory.is(path) then fail.usage("--adapter goes with a model's directory") end
  return (directory.is(path) and of_directory or of_run)(path, root, options, note)
end

return trained
