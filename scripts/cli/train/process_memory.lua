-- What the memory of the whole process is made of: the plan's, which is exact, and what stands beside it.
local ffi = require "ffi"
local format = require "cli.base.format"
local json = require "cli.base.json"
local posix = require "cli.base.posix"

pcall(ffi.cdef, [[
typedef struct { size_t arena, ordblks, smblks, hblks, hblkhd, usmblks, fsmblks, uordblks, others[2]; } cli_heap;
cli_heap mallinfo2(void);
]])

local process_memory = {}

-- Bytes in use of the C library's heap, where the library and its tools keep what is neither of the plan nor a file.
local function heap_bytes()
  local known, heap = pcall(function() return ffi.C.mallinfo2() end)  -- glibc 2.33 and later
  return known and tonumber(heap.uordblks + heap.hblkhd) or 0
end

-- Resident bytes of files that are mapped: programs and libraries, and data, by the text of /proc/self/smaps.
function process_memory.mapped(smaps)
  local files, path = {}, nil
  for line in smaps:gmatch("[^\n]+") do
    local rights, rest = line:match("^%x+%-%x+ (%S+) %x+ %S+ %d+%s*(.*)$")
    if rights then
      path = rest:sub(1, 1) == "/" and rest or nil
      local file = path and (files[path] or { bytes = 0 })
      if file then
        files[path] = file
        file.code = file.code or rights:find("x", 1, true) ~= nil
      end
    elseif path then
      local kilobytes = line:match("^Rss:%s*(%d+) kB")
      if kilobytes then files[path].bytes = files[path].bytes + tonumber(kilobytes) * 1024 end
    end
  end
  local code, data = 0, 0
  for _, file in pairs(files) do
    if file.code then code = code + file.bytes else data = data + file.bytes end
  end
  return code, data
end

local function read(path)
  local file = io.open(path, "rb")
  local text = file and file:read("*a") or ""
  if file then file:close() end
  return text
end

-- Rows {key, bytes, words} beside the peak; the last is what the others do not explain: what was given back before the
-- end (planning, loading), threads' stacks, and room that the heap keeps.
local function parts(peak_rss, planned)
  local code, data = process_memory.mapped(read("/proc/self/smaps"))
  local rows = {
    { "plan_bytes", planned, "planned" },
    { "library_bytes", heap_bytes(), "the library's heap" },
    { "interpreter_bytes", collectgarbage("count") * 1024, "the interpreter's" },
    { "code_bytes", code, "code" },
    { "data_bytes", data, "mapped data" },
  }
  local rest = peak_rss
  for _, row in ipairs(rows) do rest = rest - row[2] end
  rows[#rows + 1] = { "other_bytes", math.max(0, rest), "other: given back since, stacks, the heap's room" }
  return rows
end

-- What of the plan lies in this process's memory. On another device than the processor that is the host tier alone.
local function planned(run)
  local here = run.driver == nil or run.driver.now == 0
  return (here and run.peak.device or 0) + run.peak.host
end

-- run: peak and driver as Run:usage() gives them.
function process_memory.json(run)
  local peak = posix.peak_rss_bytes()
  local fields = { { "peak_rss_bytes", peak } }
  for _, row in ipairs(parts(peak, planned(run))) do fields[#fields + 1] = { row[1], math.floor(row[2]) } end
  return json.object(fields)
end

function process_memory.line(run)
  local peak = posix.peak_rss_bytes()
  local words = {}
  for _, row in ipairs(parts(peak, planned(run))) do
    if row[2] > 0 then words[#words + 1] = format.bytes(row[2]) .. " " .. row[3] end
  end
  return ("process           %s at its peak: %s\n"):format(format.bytes(peak), table.concat(words, ", "))
end

return process_memory
