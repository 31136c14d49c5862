-- apart.lua DIR ROOT: of a window with two samples and padding, the logits of the second where the first is another.
-- Writes whether they are the same bits, and whether those of the first are.
local architecture = require "families.parts.architecture"
local forward = require "cli.model.forward"
local network = require "families.parts.network"

local path, root = arg[1], arg[2]
local SEQ, FIRST, SECOND = 24, 9, 11
local recipe, o = forward.recipe(path, root, { { "seq", tostring(SEQ) } })
function recipe.generator(options, graph)
  local a = architecture.of(options.model, path)
  local hidden, head = network.body(a, graph, false, { batch = 1, seq = SEQ, packed = true }, "auto")
  local rows = graph:op("reshape", hidden, { shape = { SEQ, a.width } })
  return { outputs = { graph:name(network.logits(a, graph, rows, head), "logits") } }
end
local model = forward.open(recipe, o, { threads = 1 }, 1, print)

-- Logits of the window whose first sample and padding are made of `token`.
local function logits(token)
  local tokens, sequences, positions = {}, {}, {}
  for i = 1, SEQ do
    local second = i > FIRST and i <= FIRST + SECOND
    tokens[i] = second and i or token
    sequences[i] = i <= FIRST and 0 or second and 1 or -1
    positions[i] = i <= FIRST and i - 1 or second and i - FIRST - 1 or 0
  end
  for name, list in pairs { tokens = tokens, sequences = sequences, positions = positions } do
    assert(model.session:write(name, list))
  end
  assert(model.session:run())
  return assert(model.session:read("logits"))
end

local function same(a, b, from, to)
  local width = #a / SEQ
  for i = from * width + 1, to * width do
    if a[i] ~= b[i] then return false end
  end
  return true
end

local one, other = logits(5), logits(17)
print(same(one, other, FIRST, FIRST + SECOND), same(one, other, 0, FIRST))
