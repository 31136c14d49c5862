-- The few calls of the system that Lua lacks. Layouts are those of 64-bit Linux.
local ffi = require "ffi"

ffi.cdef [[
typedef struct { long seconds, nanoseconds; } cli_timespec;
int clock_gettime(int clock, cli_timespec* now);
typedef struct { long user[2], system[2], maxrss, others[13]; } cli_rusage;
int getrusage(int who, cli_rusage* usage);
int isatty(int fd);
typedef struct { uint16_t rows, columns, width, height; } cli_winsize;
int ioctl(int fd, unsigned long request, ...);
int mkdir(const char* path, unsigned mode);
int access(const char* path, int mode);
int getpid(void);
unsigned getuid(void);
char* realpath(const char* path, char* resolved);
void free(void* block);
int malloc_trim(size_t kept);
char* strerror(int number);
int open(const char* path, int flags, ...);
int close(int fd);
long read(int fd, void* to, size_t size);
long write(int fd, const void* data, size_t size);
int flock(int fd, int operation);
int ftruncate(int fd, long size);
int unlink(const char* path);
int rmdir(const char* path);
long readlink(const char* path, char* to, size_t size);
typedef struct { uint64_t inode; int64_t offset; uint16_t length; uint8_t type; char name[256]; } cli_dirent;
typedef struct { int64_t seconds; uint32_t nanoseconds; int32_t half; } cli_statx_time;
typedef struct { uint32_t mask, block; uint64_t attributes; uint32_t links, uid, gid; uint16_t mode, half;
                 uint64_t inode, size, blocks, known; cli_statx_time accessed, born, changed, modified;
                 uint32_t words[32]; } cli_statx;
int statx(int directory, const char* path, int flags, unsigned mask, cli_statx* found);
void* opendir(const char* path);
cli_dirent* readdir(void* directory);
int closedir(void* directory);
unsigned umask(unsigned mask);
int chmod(const char* path, unsigned mode);
char* mkdtemp(char* form);
]]

local C = ffi.C
local posix = {}

-- Monotonic seconds.
local now = ffi.new("cli_timespec")
function posix.now()
  C.clock_gettime(1, now)
  return tonumber(now.seconds) + tonumber(now.nanoseconds) * 1e-9
end

-- Seconds since 1970.
function posix.wall()
  C.clock_gettime(0, now)
  return tonumber(now.seconds) + tonumber(now.nanoseconds) * 1e-9
end

-- The machine's name; nil if it does not say.
function posix.host()
  local file = io.open("/proc/sys/kernel/hostname")
  local name = file and file:read("*l")
  if file then file:close() end
  return name and name:gsub("[^%w%.%-]", "_")
end

function posix.peak_rss_bytes()
  local usage = ffi.new("cli_rusage")
  C.getrusage(0, usage)
  return tonumber(usage.maxrss) * 1024
end

-- What planning took and gave back goes from the heap to the system, before as much again is taken for the run. Only
-- glibc has the call.
function posix.trim_heap() pcall(function() C.malloc_trim(0) end) end

function posix.is_terminal(fd) return C.isatty(fd) == 1 end
-- Columns of the terminal at a descriptor; nil if it does not say.
function posix.columns(fd)
  local size = ffi.new("cli_winsize")
  if C.ioctl(fd, ffi.cast("unsigned long", 0x5413), size) ~= 0 or size.columns == 0 then return nil end  -- TIOCGWINSZ
  return size.columns
end
function posix.pid() return C.getpid() end
-- Where files go that nobody asked to keep; a TMPDIR that is empty names no place.
function posix.temporary()
  local named = os.getenv("TMPDIR")
  return named and named ~= "" and named or "/tmp"
end
function posix.uid() return tonumber(C.getuid()) end

function posix.readable(path) return C.access(path, 4) == 0 end
function posix.writable(path) return C.access(path, 2) == 0 end

local KINDS = { [0x1000] = "a pipe", [0x2000] = "a device", [0x4000] = "a directory", [0x6000] = "a device",
                [0xA000] = "a symbolic link", [0xC000] = "a socket" }
local NO_LINK = 0x100  -- AT_SYMLINK_NOFOLLOW

-- What the system knows of a path: {kind (nil: a regular file), mode (its twelve bits), uid, size, state (a text that
-- is another one once the file was written to or replaced)}; nil and why not. link: of a link itself.
function posix.look(path, link)
  local found = ffi.new("cli_statx")
  if C.statx(-100, path, link and NO_LINK or 0, 0x7ff, found) ~= 0 then  -- from the current directory; the basic facts
    return nil, ("%s: %s"):format(path, ffi.string(C.strerror(ffi.errno())))
  end
  return { kind = KINDS[found.mode - found.mode % 0x1000], mode = found.mode % 0x1000, uid = found.uid,
           size = tonumber(found.size),
           state = ("%s %s %s.%d"):format(tostring(found.inode), tostring(found.size), tostring(found.modified.seconds),
             found.modified.nanoseconds) }
end

-- What a path names, links followed: nil of a regular file, and of what cannot be looked at.
function posix.no_file(path)
  local found = posix.look(path)
  return found and found.kind
end

-- Runs body() while new files are this user's alone, whatever the process would give them.
function posix.privately(body, ...)
  local before = C.umask(63)  -- 0077
  local results = { pcall(body, ...) }
  C.umask(before)
  if not results[1] then error(results[2], 0) end
  return unpack(results, 2, table.maxn(results))
end

function posix.make_private(path) return C.chmod(path, 448) == 0 end  -- 0700

-- Absolute path without links; nil if there is no such file.
function posix.real_path(path)
  local found = C.realpath(path, nil)
  if found == nil then return nil end
  local text = ffi.string(found)
  C.free(found)
  return text
end

-- Names in a directory, sorted; nil if it cannot be read.
function posix.list(path)
  local directory = C.opendir(path)
  if directory == nil then return nil end
  local names = {}
  while true do
    local entry = C.readdir(directory)
    if entry == nil then break end
    local name = ffi.string(entry.name)
    if name ~= "." and name ~= ".." then names[#names + 1] = name end
  end
  C.closedir(directory)
  table.sort(names)
  return names
end

local IS_THERE = 17  -- EEXIST
-- A directory and those above it. Returns true, or nil and the system's reason.
function posix.make_directory(path)
  if posix.list(path) then return true end
  local above = path:match("^(.+)/[^/]+/*$")
  if above and not posix.list(above) then
    local ok, problem = posix.make_directory(above)
    if not ok then return nil, problem end
  end
  if C.mkdir(path, 493) == 0 then return true end  -- 0755
  local number = ffi.errno()
  if posix.list(path) then return true end
  if number == IS_THERE then number = ffi.errno() end  -- why it cannot be read says more
  return nil, path .. ": " .. ffi.string(C.strerror(number))
end

local WRITE, CREATE, TRUNCATE, APPEND, NONBLOCK, CLOSE_ON_EXEC = 1, 64, 512, 1024, 2048, 524288
local NO_FOLLOW = ffi.arch:match("^arm64") and 32768 or 131072
local LINK_IN_THE_WAY = 40  -- ELOOP
local WOULD_BLOCK = 11
local LOCK_ALONE, LOCK_NOW = 2, 4

-- A file to write, never one behind a link: who made the directory must not choose what is overwritten elsewhere.
-- Not blocking, so that a pipe without a reader is an error.
local function open_to_write(path, flags)
  local fd = C.open(path, WRITE + CREATE + NONBLOCK + CLOSE_ON_EXEC + NO_FOLLOW + flags, ffi.new("int", 438))  -- 0666
  if fd >= 0 then return fd end
  local number = ffi.errno()
  local reason = number == LINK_IN_THE_WAY and "it is a symbolic link, and nothing is written through one; remove it"
    or ffi.string(C.strerror(number))
  return nil, ("%s: %s"):format(path, reason)
end

-- A file's text; nil and why not, also if it is no regular file, or has more than `most` bytes. Nothing is waited for.
function posix.read_file(path, most)
  local kind = posix.no_file(path)
  if kind then return nil, ("%s is %s; a file is needed"):format(path, kind) end
  local fd = C.open(path, NONBLOCK + CLOSE_ON_EXEC)
  if fd < 0 then return nil, ("%s: %s"):format(path, ffi.string(C.strerror(ffi.errno()))) end
  local block, parts, size, problem = ffi.new("char[65536]"), {}, 0, nil
  repeat
    local count = tonumber(C.read(fd, block, 65536))
    if count > 0 then
      parts[#parts + 1] = ffi.string(block, count)
      size = size + count
      if size > most then problem = ("%s: it has more than %d bytes"):format(path, most) end
    elseif count < 0 and ffi.errno() ~= 4 then  -- EINTR
      problem = ("%s: %s"):format(path, ffi.string(C.strerror(ffi.errno())))
    end
  until count == 0 or problem
  C.close(fd)
  if problem then return nil, problem end
  return table.concat(parts)
end

local some = ffi.new("char[65536]")
-- What there is to read from a descriptor, at once: "" at the end; nil and why not.
function posix.read_some(fd)
  repeat
    local count = tonumber(C.read(fd, some, 65536))
    if count >= 0 then return ffi.string(some, count) end
  until ffi.errno() ~= 4  -- EINTR
  return nil, ffi.string(C.strerror(ffi.errno()))
end

local function write_all(fd, path, text)
  local data, at = ffi.cast("const char*", text), 0
  while at < #text do
    local count = tonumber(C.write(fd, data + at, #text - at))
    if count < 0 and ffi.errno() ~= 4 then  -- EINTR
      return nil, ("%s: %s"):format(path, ffi.string(C.strerror(ffi.errno())))
    end
    at = at + math.max(count, 0)
  end
  return true
end

-- Writes a text into a file, or with `append` at its end. Returns true, or nil and why not.
function posix.write_file(path, text, append)
  local fd, problem = open_to_write(path, append and APPEND or TRUNCATE)
  if not fd then return nil, problem end
  local ok
  ok, problem = write_all(fd, path, text)
  if C.close(fd) ~= 0 and ok then ok, problem = nil, ("%s: %s"):format(path, ffi.string(C.strerror(ffi.errno()))) end
  return ok, problem
end

-- A file that this process alone holds until it ends, with `text` in it; nil: as it is. Returns true; false if another
-- process holds it; nil and why not.
local held = {}  -- descriptors by path, which stay open, and with them the locks
function posix.hold_file(path, text)
  local fd, problem = held[path], nil
  if not fd then fd, problem = open_to_write(path, 0) end
  if not fd then return nil, problem end
  if not held[path] and C.flock(fd, LOCK_ALONE + LOCK_NOW) ~= 0 then
    local number = ffi.errno()
    C.close(fd)
    if number == WOULD_BLOCK then return false end
    return nil, ("%s: %s"):format(path, ffi.string(C.strerror(number)))
  end
  held[path] = fd
  if not text then return true end
  C.ftruncate(fd, 0)
  return write_all(fd, path, text)
end

function posix.is_there(path) return C.access(path, 0) == 0 or posix.is_link(path) end
function posix.is_link(path) return C.readlink(path, ffi.new("char[1]"), 1) >= 0 end

-- Removes a file, or the link of that name; true if it is gone.
function posix.remove_file(path) return C.unlink(path) == 0 or ffi.errno() == 2 end  -- ENOENT

-- A new directory for this user alone, of a name that nobody knows before, in `folder`. Returns its path, or nil and
-- why not.
function posix.temporary_directory(folder)
  local form = folder .. "/cairn-XXXXXX"
  local path = ffi.new("char[?]", #form + 1, form)
  if C.mkdtemp(path) == nil then return nil, ("%s: %s"):format(folder, ffi.string(C.strerror(ffi.errno()))) end
  return ffi.string(path)
end

-- A new directory for this user alone. Returns true, or nil and why not.
function posix.new_directory(path)
  if C.mkdir(path, 448) == 0 then return true end  -- 0700
  return nil, ("%s: %s"):format(path, ffi.string(C.strerror(ffi.errno())))
end

-- An empty directory.
function posix.remove_empty_directory(path) return C.rmdir(path) == 0 end

return posix
