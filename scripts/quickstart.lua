-- ./dev quickstart: trains a small GPT-2 with all the memory it wants and inside a budget, shows both, goes on inside.
-- luajit scripts/quickstart.lua CAIRN DATA OUT [PICTURES]
local cairn, data, out, pictures = ...
local root = arg[0]:match("^(.*)/scripts/[^/]*$") or "."
package.path = root .. "/scripts/?.lua;" .. package.path
local decode = require "cli.base.json_decode"
local format = require "cli.base.format"

local MODEL = "layers=4 heads=4 width=128 seq=128 batch=16 rate=3e-3 warmup=40"
local SECONDS = 65  -- of training beyond the comparison
local COMPARED_STEPS = 60
local MOST_STEPS = 2000
local BUDGET = "60%"
local PROMPT = "The best way to "

local function quote(text) return "'" .. text:gsub("'", "'\\''") .. "'" end

local function run(arguments, shows_progress)
  local command = quote(cairn) .. " " .. arguments .. (shows_progress and "" or " --quiet")
  local pipe = io.popen(command .. "; echo \"exit $?\"", "r")
  local text = pipe:read("*a")
  pipe:close()
  local output, code = text:match("^(.*)exit (%d+)\n$")
  if code ~= "0" then
    io.stderr:write("quickstart: `cairn ", arguments, "` ended with exit code ", code or "?", "\n")
    os.exit(tonumber(code) or 1)
  end
  return output
end

-- bf16 where the processor multiplies it faster.
local AMP = decode(run("devices --json"))[1].fast_bf16 and " --amp bf16" or ""

local function train(arguments, shows_progress)
  return decode(run(("train gpt2 data=%s %s --json %s%s"):format(quote(data), MODEL, arguments, AMP), shows_progress))
end

local function headline(text) io.stdout:write("\n", format.colour("bold", text), "\n") end

local function row(name, ...)
  local cells = { ... }
  for i, cell in ipairs(cells) do cells[i] = (" "):rep(16 - #cell) .. cell end
  io.stdout:write(("  %-22s%s\n"):format(name, table.concat(cells)))
end

io.stdout:write(format.colour("dim", "text: " .. data), "\n")
headline(("1. %d steps with all the memory it wants"):format(COMPARED_STEPS))
local free = train(("--steps %d --policy keep --out %s --force"):format(COMPARED_STEPS, quote(out .. "/free")), true)
headline("2. the same steps inside " .. BUDGET .. " of that memory")
local tight_out = quote(out .. "/tight")
local tight = train(("--steps %d --budget %s --out %s --force"):format(COMPARED_STEPS, BUDGET, tight_out), true)
local steps = COMPARED_STEPS + math.min(MOST_STEPS, math.floor(SECONDS / tight.step_seconds_median / 10) * 10)
headline(("3. on from its checkpoint, inside the budget, to step %d"):format(steps))
local resume = ("train gpt2 --resume %s --steps %d --budget %s --json%s"):format(tight_out, steps, BUDGET, AMP)
local long = decode(run(resume, true))

headline("What it learned")
io.stdout:write(format.colour("cyan", run(("generate %s --prompt %s --tokens 240"):format(quote(out .. "/tight"),
  quote(PROMPT)))), "\n")

headline("What it took")
row("", "all it wants", "budget")
local function last(losses) return ("%.4f"):format(losses[#losses]) end
row(("loss after %d steps"):format(COMPARED_STEPS), last(free.loss), last(tight.loss))
row(("loss after %d steps"):format(steps), "", last(long.loss))
for _, name in ipairs { "parameters", "gradients", "optimizer", "activations", "workspace" } do
  row(name, format.bytes(free.memory_bytes[name]), format.bytes(tight.memory_bytes[name]))
end
row("planned peak, bytes", format.count(free.planned_peak_bytes.device), format.count(tight.planned_peak_bytes.device))
row("measured peak, bytes", format.count(free.peak_bytes.device), format.count(tight.peak_bytes.device))
row("time per step", format.seconds(free.step_seconds_median), format.seconds(tight.step_seconds_median))
row("tokens per second", format.count(free.tokens_per_second), format.count(tight.tokens_per_second))

local saving = 1 - tight.peak_bytes.device / free.peak_bytes.device
local slower = tight.step_seconds_median / free.step_seconds_median - 1
io.stdout:write(("\n%s of the memory saved, steps %s %s\n"):format(format.colour("green", format.percent(saving)),
  format.colour("green", format.percent(math.abs(slower))), slower >= 0 and "slower" or "faster"))

local same = free.parameter_digest == tight.parameter_digest
if same then
  io.stdout:write(("all parameters after step %d are equal, bit for bit: %s\n"):format(COMPARED_STEPS,
    free.parameter_digest))
else
  io.stdout:write("THE PARAMETERS DIFFER: ", free.parameter_digest, " ", tight.parameter_digest, "\n")
end
io.stdout:write("\ncheckpoint  ", long.checkpoint, "\npicture     ", out, "/tight/plan.html  (open it in a browser)\n")

-- The plan of the second run again, with the seconds of this machine: for the documentation.
if pictures and pictures ~= "" then
  headline("Measuring, and drawing the plan in " .. pictures)
  local profile, page = quote(out .. "/profile.json"), out .. "/measured.html"
  run(("profile gpt2 data=%s %s --profile-out %s --trace %s%s"):format(quote(data), MODEL, profile,
    quote(out .. "/trace.json"), AMP), true)
  run(("plan gpt2 data=%s %s --budget %s --profile %s --html %s%s"):format(quote(data), MODEL, BUDGET, profile,
    quote(page), AMP))
  require("pictures").write(page, pictures)
end
os.exit(same and 0 or 1)
