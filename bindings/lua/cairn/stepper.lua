-- Steppers: micro-batches, accumulation, the optimizer's update. And checkpoints, which hold a stepper's state.
local ffi = require "ffi"
local core = require "cairn.core"
local instance = require "cairn.instance"
local graphs = require "cairn.graph"
local hypers = require "cairn.hypers"
local schedules = require "cairn.schedules"
local sessions = require "cairn.session"
local C = core.C

local Stepper = core.class "stepper"
local Checkpoint = core.class "checkpoint"

local OPTIONS = { hypers = hypers.set, schedule = schedules.set }
for _, name in ipairs { "seed", "warmup_steps", "warmup_units", "step_units", "total_steps", "rate", "minimum_rate",
                        "beta1", "beta2", "eps", "weight_decay", "clip_norm", "micro_steps", "loss_scale",
                        "loss_scale_growth", "loss_scale_backoff", "loss_scale_interval" } do
  OPTIONS[name] = name
end
-- What CAIRN_STEPPER_OPTIONS_INIT sets.
local DEFAULTS = { micro_steps = 1 }
for _, list in ipairs { hypers.settings("stepper"), hypers.settings("optimizer", "adamw") } do
  for _, row in ipairs(list) do
    if OPTIONS[row.name] then DEFAULTS[row.name] = row.default end
  end
end

local function stepper_options(options)
  local all = {}
  for key, value in pairs(DEFAULTS) do all[key] = value end
  for key, value in pairs(options or {}) do all[key] = value end
  return core.options("cairn_stepper_options_t", all, OPTIONS)
end

-- A controller over a session whose graph trains. options: rate, beta1, beta2, eps, weight_decay, clip_norm,
-- warmup_steps (or warmup_units, of which a step takes step_units), total_steps, minimum_rate, micro_steps, seed;
-- schedule: a name of cairn.schedules(), { "wsd", decay_steps = 100 } with its parameters, an array of these, all but
-- the last with steps =, or all that as a text, "linear:100:start_factor=0.1,cosine"; hypers of any optimizer
-- ({ momentum = 0.9, ["*.bias"] = { rate_scale = 2 } }), in the place of the plan's; under amp = "fp16" loss_scale,
-- loss_scale_growth, loss_scale_backoff, loss_scale_interval.
function Stepper.new(session, options)
  core.expect(sessions.Session, session, "session")
  local out = ffi.new("cairn_stepper_t*[1]")
  local struct, anchors = stepper_options(options)
  local status = C.cairn_stepper_create(session:raw(), struct, out, core.raw_error)
  core.alive(anchors)
  if status ~= 0 then return core.failed(status) end
  return Stepper.wrap(out[0], { session = session })
end

-- A number of steps, as a call was given it.
local function whole(value, most, what)
  core.expect_type(value, "number", what, 3)
  if not (value >= 0 and value <= most and value == math.floor(value)) then
    error(("%s is %.15g; a whole number from 0 to %.0f expected"):format(what, value, most), 3)
  end
  return value
end

-- Rates of `count` steps, at most 2^26, of a stepper with these options from step `first` (from 0) on, as an array, and
-- the momenta of the steps where the schedule has one; or nil, err.
local function schedule_rates(options, first, count)
  local struct, anchors = stepper_options(options)
  first, count = whole(first or 0, 2 ^ 53, "first"), whole(count or 0, 2 ^ 26, "count")
  local rates, momenta = schedules.rates(struct, first, count)
  core.alive(anchors)
  return rates, momenta
end

local _, OUTCOMES = core.enum("CAIRN_STEP_", "accumulated applied skipped_nonfinite skipped_empty gathered")
local REALS = { "step", "skipped_steps", "loss", "weight", "step_loss", "step_weight", "gradient_norm", "rate",
                "loss_scale", "seconds", "stall_seconds", "optimizer_seconds", "submit_seconds",
                "micro" }

local function reported(self, call)
  local struct = ffi.new("cairn_step_report_t", { ffi.sizeof("cairn_step_report_t") })
  local status = call(self:raw(), struct, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  local report = { outcome = OUTCOMES[struct.outcome] }
  for _, name in ipairs(REALS) do report[name] = tonumber(struct[name]) end
  report.fell_back = struct.fell_back ~= 0
  report.copies = {}
  for tier, name in ipairs { "host", "disk" } do
    report.copies[name] = {
      out_bytes = tonumber(struct.copied_out_bytes[tier]), in_bytes = tonumber(struct.copied_in_bytes[tier]),
      out_seconds = struct.copying_out_seconds[tier], in_seconds = struct.copying_in_seconds[tier] }
  end
  return report
end

-- One micro-batch on the inputs written to the session. Returns a report (all fields of cairn_step_report, outcome as
-- "accumulated", "applied", "skipped_nonfinite", "skipped_empty" or "gathered" (the counter two_passes of plans is 1:
-- every micro-batch is written and run twice, the first time for values of the effective batch), fell_back as a
-- boolean, what was copied as
-- copies.host.out_bytes, in_bytes, out_seconds, in_seconds, and copies.disk), or nil, err.
-- session: another one on the same store (cairn.sessions), whose inputs are taken instead.
function Stepper:micro(session)
  if session == nil then return reported(self, C.cairn_stepper_micro) end
  core.expect(sessions.Session, session, "session")
  return reported(self, function(raw, struct, err) return C.cairn_stepper_micro_on(raw, session:raw(), struct, err) end)
end
function Stepper:apply() return reported(self, C.cairn_stepper_apply) end
function Stepper:report() return reported(self, C.cairn_stepper_report) end
function Stepper:discard() return core.done(C.cairn_stepper_discard(self:raw(), core.raw_error)) end
function Stepper:configure(options)
  local struct, anchors = stepper_options(options)
  local status = C.cairn_stepper_configure(self:raw(), struct, core.raw_error)
  core.alive(anchors)
  return core.done(status)
end

-- A hyper-parameter of later steps; group: a pattern, "" for parameters that no group names, nil for all groups
-- that have one of that name. Returns true, or nil, err.
function Stepper:set(name, value, group)
  return core.done(C.cairn_stepper_set(self:raw(), group, core.expect_type(name, "string", "name"), value,
    core.raw_error))
end
-- The hyper-parameter as it is; group nil: of the parameters that no group names.
function Stepper:get(name, group)
  local out = ffi.new("double[1]")
  local status = C.cairn_stepper_get(self:raw(), group, core.expect_type(name, "string", "name"), out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return tonumber(out[0])
end

-- Saves into a new directory, durably. metadata: a table of strings; files: paths of files to copy in; options
-- {without_frozen (frozen parameters are not stored: who restores has them in the session)}.
function Stepper:save(directory, metadata, files, options)
  core.expect_type(directory, "string", "directory")
  local rows, count = core.metadata(metadata)
  local list = ffi.new("const char*[?]", math.max(#(files or {}), 1))
  for i, path in ipairs(files or {}) do list[i - 1] = path end
  local given = ffi.new("cairn_save_options_t", { struct_size = ffi.sizeof("cairn_save_options_t"), metadata = rows,
    metadata_count = count, files = list, file_count = #(files or {}),
    without_frozen = options and options.without_frozen and 1 or 0 })
  return core.done(C.cairn_stepper_save_as(self:raw(), directory, given, core.raw_error))
end

-- Puts the stepper exactly where the saved one was.
function Stepper:restore(checkpoint)
  core.expect(Checkpoint, checkpoint, "checkpoint")
  return core.done(C.cairn_stepper_restore(self:raw(), checkpoint:raw(), core.raw_error))
end

-- Opens a checkpoint, or the newest complete one below a directory. Returns it, or nil, err.
function Checkpoint.open(directory)
  core.expect_type(directory, "string", "directory")
  local out = ffi.new("cairn_checkpoint_t*[1]")
  local status = C.cairn_checkpoint_open(instance.get(), directory, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return Checkpoint.wrap(out[0])
end

-- Deletes the checkpoint in a directory: what its manifest lists, never through a link. Returns true, or nil, err.
function Checkpoint.remove(directory)
  core.expect_type(directory, "string", "directory")
  return core.done(C.cairn_checkpoint_remove(instance.get(), directory, core.raw_error))
end

function Checkpoint:directory() return ffi.string(C.cairn_checkpoint_directory(self:raw())) end

-- Value of a metadata key; nil if there is none.
function Checkpoint:metadata(key)
  local value = C.cairn_checkpoint_metadata(self:raw(), key)
  return value ~= nil and ffi.string(value) or nil
end

-- Compares all tensors with their digests. Returns true, or nil, err.
function Checkpoint:verify() return core.done(C.cairn_checkpoint_verify(self:raw(), core.raw_error)) end

-- The graph it was trained with, frozen.
function Checkpoint:graph()
  local out = ffi.new("cairn_graph_t*[1]")
  local status = C.cairn_checkpoint_graph(self:raw(), out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return graphs.Graph.wrap(out[0])
end

-- Parameters alone, by name, into any session. options {ema (the averages of those that have one, in their place)}.
function sessions.Session:load(checkpoint, options)
  core.expect(Checkpoint, checkpoint, "checkpoint")
  local call = options and options.ema and C.cairn_session_load_ema or C.cairn_session_load
  return core.done(call(self:raw(), checkpoint:raw(), core.raw_error))
end

return { Stepper = Stepper, Checkpoint = Checkpoint, schedule_rates = schedule_rates }
