-- The base of a run whose checkpoints do not hold the frozen parameters: the model that it was trained on. A checkpoint
-- says where that was and has its digests, so that another one is refused.
--   base.path      metadata: the directory or file
--   base.digest    XXH3-128 of the frozen parameters as they were stored
--   base.formats   what they were stored as, as --format is given
local bundle = require "cli.checkpoint.bundle"
local cairn = require "cairn"
local decode = require "cli.base.json_decode"
local args = require "cli.base.args"
local fail = require "cli.base.fail"
local parameters = require "cli.recipe.parameters"
local posix = require "cli.base.posix"
local unicode = require "cli.base.unicode"
local weights = require "cli.recipe.weights"

local base = {}

base.OPTION = { args.text, "of a run whose checkpoints do not hold the frozen parameters: the model that it was " ..
  "trained on, where it is not in its place any more", "DIR|FILE" }

base.EMA = { args.FLAG, "take the averages of the parameters, of a run that was trained with ema=" }

-- Ends a command that has no checkpoint to take averages from.
function base.no_ema(options, path)
  if options.ema then
    fail.usage(("--ema: %s is no run or checkpoint, which averages of parameters are in; leave it out"):format(
      unicode.shown(path)))
  end
end

-- Whether a run's checkpoints leave frozen parameters out: a run with adapters does, unless it is told otherwise, and
-- only where there is a base to bring them from.
function base.is_left_out(run)
  local asked = run.o.save_frozen
  if asked == "true" or (asked ~= "false" and (run.o.lora or 0) == 0) then return false end
  for _, info in ipairs(run.graph:parameters()) do
    if info.frozen then return run.source ~= nil and run.source.base ~= nil end
  end
  return false
end

-- Metadata of a checkpoint.
function base.write(run, metadata)
  metadata["base.path"] = run.source.base
  metadata["base.digest"] = fail.check("save", run.session:base_digest())
  metadata["base.formats"] = parameters.metadata(run.spec.options.formats)
end

-- {digest, tensors (by name: {dtype, shape})} of the frozen parameters that a checkpoint does not hold; nil: none.
function base.of(opened)
  if opened.base == nil then
    opened.base = decode(fail.check(opened.directory, cairn.inspect(opened.directory))).base or false
  end
  return opened.base or nil
end

-- Path of the base of a checkpoint. given: what --base says.
function base.path(opened, given)
  local path = given or opened.text("base.path")
  if not path then
    fail.input(("%s holds no frozen parameters, and does not say what it was trained on: --base DIR|FILE names that " ..
      "model"):format(opened.directory))
  end
  if not posix.is_there(path) then
    if given then fail.input(("--base: there is no %s"):format(unicode.shown(path))) end
    fail.input(("%s was trained on the base %s, which is not there any more; --base DIR|FILE says where it is now")
      :format(opened.directory, unicode.shown(path)))
  end
  return path
end

local function refuse(opened, path, given, why)
  fail.input(("%s is not the base that %s was trained on (digest %s): %s; --base DIR|FILE names %s"):format(
    unicode.shown(path), opened.directory, base.of(opened).digest, why, given and "another" or "the right one"))
end

-- Calls load() -> true, or nil and an error, once the session has the frozen parameters that the checkpoint does not
-- hold. brought(), optional, is called in between.
local function with_base(opened, session, graph, names, given, load, brought)
  local held, wants = base.of(opened), false
  for _, info in ipairs(held and graph:parameters() or {}) do wants = wants or held.tensors[info.name] ~= nil end
  if not wants then return load() end
  local path = base.path(opened, given)
  local ok, problem = weights.base({ session = session, graph = graph, names = names }, path, function(name)
    return held.tensors[name] ~= nil
  end)
  if not ok then refuse(opened, path, given, problem) end
  if brought then brought() end
  local loaded, err = load()
  if not loaded and err.status == "INVALID_ARGUMENT" and err.message:find("holds no frozen parameters", 1, true) then
    refuse(opened, path, given, err.message:match("%): ('.*); load the base") or err.message)
  end
  return loaded, err
end

-- Names of a checkpoint's parameters in files; those of a program of one's own are the model's.
local function names_of(opened)
  if not base.of(opened) or not bundle.is_in(opened) then return {} end
  return bundle.names(opened, fail.check(opened.directory, opened.checkpoint:graph()))
end

-- The parameters of a checkpoint into a session of `graph`. options.base: the model that it was trained on; options.ema
-- asks for averages in place of parameters; brought(): called when the session has the base and not yet what was
-- trained (optional).
function base.load(opened, session, graph, options, brought)
  fail.check(opened.directory, with_base(opened, session, graph, names_of(opened), options.base, function()
    return session:load(opened.checkpoint, { ema = options.ema })
  end, brought))
end

-- The parameters of a checkpoint into a session that has its base already, from wherever that came.
function base.load_onto(opened, session)
  local ok, err = session:load(opened.checkpoint)
  if not ok and err.status == "INVALID_ARGUMENT" and err.message:find("holds no frozen parameters", 1, true) then
    fail.input(("%s was trained on another base (digest %s): %s"):format(opened.directory, base.of(opened).digest,
      err.message:match("%): ('.*); load the base") or err.message))
  end
  fail.check(opened.directory, ok, err)
end

-- Puts a run where a checkpoint was. Returns true, or nil and the error.
function base.restore(run, opened)
  return with_base(opened, run.session, run.graph, names_of(opened), run.spec.options.base, function()
    return run.stepper:restore(opened.checkpoint)
  end)
end

return base
