-- What may take longer than anybody would wait for it, in a process of its own that is ended when its time is up.
local ffi = require "ffi"
local posix = require "cli.base.posix"

ffi.cdef [[
int fork(void);
int pipe(int* ends);
typedef struct { int fd; short wanted, found; } cli_pollfd;
int poll(cli_pollfd* list, unsigned long count, int milliseconds);
int kill(int pid, int number);
int waitpid(int pid, int* status, int flags);
void _exit(int code);
]]

local C = ffi.C
local KILL, READABLE = 9, 1

-- What the process at the other end of a pipe writes, until it is done or `ends` has come.
local function read_until(fd, ends)
  local list, block, parts = ffi.new("cli_pollfd[1]"), ffi.new("char[4096]"), {}
  while true do
    local left = math.ceil((ends - posix.now()) * 1000)
    if left <= 0 then break end
    list[0].fd, list[0].wanted, list[0].found = fd, READABLE, 0
    if C.poll(list, 1, left) > 0 then
      local count = tonumber(C.read(fd, block, 4096))
      if count == 0 then break end
      if count > 0 then parts[#parts + 1] = ffi.string(block, count) end
    end
  end
  return table.concat(parts)
end

-- Calls work(tell) in a copy of this process for at most so many seconds. Returns all that it told, texts one after
-- the other: nothing, where it failed, or where the system gives no process. Nothing changes here.
return function(seconds, work)
  local ends = ffi.new("int[2]")
  if seconds <= 0 or C.pipe(ends) ~= 0 then return "" end
  local child = C.fork()
  if child == 0 then
    pcall(work, function(text) C.write(ends[1], text, #text) end)
    C._exit(0)
  end
  C.close(ends[1])
  local text = child > 0 and read_until(ends[0], posix.now() + seconds) or ""
  C.close(ends[0])
  if child > 0 then
    C.kill(child, KILL)
    C.waitpid(child, nil, 0)
  end
  return text
end
