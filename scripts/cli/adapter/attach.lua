-- An adapter that is loaded onto a model's directory: one that PEFT wrote, or a run's. It decides the options that the
-- model is built with, and fills the parameters that they make.
local args = require "cli.base.args"
local base = require "cli.checkpoint.base"
local checkpoints = require "cli.checkpoint.checkpoints"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local names = require "cli.adapter.names"
local parameters = require "cli.recipe.parameters"
local peft = require "cli.adapter.peft"
local planning = require "cli.train.planning"
local posix = require "cli.base.posix"
local recipes = require "cli.recipe.load"
local unicode = require "cli.base.unicode"

local attach = {}

attach.OPTION = { args.text, "of a model's directory: an adapter to run it with, a directory that PEFT wrote or a " ..
  "run with lora=", "DIR|RUN" }

-- Options that an adapter decides, and what PEFT calls them.
local DECIDES = { lora = "r", lora_alpha = "lora_alpha", lora_dropout = "lora_dropout",
                  lora_kind = "use_rslora and use_dora", lora_targets = "target_modules", lora_ranks = "rank_pattern",
                  lora_alphas = "alpha_pattern", modules_to_save = "modules_to_save" }

-- Whether there is an adapter at `path`: one that PEFT wrote, or a run's.
function attach.is(path)
  if peft.is(path) then return true end
  if #checkpoints.steps(path) == 0 and not posix.is_there(path .. "/manifest.cairn") then return false end
  return checkpoints.open(path).text("adapter") ~= nil
end

local function same(a, b) return a == b or tonumber(a) ~= nil and tonumber(a) == tonumber(b) end

-- Settings with those of the adapter in them; ends the command where the user's say otherwise.
local function joined(path, settings, decided)
  local list = {}
  for _, setting in ipairs(settings) do
    local is = decided[setting[1]]
    if DECIDES[setting[1]] and not same(is or "", setting[2]) then
      fail.usage(("%s=%s: the adapter %s has %s=%s (%s)"):format(setting[1], setting[2], path, setting[1],
        is and unicode.shown(is) or "", DECIDES[setting[1]]))
    end
    if not is then list[#list + 1] = setting end
  end
  for name, text in pairs(decided) do list[#list + 1] = { name, text } end
  return list
end

-- Of a model without adapters: our weight by its module's name in Transformers, our parameter by its name there, and
-- which of ours files have transposed.
local function modules_of(recipe, settings)
  local others = {}
  for _, setting in ipairs(settings) do
    if not DECIDES[setting[1]] and setting[1] ~= "lora_plus" then others[#others + 1] = setting end
  end
  local o = recipes.resolve(recipe, others, nil, true)
  local graph = planning.graph(recipe, o)
  local config = recipe.hf_config and recipe.call("hf_config", o) or {}
  if type(config) == "string" then config = decode(config) end
  local theirs = names.of_model(recipe.names and recipe.call("names", o) or {}, config.model_type)
  local known, all, transposed = {}, {}, {}
  for _, info in ipairs(graph:parameters()) do
    local name, is_transposed = theirs(info.name)
    all[name], transposed[info.name] = info.name, is_transposed
    if #info.shape > 1 then known[names.module(name)] = info.name end
  end
  graph:free()
  return known, all, transposed
end

local function decided_by(made)
  local targets, ranks, alphas, saved, seen = {}, {}, {}, {}, {}
  local first = made.rows[1]
  local alpha = first.alpha
  for i, row in ipairs(made.rows) do
    targets[i] = row.ours
    if row.rank ~= made.r then ranks[#ranks + 1] = ("%s=%d"):format(row.ours, row.rank) end
    if row.alpha ~= alpha then alphas[#alphas + 1] = ("%s=%.17g"):format(row.ours, row.alpha) end
  end
  for ours in pairs(made.saved) do
    local module = ours:gsub("%.[^%.]+$", "")
    if not seen[module] then saved[#saved + 1], seen[module] = module, true end
  end
  table.sort(saved)
  local decided = { lora = ("%d"):format(made.r), lora_alpha = ("%.17g"):format(alpha),
                    lora_dropout = ("%.17g"):format(made.dropout), lora_kind = made.kind,
                    lora_targets = table.concat(targets, ",") }
  if #ranks > 0 then decided.lora_ranks = table.concat(ranks, ",") end
  if #alphas > 0 then decided.lora_alphas = table.concat(alphas, ",") end
  if #saved > 0 then decided.modules_to_save = table.concat(saved, ",") end
  return decided
end

-- Says, or refuses, what the adapter knows of the base that it was trained on. about: {formats (rules of this run),
-- stored (what other parameters are stored as), note}. Digests are of what is stored, and so of the same formats alone.
local function check_base(self, session, about)
  local was, note = self.metadata.base_digest, about.note
  local as = names.stored_as(about.stored, parameters.metadata(about.formats))
  if was and (self.metadata.base_formats or "") == as then
    local now = fail.check("digest", session:base_digest())
    if now ~= was then
      fail.input(("%s was trained on another base: its digest was %s, and is %s"):format(self.path, was, now))
    end
    return
  end
  local said = self.config.base_model_name_or_path
  if type(said) == "string" and said ~= "" then
    note(("note: %s was trained on %s"):format(self.path, unicode.shown(said)))
  end
end

local function of_peft(path, recipe, settings)
  local self = peft.open(path)
  local known, all, transposed = modules_of(recipe, settings)
  local made = peft.modules(self, known, all)
  local function fill(session, graph, about)
    local rows, given = {}, {}
    for _, row in ipairs(made.rows) do
      for _, part in ipairs(names.PARTS) do
        local theirs = row.parts[part.part]
        if theirs and (part.part == "magnitude" or (part.table or false) == row.table) then
          rows[#rows + 1] = { ours = row.ours .. part.ours, theirs = names.PREFIX .. theirs,
                              transposed = part.transposed }
        end
      end
    end
    for ours, theirs in pairs(made.saved) do
      rows[#rows + 1] = { ours = ours, theirs = names.PREFIX .. theirs, transposed = transposed[ours] }
    end
    for _, row in ipairs(rows) do given[row.ours] = true end
    for _, info in ipairs(graph:parameters()) do
      if not given[info.name] then rows[#rows + 1] = { ours = info.name } end
    end
    check_base(self, session, about)
    fail.check(self.path, session:import(self.file, rows))
  end
  return decided_by(made), fill
end

local function of_a_run(path)
  local opened = checkpoints.open(path)
  if not opened.text("adapter") then
    fail.input(("--adapter: %s has no adapters; wanted: a run with lora=, or a directory that PEFT wrote")
      :format(opened.directory))
  end
  local decided = {}
  for name in pairs(DECIDES) do
    local text = opened.option(name)
    if text and text ~= "" then decided[name] = text end
  end
  return decided, function(session) base.load_onto(opened, session) end
end

-- Takes the adapter at `path` up: returns the settings {key, text} that the recipe's options are to have. From then on
-- weights.import fills its parameters after those of the model.
function attach.to(recipe, path, settings)
  if not recipe.directory then
    fail.usage(("%s is an adapter: it goes with the model's directory that it was trained on, in the recipe's place")
      :format(path))
  end
  local decided, fill
  if peft.is(path) then
    decided, fill = of_peft(path, recipe, settings)
  elseif posix.no_file(path) == "a directory" then
    decided, fill = of_a_run(path)
  else
    fail.input(("%s is no adapter; wanted: a directory with adapter_config.json and adapter_model.safetensors, or a " ..
      "run"):format(path))
  end
  recipe.adapter = { path = path, fill = fill }
  return joined(path, settings, decided)
end

return attach
