-- Going on from a checkpoint: what is otherwise than in the run so far is said, never taken silently.
local base = require "cli.checkpoint.base"
local checkpoints = require "cli.checkpoint.checkpoints"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local json = require "cli.base.json"
local parameters = require "cli.recipe.parameters"
local posix = require "cli.base.posix"
local precision = require "cli.recipe.precision"
local recipes = require "cli.recipe.load"
local run_directory = require "cli.checkpoint.run_directory"
local schedules = require "cli.recipe.schedule"
local settings = require "cli.checkpoint.settings"
local unicode = require "cli.base.unicode"

local resume = {}

local AMP = { off = true, bf16 = true, fp16 = true }

-- The --amp of a checkpoint's run.
function resume.amp(opened)
  local amp = opened.text("amp")
  if amp and not AMP[amp] then
    fail.input(("%s is damaged: its amp is '%s', none of off, bf16, fp16"):format(opened.directory, unicode.shown(amp)))
  end
  return amp
end

-- Puts the restored run where its checkpoint was in the data, and returns how many micro-batches of the step under way
-- it goes on from. A checkpoint counts micro-batches as its run was trained on them, each a part of one of the data's.
-- Where memory has made this run's smaller (--on-oom shrink), a step under way begins anew: sizes do not mix in one.
function resume.place(run, opened, note)
  local report = fail.check("--resume", run.stepper:report())
  local was, parts = opened.number("parts", 1), run.spec.parts or 1
  if was == 0 then fail.input(opened.directory .. " is damaged: its parts are 0") end
  local place = opened.number("next_batch", report.step * opened.number("accumulate", run.spec.accumulate))
  local before = report.micro
  if before > 0 and parts ~= was then
    fail.check("--resume", run.stepper:discard())
    note(("note: step %d, of which %s has %d of %s micro-batches, begins again with smaller ones"):format(
      report.step + 1, opened.directory, before, opened.text("accumulate") or "its"))
    place, before = place - before, 0
  end
  run.next_batch, run.micro_before = place * parts / was / run.joined, before
  if run.next_batch ~= math.floor(run.next_batch) then
    fail.usage(("--accumulate %d: %s is %d micro-batches into the data, which steps of %d that run as one do not reach")
      :format(run.spec.accumulate, opened.directory, place, run.joined))
  end
  for _, row in ipairs(run.spec.shrunk or {}) do row.step = report.step end
  return before
end

-- A checkpoint keeps the options it was saved under; those of the run count from the next step on.
function resume.configure(run)
  local about = { seed = run.spec.seed, steps = run.spec.steps, accumulate = run.spec.accumulate }
  local options = recipes.stepper_options(run.recipe, run.spec.o, about)
  options.micro_steps = run.micro_steps
  fail.check("--resume", run.stepper:configure(options))
end

-- Where a schedule that ends does so.
local function schedule_end(schedule, schedule_steps, steps)
  if not schedules.ends(schedule) then return nil end
  return tonumber(schedule_steps) ~= 0 and schedule_steps or steps
end

-- The content of data now, told as `was` tells it: checkpoints of before have 16 digits.
local function content_like(was, data)
  local former = was and data.former_content and #was:match("^%x*") == 16
  return former and data.former_content() or data.content
end

-- Rows {what, was, now}, as texts, of all that the run was begun with and that is otherwise now.
local function differences(run, opened)
  local rows, spec = {}, run.spec
  local function compare(what, was, now)
    if was ~= nil and now ~= nil and was ~= now then rows[#rows + 1] = { what, was, now } end
  end
  for _, row in ipairs(run.recipe.rows) do
    local name, value = row[1], spec.o[row[1]]
    if name == "data" and value ~= "random" then value = posix.real_path(value) or value end
    if value ~= nil and name ~= "schedule_steps" then compare(name, opened.option(name), recipes.value_text(value)) end
  end
  compare("the schedule's last step",
    schedule_end(opened.option("schedule"), opened.option("schedule_steps"), opened.text("steps")),
    schedule_end(run.o.schedule, recipes.value_text(run.o.schedule_steps or 0), ("%d"):format(spec.steps)))
  if opened.option("data") == (posix.real_path(run.o.data or "") or run.o.data) then
    local was = opened.text("data.content")
    compare("the content of data (its digest and size)", was, content_like(was, run.data))
  end
  compare("--seed", opened.text("seed"), ("%d"):format(spec.seed))
  compare("--accumulate", opened.text("accumulate"), ("%d"):format(spec.accumulate))
  compare("--amp", opened.text("amp"), spec.options.amp or "off")
  compare("the recipe's AMP rules", opened.text("amp.rules") or "none", precision.text(spec.options.amp_rules))
  compare("--format", parameters.text(parameters.of(opened)), parameters.text(spec.options.formats))
  compare("--device", opened.text("device"), spec.options.device or "cpu")
  compare("the instruction set (CAIRN_ISA)", opened.text("isa"), checkpoints.isa(spec))
  compare("--threads", opened.text("threads.effective") or opened.text("threads"), checkpoints.threads(spec))
  settings.compare(spec.settings or {}, opened, compare)
  return rows
end

local function refuse_data(opened, path, was, now)
  fail.input(("--resume: %s was trained on data=%s, whose content (digest and size) was %s and is %s; data=FILE on the "
    .. "command line goes on with other data"):format(opened.directory, unicode.shown(path), unicode.shown(was), now))
end

-- What a checkpoint says of the files that its recipe named by run.file, and of eval_data: contents by path.
local function recorded_files(opened)
  local ok, rows = pcall(decode, opened.text("files") or "[]")
  local found = {}
  for _, row in ipairs(ok and type(rows) == "table" and rows or {}) do
    if type(row) == "table" and type(row[1]) == "string" then found[row[1]] = row[2] end
  end
  return found
end

-- Puts the run where the checkpoint was.
function resume.restore(run, opened)
  local ok, err = base.restore(run, opened)
  if ok then return end
  if err.status == "CORRUPT_FILE" then
    err.message = err.message .. "; --resume DIR/step-N goes on from an older checkpoint, if there is one"
  else  -- another model, or another optimizer: by the options that make it so
    local words = {}
    for _, row in ipairs(differences(run, opened)) do
      words[#words + 1] = ("%s was %s and is %s"):format(row[1], unicode.shown(row[2]), unicode.shown(row[3]))
    end
    if #words > 0 then err.message = ("%s; %s"):format(err.message, table.concat(words, ", ")) end
  end
  fail.check("--resume", nil, err)
end

-- The data that the run was trained on, which its place in them is counted in, still have their content; other data are
-- taken where the command names them. As a check of a file before anything is made of it: a checkpoint names any file.
-- given: {key, text} pairs of the command line.
function resume.content_check(opened, o, given, data_given, recipe_changed)
  local was, recorded = opened.text("data.content"), recorded_files(opened)
  return function(what, file)
    if what == "data" then
      local now = content_like(was, file)
      if not data_given and was ~= nil and was ~= now then refuse_data(opened, o.data, was, now) end
      return
    end
    local before = recorded[posix.real_path(file.path) or file.path]
    if recipe_changed or before == nil or before == file.content then return end
    for _, setting in ipairs(given) do
      if setting[2] == file.path then return end
    end
    fail.input(("--resume: %s was trained with %s, whose content (digest and size) was %s and is %s; %s"):format(
      opened.directory, unicode.shown(file.path), unicode.shown(tostring(before)), file.content,
      what == "eval_data" and "eval_data=FILE on the command line goes on with another"
      or "the option that names it, on the command line, or --recipe-changed goes on with another"))
  end
end

-- The same of whatever data a recipe opened.
function resume.check_data(run, opened)
  local was = opened.text("data.content")
  local now = content_like(was, run.data)
  if run.spec.data_given or was == nil or now == nil or was == now then return end
  refuse_data(opened, run.o.data, was, now)
end

-- Says what is otherwise, and takes later checkpoints out of the way of `out`, the run's own directory (false: it saves
-- elsewhere, or has nothing to do). Returns it for --json.
function resume.remark(run, opened, step, out, note)
  local changed, damaged, moved = {}, {}, {}
  for _, row in ipairs(differences(run, opened)) do
    local was, now = unicode.shown(row[2]), unicode.shown(row[3])
    note(("note: %s was %s and is %s after step %d"):format(row[1], was, now, step))
    changed[#changed + 1] = json.object { { "what", row[1] }, { "was", row[2] }, { "now", row[3] } }
  end
  for _, row in ipairs(opened.damaged) do
    damaged[#damaged + 1] = json.object { { "checkpoint", row.directory }, { "why", row.why } }
  end
  for _, row in ipairs(out and run_directory.set_aside(out, step) or {}) do
    note(("note: %s is of a later step than %d, where this run goes on; it is now %s"):format(row.from, step, row.to))
    moved[#moved + 1] = json.object { { "from", row.from }, { "to", row.to } }
  end
  return json.object { { "checkpoint", opened.directory }, { "step", step }, { "differences", json.array(changed) },
                       { "damaged", json.array(damaged) }, { "set_aside", json.array(moved) } }
end

return resume
