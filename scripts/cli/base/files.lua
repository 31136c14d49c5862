-- Files that a command reads, and how it ends where one cannot be read. Whatever a user, a checkpoint or a run.json
-- names is opened here, so that a pipe or a device is refused before anything waits for it.
local fail = require "cli.base.fail"
local posix = require "cli.base.posix"

local files = {}

-- What is not there, or a directory, is bad input: ENOENT, ENOTDIR, EISDIR.
local NO_FILE = { [2] = true, [20] = true, [21] = true }

local function failed(number, message) fail.with(NO_FILE[number] and 3 or 5, message) end

-- Ends the command unless `path` is a regular file. what: the option that names it, for messages. Returns what
-- posix.look says; nil where nothing is there, which opening it says best.
function files.check(path, what)
  local found = posix.look(path)
  if found and found.kind then fail.input(("%s: %s is %s; a file is needed"):format(what, path, found.kind)) end
  return found
end

-- An open file.
function files.open(path, what)
  files.check(path, what)
  local file, problem, number = io.open(path, "rb")
  if not file then failed(number, what .. ": " .. problem) end
  return file
end

-- What file:read(how) gives; nil at the end.
function files.next(file, how, path, what)
  local text, problem, number = file:read(how)
  if problem then failed(number, ("%s: %s: %s"):format(what, path, problem)) end
  return text
end

-- A file's text, or the first `most` bytes of it.
function files.read(path, what, most)
  local found = files.check(path, what)
  if found and found.size == 0 then return "" end  -- also files of the system that wait for something to happen
  local file = files.open(path, what)
  local text = files.next(file, most or "*a", path, what)
  file:close()
  return text or ""
end

return files
