-- A model as programs of other languages have it (cairn_model_* of the C API): opened from its directory, planned
-- within a budget, trained on rows that the program gives, asked for texts, saved. host/calls.lua calls what is here by
-- its name, with a table of texts and numbers and for one; an interpreter holds one model.
local cairn = require "cairn"
local chat = require "cli.data.chat"
local command = require "cli.base.args"
local checkpoints = require "cli.checkpoint.checkpoints"
local directory = require "cli.model.directory"
local fail = require "cli.base.fail"
local formats = require "cli.recipe.formats"
local json = require "cli.base.json"
local posix = require "cli.base.posix"
local precision = require "cli.recipe.precision"
local recipes = require "cli.recipe.load"
local runs = require "cli.train.run"
local texts = require "cli.model.texts"
local tokenizers = require "cli.data.tokenizers"
local trained = require "cli.model.trained"

local model = {}

local MOST_TOKENS = 512  -- of an answer, where nobody says
local TRIED = 3  -- of the names of a folder

local root, run, rows, conversation, ends  -- of the one model

local function nothing() end

-- Settings {key, text} from "key=value".
local function settings_of(list)
  local settings = {}
  for i, text in ipairs(list or {}) do
    local key, value = text:match("^([%w_]+)=(.*)$")
    if not key then fail.usage(("settings: '%s'; wanted: key=value"):format(text)) end
    settings[i] = { key, value }
  end
  return settings
end

-- A file that rows are written to, of its own folder.
local function rows_file()
  local folder
  for _ = 1, TRIED do folder = folder or posix.temporary_directory(posix.temporary()) end
  if not folder then fail.with(5, "no folder for rows could be made in " .. posix.temporary()) end
  local path = folder .. "/rows.jsonl"
  local file, problem = io.open(path, "wb")
  if not file then fail.with(5, problem) end
  return { path = path, folder = folder, file = file, count = 0 }
end

-- The data of a run: the rows that there are when its first micro-batch is made. After a change they begin again.
local function dataset(own, o, about)
  local made
  about.keeps_nothing = true
  return {
    tokenizer = tokenizers.of(o, about),
    renew = function() made, about.instruction_rows = nil, nil end,
    batch = function(index)
      if not made then
        if rows.count == 0 then fail.usage("there is no row to train with: cairn_model_add gives one") end
        rows.file:flush()
        made = own(o, about)
      end
      return made.batch(index)
    end,
  }
end

-- Programs that make texts of at most `context` tokens, prompts of at most seq.
local function generation(context, amp)
  return function(self)
    local made = texts.programs(self.recipe, self.o, { samples = 1, longest = math.min(self.o.seq, context),
      rows = context, dtype = amp == "bf16" and "bf16" or nil })
    self.cached = made ~= nil
    made = made or { { name = "generation" } }
    self.writes = {}
    for i, row in ipairs(made) do row.kind, row.o, self.writes[i] = "generation", self.o, row.name end
    return made
  end
end

-- args: path, settings, device, amp, format, budget_bytes, threads, seed, steps (of a schedule that ends), context.
function model.open(args)
  local recipe = recipes.load(args.path, root)
  if not recipe.directory then fail.usage(args.path .. " is no directory of a model") end
  rows = rows_file()
  local settings = settings_of(args.settings)
  table.insert(settings, 1, { "form", "rows" })
  settings[#settings + 1] = { "data", rows.path }
  local o = recipes.resolve(recipe, settings, nil, false)
  local options = { device = args.device, threads = args.threads, amp = args.amp, quiet = true,
                    init = directory.weights(recipe.directory),
                    format = args.format and { command.format(args.format, "format") } or nil,
                    budget = args.budget_bytes and { bytes = args.budget_bytes } or nil, rates = "model" }
  options.optimizer = recipes.optimizer(recipe, o)
  options.amp_rules = precision.rules(recipe, o)
  options.formats = formats.rules(recipe, o, options, nil, nothing)
  precision.check(recipe, settings, args.amp)
  local context = args.context or o.seq + MOST_TOKENS
  local own = recipe.dataset
  recipe.dataset = function(values, about) return dataset(own, values, about) end
  run = runs.open {
    recipe = recipe,
    o = o, options = options, settings = {}, note = nothing, seed = args.seed or runs.DEFAULT_SEED,
    accumulate = args.accumulate or 1, steps = args.steps or recipe.training.steps or recipes.DEFAULT_STEPS,
    evaluates = false, generates = generation(context, args.amp),
  }
  run:begin(options.init)
  conversation = chat.open(o, { directory = recipe.directory.path }, run.data.tokenizer)
  ends = trained.ends_of(recipe.directory)
  return model.info()
end

-- What is known: planned bytes by tier, parameters, trainable_parameters, seq, batch, vocabulary.
function model.info()
  local count, learned = runs.parameter_count(run.graph)
  local planned = run.summary.peak_bytes
  return { planned_device = planned.device, planned_host = planned.host, planned_disk = planned.disk,
           parameters = count, trainable_parameters = learned, seq = run.o.seq, batch = run.o.batch,
           vocabulary = run.o.vocab }
end

-- args.row: a row of instruction data, as JSON; or args.prompt and args.answer.
function model.add(args)
  local row = args.row or json.encode { prompt = args.prompt, completion = args.answer }
  if row:find("[\r\n]") then row = row:gsub("[\r\n]+", " ") end  -- between the parts of an object
  local ok, problem = rows.file:write(row, "\n")
  if not ok then fail.with(5, problem) end
  rows.count = rows.count + 1
  if run.data.renew then run.data.renew() end
  return { rows = rows.count }
end

-- Trains args.steps steps. Returns loss (of the last), step, tokens, seconds.
function model.train(args)
  local tokens, seconds, last = 0, 0, nil
  for _ = 1, args.steps do
    local step = run:step()
    if step.outcome == "memory" then fail.with(4, step.why) end
    if step.outcome == "cancelled" then fail.with(130, step.why) end
    if step.problem then error(step.problem, 0) end
    tokens, seconds, last = tokens + step.tokens, seconds + step.seconds, step
  end
  return { loss = last.loss, step = last.report.step, tokens = tokens, seconds = seconds }
end

local function prompt_of(text)
  if conversation.has_template then
    local written = fail.check("template", conversation:render({ { role = "user", content = text } }, nil, true))
    return (fail.check("prompt", conversation:masked(written, "all", false)))
  end
  return texts.encoded(run.data.tokenizer.opened, text, "prompt")
end

-- The answer to args.prompt, of at most args.tokens tokens, by what the model has learned so far; sampling as of
-- cairn.generator.
function model.generate(args)
  local tokenizer, sessions = run.data.tokenizer.opened, {}
  for i, name in ipairs(run.writes) do sessions[i] = run.programs[name].session end
  run.writer = run.writer or texts.writer(sessions, run.cached, tokenizer)
  local prompt, made = prompt_of(args.prompt), {}
  fail.check("generate", run.writer:begin(0, prompt, { seed = args.seed or run.spec.seed,
    temperature = args.temperature, top_k = args.top_k, top_p = args.top_p, min_p = args.min_p,
    repetition_penalty = args.repetition_penalty }))
  local last = conversation.tokens.eos_token and tokenizer:find(conversation.tokens.eos_token)
  for _ = 1, args.tokens or MOST_TOKENS do
    local token = fail.check("generate", run.writer:next())[1]
    if ends[token] or token == last then break end
    made[#made + 1] = token
  end
  if run.writer.finish then run.writer:finish(0) end
  return { text = #made > 0 and texts.decoded(tokenizer, made) or "", tokens = #made }
end

-- A checkpoint of the run in args.path, which the command goes on with. Returns its directory.
function model.save(args)
  local ok, problem = posix.make_directory(args.path)
  if not ok then fail.with(5, problem) end
  checkpoints.prepare(run)
  return { directory = checkpoints.save(run, args.path) }
end

-- What `cairn export --to` makes of the model, in args.path.
function model.export(args)
  local folder = fail.check("export", posix.temporary_directory(posix.temporary()))
  local saved
  local ok, problem = pcall(function()
    saved = model.save({ path = folder .. "/run" }).directory
    require "cli.commands.export"({ saved, args.path, "--to", args.to, "--quiet" }, root)
  end)
  if saved then cairn.remove_checkpoint(saved) end
  for _, each in ipairs { folder .. "/run", folder } do posix.remove_empty_directory(each) end
  if not ok then error(problem, 0) end
  return { path = args.path }
end

function model.close()
  if rows then
    rows.file:close()
    os.remove(rows.path)
    posix.remove_empty_directory(rows.folder)
  end
  if run then run:close() end
  return {}
end

return function(given)
  root = given
  return model
end
