"""The recipe gpt2.lua, from PyTorch's initial weights on PyTorch's batches, follows PyTorch's loss."""
import json

from harness import ROOT, Case, main

DATA = ROOT / "tests/golden/data"
RECIPE = """local ffi = require "ffi"
local recipe = dofile("%s")
recipe.dataset = function(o)
  local file = io.open("%s", "rb")
  local bytes = file:read("*a")
  file:close()
  local all = ffi.new("int32_t[?]", #bytes / 4)
  ffi.copy(all, bytes, #bytes)
  return { batch = function(index)
    local tokens, targets = {}, {}
    for row = 0, o.batch - 1 do
      local from = (index * o.batch + row) * (o.seq + 1)
      for i = 0, o.seq - 1 do
        tokens[#tokens + 1], targets[#targets + 1] = all[from + i], all[from + i + 1]
      end
    end
    return { tokens = tokens, targets = targets }, #tokens
  end }
end
return recipe
"""


class Golden(Case):
    def test_losses(self):
        golden = json.loads((DATA / "gpt2_small_losses.json").read_text())
        path = self.folder / "golden.lua"
        path.write_text(RECIPE % (ROOT / "scripts/recipes/gpt2.lua", DATA / "gpt2_small_batches.bin"))
        settings = [f"{name}={golden[name]}" for name in ("layers", "heads", "width", "vocab", "seq", "batch", "rate",
                                                          "weight_decay", "beta1", "beta2", "clip")]
        done = self.cairn("train", path, *settings, "--init", DATA / "gpt2_small.safetensors", "--steps", golden["steps"],
                          "--json", "--quiet")
        losses = json.loads(done.stdout)["loss"]
        self.assertEqual(len(losses), golden["steps"])
        for step, (found, wanted) in enumerate(zip(losses, golden["loss_float32"])):
            self.assertLess(abs(found - wanted), 1e-5, f"step {step}: {found}, PyTorch has {wanted}")


main()
