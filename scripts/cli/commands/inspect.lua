-- cairn inspect FILE
local args = require "cli.base.args"
local cairn = require "cairn"
local fail = require "cli.base.fail"
local inspection = require "cli.report.inspection"

local USAGE = "cairn inspect FILE [--json]"
local KNOWN = args.known("json quiet")

return function(arguments)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  -- A path with '=' in it was taken for a setting.
  for _, setting in ipairs(settings) do words[#words + 1] = setting[1] .. "=" .. setting[2] end
  if #words ~= 1 then fail.usage("one file is needed; usage: " .. USAGE) end
  local text, err = cairn.inspect(words[1])
  if not text and err.status == "UNSUPPORTED" then fail.input(tostring(err)) end
  fail.check(words[1], text, err)
  io.stdout:write(options.json and inspection.json(text) .. "\n" or inspection.text(words[1], text))
  return 0
end
