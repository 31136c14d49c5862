-- What a run has learnt is kept, whatever ends it: an error of the recipe, its data, the system or the command.
local checkpoints = require "cli.checkpoint.checkpoints"
local fail = require "cli.base.fail"
local posix = require "cli.base.posix"

local rescue = {}

local IO = 5  -- the exit code of what a file could not be written for

-- Calls work(). Returns the failure that ended it, or nil and what it returned.
function rescue.try(work)
  local ok, made, more = xpcall(work, fail.caught)
  if ok then return nil, made, more end
  return fail.of(made)
end

-- Saves where files go that nobody asked to keep, for want of a better place. Returns words.
local function save_aside(run, out)
  local folder, directory = ("%s/cairn-%d"):format(posix.temporary(), posix.pid()), nil
  local failed = rescue.try(function()
    local made, problem = posix.new_directory(folder)
    if not made then fail.with(IO, problem) end
    directory = checkpoints.save(run, folder)
  end)
  if not failed then
    return ("saved %s instead: move it into %s, and --resume %s goes on from it"):format(directory, out, out)
  end
  posix.remove_empty_directory(folder)
  return ("nor in %s: %s"):format(folder, failed.message)
end

-- Saves the last whole step, unless that is done. Returns words; nil: nothing was made that could be lost.
local function keep(run, state, failure)
  local result, out = state.result, state.out
  local step = result.steps
  if state.dry or step <= result.first_step then return nil end
  if not out then return ("of %d steps nothing is kept without --out"):format(step - result.first_step) end
  if result.saved == step then return "saved " .. result.checkpoint end
  local older = result.checkpoint and "; the last checkpoint is " .. result.checkpoint or ""
  if not run.stepper then return "step " .. step .. " is lost" .. older end
  if run.unsound then return "parameters that were partly updated are not saved" .. older end
  local failed = rescue.try(function()
    run:forget()
    local now = fail.check("save", run.stepper:report()).step
    if now ~= step then fail.with(1, ("the run is at step %d"):format(now)) end
    state.save(step)
  end)
  if not failed then return "saved " .. result.checkpoint end
  local words = ("step %d could not be saved in %s"):format(step, out)
  if failed.message ~= failure.message then words = words .. " (" .. failed.message .. ")" end
  if failed.code == IO then return words .. "; " .. save_aside(run, out) end
  return words .. older
end

-- Ends the command with `failure`, after all that the run has made is written that can be, and says where that is.
function rescue.fail(run, state, failure)
  for _ = 1, 2 do collectgarbage("collect") end  -- what was taken up to the error
  if state.bar then state.bar:finish() end
  local words = { failure.message }
  words[#words + 1] = keep(run, state, failure)
  local journal = state.journal
  if journal then
    for _, write in ipairs { journal.flush, function(self) self:page { { "ended", failure.message } } end,
                             function(self) self:close(failure.code) end } do
      local failed = rescue.try(function() write(journal) end)
      if failed and not failure.message:find(failed.message, 1, true) then words[#words + 1] = failed.message end
    end
  end
  fail.with(failure.code, table.concat(words, "; "))
end

return rescue
