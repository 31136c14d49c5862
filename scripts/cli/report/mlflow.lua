-- A run in MLflow's file store, as MLflow itself writes one: DIR/EXPERIMENT/RUN with meta.yaml, a file of lines
-- "milliseconds value step" per metric, whose name's slashes are folders, and a file per parameter and tag. The
-- experiment is called as the recipe. --out has the run's place in mlflow.json, so that a resumed run goes on in it.
local cairn = require "cairn"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local json = require "cli.base.json"
local posix = require "cli.base.posix"
local recipes = require "cli.recipe.load"
local tensorboard = require "cli.report.tensorboard"
local unicode = require "cli.base.unicode"

local mlflow = {}
local Run = {}
Run.__index = Run

local RECORD = "/mlflow.json"
local OUT_TAG = "cairn.out"
local MOST_BYTES = 2 ^ 16  -- of a small file
local MOST_VALUE = 6000  -- bytes of a parameter that MLflow takes
local RUNNING, FINISHED, FAILED, KILLED = 1, 3, 4, 5
local INTERRUPTED = 130  -- the exit code

local function must(ok, problem)
  if not ok then fail.with(5, "--mlflow: " .. tostring(problem)) end
  return ok
end

local function milliseconds() return ("%.0f"):format(posix.wall() * 1000) end

-- A text of YAML: a JSON string is one.
local function quoted(text) return json.encode(unicode.text(text)) end

-- A directory of the store. Never a link: who made the store must not choose what is written elsewhere.
local function directory(path)
  if posix.is_link(path) then must(nil, path .. ": it is a symbolic link, and nothing is written through one") end
  must(posix.make_directory(path))
  return path
end

-- Writes a small file whole, so that no reader finds a part of it. keep: not if it is there.
local function write(path, text, keep)
  if keep and posix.is_there(path) then return end
  local folder, name = path:match("^(.*)/([^/]*)$")
  local temporary = ("%s/.%s.%d"):format(folder, name, posix.pid())
  posix.remove_file(temporary)
  must(posix.write_file(temporary, text))
  must(os.rename(temporary, path))
end

local function yaml(rows)
  local lines = {}
  for i, row in ipairs(rows) do lines[i] = ("%s: %s\n"):format(row[1], row[2]) end
  return table.concat(lines)
end

-- The value of a key in one of these files, as MLflow or this writes it; nil: there is none.
local function value_of(text, key)
  local value = ("\n" .. text):match("\n" .. key .. ": *([^\n]*)")
  if not value then return nil end
  local single = value:match("^'(.*)'$")
  if single then return (single:gsub("''", "'")) end
  if value:sub(1, 1) == '"' then
    local ok, read = pcall(decode, value)
    return ok and read or nil
  end
  return value
end

-- The experiment of a name, made if there is none. A new one's number comes from its name, so that runs that begin at
-- the same time make the same one.
local function experiment(store, name)
  for _, id in ipairs(posix.list(store) or {}) do
    local text = id:match("^%w+$") and posix.read_file(("%s/%s/meta.yaml"):format(store, id), MOST_BYTES)
    if text and value_of(text, "name") == name and value_of(text, "lifecycle_stage") == "active" then return id end
  end
  local id = ("%d%09d"):format(1 + tensorboard.crc(name) % 9, tensorboard.crc(name .. " of cairn") % 1e9)
  while posix.is_there(("%s/.trash/%s"):format(store, id)) do id = ("%d"):format(tonumber(id) + 1) end  -- was deleted
  local path, now = directory(store .. "/" .. id), milliseconds()
  write(path .. "/meta.yaml", yaml { { "artifact_location", quoted(path) }, { "creation_time", now },
    { "experiment_id", quoted(id) }, { "last_update_time", now }, { "lifecycle_stage", "active" },
    { "name", quoted(name) } }, true)
  return id
end

local function new_id()
  local file, problem = io.open("/dev/urandom", "rb")
  if not file then must(nil, problem) end
  local bytes = file:read(16)
  file:close()
  return (bytes:gsub(".", function(byte) return ("%02x"):format(byte:byte()) end))
end

-- Leaves of a run's metrics what is of steps up to `step`.
local function keep_steps(folder, step)
  for _, name in ipairs(posix.list(folder) or {}) do
    local path = folder .. "/" .. name
    if posix.list(path) and not posix.is_link(path) then
      keep_steps(path, step)
    else
      local text = posix.read_file(path, math.huge) or ""
      local kept = text:gsub("[^\n]+\n?", function(line)
        local at = tonumber(line:match("^%S+ %S+ (%-?%d+)"))
        if line:sub(-1) ~= "\n" or at and at > step then return "" end
      end)
      if kept ~= text then write(path, kept) end
    end
  end
end

function Run:meta(status)
  local ended = status == RUNNING and "null" or milliseconds()
  write(self.path .. "/meta.yaml", yaml { { "artifact_uri", quoted(self.path .. "/artifacts") },
    { "deleted_time", "null" }, { "end_time", ended }, { "entry_point_name", "''" },
    { "experiment_id", quoted(self.experiment) }, { "lifecycle_stage", "active" }, { "run_id", quoted(self.id) },
    { "run_name", quoted(self.name) }, { "source_name", "''" }, { "source_type", "4" }, { "source_version", "''" },
    { "start_time", self.began }, { "status", status }, { "tags", "[]" }, { "user_id", quoted(self.user) } })
end

local function place_of(out) return unicode.text(posix.real_path(out) or out) end

-- The run that --out says it is recorded as: {directory, experiment, run}, or nil.
local function recorded(out)
  local text = posix.read_file(out .. RECORD, MOST_BYTES)
  local ok, read = pcall(decode, text or "")
  if not text or not ok or type(read) ~= "table" then return nil end
  local sound = type(read.directory) == "string" and tostring(read.experiment):match("^%w+$")
    and tostring(read.run):match("^%x+$")
  return sound and read or nil
end

-- The text of a recorded run's meta.yaml; nil if it is there no more, was deleted, or is of a run in another directory
-- than `out`: the directory of a stranger leads to no other run's record, and a copy has one of its own. named: the
-- command line names the store; a run whose directory was moved then goes on.
local function of_this_run(path, out, named)
  local text = not posix.is_link(path) and posix.read_file(path .. "/meta.yaml", MOST_BYTES)
  if not text or value_of(text, "lifecycle_stage") ~= "active" then return nil end
  local place = posix.read_file(path .. "/tags/" .. OUT_TAG, MOST_BYTES)
  if place == place_of(out) or named and not (place and posix.is_there(place)) then return text end
end

-- Opens the record of a run that saves in `out`. store: what --mlflow says; nil: a run that goes on does so where it is
-- recorded. continues: whether it goes on, from step `first`. recipe: its name; settings: the text of its run.json.
-- Returns nil if nothing is to be recorded.
function mlflow.open(out, store, continues, first, recipe, settings, note)
  local former = continues and recorded(out)
  if not former then posix.remove_file(out .. RECORD) end
  if not store and not former then return nil end
  if store then
    must(posix.make_directory(store))
    store = must(posix.real_path(store))
  end
  if former and store and former.directory ~= store then former = nil end
  local self = setmetatable({ lines = {}, user = os.getenv("USER") or "unknown",
                              name = (posix.real_path(out) or out):match("[^/]+$") or "run" }, Run)
  local text
  if former then
    self.path = ("%s/%s/%s"):format(former.directory, former.experiment, former.run)
    text = of_this_run(self.path, out, store)
    if not text and not store then
      note(("note: nothing is recorded for MLflow: %s is not this run's any more; --mlflow DIR records it"):format(
        unicode.shown(self.path)))
      return nil
    end
  end
  if text then
    self.experiment, self.id = former.experiment, former.run
    self.began = (value_of(text, "start_time") or ""):match("^%d+$") or milliseconds()
    self.name = value_of(text, "run_name") or self.name
  else
    self.experiment, self.id, self.began = experiment(store, unicode.text(recipe)), new_id(), milliseconds()
    self.path = directory(("%s/%s/%s"):format(store, self.experiment, self.id))
    write(out .. RECORD, json.encode(json.object { { "directory", json.bytes(store) },
      { "experiment", self.experiment }, { "run", self.id } }) .. "\n")
  end
  for _, folder in ipairs { "metrics", "metrics/train", "metrics/eval", "params", "tags", "artifacts" } do
    directory(self.path .. "/" .. folder)
  end
  for _, folder in ipairs(text and { "train", "eval" } or {}) do  -- others are of somebody else
    keep_steps(self.path .. "/metrics/" .. folder, first)
  end
  local read = decode(settings)
  for _, group in ipairs { read.options, read.arguments } do
    for key, value in pairs(group) do
      local words = type(value) == "table" and table.concat(value, " ") or recipes.value_text(value)
      write(self.path .. "/params/" .. key, unicode.text(words:sub(1, MOST_VALUE)))
    end
  end
  for key, value in pairs { ["mlflow.runName"] = self.name, ["mlflow.user"] = self.user,
                            ["mlflow.source.type"] = "LOCAL", ["mlflow.source.name"] = "cairn train " .. recipe,
                            ["cairn.version"] = cairn.version(), [OUT_TAG] = place_of(out) } do
    write(self.path .. "/tags/" .. key, unicode.text(value))
  end
  self:meta(RUNNING)
  return self
end

-- Takes numbers {name, value} of a step.
function Run:scalars(step, rows)
  local now = milliseconds()
  for _, row in ipairs(rows) do
    local name, value = row[1]:gsub("[^%w_/-]", "_"), row[2]
    local text = value ~= value and "nan" or ("%.17g"):format(value)
    self.lines[name] = (self.lines[name] or "") .. ("%s %s %d\n"):format(now, text, step)
  end
end

function Run:flush()
  for name, text in pairs(self.lines) do
    must(posix.write_file(self.path .. "/metrics/" .. name, text, true))
    self.lines[name] = nil
  end
end

-- Says how the run ended, by the command's exit code; nil: well.
function Run:close(code)
  self:flush()
  self:meta(not code and FINISHED or code == INTERRUPTED and KILLED or FAILED)
end

-- Ends the command if what --mlflow says is no directory.
function mlflow.check(store, saves)
  if not store then return end
  if store:match("^%a[%w+.-]*:/") then
    fail.usage(("--mlflow: '%s' is an address; wanted: a directory, MLflow's file store"):format(unicode.shown(store)))
  end
  if not saves then fail.usage("--mlflow needs --out") end
end

return mlflow
