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
int rmdir(const char* path);
int unlink(const char* path);
int access(const char* path, int mode);
int getpid(void);
unsigned getuid(void);
char* realpath(const char* path, char* resolved);
void free(void* block);
char* strerror(int number);
typedef struct { uint64_t inode; int64_t offset; uint16_t length; uint8_t type; char name[256]; } cli_dirent;
void* opendir(const char* path);
cli_dirent* readdir(void* directory);
int closedir(void* directory);
]]

local C = ffi.C
local posix = {}

-- Monotonic seconds.
local now = ffi.new("cli_timespec")
function posix.now()
  C.clock_gettime(1, now)
  return tonumber(now.seconds) + tonumber(now.nanoseconds) * 1e-9
end

function posix.peak_rss_bytes()
  local usage = ffi.new("cli_rusage")
  C.getrusage(0, usage)
  return tonumber(usage.maxrss) * 1024
end

function posix.is_terminal(fd) return C.isatty(fd) == 1 end
-- Columns of the terminal at a descriptor; nil if it does not say.
function posix.columns(fd)
  local size = ffi.new("cli_winsize")
  if C.ioctl(fd, ffi.cast("unsigned long", 0x5413), size) ~= 0 or size.columns == 0 then return nil end  -- TIOCGWINSZ
  return size.columns
end
function posix.pid() return C.getpid() end
function posix.uid() return tonumber(C.getuid()) end

function posix.readable(path) return C.access(path, 4) == 0 end
function posix.writable(path) return C.access(path, 2) == 0 end

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

-- A directory and those above it. Returns true, or nil and the system's reason.
function posix.make_directory(path)
  if posix.list(path) then return true end
  local above = path:match("^(.+)/[^/]+/*$")
  if above and not posix.list(above) then
    local ok, problem = posix.make_directory(above)
    if not ok then return nil, problem end
  end
  if C.mkdir(path, 493) == 0 or posix.list(path) then return true end  -- 0755
  return nil, path .. ": " .. ffi.string(C.strerror(ffi.errno()))
end

-- A directory of plain files.
function posix.remove_directory(path)
  for _, name in ipairs(posix.list(path) or {}) do C.unlink(path .. "/" .. name) end
  return C.rmdir(path) == 0
end

return posix
