-- A disk tier that lies in memory: what is sent there frees none.
local cairn = require "cairn"

-- What to tell of a plan for this machine; nil: it uses no disk tier, or that lies on a disk.
return function(numbers)
  if numbers.peak_bytes.disk == 0 then return nil end
  local device = (cairn.devices() or {})[1]
  if not device or device.disk_access ~= "memory" then return nil end
  return ("note: the disk tier lies on tmpfs (%s): its bytes are memory; name a folder on a disk in TMPDIR"):format(
    os.getenv("TMPDIR") or "/tmp")
end
