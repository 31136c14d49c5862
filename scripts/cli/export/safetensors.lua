-- cairn export RUN FILE: all parameters in one file.
local checkpoints = require "cli.checkpoint.checkpoints"
local fail = require "cli.base.fail"
local merge = require "cli.export.merge"
local models = require "cli.checkpoint.model"

local safetensors = { words = "one file (default)" }

-- What files of these names are taken for: what is written here is none of that.
local OTHERS = {}
for name in ("gguf ggml bin pt pth ckpt pkl pickle npz npy h5 hdf5 onnx zip tar gz json msgpack pb tflite mlmodel")
    :gmatch("%S+") do OTHERS[name] = true end

function safetensors.check_name(path)
  local ending = path:match("%.([%w_]+)$")
  if not ending or not OTHERS[ending:lower()] then return end
  fail.usage(("%s: safetensors is what is written, which nobody looks for in a .%s file; give a name that ends in " ..
    ".safetensors, and let the other program make its form of that"):format(path, ending))
end

-- How many tensors are written of a graph's parameters by these rows of names.
function safetensors.count(graph, names)
  local count, named = #graph:parameters(), {}
  for _, row in ipairs(names or {}) do  -- a parameter may be several tensors, or none
    if named[row.ours or row[1]] then count = count + 1 end
    if not (row.theirs or row[2]) then count = count - 1 end
    named[row.ours or row[1]] = true
  end
  return count
end

-- {session, graph, names} of what is exported, with options for Session:export, and what adapters were merged (or nil).
function safetensors.open(path, root, options)
  local opened = checkpoints.open(path)
  if not merge.check(opened, options) then return models.open(path, root, options, false), {}, nil, opened end
  local merged = merge.open(opened, options)
  return merged, { merges = merged.merges, dequantise = merged.dequantise }, merged, opened
end

-- What is told of a merge: rows for --json, and a line. made: what Session:export returned.
function safetensors.told(merged, options, made)
  if not merged then return {}, nil end
  local rows, words = { { "merged", options.merge } }, merge.WORDS[options.merge]
  if merged.rounded then
    rows[2], rows[3] = { "merge_difference_largest", made.largest }, { "merge_difference_mean", made.mean }
    words = ("%s; the two ways differ by at most %.3g, and by %.3g in the mean"):format(words, made.largest, made.mean)
  end
  return rows, "merged: " .. words
end

function safetensors.write(path, out, root, options)
  safetensors.check_name(out)
  local model, given, merged, opened = safetensors.open(path, root, options)
  given.dtype = options.dtype
  local made = fail.check("", model.session:export(out, model.names, next(given) and given or nil))
  local rows, line = safetensors.told(merged, options, made)
  return { kind = "file", opened = opened, tensors = safetensors.count(model.graph, model.names), rows = rows,
           line = line }
end

return safetensors
