-- cairn export DIR FILE.safetensors
local args = require "cli.base.args"
local fail = require "cli.base.fail"
local json = require "cli.base.json"
local models = require "cli.checkpoint.model"

local USAGE = "cairn export DIR FILE.safetensors"
local KNOWN = args.known("device threads json quiet", models.OPTIONS)

-- What files of these names are taken for: what is written here is none of that.
local OTHERS = {}
for name in ("gguf ggml bin pt pth ckpt pkl pickle npz npy h5 hdf5 onnx zip tar gz json msgpack pb tflite mlmodel")
    :gmatch("%S+") do OTHERS[name] = true end

local function check_name(path)
  local ending = path:match("%.([%w_]+)$")
  if not ending or not OTHERS[ending:lower()] then return end
  fail.usage(("%s: safetensors is what is written, which nobody looks for in a .%s file; give a name that ends in " ..
    ".safetensors, and let the other program make its form of that"):format(path, ending))
end

return function(arguments, root)
  local options, words, settings = args.parse(arguments, KNOWN, USAGE)
  if not options then return 0 end
  if #words ~= 2 or #settings > 0 then fail.usage("a directory and a file are needed; usage: " .. USAGE) end
  check_name(words[2])
  local model = models.open(words[1], root, options, false)
  fail.check("", model.session:export(words[2], model.names))
  local count, from = #model.graph:parameters(), model.opened.directory
  if options.json then
    local rows = { { "file", words[2] }, { "checkpoint", from }, { "tensors", count } }
    io.stdout:write(json.encode(json.object(rows)), "\n")
  elseif not options.quiet then
    io.stderr:write(("%d tensors of %s in %s\n"):format(count, from, words[2]))
  end
  return 0
end
