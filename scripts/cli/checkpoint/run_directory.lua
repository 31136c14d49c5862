-- The directory that a run writes to: who holds it, what a resumed run finds in it.
local checkpoints = require "cli.checkpoint.checkpoints"
local decode = require "cli.base.json_decode"
local fail = require "cli.base.fail"
local posix = require "cli.base.posix"
local unicode = require "cli.base.unicode"

local run_directory = {}

local LOCK = "/.lock"

-- Keeps other runs out of a directory for as long as this process lives: they would prune each other's checkpoints.
-- looks: nothing is written there yet; a directory that no run has held before is not held then.
function run_directory.hold(out, looks)
  if looks and not posix.is_there(out .. LOCK) then return end
  local held, problem = posix.hold_file(out .. LOCK, not looks and ("process %d on %s\n"):format(posix.pid(),
    posix.host() or "this machine") or nil)
  if held then return end
  if held == nil then fail.with(5, "--out: " .. problem) end
  local holder = posix.read_file(out .. LOCK, 1000) or ""
  fail.usage(("%s is another run's, which is under way: %s; wait for it or interrupt it, or give another --out"):format(
    out, unicode.shown(holder:match("^(.-)\n") or "its process is not known")))
end

-- The directory of the run that a checkpoint is of, or nil: the checkpoint is in none.
function run_directory.of(checkpoint)
  local path = checkpoint:gsub("/+$", "")
  if path == "" or path:match("^%.%.?$") or path:match("/%.%.?$") then path = posix.real_path(checkpoint) or path end
  local parent, name = path:match("^(.*)/([^/]*)$")
  if not parent then parent, name = ".", path end
  if not name:match("^step%-%d+$") then return nil end
  return parent ~= "" and parent or "/"
end

-- Takes checkpoints of later steps out of the way of a run that goes on from an earlier one; otherwise they, and not
-- what it saves, would count as the newest. They stay whole under another name. Returns rows {from, to}.
function run_directory.set_aside(out, step)
  local rows = {}
  for _, name in ipairs(checkpoints.steps(out)) do
    if tonumber(name:match("%d+$")) > step then
      local from, number = out .. "/" .. name, 1
      local to = out .. "/set-aside-" .. name
      while posix.is_there(to) do
        number = number + 1
        to = ("%s/set-aside-%d-%s"):format(out, number, name)
      end
      local ok, problem = os.rename(from, to)
      if not ok then fail.with(5, "--out: " .. tostring(problem)) end
      rows[#rows + 1] = { from = from, to = to }
    end
  end
  return rows
end

-- Whether a file of lines by step has one of this step.
function run_directory.has_line(out, file, step)
  local text = posix.read_file(out .. "/" .. file, math.huge)
  return text ~= nil and (text:sub(1, 40):find(('{"step":%d,'):format(step), 1, true) == 1
    or text:find(('\n{"step":%d,'):format(step), 1, true) ~= nil)
end

-- Leaves in a file of lines by step (metrics.jsonl, evaluations.jsonl, samples.jsonl) those of steps 1 to `step`, each
-- once, so that a resumed run appends to them. Returns the lines.
function run_directory.keep_lines(out, file, step)
  local path = out .. "/" .. file
  if step == 0 or not posix.is_there(path) then
    posix.remove_file(path)
    return {}
  end
  if posix.is_link(path) then
    fail.with(5, path .. ": it is a symbolic link, and nothing is written through one; remove it")
  end
  local text, problem = posix.read_file(path, math.huge)
  if not text then fail.with(5, problem) end
  local lines, kept = {}, {}
  for line, number in text:gmatch('({"step":(%d+),[^\n]*}\n)') do
    number = tonumber(number)
    if number <= step then
      -- A step that was skipped has the number of the one before.
      local key = line:find('"outcome":"skipped', 1, true) and -number - 1 or number
      if not kept[key] then kept[key] = #lines + 1 end
      lines[kept[key]] = line
    end
  end
  local whole = table.concat(lines)
  if whole == text then return lines end
  local temporary = ("%s/.%s"):format(out, file)
  posix.remove_file(temporary)
  local ok
  ok, problem = posix.write_file(temporary, whole)
  if ok then ok, problem = os.rename(temporary, path) end
  if not ok then fail.with(5, tostring(problem)) end
  return lines
end

local MOST_RECORD_BYTES = 2 ^ 28

-- The best checkpoint of the run in `out`, by the metric that the run kept it by, or the loss; its evaluations say
-- which it is. better(metric): "lower" or "higher".
function run_directory.best(out, better)
  local text = posix.read_file(out .. "/run.json", MOST_RECORD_BYTES)
  local ok, config = pcall(decode, text or "")
  local metric = text and ok and type(config) == "table" and type(config.arguments) == "table"
    and config.arguments.best or "loss"
  local way = type(metric) == "string" and better(metric)
  if not way then fail.input(("%s/run.json names no metric that the recipe has: --best %s"):format(out,
    unicode.shown(tostring(metric)))) end
  local problem
  text, problem = posix.read_file(out .. "/evaluations.jsonl", MOST_RECORD_BYTES)
  if not text then
    fail.input(("--best: %s: the run's evaluations say which checkpoint is the best; it has none"):format(problem))
  end
  local best
  for line in text:gmatch("[^\n]+") do
    local whole, row = pcall(decode, line)
    local value = whole and type(row) == "table" and row[metric]
    if type(value) == "number" and type(row.step) == "number" then
      local improves = not best or (way == "lower" and value < best.value) or (way == "higher" and value > best.value)
      if improves then best = { value = value, step = row.step } end
    end
  end
  if not best then fail.input(("--best: %s/evaluations.jsonl has no %s"):format(out, metric)) end
  local directory = checkpoints.path(out, best.step)
  if not posix.readable(directory .. "/manifest.cairn") then
    fail.input(("--best: %s was the best evaluation (%s %.6g) of %s, and there is no such checkpoint any more; " ..
      "`cairn train --best %s` keeps it"):format(directory, metric, best.value, out, metric))
  end
  return directory
end

return run_directory
