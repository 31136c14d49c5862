-- The directory that a run is told to save in: what is there already, and who goes on from it.
local cairn = require "cairn"
local checkpoints = require "cli.checkpoint.checkpoints"
local fail = require "cli.base.fail"
local posix = require "cli.base.posix"
local run_directory = require "cli.checkpoint.run_directory"

local out_directory = {}

-- How far the run got whose checkpoints are in a directory, in words.
local function progress_of(out)
  local checkpoint = cairn.checkpoint(out)
  if not checkpoint then return "checkpoints already" end
  local step, steps = tonumber(checkpoint:directory():match("step%-(%d+)/*$")), checkpoint:metadata("steps")
  checkpoint:free()
  if not step or not tonumber(steps) then return "checkpoints already" end
  if step >= tonumber(steps) then return ("checkpoints already, of a run that is done (step %d)"):format(step) end
  return ("checkpoints already, of a run that was not finished (step %d of %d)"):format(step, tonumber(steps))
end

-- Where a run saves: --out, or with --resume the run's own directory; nil in a dry run. Returns it, whether the run
-- goes on in it, and a function that takes it for this run.
function out_directory.of(run, options, opened, note)
  local out = options.out
  local origin = opened and run_directory.of(opened.directory)
  if not out and opened then
    out = origin or fail.usage(opened.directory .. " is in no run's directory (it is not called step-N): --out DIR " ..
      "says where to save")
  end
  if not out then return nil, false, function() end end
  local function take()
    if options.dry_run then return end
    local ok, problem = posix.make_directory(out)
    if not ok then fail.with(5, "--out: " .. problem) end
    run_directory.hold(out)
    checkpoints.rehearse(run, out)
  end
  local there = checkpoints.steps(out)
  local continues = origin and posix.real_path(out) == posix.real_path(origin) or false
  if not continues then take() elseif not options.dry_run then run_directory.hold(out, true) end
  if #there > 0 and not continues then
    if not options.force then
      fail.usage(("%s has %s; --resume %s continues them, --force starts again"):format(out, progress_of(out), out))
    end
    if options.dry_run then return nil, false, take end
    for _, name in ipairs(there) do
      local removed, err = cairn.remove_checkpoint(out .. "/" .. name)
      if not removed then
        -- What stays must not be taken for a checkpoint of the new run.
        if cairn.checkpoint(out .. "/" .. name) then fail.check("--force", nil, err) end
        note("note: " .. tostring(err))
      end
    end
  end
  if options.dry_run then return nil, continues, take end
  return out, continues, take
end

return out_directory
