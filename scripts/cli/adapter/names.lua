-- Names of adapters in PEFT's files: base_model.model.<module>.lora_A.weight, where the module has the name that it has
-- in the model of Transformers.
local names = {}

names.PREFIX = "base_model.model."

-- Files of some models name their tensors as the body does, whose name in the model with a head is this.
local BODIES = { gpt2 = { prefix = "transformer.", except = "^lm_head" } }

-- Parts of an adapter: our name behind the module's, and the file's. transposed: the file has [columns, rows].
-- older: what other versions wrote.
names.PARTS = {
  { part = "a", ours = ".lora_A.weight", theirs = ".lora_A.weight" },
  { part = "b", ours = ".lora_B.weight", theirs = ".lora_B.weight" },
  { part = "a", ours = ".lora_embedding_A", theirs = ".lora_embedding_A", transposed = true, table = true },
  { part = "b", ours = ".lora_embedding_B", theirs = ".lora_embedding_B", table = true },
  { part = "magnitude", ours = ".lora_magnitude_vector", theirs = ".lora_magnitude_vector",
    older = ".lora_magnitude_vector.weight" },
}

-- What a base is stored as, in a word that tells whether two digests can be compared. parameters: "f32", "bf16" ..., of
-- those that no rule of formats names (nil: f32); formats: rules, as checkpoints have them (optional).
function names.stored_as(parameters, formats)
  return ((parameters or "f32") ~= "f32" and "*=" .. parameters .. "\n" or "") .. (formats or "")
end

-- The module of a weight.
function names.module(parameter) return (parameter:gsub("%.weight$", "")) end

-- What a parameter is called in the model of Transformers, whether files have it transposed, and of several tensors.
-- rows: a run's names of files; model_type: of its config.json.
function names.of_model(rows, model_type)
  local by_ours, body = {}, BODIES[model_type]
  for _, row in ipairs(rows or {}) do
    local ours = row.ours or row[1]
    by_ours[ours] = by_ours[ours] or { theirs = row.theirs or row[2], transposed = row.transposed or row[3],
                                       stacked = row.stacked or row[4] }
  end
  return function(ours)
    local row = by_ours[ours] or { theirs = ours }
    local theirs = row.theirs
    if body and not theirs:find(body.except) and theirs:sub(1, #body.prefix) ~= body.prefix then
      theirs = body.prefix .. theirs
    end
    return theirs, row.transposed or false, row.stacked or false
  end
end

return names
