-- Token files and vocabularies of texts, made once and kept. What is kept is used only in a directory that is this
-- user's alone, and only where a record beside it says that it was made of this very text, and is as it was made.
local bit = require "bit"
local content = require "cli.data.content"
local fail = require "cli.base.fail"
local posix = require "cli.base.posix"

local cache = {}

local FORM = "cairn.cache/1"
local MOST_RECORD = 4096
local HEADER = 64  -- bytes of a token file that hold the digest of all others
local LAST_RESORT = "/dev/shm"

-- Whether names in a directory can be given to other files by any user.
local function is_open_to_all(found)
  return bit.band(found.mode, 2) ~= 0 and bit.band(found.mode, 512) == 0  -- o+w, and not sticky
end

-- What keeps a directory from being this user's alone; nil: nothing does. It is made if it is not there.
local function not_ours(path)
  if not posix.look(path, true) then
    local ok, problem = posix.privately(posix.make_directory, path)
    if not ok then return problem end
  end
  local found, problem = posix.look(path, true)
  if not found then return problem end
  if found.kind ~= "a directory" then return ("%s is %s, not a directory"):format(path, found.kind or "a file") end
  if found.uid ~= posix.uid() then return ("%s is user %d's, not yours"):format(path, found.uid) end
  if bit.band(found.mode, 18) ~= 0 then  -- g+w, o+w: what is in it may be anyone's
    return ("others may write in %s; empty it, and chmod 700 it"):format(path)
  end
  if found.mode ~= 448 and not posix.make_private(path) then return path .. " cannot be made mode 0700" end
  if not posix.writable(path) then return path .. " cannot be written to" end
end

-- The directory to keep files in, or nil and why there is none.
local function directory()
  local own, home = os.getenv("XDG_CACHE_HOME") or "", os.getenv("HOME") or ""
  local candidates, problem = {}, nil
  if own:find("^/") then candidates[1] = { own, own .. "/cairn" } end
  -- A home or a TMPDIR that is missing is not ours to make.
  for _, root in ipairs { home:find("^/") and home or "", posix.temporary() } do
    local place = root == home and "/.cache/cairn" or ("/cairn-%d"):format(posix.uid())
    if root ~= "" and posix.list(root) then
      candidates[#candidates + 1] = { root, root .. place }
    elseif root ~= "" then
      problem = ("there is no directory '%s'"):format(root)
    end
  end
  for _, row in ipairs(candidates) do
    local root = posix.look(row[1])
    if root and is_open_to_all(root) then
      problem = ("in %s any user may put a directory in another's place"):format(row[1])
    else
      problem = not_ours(row[2])
      if not problem then return row[2] end
    end
  end
  return nil, problem
end

-- A cache: {directory (nil: there is none)}. note(message) is told why nothing is kept, once.
function cache.open(note)
  local self = { note = note, told = false }
  self.directory, self.problem = directory()
  return setmetatable(self, { __index = cache })
end

-- One that keeps nothing, of what is nobody's but this run's.
function cache.aside() return setmetatable({ told = true }, { __index = cache }) end

function cache:tell(problem)
  if self.told then return end
  self.told = true
  self.note(("note: nothing is kept in a cache of tokens, and what it has is made for this run alone: %s"):format(
    tostring(problem)))
end

-- What tells a kept file from another: the header of a token file, or the digest of a vocabulary.
local function seal(path)
  if path:find("%.tokens$") then
    local file = io.open(path, "rb")
    local head = file and file:read(HEADER) or ""
    if file then file:close() end
    return (head:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
  end
  return content.digest(path, "tokenizer")
end

local function record_of(path, about)
  return ("%s\n%s\n%s\n"):format(FORM, table.concat(about, "\n"), seal(path))
end

-- What usable(path) opens of a kept file, where its record says what it must.
local function kept(path, about, usable)
  local found = posix.look(path, true)
  if not found or found.kind or found.uid ~= posix.uid() or found.size == 0 then return nil end
  if posix.no_file(path .. ".of") then return nil end
  if posix.read_file(path .. ".of", MOST_RECORD) ~= record_of(path, about) then return nil end
  return (usable(path))
end

-- Makes a file under a name that nobody else has, opens it and takes it away: it lasts as long as it is open.
local function made_aside(name, usable, make)
  local problem
  for _, folder in ipairs { posix.temporary(), LAST_RESORT } do
    if not posix.list(folder) then
      fail.with(5, ("no place for token files: there is no directory '%s'"):format(folder))
    end
    local place, reason = posix.temporary_directory(folder)
    problem = reason
    if place then
      local called, found, err = pcall(function()
        local path = place .. "/" .. name
        local ok, err = posix.privately(make, path)
        if not ok then return nil, err end
        return usable(path)
      end)
      for _, left in ipairs(posix.list(place) or {}) do posix.remove_file(place .. "/" .. left) end
      posix.remove_empty_directory(place)
      if not called then error(found, 0) end
      if found then return found end
      problem = err
      if err.status ~= "IO" then break end
    end
  end
  if type(problem) == "table" then fail.check("data", nil, problem) end
  fail.with(5, "no place for token files: " .. tostring(problem))
end

-- Puts a file that was made beside its name there, with its record. Returns nothing, or why it is not kept.
local function put(temporary, path, about)
  local record = path .. ".of"
  local text = record_of(temporary, about)
  posix.remove_file(record)  -- never one of another file
  local ok, problem = os.rename(temporary, path)
  if not ok then return problem end
  ok, problem = posix.privately(posix.write_file, record .. ".tmp", text)
  if ok then ok, problem = os.rename(record .. ".tmp", record) end
  if not ok then posix.remove_file(record .. ".tmp") end
  return not ok and problem or nil
end

-- What usable(path) opens of the file `name`: the kept one, or one made by make(path). about: what it was made of, as
-- texts of one line. Either returns nil, err where it fails; nothing is kept of what usable refuses, and where nothing
-- can be kept the file is made for this run. unchanged(): ends the command if what it was made of is no longer that.
function cache:made(name, about, usable, make, unchanged)
  if not self.directory then
    self:tell(self.problem)
    return made_aside(name, usable, make)
  end
  local path = ("%s/%s"):format(self.directory, name)
  local found = kept(path, about, usable)
  if found then return found end
  local temporary = ("%s/.%d-%s"):format(self.directory, posix.pid(), name)
  posix.remove_file(temporary)
  local called, ok, err = pcall(function()
    local ok, err = posix.privately(make, temporary)
    if ok then found, err = usable(temporary) end
    if found then unchanged() end
    return found ~= nil, err
  end)
  if not called then
    posix.remove_file(temporary)
    error(ok, 0)
  end
  local problem = err
  if ok then problem = put(temporary, path, about) end
  posix.remove_file(temporary)
  if not problem then return found end
  if found then
    self:tell(problem)
    return found
  end
  if err.status ~= "IO" then fail.check("data", nil, err) end
  self:tell(err)
  found = made_aside(name, usable, make)
  unchanged()
  return found
end

return cache
