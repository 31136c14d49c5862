-- --init: weights of a safetensors or GGUF file, or of the directory of a model, for a run's parameters. There must be
-- exactly what the model needs: what one side lacks, what has another shape, what is left over, and what config.json
-- next to the weights says otherwise is all told at once, with the options that would match.
local adapters = require "cli.recipe.adapters"
local cairn = require "cairn"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local files = require "cli.base.files"
local gguf = require "cli.model.gguf"
local model_config = require "cli.recipe.model_config"
local posix = require "cli.base.posix"
local recipes = require "cli.recipe.load"
local renames = require "cli.recipe.renames"
local unicode = require "cli.base.unicode"

local weights = {}

local MOST_LISTED = 8
local FRESH_SEED = 1337  -- of parameters that files lack, where nothing is trained
local PIECE = 2 ^ 20  -- bytes of tensors that are compared at a time

local function shape_text(shape) return "[" .. table.concat(shape, ", ") .. "]" end

-- What the model needs: rows {ours, theirs, transposed, stacked, shape as the file has it, plain: as quantised matrices
-- have it, which are never transposed}, by the recipe's names.
local function needs(run)
  local names, by_name = run.recipe.names and run.recipe.call("names", run.o) or {}, {}
  for _, row in ipairs(names) do
    local ours = row.ours or row[1]
    by_name[ours] = by_name[ours] or {}
    table.insert(by_name[ours], row)
  end
  local rows = {}
  for _, info in ipairs(run.graph:saved()) do
    local of_adapter = run.o.lora ~= 0 and adapters.has(info.name)  -- which files of models have not
    for _, row in ipairs(by_name[info.name] or { { info.name, info.name } }) do
      local transposed, stacked = row.transposed or row[3], row.stacked or row[4]
      local shape = { unpack(info.shape, stacked and 2 or 1) }
      local plain = { unpack(shape) }
      if transposed and #shape > 1 then table.insert(shape, #shape > 2 and 2 or 1, table.remove(shape)) end
      rows[#rows + 1] = { ours = info.name, theirs = row.theirs or row[2], transposed = transposed, stacked = stacked,
                          shape = shape, plain = plain, optional = of_adapter, adapter = of_adapter }
    end
  end
  return rows
end

-- The same of a GGUF file; model: what gguf.open returned.
local function needs_of_gguf(run, model)
  local architecture = require "families.parts.architecture"
  local a, by, of_adapter, own = architecture.of(model.text, model.name), {}, {}, {}
  for _, row in ipairs(needs(run)) do
    by[row.ours] = not row.stacked and row.theirs or nil
    if row.adapter then of_adapter[row.ours] = row end
  end
  for _, info in ipairs(run.graph:parameters()) do
    if not of_adapter[info.name] then own[#own + 1] = info end
  end
  local rows = gguf.names(a, model.gguf.metadata["general.architecture"], own, by)
  for _, row in ipairs(rows) do row.theirs = row.theirs or row.ours end
  for _, info in ipairs(run.graph:parameters()) do rows[#rows + 1] = of_adapter[info.name] end
  return rows
end

-- The row for Session:import.
local function named(row, theirs)
  return { ours = row.ours, theirs = theirs, transposed = row.transposed, stacked = row.stacked,
           interleaved = row.interleaved, groups = row.groups, ways = row.ways, unit = row.unit, offset = row.offset }
end

-- Whether two tensors have the same bytes.
local function same_bytes(path, a, b)
  if a.bytes ~= b.bytes or a.quantised or b.quantised then return false end
  local function at_its_bytes(tensor)
    local file = files.open(tensor.file and path .. "/" .. tensor.file or path, "--init")
    file:seek("set", tensor.offset)
    return file
  end
  local one, other, left, same = at_its_bytes(a), at_its_bytes(b), a.bytes, true
  while same and left > 0 do
    local size = math.min(left, PIECE)
    same, left = one:read(size) == other:read(size), left - size
  end
  one:close()
  other:close()
  return same
end

-- What the file has beyond the model. Tensors that the recipe knows not to need are no matter, unless one must be the
-- same as another and is not.
local function left_over(run, path, rows, rename, tensors)
  local taken, left, problems = {}, {}, {}
  for _, row in ipairs(rows) do taken[rename(row.theirs)] = true end
  local patterns = run.recipe.unused and run.recipe.call("unused", run.o) or {}
  for _, pattern in ipairs(gguf.UNUSED) do patterns[#patterns + 1] = pattern end
  local function matches(name, pattern)
    for _, plain in ipairs(renames.plain(name, rename)) do
      if plain:find(pattern) then return true end
    end
    return name:find(pattern)
  end
  for name in pairs(tensors) do
    local known = taken[name]
    for _, pattern in ipairs(patterns) do
      local text, same = pattern, nil
      if type(pattern) == "table" then text, same = pattern[1], rename(pattern.same) end
      if not known and matches(name, text) then
        known = true
        if same and tensors[same] and not same_bytes(path, tensors[name], tensors[same]) then
          problems[#problems + 1] = ("'%s' is not '%s', as in this model; %s"):format(name, same, pattern.advice)
        end
      end
    end
    if not known and not tensors[name].unusable then left[#left + 1] = name end
  end
  table.sort(left)
  return left, problems
end

local function listed(words)
  if #words <= MOST_LISTED then return table.concat(words, ", ") end
  return table.concat({ unpack(words, 1, MOST_LISTED) }, ", ") .. (" and %d more"):format(#words - MOST_LISTED)
end

-- Options under which the recipe says the file would fit, where they are not those in force.
local function matching_options(run, rename, rows, tensors)
  if not run.recipe.fit then return "" end
  local shapes = {}
  for _, row in ipairs(rows) do shapes[row.theirs] = tensors[rename(row.theirs)] end
  for name, tensor in pairs(tensors) do  -- also of layers that the model does not have
    for _, plain in ipairs(renames.plain(name, rename)) do shapes[plain] = tensor end
  end
  local dims, words = {}, {}
  for name, tensor in pairs(shapes) do dims[name] = tensor.shape end
  for _, row in ipairs(run.recipe.call("fit", dims, run.o)) do
    local text = recipes.value_text(row[2])
    if text ~= recipes.value_text(run.o[row[1]]) then words[#words + 1] = row[1] .. "=" .. text end
  end
  return #words > 0 and ("\n  options that match the file: " .. table.concat(words, " ")) or ""
end

-- Patterns of --init-missing: in each `*` stands for any text, `?` for one character.
local function patterns_of(text)
  local list = {}
  for glob in (text or ""):gmatch("[^,]+") do
    local pattern = glob:gsub("[^%w_]", "%%%0"):gsub("%%%*", ".*"):gsub("%%%?", ".")
    list[#list + 1] = { glob = glob, pattern = "^" .. pattern .. "$", found = false }
  end
  return list
end

-- Marks the parameters that the file need not have, by either side's name. known: each pattern must match one.
local function allow_missing(rows, rename, text, known)
  local patterns = patterns_of(text)
  for _, row in ipairs(rows) do
    for _, each in ipairs(patterns) do
      for _, name in ipairs { row.ours, row.theirs, rename(row.theirs) } do
        if name:find(each.pattern) then row.optional, each.found = true, true end
      end
    end
  end
  for _, each in ipairs(patterns) do
    if known and not each.found then
      fail.usage(("--init-missing %s: no parameter has such a name"):format(each.glob))
    end
  end
end

-- Whether a file's tensor has the shape that a row needs.
local function fits(row, tensor)
  return shape_text(tensor.shape) == shape_text(tensor.quantised and row.plain or row.shape)
end

-- Marks rows that the file lacks, or has in another shape as the head over other classes, and may.
local function check_names(run, path, rows, rename, tensors)
  local missing, wrong, there, several = {}, {}, {}, {}
  for i, row in ipairs(rows) do
    there[row.ours] = there[row.ours] or tensors[rename(row.theirs)] ~= nil
    several[row.ours] = several[row.ours] or i > 1 and rows[i - 1].ours == row.ours
  end
  for _, row in ipairs(rows) do
    local theirs = rename(row.theirs)
    local tensor = tensors[theirs]
    if not tensor and row.optional and not there[row.ours] then  -- of several tensors for one parameter all
      row.missing = true
    elseif tensor and row.optional and not several[row.ours] and not tensor.unusable and not fits(row, tensor) then
      row.missing, row.reshaped = true, true
    elseif tensor and tensor.unusable then
      wrong[#wrong + 1] = ("%s is %s %s, a tensor that cairn has no use for; the model needs %s of a float type")
        :format(theirs, tensor.dtype, shape_text(tensor.shape), shape_text(row.shape))
    elseif not tensor then
      missing[#missing + 1] = theirs .. " " .. shape_text(row.shape)
    elseif not fits(row, tensor) then
      wrong[#wrong + 1] = ("%s is %s, the model needs %s"):format(theirs, shape_text(tensor.shape),
        shape_text(tensor.quantised and row.plain or row.shape))
    end
  end
  local left, problems = left_over(run, path, rows, rename, tensors)
  for i, name in ipairs(left) do left[i] = name .. " " .. shape_text(tensors[name].shape) end
  if #wrong > 0 then
    table.insert(problems, 1, ("%d of another shape or type: %s"):format(#wrong, listed(wrong)))
  end
  if #missing > 0 then
    problems[#problems + 1] = ("%d missing in the file: %s (--init-missing PATTERN lets those of a name begin fresh)")
      :format(#missing, listed(missing))
  end
  if #left > 0 then problems[#problems + 1] = ("%d that the model has not: %s"):format(#left, listed(left)) end
  if #problems > 0 then
    fail.input(("--init: '%s' does not fit the model:\n  %s%s"):format(path, table.concat(problems, "\n  "),
      matching_options(run, rename, rows, tensors)))
  end
end

-- Ends the command where `path` is a directory without a model, with the file in it that is wanted.
local function refuse_directory(path, problem)
  local found = {}
  for _, name in ipairs(posix.list(path) or {}) do
    if name:find("^model%.safetensors") then fail.check("--init", nil, problem) end
    if name:find("%.safetensors$") then found[#found + 1] = unicode.shown(path .. "/" .. name) end
  end
  fail.input(("--init: %s is a directory without model.safetensors and model.safetensors.index.json; wanted: a " ..
    "safetensors file%s"):format(path, #found > 0 and ", as " .. listed(found) or ", and there is none in it"))
end

-- Where a run's weights come from, for its checkpoints and what is exported of them: {directory (of a model; optional),
-- dtype (if all parameters come in one), base (path of what all frozen parameters come from; nil: some begin fresh)}.
local function source_of(run, path, directory, rows, rename, tensors)
  local dtype, several, fresh
  for _, row in ipairs(rows) do
    local tensor = not row.missing and tensors[rename(row.theirs)]
    if not row.adapter then
      several = several or not tensor or tensor.quantised or dtype and tensor.dtype ~= dtype
      dtype = tensor and tensor.dtype
    end
    fresh = fresh or row.missing and not row.adapter and run.graph:info(row.ours).frozen
  end
  local real = posix.real_path(path) or path
  return { directory = directory and real or nil, dtype = not several and dtype or nil,
           base = not fresh and real or nil }
end

local function note_of(run) return run.spec.note or function() end end

-- Tensors of the file that are listed and no more, and parameters that it lacks: told, not taken silently.
local function tell(run, path, rows, tensors)
  local note, passed, fresh, reshaped = note_of(run), {}, {}, {}
  for name, tensor in pairs(tensors) do
    if tensor.unusable then passed[#passed + 1] = ("%s (%s)"):format(unicode.shown(name), tensor.unusable) end
  end
  table.sort(passed)
  for i, row in ipairs(rows) do
    local first = i == 1 or rows[i - 1].ours ~= row.ours
    local list = row.reshaped and reshaped or fresh
    list[#list + 1] = row.missing and first and not row.adapter and row.ours or nil
  end
  if #passed > 0 then
    note(("note: %s: tensors that nothing needs are passed over: %s"):format(path, listed(passed)))
  end
  if #fresh > 0 then note(("note: %s lacks, and begins fresh: %s"):format(path, listed(fresh))) end
  if #reshaped > 0 then
    note(("note: %s has another shape of, and begins fresh: %s"):format(path, listed(reshaped)))
  end
end

-- The tensors of a safetensors or GGUF file or a model's directory by name, a quantised matrix as one; {} where they
-- cannot be read, which their import says better.
function weights.tensors(path)
  if gguf.is(path) then return gguf.inspect(path).tensors end
  local text = cairn.inspect(path)
  local file = text and decode(text)
  return file and file.kind == "safetensors" and file.tensors or {}
end

-- What there is at `path` for the parameters of run.graph: rows {ours, theirs, tensor, ...}.
function weights.found(run, path)
  local model = gguf.is(path) and gguf.open(path)
  local rows, tensors, found = model and needs_of_gguf(run, model) or needs(run), weights.tensors(path), {}
  local rename = model and renames.LIST[1] or renames.pick(rows, tensors)
  for _, row in ipairs(rows) do
    row.tensor = tensors[rename(row.theirs)]
    if row.tensor then found[#found + 1] = row end
  end
  return found
end

-- missing: patterns of parameters that the file may lack, with commas between; nil: it must have all.
function weights.import(run, path, missing)
  local directory = posix.no_file(path) == "a directory"
  if not directory then files.check(path, "--init") end
  local model = not directory and gguf.is(path) and gguf.open(path) or nil
  local text, problem
  if not model then text, problem = cairn.inspect(path) end
  if not model and not text and directory then refuse_directory(path, problem) end
  if not model and not text then  -- the reader of weights says best what is wrong with a file of no known kind
    local _, err = run.session:import(path, {})
    fail.check("--init", nil, err or problem)
  end
  local file = model and model.gguf or decode(text)
  if file.kind ~= "safetensors" and not model then
    fail.input(("--init: '%s' is a %s; wanted: a safetensors or GGUF file, or a model's directory, as " ..
      "`cairn export` writes"):format(path, file.kind))
  end
  local rows = model and needs_of_gguf(run, model) or needs(run)
  local rename = model and renames.LIST[1] or renames.pick(rows, file.tensors)
  allow_missing(rows, rename, missing, true)
  if run.recipe.fresh then allow_missing(rows, rename, table.concat(run.recipe.call("fresh", run.o), ",")) end
  local beside = directory and path .. "/" or path
  local config = model and model.text
  model_config.check(run, beside, true, config)  -- of another family, nothing else is worth a word
  check_names(run, path, rows, rename, file.tensors)
  model_config.check(run, beside, false, config)
  local names = {}
  local fresh = false
  for i, row in ipairs(rows) do
    if not row.missing or i == 1 or rows[i - 1].ours ~= row.ours then
      names[#names + 1] = row.missing and { ours = row.ours } or named(row, rename(row.theirs))
    end
    -- Adapters of PiSSA begin by the weights, as they are read.
    fresh = fresh or row.missing and not (row.adapter and run.o.lora_kind == "pissa")
  end
  if fresh and not missing then  -- who asked for it by a pattern has begun with the seed already
    fail.check("initial weights", run.session:initialise(run.spec.seed or FRESH_SEED))
  end
  fail.check("--init", run.session:import(path, names))
  tell(run, path, rows, file.tensors)
  run.source = source_of(run, path, directory or model, rows, rename, file.tensors)
  local adapter = run.recipe.adapter  -- see cli.adapter.attach
  if not adapter then return end
  adapter.fill(run.session, run.graph, { note = note_of(run), stored = run.spec.parameters or run.o.parameters,
                                         formats = run.spec.options and run.spec.options.formats })
end

-- What weights.found takes of a graph, with the names of its parameters in files, where there is no recipe.
local function without_recipe(graph, names)
  local given = function() return names end
  return { graph = graph, recipe = { names = given, call = given }, o = {} }
end

-- Names of the formats that the files at `path` store the parameters of a graph in; of those that have one alone.
function weights.formats(graph, names, path)
  local formats, several = {}, {}
  for _, row in ipairs(weights.found(without_recipe(graph, names), path)) do
    several[row.ours] = several[row.ours] or formats[row.ours] and formats[row.ours] ~= row.tensor.dtype
    formats[row.ours] = row.tensor.dtype
  end
  for name in pairs(several) do formats[name] = nil end
  return formats
end

-- Frozen parameters alone, of a run whose checkpoints do not hold them: those of self.graph for which held(name), by
-- the rows of self.names, into self.session. Digests say whether the file is the right one, not what else it has.
-- Returns true, or nil and what keeps it from being the base.
function weights.base(self, path, held)
  local text, problem = cairn.inspect(path)
  if not text then return nil, tostring(problem) end
  local model, file = gguf.is(path) and gguf.open(path), decode(text)
  if not file.tensors or file.kind == "checkpoint" then
    return nil, ("it is a %s; wanted: a model's directory, or its file"):format(file.kind)
  end
  local about = without_recipe(self.graph, self.names)
  local rows, names, wrong = model and needs_of_gguf(about, model) or needs(about), {}, {}
  local rename = model and renames.LIST[1] or renames.pick(rows, file.tensors)
  for i, row in ipairs(rows) do
    -- What an adapter has of its weight follows from that.
    if held(row.ours) and not row.ours:find("%.lora_[%a_]+%.?%a*$") then
      local theirs = rename(row.theirs)
      local tensor = file.tensors[theirs]
      if not tensor then
        wrong[#wrong + 1] = theirs .. " is not there"
      elseif shape_text(tensor.shape) ~= shape_text(tensor.quantised and row.plain or row.shape) then
        wrong[#wrong + 1] = ("%s is %s, the model needs %s"):format(theirs, shape_text(tensor.shape),
          shape_text(tensor.quantised and row.plain or row.shape))
      end
      names[#names + 1] = named(row, theirs)
    elseif i == 1 or rows[i - 1].ours ~= row.ours then
      names[#names + 1] = { ours = row.ours }
    end
  end
  if #wrong > 0 then return nil, listed(wrong) end
  local ok, err = self.session:import(path, names)
  return ok, err and tostring(err)
end

return weights
