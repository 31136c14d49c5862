-- Files that a command reads, and how it ends where one cannot be read.
local fail = require "cli.base.fail"

local files = {}

-- What is not there, or a directory, is bad input: ENOENT, ENOTDIR, EISDIR.
local NO_FILE = { [2] = true, [20] = true, [21] = true }

local function failed(number, message) fail.with(NO_FILE[number] and 3 or 5, message) end

-- An open file. what: the option that names it, for messages.
function files.open(path, what)
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
  local file = files.open(path, what)
  local text = files.next(file, most or "*a", path, what)
  file:close()
  return text or ""
end

return files
