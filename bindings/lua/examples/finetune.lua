-- An adapter for a model file, trained in this process within a budget, on texts of this program.
--   cairn lua finetune.lua FOLDER MODEL [BUDGET in MiB]
local cairn = require "cairn"

local folder, path, mib = ...
if not path then error("usage: finetune.lua FOLDER MODEL [BUDGET in MiB]", 0) end

-- Questions and the answers that the model is to give.
local ROWS = { { "what marks the way?", "a cairn" }, { "what is a cairn?", "a pile of stones" },
               { "who goes back?", "whoever finds the stones" } }
local STEPS = 60

-- The same words that `cairn train MODEL` takes.
local settings = { lora = 8, lora_targets = "*_proj", seq = 64, batch = 2, rate = 1e-2 }
local model = assert(cairn.model(path, { settings = settings, budget_bytes = (mib or 64) * 2 ^ 20, seed = 7 }))
local info = assert(model:info())
print(("%d of %d parameters learn; planned: %d bytes"):format(info.trainable_parameters, info.parameters,
  info.planned_bytes.device))

for _, row in ipairs(ROWS) do assert(model:add(row[1], row[2])) end
local first, last = assert(model:train(1)), assert(model:train(STEPS - 1))
assert(last.loss < first.loss)
print(("loss %.3f, then %.3f at step %d"):format(first.loss, last.loss, last.step))
print(ROWS[1][1] .. " -> " .. assert(model:generate(ROWS[1][1], 16, { temperature = 0 })))
assert(model:save(folder .. "/example-finetune-lua"))
assert(model:export(folder .. "/example-adapter-lua", "adapter"))
model:free()
