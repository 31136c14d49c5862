-- What a training run ends with: numbers for --json and for people.
local format = require "cli.base.format"
local joint = require "cli.plan.joint"
local json = require "cli.base.json"
local metrics = require "cli.train.metrics"
local posix = require "cli.base.posix"
local process_memory = require "cli.train.process_memory"
local programs = require "cli.train.programs"
local summary = require "cli.plan.summary"

local result = {}

local NO_STEP = { stopped = "interrupted", time = "--max-time was over" }
local ENDED = { time = "--max-time was over", recipe = "the recipe's on_step asked for it" }
local DRIFT, DRIFT_STEPS = 0.1, 5  -- of predicted seconds, and steps to judge by

-- A program of the store that never ran raised no peak: what was planned for it is not held against what was measured.
function result.leave_out_idle(self)
  local peaks, idle = nil, {}
  if self.programs then peaks, idle = programs.that_ran(self.programs) end
  if not peaks or #idle == 0 then return end
  self.plan, self.idle = setmetatable({ peak_bytes = peaks }, { __index = self.plan }), idle
end

-- Says so when steps take another time than the profile promised: it was measured under other conditions.
function result.hint(self, options)
  if not options.profile or options.quiet or options.json or self.timed_steps < DRIFT_STEPS then return end
  local predicted = summary.step_seconds(self.plan, self.plan.predicted_seconds, self.micro_steps)
  local drift = self.step_seconds_median / predicted - 1
  if math.abs(drift) <= DRIFT then return end
  io.stderr:write(("note: a step takes %s, %s %s than %s predicts (%s); `cairn profile` measures again\n"):format(
    format.seconds(self.step_seconds_median), format.percent(math.abs(drift)), drift > 0 and "more" or "less",
    options.profile, format.seconds(predicted)))
end

-- An evaluation {step, values, seconds} in JSON: the step, and every metric of it.
function result.evaluation(row)
  local fields = { { "step", row.step } }
  for _, field in ipairs(metrics.rows(row.values)) do fields[#fields + 1] = field end
  fields[#fields + 1] = { "seconds", row.seconds }
  return json.object(fields)
end

-- Writes the result as JSON by write(text), piece by piece.
function result.to_json(self, write)
  local plan = self.plan
  local rows = {
    { "steps", self.steps }, { "loss", self.records.loss:json() },
    { "step_seconds_median", self.step_seconds_median }, { "tokens_per_second", self.tokens_per_second },
    { "samples_per_second", self.samples_per_second }, { "total_seconds", self.total_seconds },
    { "epochs", self.epochs },
    { "peak_bytes", summary.tiers(self.peak) }, { "planned_peak_bytes", summary.tiers(plan.peak_bytes) },
    { "activation_peak_bytes", plan.activation_peak_bytes }, { "memory_bytes", summary.memory(plan) },
    { "tier_bytes", summary.tier_bytes(plan) },
    { "stall_seconds", self.stall_seconds }, { "data_seconds", self.data_seconds },
    { "process_peak_rss_bytes", posix.peak_rss_bytes() },
    { "process_memory", process_memory.json(self) },
    { "copies", json.object(self.copies_per_step) },
    { "submit_seconds_median", self.submit_seconds_median },
    { "driver_bytes", json.object { { "before", self.driver.before }, { "now", self.driver.now } } },
    { "parameter_digest", self.digest }, { "parameter_count", self.parameter_count },
    { "trainable_parameters", self.trainable_parameters }, { "base_digest", self.base_digest },
    { "skipped_steps", self.skipped_steps }, { "loss_scale", self.loss_scale },
    { "plan", summary.plan(plan, self.micro_steps) }, { "first_step", self.first_step },
    { "step_seconds", self.records.seconds:json() }, { "checkpoint", self.checkpoint },
    { "batch", self.batch }, { "accumulate", self.accumulate }, { "optimizer", self.optimizer },
    { "metrics", self.records:metrics_json() }, { "ended", self.ended },
  }
  if self.counted then rows[#rows + 1] = { self.counted .. "_per_second", self.samples_per_second } end
  if self.evaluates then
    rows[#rows + 1] = { "evaluation", self.evaluations:json() }
    rows[#rows + 1] = { "evaluation_seconds", self.evaluation_seconds }
    rows[#rows + 1] = { "early_stopped", self.ended == "early" }
    local best = self.best
    if best then
      rows[#rows + 1] = { "best", json.object { { "step", best.step }, { "metric", best.metric },
        { "value", best.value }, { "checkpoint", best.checkpoint } } }
    end
  end
  if self.shares then
    rows[#rows + 1] = { "tokens_supervised_share", self.shares.supervised }
    rows[#rows + 1] = { "tokens_padding_share", self.shares.padding }
  end
  rows[#rows + 1] = self.skipped_pictures and { "skipped_pictures", self.skipped_pictures }
  if self.shrunk then
    local list = {}
    for i, row in ipairs(self.shrunk) do
      list[i] = json.object { { "step", row.step }, { "batch", row.batch }, { "accumulate", row.accumulate },
                              { "why", row.why } }
    end
    rows[#rows + 1] = { "shrunk", json.array(list) }
  end
  if self.dry then rows[#rows + 1] = { "dry_run", true } end
  if self.error then rows[#rows + 1] = { "error", self.error } end
  if self.programs then
    local list = {}
    for i, program in ipairs(programs.in_order(self.programs)) do
      list[i] = json.object { { "name", program.name }, { "length", program.length },
        { "micro_batches", program.micro_batches }, { "tokens", program.tokens } }
    end
    rows[#rows + 1] = { "programs", json.array(list) }
    rows[#rows + 1] = { "programs_not_run", json.array(self.idle or {}) }
  end
  if self.resumed then rows[#rows + 1] = { "resumed", self.resumed } end
  if self.candidates then rows[#rows + 1] = { "candidates", joint.json(self.candidates) } end
  json.write(json.object(rows), write)
  write("\n")
end


-- A metric and its value, for people.
local function shown(name, value) return ("%s %s"):format(name, value and ("%.4g"):format(value) or "-") end

local function shown_all(rows)
  local words = {}
  for i, row in ipairs(rows) do words[i] = shown(row[1], row[2]) end
  return table.concat(words, ", ")
end

-- What the recipe measured in training, in the last step.
local function metric_lines(self, lines)
  local last = {}
  for name in pairs(self.records.metrics) do last[name] = self.records.last_metrics[name] end
  if next(last) then lines[#lines + 1] = ("metrics           %s\n"):format(shown_all(metrics.rows(last, true))) end
end

local function evaluation_lines(self, lines)
  local last = self.last_evaluation
  if not last then return end
  lines[#lines + 1] = ("evaluation        %s after step %d\n"):format(shown_all(metrics.rows(last.values)), last.step)
  if self.best then
    lines[#lines + 1] = ("best              %s after step %d%s\n"):format(shown(self.best.metric, self.best.value),
      self.best.step, self.best.checkpoint and ", in " .. self.best.checkpoint or "")
  end
  if self.ended == "early" then
    lines[#lines + 1] = ("stopped early     no better for %d evaluations\n"):format(self.stale)
  end
end

-- The run's speed, for people, in what the run counts.
local function speed(self)
  local words = {}
  if self.unit == "tokens" and self.tokens_per_second > 0 then
    words[1] = format.count(self.tokens_per_second) .. " tokens/s"
  end
  -- A recipe that states no samples counts them as it may count tokens.
  local samples = self.samples_per_second or self.unit == "samples" and self.tokens_per_second or 0
  if samples > 0 then words[#words + 1] = format.rate(samples) .. " samples/s" end
  words[#words + 1] = format.seconds(self.step_seconds_median) .. " per step"
  return table.concat(words, ", ")
end

-- What a step waits for, where that is worth a word.
local WORTH_A_WORD = 0.02  -- as a share of a step
local function waits(self)
  local words = {}
  for _, row in ipairs { { self.stall_seconds, "copies", 0 },
                         { self.data_seconds, "data", WORTH_A_WORD * self.step_seconds_median } } do
    if row[1] > row[3] then words[#words + 1] = ("%s waiting for %s"):format(format.seconds(row[1]), row[2]) end
  end
  return #words > 0 and ", of it " .. table.concat(words, " and ") or ""
end

-- What the run's page says of its end: rows {what, text}.
function result.page_rows(self)
  local rows = { { "parameters", self.digest } }
  if self.records.steps > 0 then
    rows[#rows + 1] = { "speed", speed(self) }
    rows[#rows + 1] = { "time", format.seconds(self.total_seconds) }
  end
  for _, tier in ipairs { "device", "host", "disk" } do
    if self.peak[tier] > 0 then
      rows[#rows + 1] = { "peak, " .. tier, ("planned %s bytes, measured %s bytes"):format(
        format.count(self.plan.peak_bytes[tier]), format.count(self.peak[tier])) }
    end
  end
  if self.skipped_steps > 0 then rows[#rows + 1] = { "skipped", ("%d steps"):format(self.skipped_steps) } end
  if self.best then
    rows[#rows + 1] = { "best", ("%s after step %d"):format(shown(self.best.metric, self.best.value), self.best.step) }
  end
  return rows
end

function result.to_text(self)
  local made = self.records
  local lines = {}
  if made.steps > 0 then
    lines[1] = ("%s  %.4f -> %.4f over steps %d to %d\n"):format(format.colour("bold", "loss"), made.first_loss,
      made.last_loss, self.first_step + 1, self.steps)
    lines[2] = ("%s  %s"):format(format.colour("bold", "rate"), speed(self))
    lines[3] = waits(self) .. "\n"
    lines[4] = ("%s  %s in all%s%s\n"):format(format.colour("bold", "time"), format.seconds(self.total_seconds),
      self.evaluation_seconds > 0 and (", of it %s evaluating"):format(format.seconds(self.evaluation_seconds)) or "",
      self.epochs and ("; %.4g epochs"):format(self.epochs) or "")
  elseif NO_STEP[self.ended] then
    lines[1] = ("no complete step: %s in step %d\n"):format(NO_STEP[self.ended], self.steps + 1)
  elseif self.ended == "early" then
    lines[1] = ("nothing to do: --early-stop ended the run at step %d; a greater N, or 0, goes on\n"):format(self.steps)
  else
    lines[1] = ("nothing to do: step %d is done already; a greater --steps goes on from it\n"):format(self.steps)
  end
  if self.skipped_steps > 0 then
    lines[#lines + 1] = ("skipped           %s in all%s\n"):format(format.counted(self.skipped_steps, "step"),
      self.empty_steps > 0 and (", %d of them here for want of a target that counts"):format(self.empty_steps) or "")
  end
  if ENDED[self.ended] then lines[#lines + 1] = "ended             " .. ENDED[self.ended] .. "\n" end
  metric_lines(self, lines)
  evaluation_lines(self, lines)
  lines[#lines + 1] = summary.lines(self.plan, made.steps > 0 and self.peak or nil)  -- no step: nothing was measured
  if made.steps > 0 then lines[#lines + 1] = process_memory.line(self) end
  local ran = made.steps > 0 or NO_STEP[self.ended]
  for _, program in ipairs(ran and programs.in_order(self.programs or {}) or {}) do
    lines[#lines + 1] = ("%-17s %s micro-batches, %s %s\n"):format(program.name,
      format.count(program.micro_batches), format.count(program.tokens), self.unit)
  end
  lines[#lines + 1] = ("model             %s parameters%s\n"):format(format.parameters(self.parameter_count),
    self.base_digest and (", of which %s are trained"):format(format.parameters(self.trainable_parameters)) or "")
  lines[#lines + 1] = "parameters        " .. self.digest .. "\n"
  if self.dry then lines[#lines + 1] = "dry run           one step of this was tried, and nothing is kept of it\n" end
  if self.checkpoint then lines[#lines + 1] = "checkpoint        " .. self.checkpoint .. "\n" end
  if self.picture then lines[#lines + 1] = "picture           " .. self.picture .. "\n" end
  if self.report then lines[#lines + 1] = "report            " .. self.report .. "\n" end
  return table.concat(lines)
end

return result
