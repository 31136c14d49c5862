-- Runs named checks and reports: test("name", function() ... end); return harness.finish().
local harness = { passed = 0, failed = 0 }

function harness.test(name, body)
  local ok, problem = xpcall(body, function(err) return debug.traceback(tostring(err), 2) end)
  if ok then
    harness.passed = harness.passed + 1
  else
    harness.failed = harness.failed + 1
    io.stderr:write("FAILED ", name, ": ", problem, "\n")
  end
end

function harness.equal(found, wanted, what)
  if found ~= wanted then
    error(("%s: found %s, wanted %s"):format(what or "value", tostring(found), tostring(wanted)), 2)
  end
end

function harness.near(found, wanted, tolerance, what)
  if math.abs(found - wanted) > tolerance or found ~= found then
    error(("%s: found %.9g, wanted %.9g"):format(what or "value", found, wanted), 2)
  end
end

-- The message of the error that body must raise; it must contain every text given.
function harness.raises(body, ...)
  local ok, problem = pcall(body)
  if ok then error("an error was expected", 2) end
  for _, text in ipairs { ... } do
    if not tostring(problem):find(text, 1, true) then
      error(("'%s' is not in the error: %s"):format(text, tostring(problem)), 2)
    end
  end
  return tostring(problem)
end

-- The error of a call that must return nil, err with this status.
function harness.fails(status, result, err)
  if result ~= nil then error("nil, err was expected", 2) end
  harness.equal(type(err), "table", "type of err")
  harness.equal(err.status, status, "status of '" .. tostring(err) .. "'")
  return err
end

function harness.finish()
  io.stdout:write(("%d passed, %d failed\n"):format(harness.passed, harness.failed))
  return (harness.failed == 0 and harness.passed > 0) and 0 or 1
end

return harness
