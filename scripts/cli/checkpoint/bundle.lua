-- What a checkpoint holds beside the library's own files, so that generating, predicting and exporting are reading data
-- and run no recipe: generator.cairn, the graph that generates, names.json, the names of its parameters in safetensors
-- files, and predictor.cairn and predictor.json, the graph that predicts and the fields of its rows.
local cairn = require "cairn"
local fail = require "cli.base.fail"
local json = require "cli.base.json"
local decode = require "cli.base.json_decode"
local posix = require "cli.base.posix"
local predictors = require "cli.checkpoint.predictor"
local unicode = require "cli.base.unicode"

local bundle = {}

local GENERATOR, NAMES = "generator.cairn", "names.json"
local PREDICTOR, FIELDS = "predictor.cairn", "predictor.json"
local OURS = { [GENERATOR] = true, [NAMES] = true, [PREDICTOR] = true, [FIELDS] = true }
local FORM = "cairn.names/1"
local MOST_NAMES_BYTES = 2 ^ 24
local MOST_FOLDERS = 100
local LONGEST_WINDOW, LARGEST_VOCABULARY = 2 ^ 20, 2 ^ 22
local MOST_VALUES = 2 ^ 17  -- of a generation graph that is read: thousands of layers, and planned in a minute or two

local function layout(info) return ("%s[%s]"):format(info.dtype, table.concat(info.shape, ", ")) end

-- What keeps `graph` from generating with the parameters of `trained`, both frozen graphs; nil: nothing does. With
-- `whole`, all parameters must be there.
local function mismatch(graph, trained, whole)
  local there = {}
  for _, info in ipairs(graph:parameters()) do
    local ours = trained:info(info.name)
    if not ours or ours.kind ~= "parameter" then
      return ("it has a parameter '%s', which the trained model has not"):format(unicode.shown(info.name))
    end
    if layout(ours) ~= layout(info) then
      return ("its parameter '%s' is %s, in the trained model %s"):format(unicode.shown(info.name), layout(info),
        layout(ours))
    end
    there[info.name] = true
  end
  for _, info in ipairs(whole and trained:parameters() or {}) do
    if not there[info.name] then
      return ("it lacks the trained model's parameter '%s'"):format(unicode.shown(info.name))
    end
  end
end

local function generator_mismatch(graph, trained)
  local function value(name, kind, dtype, rank)
    local info = graph:info(name)
    if not info then return nil, ("it has no %s '%s'"):format(kind, name) end
    if info.kind ~= kind or info.dtype ~= dtype or (rank and #info.shape ~= rank) then
      return nil, ("'%s' is an %s %s"):format(name, info.kind, layout(info))
    end
    return info
  end
  local tokens, problem = value("tokens", "input", "i32", 2)
  if not tokens then return problem .. "; wanted: an input i32[1, window]" end
  if tokens.shape[1] ~= 1 or tokens.shape[2] > LONGEST_WINDOW then
    return ("'tokens' is %s; wanted: i32[1, window], and at most %d tokens"):format(layout(tokens), LONGEST_WINDOW)
  end
  local position
  position, problem = value("position", "input", "i32", 1)
  -- What tells texts of some length apart has one row of logits.
  if not position and not value("lengths", "input", "i32", 1) then return problem .. "; wanted: an input i32[1]" end
  if position and position.shape[1] ~= 1 then return ("'position' is %s; wanted: i32[1]"):format(layout(position)) end
  local logits
  logits, problem = value("logits", "activation", "f32")
  if not logits then return problem .. "; wanted: an f32 output" end
  if logits.bytes / 4 > LARGEST_VOCABULARY then
    return ("'logits' is %s, more than %d numbers"):format(layout(logits), LARGEST_VOCABULARY)
  end
  return mismatch(graph, trained)
end

bundle.mismatch = mismatch

-- Whether `graph` holds every parameter of the trained model.
function bundle.is_whole(graph, trained) return not mismatch(graph, trained, true) end

-- The generation graph of a recipe, frozen; nil if it has none. trained: the graph of the model.
function bundle.build_generator(recipe, o, trained)
  if not recipe.generator then return nil end
  local graph = fail.check("graph", cairn.graph())
  local ends = recipe.call("generator", o, graph)
  if type(ends) ~= "table" then fail.input(recipe.path .. ": generator must return { outputs = { logits } }") end
  graph = fail.check("graph", graph:freeze(ends))
  local problem = generator_mismatch(graph, trained)
  if problem then fail.input(("%s: generator: %s"):format(recipe.path, problem)) end
  return graph
end

-- Rows { ours, theirs, transposed, stacked } as arrays, each of a parameter of the model.
local function check_names(where, rows, trained)
  local seen, stacks = {}, {}
  if type(rows) ~= "table" then fail.input(where .. " must be rows { ours, theirs, transposed }") end
  local list = {}
  for i, row in ipairs(rows) do
    local ours, theirs
    if type(row) == "table" then ours, theirs = row.ours or row[1], row.theirs or row[2] end
    if type(ours) ~= "string" or type(theirs) ~= "string" then
      fail.input(("%s: row %d must be { ours, theirs, transposed }: two names, and whether the file has the matrix " ..
        "as [in, out]"):format(where, i))
    end
    local info = trained:info(ours)
    if not info or info.kind ~= "parameter" and info.kind ~= "statistic" then
      fail.input(("%s: row %d names '%s', which is no parameter of the model"):format(where, i, unicode.shown(ours)))
    end
    local stacked = (row.stacked or row[4]) and true or nil
    for place, name in ipairs { "\1" .. ours, "\2" .. theirs } do
      if seen[name] and not (place == 1 and stacked and stacks[ours]) then
        fail.input(("%s: row %d: the name '%s' is there twice"):format(where, i, unicode.shown(name:sub(2))))
      end
      seen[name] = true
    end
    stacks[ours] = stacked
    list[i] = json.array { ours, theirs, (row.transposed or row[3]) and true or false, stacked }
  end
  return list
end

-- Names in safetensors files that a recipe gives.
function bundle.build_names(recipe, o, trained)
  if not recipe.names then return {} end
  return check_names(recipe.path .. ": names", recipe.call("names", o), trained)
end

-- The parts of a run's checkpoints. Fails before anything is trained if they could not be saved.
function bundle.make(recipe, o, trained)
  return { generator = bundle.build_generator(recipe, o, trained), names = bundle.build_names(recipe, o, trained),
           predictor = predictors.build(recipe, o, function(graph) return mismatch(graph, trained) end) }
end

-- Whether a file is one that a save puts there, or one that was killed has left under a name of its own.
local function is_ours(name, tokenizer)
  return OURS[name:match("^%.(.-%.cairn)%.") or name] or tokenizer and name == tokenizer.file
end

-- Takes what is ours out of a folder, and the folder if it is empty then. Nothing is done through a link.
local function clear(folder, tokenizer)
  if posix.is_link(folder) then return end
  for _, name in ipairs(posix.list(folder) or {}) do
    if is_ours(name, tokenizer) then posix.remove_file(folder .. "/" .. name) end
  end
  posix.remove_empty_directory(folder)
end

-- Calls save(files, metadata), the files being those of `parts`, which lie in `folder` for as long as that takes; where
-- others have put something of that name, in one with a number behind it. tokenizer: its vocabulary's file, as {file
-- (its name), text}; nil: there is none.
function bundle.with_files(parts, folder, save, tokenizer)
  local named, made, problem = folder, nil, nil
  for number = 1, MOST_FOLDERS do
    folder = number == 1 and named or ("%s-%d"):format(named, number)
    clear(folder, tokenizer)
    made, problem = posix.new_directory(folder)
    if made or not posix.is_there(folder) then break end
  end
  if not made then fail.with(5, "save: " .. problem) end
  local ok, result = pcall(function()
    local files = { ("%s/%s"):format(folder, NAMES) }
    local text = json.encode(json.object { { "form", FORM }, { "names", json.array(parts.names) } }) .. "\n"
    local written, reason = posix.write_file(files[1], text)
    if not written then fail.with(5, "save: " .. reason) end
    if parts.generator then
      files[2] = ("%s/%s"):format(folder, GENERATOR)
      fail.check("save", parts.generator:save(files[2]))
    end
    if tokenizer and tokenizer.file then
      files[#files + 1] = ("%s/%s"):format(folder, tokenizer.file)
      written, reason = posix.write_file(files[#files], tokenizer.text)
      if not written then fail.with(5, "save: " .. reason) end
    end
    local about = { ["names"] = NAMES, ["generator"] = parts.generator and GENERATOR or "" }
    if parts.predictor then
      local graph, rows = ("%s/%s"):format(folder, PREDICTOR), ("%s/%s"):format(folder, FIELDS)
      fail.check("save", parts.predictor.graph:save(graph))
      written, reason = posix.write_file(rows, parts.predictor.text)
      if not written then fail.with(5, "save: " .. reason) end
      files[#files + 1], files[#files + 2] = graph, rows
      about["predictor"], about["predictor.fields"] = PREDICTOR, FIELDS
    end
    return save(files, about)
  end)
  clear(folder, tokenizer)
  if not ok then error(result, 0) end
  return result
end

-- Whether a checkpoint has its parts in it; those of 1.0 need the recipe.
function bundle.is_in(opened) return opened.text("generator") ~= nil and opened.text("names") ~= nil end

local function file_of(opened, key, name)
  if opened.text(key) ~= name then
    fail.input(("%s is damaged: its %s is '%s', not '%s'"):format(opened.directory, key,
      unicode.shown(opened.text(key)), name))
  end
  return opened.directory .. "/" .. name
end

local function graph_of(opened, key, name)
  local path = file_of(opened, key, name)
  local graph = fail.check(path, cairn.load_graph(path))
  local count = tonumber(cairn.C.cairn_graph_value_count(graph:raw()))
  if count > MOST_VALUES then
    fail.input(("%s: its graph has %d values, more than %d"):format(path, count, MOST_VALUES))
  end
  return graph, path
end

-- The generation graph in a checkpoint; nil if the recipe had none.
function bundle.generator(opened, trained)
  if opened.text("generator") == "" then return nil end
  local graph, path = graph_of(opened, "generator", GENERATOR)
  local problem = generator_mismatch(graph, trained)
  if problem then fail.input(("%s does not go with the checkpoint: %s"):format(path, problem)) end
  return graph
end

-- What predicts, as predictors.build makes it; nil if the recipe had none.
function bundle.predictor(opened, trained)
  if not opened.text("predictor") then return nil end
  local graph, path = graph_of(opened, "predictor", PREDICTOR)
  local problem = mismatch(graph, trained)
  if problem then fail.input(("%s does not go with the checkpoint: %s"):format(path, problem)) end
  local fields_path = file_of(opened, "predictor.fields", FIELDS)
  local text, reason = posix.read_file(fields_path, MOST_NAMES_BYTES)
  if not text then fail.input(reason) end
  return predictors.read(fields_path, text, graph)
end

-- The names in a checkpoint.
function bundle.names(opened, trained)
  local path = file_of(opened, "names", NAMES)
  local text, problem = posix.read_file(path, MOST_NAMES_BYTES)
  if not text then fail.input(problem) end
  local ok, read = pcall(decode, text)
  if not ok or type(read) ~= "table" or read.form ~= FORM or type(read.names) ~= "table" then
    fail.input(("%s is no %s file%s"):format(path, FORM, ok and "" or ": " .. tostring(read)))
  end
  return check_names(path, read.names, trained)
end

return bundle
