-- What a run writes of itself into --out as it goes: metrics.jsonl and evaluations.jsonl (a line per step, by step),
-- samples.jsonl, TensorBoard's events, and report.html; and into MLflow's file store.
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local history = require "cli.report.history"
local json = require "cli.base.json"
local metrics = require "cli.train.metrics"
local posix = require "cli.base.posix"
local page = require "cli.report.page"
local run_directory = require "cli.checkpoint.run_directory"
local tensorboard = require "cli.report.tensorboard"
local unicode = require "cli.base.unicode"

local journal = {}
local Journal = {}
Journal.__index = Journal

local FLUSH_SECONDS, SHORT_STEP = 1, 0.002  -- written after each step that is not short, and each second
local REPORT_SECONDS = 30  -- between two pages while the run is under way
local FILES = { "metrics.jsonl", "evaluations.jsonl", "samples.jsonl" }
local MOST_WAITING = 2 ^ 10  -- lines that are not written yet
local MOST_LINES = 2 ^ 14  -- of steps that are read again for the page of a resumed run

local function append(path, text)
  local ok, problem = posix.write_file(path, text, true)
  if not ok then fail.with(5, problem) end
end

-- Whether a line that was read is an evaluation: numbers by name, with the step that it is of.
local function is_evaluation(row)
  if type(row) ~= "table" or not row.step then return false end
  for _, value in pairs(row) do
    if type(value) ~= "number" then return false end
  end
  return true
end

-- out: the directory, or nil: nothing is written. first: the step that the run goes on from; every: steps between
-- records; about: rows {what, text} that the page begins with; unit: what the run's speed is counted in;
-- each(file, row): called for the evaluations that are there already (optional).
function journal.open(out, first, every, about, unit, each)
  local self = setmetatable({ out = out, every = every or 1, lines = {}, events = {}, flushed = posix.now(),
                              reported = posix.now(), about = about, history = history.new(unit) }, Journal)
  for _, file in ipairs(FILES) do
    self.lines[file] = {}
    local kept = out and run_directory.keep_lines(out, file, first) or {}
    local stride = file == "metrics.jsonl" and math.ceil(#kept / MOST_LINES) or 1
    for i, line in ipairs(kept) do
      if i % stride == 0 or i == #kept or not line:find('"outcome":"applied"', 1, true) then
        local ok, row = pcall(decode, line)
        if ok then self.history:add(file, row) end
        if ok and each and file == "evaluations.jsonl" and is_evaluation(row) then each(file, row) end
      end
    end
  end
  if out then
    if first == 0 then
      for _, path in ipairs(tensorboard.files(out)) do posix.remove_file(path) end
    end
    self.event_path = tensorboard.path(out)
    self.events[1] = tensorboard.head(posix.wall(), first > 0 and first + 1 or nil)
  end
  return self
end

-- Calls each(file, row) for what a run's directory holds of evaluations up to a step, and writes nothing.
function journal.recall(out, last, each)
  local file = "evaluations.jsonl"
  local text = posix.read_file(out .. "/" .. file, math.huge) or ""
  for line in text:gmatch("[^\n]+") do
    local ok, row = pcall(decode, line)
    if ok and is_evaluation(row) and row.step <= last then each(file, row) end
  end
end

function Journal:line(file, rows)
  local row = {}
  for _, field in ipairs(rows) do row[field[1]] = field[2] end
  self.history:add(file, row)
  local lines = self.lines[file]
  lines[#lines + 1] = json.encode(json.object(rows)) .. "\n"
  if #lines >= MOST_WAITING then self:flush() end
end

-- Numbers {name, value} of a step, for the programs that draw curves. self.mlflow: the run's record there, or nil.
function Journal:scalars(step, rows)
  self.events[#self.events + 1] = tensorboard.scalars(posix.wall(), step, rows)
  if self.mlflow then self.mlflow:scalars(step, rows) end
end

-- Records a step (what Run:step returns). last: whether it is recorded in any case, as the run's last one is.
function Journal:step(step, last)
  if not self.out then return end
  local report, applied = step.report, step.outcome == "applied"
  if report.step % self.every == 0 or last or not applied then
    local rows = {
      { "step", report.step }, { "loss", step.loss }, { "gradient_norm", report.gradient_norm },
      { "rate", report.rate }, { "tokens", step.tokens }, { "seconds", step.seconds },
      { "stall_seconds", step.stall_seconds }, { "outcome", step.outcome } }
    local scalars = { { "train/loss", step.loss }, { "train/gradient_norm", report.gradient_norm },
                      { "train/rate", report.rate }, { "train/skipped_steps", report.skipped_steps },
                      { "train/tokens_per_second", step.seconds > 0 and step.tokens / step.seconds or 0 } }
    self.scaled = self.scaled or report.loss_scale ~= 1  -- it is 1 where there is none
    if self.scaled then
      rows[#rows + 1], scalars[#scalars + 1] = { "loss_scale", report.loss_scale },
        { "train/loss_scale", report.loss_scale }
    end
    for _, row in ipairs(metrics.rows(step.metrics, true)) do
      rows[#rows + 1], scalars[#scalars + 1] = row, { "train/" .. row[1], row[2] }
    end
    self:line("metrics.jsonl", rows)
    self:scalars(report.step, scalars)
  end
  if step.seconds >= SHORT_STEP or self:due() then self:flush() end
end

-- Records an evaluation {step, values, seconds}.
function Journal:evaluation(row)
  if not self.out then return end
  local rows, scalars = { { "step", row.step } }, {}
  for _, each in ipairs(metrics.rows(row.values)) do
    rows[#rows + 1] = each
    if each[2] then scalars[#scalars + 1] = { "eval/" .. each[1], each[2] } end
  end
  rows[#rows + 1] = { "seconds", row.seconds }
  self:line("evaluations.jsonl", rows)
  self:scalars(row.step, scalars)
  self:flush()
end

-- Records a text that the model made at a step, which may be any bytes.
function Journal:sample(step, bytes)
  if not self.out then return end
  local text = unicode.text(bytes)
  self:line("samples.jsonl", { { "step", step }, { "text", text } })
  self:flush()
end

function Journal:due() return posix.now() - self.flushed >= FLUSH_SECONDS end

function Journal:flush()
  self.flushed = posix.now()
  if not self.out then return end
  for _, file in ipairs(FILES) do
    local lines = self.lines[file]
    if #lines > 0 then append(self.out .. "/" .. file, table.concat(lines)) end
    self.lines[file] = {}
  end
  if #self.events > 0 then append(self.event_path, table.concat(self.events)) end
  self.events = {}
  if self.mlflow then self.mlflow:flush() end
  if posix.now() - self.reported >= REPORT_SECONDS then self:page() end
end

-- The run ends with this exit code; nil: well.
function Journal:close(code)
  if self.mlflow then self.mlflow:close(code) end
end

-- Writes report.html. Returns its path; nil without --out. more: rows {what, text} known at the end.
function Journal:page(more)
  self.reported = posix.now()
  if not self.out then return nil end
  local path, rows = self.out .. "/report.html", {}
  for _, list in ipairs { self.about, more or {} } do
    for _, row in ipairs(list) do rows[#rows + 1] = row end
  end
  local temporary = self.out .. "/.report.html"
  posix.remove_file(temporary)
  local ok, problem = posix.write_file(temporary, page.page(self.history, rows, self.sums))
  if ok then ok, problem = os.rename(temporary, path) end
  if not ok then fail.with(5, tostring(problem)) end
  collectgarbage()  -- a page is a megabyte of texts
  return path
end

return journal
