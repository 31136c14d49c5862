-- What may take longer than anybody would wait for it, in processes of their own that are ended when their time is up.
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
local BLOCK = 4096

-- A copy of this process that calls work(tell): {pid, fd, parts}; nil where the system gives none.
local function start(work)
  local ends = ffi.new("int[2]")
  if C.pipe(ends) ~= 0 then return nil end
  local child = C.fork()
  if child == 0 then
    pcall(work, function(text) C.write(ends[1], text, #text) end)
    C._exit(0)
  end
  C.close(ends[1])
  if child > 0 then return { pid = child, fd = ends[0], parts = {} } end
  C.close(ends[0])
  return nil
end

local function stop(one)
  C.close(one.fd)
  C.kill(one.pid, KILL)
  C.waitpid(one.pid, nil, 0)
end

-- Reads what there is; false at the end.
local function read(one, block)
  local count = tonumber(C.read(one.fd, block, BLOCK))
  if count > 0 then one.parts[#one.parts + 1] = ffi.string(block, count) end
  return count ~= 0
end

-- Calls each work(tell) in a copy of this process, `at_once` of them at a time, all within so many seconds. Returns per
-- work all that it told, texts one after the other: less, where it failed or its time was up, and nothing where the
-- system gives no process. Nothing changes here.
return function(seconds, works, at_once)
  local texts, running, next_one = {}, {}, 1
  local until_then = posix.now() + seconds
  local block, list = ffi.new("char[?]", BLOCK), ffi.new("cli_pollfd[?]", math.max(at_once, 1))
  for i = 1, #works do texts[i] = "" end
  while true do
    local left = math.ceil((until_then - posix.now()) * 1000)
    while left > 0 and #running < at_once and next_one <= #works do
      local one = start(works[next_one])
      if one then
        one.number = next_one
        running[#running + 1] = one
      end
      next_one = next_one + 1
    end
    if left <= 0 or #running == 0 then break end
    for i, one in ipairs(running) do list[i - 1].fd, list[i - 1].wanted, list[i - 1].found = one.fd, READABLE, 0 end
    if C.poll(list, #running, left) > 0 then
      for i = #running, 1, -1 do
        local one = running[i]
        if list[i - 1].found ~= 0 and not read(one, block) then
          texts[one.number] = table.concat(one.parts)
          stop(one)
          table.remove(running, i)
        end
      end
    end
  end
  for _, one in ipairs(running) do
    texts[one.number] = table.concat(one.parts)
    stop(one)
  end
  return texts
end
