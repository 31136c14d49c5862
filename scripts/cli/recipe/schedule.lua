-- The options of the learning rate: schedules and their parameters as the library lists them, warm-up in steps, samples
-- or tokens, and rates that follow the effective batch.
local args = require "cli.base.args"
local cairn = require "cairn"
local check = require "cli.recipe.check"
local fail = require "cli.base.fail"
local nearest = require "cli.base.nearest"

local schedule = {}

local LISTED = cairn.schedules()
local BY_NAME, NAMES = {}, {}
for i, row in ipairs(LISTED) do
  BY_NAME[row.name], NAMES[i] = row, row.name
end
local WARMUPS = { "warmup", "warmup_samples", "warmup_tokens" }

-- The stages of a schedule; nil, what is wrong with the text.
local function parse(text)
  local stages, err = cairn.parse_schedule(text)
  if not stages and type(err) == "table" and err.status == "OUT_OF_MEMORY" then fail.check("schedule", nil, err) end
  return stages, err
end

local function names_of(parameters)
  local names = {}
  for i, parameter in ipairs(parameters) do names[i] = parameter.name end
  return names
end

local function has(row, name)
  for _, parameter in ipairs(row.parameters) do
    if parameter.name == name then return true end
  end
  return false
end

-- What is wanted in the place of a text that names no schedule; nil if it names some, and parameters that they have.
-- Whether their values are in range the library says.
local function wanted(text)
  local stages, problem = parse(text)
  if not stages then
    return ("one of %s, or several as linear:100:start_factor=0.1,cosine; %s"):format(table.concat(NAMES, ", "),
      problem)
  end
  for _, stage in ipairs(stages) do
    local row = BY_NAME[stage[1]]
    if not row then
      return ("one of %s%s"):format(table.concat(NAMES, ", "), nearest.hint(stage[1], NAMES))
    end
    for name in pairs(stage) do
      if type(name) == "string" and name ~= "steps" and not has(row, name) then
        return ("a parameter of %s instead of '%s': %s"):format(row.name, name,
          table.concat(names_of(row.parameters), " "))
      end
    end
  end
end

-- "300,600" as numbers; nil if something in it is no step.
local function steps_of(text)
  local list = {}
  for word in (text .. ","):gmatch("([^,/]*)[,/]") do
    local number = word:match("^%d+$") and tonumber(word)
    if not number or number > args.MOST_WHOLE then return nil end
    list[#list + 1] = number
  end
  return list
end

local function wanted_steps(text)
  return text ~= "" and not steps_of(text) and "ascending steps, as 300,600" or nil
end

-- A row of options for every parameter of the schedules, which several may share.
local function parameter_rows()
  local rows, owners = {}, {}
  for _, listed in ipairs(LISTED) do
    for _, parameter in ipairs(listed.parameters) do
      local name = parameter.name
      if not owners[name] then
        owners[name] = {}
        local row = { name, parameter.default, words = parameter.words }
        if parameter.list then row[2], row.valid = "", wanted_steps end
        if parameter.words then
          if table.concat(parameter.words, " "):match("^%a+ %a+$") and (row[2] == "true" or row[2] == "false") then
            row[2], row.words = row[2] == "true", nil
          end
          row.choices, row.words = row.words, nil
        end
        rows[#rows + 1] = row
      end
      table.insert(owners[name], listed.name)
    end
  end
  for _, row in ipairs(rows) do
    row[3] = "of schedule=" .. table.concat(owners[row[1]], " and ")
  end
  return rows
end

local PARAMETER_ROWS, DEFAULTS = parameter_rows(), {}
for _, row in ipairs(PARAMETER_ROWS) do DEFAULTS[row[1]] = row[2] end

-- Rows of the options of every recipe.
function schedule.rows()
  local of_stepper = {}
  for _, setting in ipairs(cairn.settings("stepper")) do of_stepper[setting.name] = setting end
  local rows = {
    check.row(of_stepper.rate),
    { "rate_scaling", "none", "rate times the effective batch over base_batch, or the square root of that",
      choices = { "none", "linear", "sqrt" } },
    { "base_batch", 0, "samples of a step for which rate was found; of rate_scaling", whole = true, least = 0,
      most = 2 ^ 31 - 1 },
    check.row(of_stepper.warmup_steps, "warmup"),
    { "warmup_samples", 0, "samples of linear warm-up, in complete steps", whole = true, least = 0 },
    { "warmup_tokens", 0, "tokens of linear warm-up, in complete steps", whole = true, least = 0 },
    { "schedule", "constant", "`cairn ops --schedules` says what each does; or several, one after the other: " ..
      "linear:100:start_factor=0.1,cosine", valid = wanted, known = NAMES },
    { "schedule_steps", 0, "where a schedule that has an end does so; 0: at --steps", whole = true, least = 0 },
    check.row(of_stepper.minimum_rate),
  }
  for _, row in ipairs(PARAMETER_ROWS) do rows[#rows + 1] = row end
  return rows
end

-- Whether a schedule has an end, by the option's text.
function schedule.ends(text)
  local stages = text and parse(text)
  local last = stages and stages[#stages]
  local row = last and BY_NAME[last[1]]
  return row and row.ends and not last.steps
end

-- Looks at what was given on the command line: settings {key, text}; values: all options' values. own: by name, whether
-- an option is one of these rows.
function schedule.settle(values, settings, own)
  local warmups, known = {}, {}
  for _, stage in ipairs(own.schedule and parse(values.schedule) or {}) do
    for _, parameter in ipairs(BY_NAME[stage[1]].parameters) do known[#known + 1] = parameter.name end
  end
  for _, setting in ipairs(settings) do
    local name = setting[1]
    for _, each in ipairs(WARMUPS) do
      if each == name and own[name] and values[name] > 0 then warmups[#warmups + 1] = name end
    end
    if name == "base_batch" and own[name] and values.base_batch > 0 and values.rate_scaling == "none" then
      fail.usage(("base_batch=%s counts with rate_scaling=linear or rate_scaling=sqrt; name one"):format(setting[2]))
    end
    local stated = not setting.file or values[name] ~= DEFAULTS[name]  -- as run.json states all options
    local taken = DEFAULTS[name] == nil or not stated
    if (name == "rate" or name == "minimum_rate") and own.rate and own.minimum_rate
        and values.minimum_rate > values.rate then
      fail.usage(("%s=%s: minimum_rate=%.15g is above rate=%.15g: the schedule would climb; wanted: at most that")
        :format(name, setting[2], values.minimum_rate, values.rate))
    end
    for _, each in ipairs(known) do taken = taken or each == name end
    if own[name] and not taken then
      fail.usage(("%s=%s: schedule=%s has no %s; it has: %s"):format(name, setting[2], values.schedule, name,
        #known > 0 and table.concat(known, " ") or "no parameters"))
    end
  end
  for i = 2, #warmups do
    if warmups[i] ~= warmups[1] then
      fail.usage(("%s and %s exclude each other; leave one out"):format(warmups[1], warmups[i]))
    end
  end
  -- What is given takes the place of a recipe's, or of an earlier run's.
  for _, name in ipairs(WARMUPS) do
    if warmups[1] and name ~= warmups[1] and own[name] then values[name] = 0 end
  end
end

-- Samples of an effective batch, as `what` needs them.
local function samples_of(o, accumulate, what)
  if type(o.batch) ~= "number" then
    fail.usage(what .. ": the recipe has no option batch, which says the samples of a step; give warmup= and rate=")
  end
  return o.batch * accumulate
end

-- Fields of cairn.stepper's options: the warm-up.
local function warm_up(o, accumulate)
  local given
  for _, name in ipairs(WARMUPS) do
    if (o[name] or 0) > 0 then
      if given then fail.usage(("%s and %s exclude each other; leave one out"):format(given, name)) end
      given = name
    end
  end
  if not given or given == "warmup" then return { warmup_steps = o.warmup } end
  local units = samples_of(o, accumulate, given)
  if given == "warmup_tokens" then
    if type(o.seq) ~= "number" then
      fail.usage("warmup_tokens: the recipe has no option seq, which says the tokens of a sample; give warmup_samples=")
    end
    units = units * o.seq
  end
  return { warmup_units = o[given], step_units = units }
end

local function rate_of(o, accumulate)
  if (o.rate_scaling or "none") == "none" then return o.rate end
  if o.base_batch == 0 then
    fail.usage(("rate_scaling=%s needs base_batch=N: the samples of a step for which rate=%.15g was found"):format(
      o.rate_scaling, o.rate))
  end
  return cairn.optim.scaled(o.rate, o.rate_scaling, samples_of(o, accumulate, "rate_scaling"), o.base_batch)
end

-- The schedule's stages with the parameters that are options of their own (own, as above) filled in.
local function stages_of(o, own)
  local wrong = wanted(tostring(o.schedule))  -- which may be an option of the recipe's own
  if wrong then fail.usage(("schedule=%s; wanted: %s"):format(tostring(o.schedule), wrong)) end
  local stages = parse(o.schedule)
  for _, stage in ipairs(stages) do
    for _, parameter in ipairs(BY_NAME[stage[1]].parameters) do
      local name = parameter.name
      if own[name] and stage[name] == nil and o[name] ~= "" then
        stage[name] = parameter.list and steps_of(o[name]) or o[name]
      end
    end
  end
  return stages
end

-- Options of cairn.stepper from option values. run: {steps (where the schedule ends by default), accumulate}.
function schedule.options(o, run, own)
  local options = warm_up(o, run.accumulate)
  options.rate, options.minimum_rate = rate_of(o, run.accumulate), o.minimum_rate
  options.schedule = stages_of(o, own)
  options.total_steps = o.schedule_steps > 0 and o.schedule_steps or run.steps
  local ok, err = cairn.schedule_rates(options)
  if not ok then
    local at = o.schedule_steps == 0 and tostring(err):find("the schedule ends at step", 1, true)
      and "; schedule_steps=N is where it ends, by default at --steps" or ""
    fail.usage(("schedule=%s: %s%s"):format(o.schedule, err, at))
  end
  return options
end

return schedule
