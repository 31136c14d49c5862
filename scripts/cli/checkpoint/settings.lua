-- Options of the command that are a run's own: a resumed run goes on with them unless it is given others. Its
-- checkpoints hold them as they were written.
local fail = require "cli.base.fail"
local unicode = require "cli.base.unicode"

local settings = {}

local NAMES = { "best", "early-stop", "eval-every", "keep", "log-every", "max-skips", "sample-every", "sample-prompt",
                "sample-temperature", "save-every" }
local DEFAULTS = { keep = "2", ["save-every"] = "15m" }  -- with --out
local OF_EVALUATION = { "best", "early-stop", "eval-every" }

local function key_of(name) return (name:gsub("-", "_")) end

-- Reads a text as the command line does. known: the command's options.
local function take(options, texts, known, name, text)
  options[key_of(name)], texts[name] = known[name][1](text, "--" .. name), text
end

-- Sets what `options` and `texts` (as args.parse returns them) do not say, of a run that goes on from a checkpoint.
function settings.go_on(options, texts, known, opened)
  for _, name in ipairs(NAMES) do
    local text = opened.text("setting." .. name)
    if text and options[key_of(name)] == nil then
      local ok, problem = pcall(take, options, texts, known, name, text)
      if not ok then
        if not fail.is(problem) then error(problem, 0) end
        fail.input(("%s is damaged: %s"):format(opened.directory, unicode.shown(problem.message)))
      end
      options.carried = options.carried or {}
      options.carried[name] = true
    end
  end
end

-- Sets what nobody said, of a run that saves.
function settings.complete(options, known)
  for name, text in pairs(DEFAULTS) do
    if options[key_of(name)] == nil then take(options, {}, known, name, text) end
  end
end

-- What is carried on from a checkpoint and the run can no longer do, is left, and said.
function settings.leave(options, names, note, why)
  for _, name in ipairs(names) do
    if options.carried and options.carried[name] then
      note(("note: --%s goes on no more: %s"):format(name, why))
      options[key_of(name)] = nil
    end
  end
end
settings.OF_EVALUATION = OF_EVALUATION

-- Metadata of a checkpoint.
function settings.write(texts, metadata)
  for _, name in ipairs(NAMES) do
    local text = texts[name] or DEFAULTS[name]
    if text then metadata["setting." .. name] = text end
  end
end

-- Calls compare(what, was, now) for each.
function settings.compare(texts, opened, compare)
  for _, name in ipairs(NAMES) do
    compare("--" .. name, opened.text("setting." .. name), texts[name] or DEFAULTS[name])
  end
end

return settings
