-- Runs test programs of the binding in a LuaJIT that is not the command:  luajit plain.lua FILE ...
local failed = 0
for _, file in ipairs(arg) do
  package.loaded.harness = nil  -- which counts
  io.stdout:write(file, ": ")
  if dofile(file) ~= 0 then failed = failed + 1 end
end
os.exit((failed == 0 and #arg > 0) and 0 or 1)
