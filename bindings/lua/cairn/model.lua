-- A model from its files in one object: planned within a budget, trained on rows of the program, asked for texts.
local ffi = require "ffi"
local core = require "cairn.core"
local generator = require "cairn.generator"
local instance = require "cairn.instance"
local C = core.C

local Model = core.class "model"

local OPTIONS = { device = "device", amp = "amp", format = "format", budget_bytes = "budget_bytes", seed = "seed",
                  steps = "steps", threads = "threads", accumulate = "accumulate", context = "context" }

-- path: a directory as Transformers writes it. options (optional): settings, a table of what `cairn train` takes as
-- key=value, as { lora = 8, seq = 512 }; device, amp, format, budget_bytes, seed, steps, threads, accumulate, context.
-- Returns the model, or nil, err.
function Model.open(path, options)
  core.expect_type(path, "string", "path")
  local given, words = {}, {}
  for key, value in pairs(options or {}) do given[key] = value end
  for key, value in pairs(given.settings or {}) do words[#words + 1] = ("%s=%s"):format(key, tostring(value)) end
  table.sort(words)
  given.settings = nil
  local struct = core.options("cairn_model_options_t", given, OPTIONS)
  local list = ffi.new("const char*[?]", math.max(#words, 1), words)
  struct.settings, struct.setting_count = list, #words
  local out = ffi.new("cairn_model_t*[1]")
  local status = C.cairn_model_open(instance.get(), path, struct, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return Model.wrap(out[0])
end

-- {parameters, trainable_parameters, planned_bytes = {device, host, disk}, seq, batch, vocabulary}; or nil, err.
function Model:info()
  local struct = ffi.new("cairn_model_info_t", { ffi.sizeof("cairn_model_info_t") })
  local status = C.cairn_model_describe(self:raw(), struct, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  local info = { planned_bytes = {} }
  for _, name in ipairs { "parameters", "trainable_parameters", "seq", "batch", "vocabulary" } do
    info[name] = tonumber(struct[name])
  end
  for tier, number in pairs(core.TIER_NUMBERS) do info.planned_bytes[tier] = tonumber(struct.planned_bytes[number]) end
  return info
end

-- A row to train with: a prompt and its answer, which is what is learned. Returns true, or nil, err.
function Model:add(prompt, answer)
  core.expect_type(prompt, "string", "prompt")
  core.expect_type(answer, "string", "answer")
  return core.done(C.cairn_model_add(self:raw(), prompt, answer, core.raw_error))
end

-- The same of any row of instruction data, a JSON object.
function Model:add_row(json)
  core.expect_type(json, "string", "json")
  return core.done(C.cairn_model_add_row(self:raw(), json, core.raw_error))
end

-- Trains so many steps. Returns {loss, seconds, step, tokens}, or nil, err.
function Model:train(steps)
  core.expect_type(steps, "number", "steps")
  local report = ffi.new("cairn_model_report_t", { ffi.sizeof("cairn_model_report_t") })
  local status = C.cairn_model_train(self:raw(), steps, report, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return { loss = report.loss, seconds = report.seconds, step = tonumber(report.step),
           tokens = tonumber(report.tokens) }
end

-- The answer to a prompt, of at most `tokens` tokens (default 512); sampling: as of cairn.generator. Or nil, err.
function Model:generate(prompt, tokens, sampling)
  core.expect_type(prompt, "string", "prompt")
  local struct = generator.sampling_of(sampling)
  local out = ffi.new("cairn_text_t*[1]")
  local status = C.cairn_model_generate(self:raw(), prompt, tokens or 0, struct, out, core.raw_error)
  if status ~= 0 then return core.failed(status) end
  return core.take_text(out)
end

-- A checkpoint below the directory. Returns true, or nil, err.
function Model:save(directory)
  core.expect_type(directory, "string", "directory")
  return core.done(C.cairn_model_save(self:raw(), directory, core.raw_error))
end

-- What `cairn export --to FORM` writes. Returns true, or nil, err.
function Model:export(path, form)
  core.expect_type(path, "string", "path")
  core.expect_type(form, "string", "form")
  return core.done(C.cairn_model_export(self:raw(), path, form, core.raw_error))
end

return { Model = Model }
