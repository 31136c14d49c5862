-- cairn profile RECIPE [key=value ...]: the plan's compute and copy lanes and its memory as a Chrome trace, which
-- Perfetto (https://ui.perfetto.dev) opens. Times are the plan's predictions, from measured or modelled costs.
local args = require "cli.args"
local fail = require "cli.fail"
local format = require "cli.format"
local json = require "cli.json"
local recipes = require "cli.recipe"
local runs = require "cli.run"
local trace = require "cli.trace"

local USAGE = "cairn profile RECIPE [key=value ...] [--trace FILE] [options]"
local KNOWN = args.known("device threads budget amp policy tiers link seed steps json quiet", {
  trace = { args.text, "where the trace goes (default: cairn-trace.json)", "FILE" },
})

return function(arguments, root)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  if #words ~= 1 then fail.usage("one recipe is needed; usage: " .. USAGE) end
  local recipe = recipes.load(words[1], root)
  local o = recipes.resolve(recipe, settings)
  local plan = runs.plan(runs.graph(recipe, o), runs.device(options), options)
  local problem_text = fail.check("plan", plan:render("problem"))
  local plan_text = fail.check("plan", plan:render("json"))
  local events, seconds = trace.events(problem_text, plan_text)
  local text = json.encode(json.object { { "displayTimeUnit", "ms" }, { "traceEvents", json.array(events) } })
  local path = options.trace or "cairn-trace.json"
  local file, problem = io.open(path, "wb")
  if not file then fail.with(5, problem) end
  local ok = file:write(text, "\n")
  if not (file:close() and ok) then fail.with(5, path .. ": cannot be written") end
  if options.json then
    io.stdout:write(json.encode(json.object { { "trace", path }, { "events", #events },
                                              { "predicted_seconds", seconds } }), "\n")
  else
    io.stdout:write(("%s: %d events over %s; open it in https://ui.perfetto.dev\n"):format(path, #events,
      format.seconds(seconds)))
  end
  return 0
end
