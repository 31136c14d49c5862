"""The U-Net of scripts/recipes/unet.lua: twenty losses and an evaluation against PyTorch, the same parameters under
every plan, the noise of a sample, what is refused. tests/golden/models/make_unet.py made the numbers."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, Case, main

MODELS = ROOT / "tests/golden/data/unet"
CLOSE = 1e-5
PLAIN = ["rate=1e-3", "weight_decay=0", "clip=0", "beta2=0.999", "warmup=0", "schedule=constant", "--threads", 1]
SHAPE = ["batch=2", "image=8", "widths=4,8,12", "groups=2", "heads=2", "attention=4", "classes=4"]
SMALL = ["image=16", "widths=4,8,8", "groups=2", "heads=2", "attention=8", "batch=2", "samples=16", "eval_samples=8"]
TASKS = ["segmentation", "denoise"]

# The recipe on the arrays of make_unet.py.
RECIPE = """
local base = require "recipes.unet"
local own = {}
for key, value in pairs(base) do own[key] = value end
local function wave(count, factor, index)
  local list = {}
  for i = 1, count do list[i] = math.sin(factor * (i - 1 + 1000 * index)) end
  return list
end
local function batch(o, index)
  local pixels, target = o.batch * o.image * o.image, {}
  for i = 1, pixels do target[i] = (i - 1 + index) % 7 % o.classes end
  local input = wave(3 * pixels, 0.37, index)
  if o.task == "segmentation" then return { input = input, target = target }, o.batch end
  return { input = input, noise = wave(3 * pixels, 0.71, index), time = wave(o.batch * 64, 0.53, index) }, o.batch
end
own.settle = nil
own.dataset = function(o) return { batch = function(index) return batch(o, index) end } end
own.evaluation = function(o)
  return { data = function() return { batches = 1, batch = function() return batch(o, 100) end } end }
end
return own
"""

# Noise of six samples, as two micro-batches and as one.
NOISE = """
local base = require "recipes.unet"
local pictures = require "cli.data.pictures"
pictures.dataset = function(o)
  local input = {}
  for i = 0, o.batch * o.image * o.image * 3 - 1 do input[i] = 0 end
  return { batch = function() return { input = input }, o.batch end }
end
local function data(batch, seed)
  return base.dataset({ task = "denoise", image = 8, channels = 3, batch = batch }, { seed = seed })
end
local one, two, other = data(6, 5), data(3, 5), data(6, 6)
local all, rest = one.batch(2)
local count, same, sum, squares = 8 * 8 * 3, true, 0, 0
for half = 0, 1 do
  local part = two.batch(4 + half)
  for i = 0, 3 * count - 1 do
    local at = 3 * half * count + i
    same = same and part.noise[i] == all.noise[at] and part.input[i] == all.input[at]
    sum, squares = sum + part.noise[i], squares + part.noise[i] ^ 2
  end
  for i = 0, 3 * 64 - 1 do same = same and part.time[i] == all.time[3 * half * 64 + i] end
end
local differ = other.batch(2).noise[0] ~= all.noise[0] and one.batch(3).noise[0] ~= all.noise[0]
error(("same %s differ %s mean %.2f square %.2f"):format(tostring(same), tostring(differ), sum / (6 * count),
  squares / (6 * count)))
"""


class UNet(Case):
    def run_json(self, *arguments):
        return json.loads(self.cairn(*arguments, "--json", "--quiet").stdout)

    def test_losses_and_an_evaluation_are_pytorchs(self):
        file = self.folder / "given.lua"
        file.write_text(RECIPE)
        for task in TASKS:
            expected = json.loads((MODELS / task / "expected.json").read_text())
            made = self.run_json("train", file, *SHAPE, f"task={task}", *PLAIN, "--steps", 20, "--init",
                                 MODELS / task / "model.safetensors")
            for found, wanted in zip(made["loss"], expected["losses"], strict=True):
                self.assertLessEqual(abs(found - wanted), CLOSE, task)
            last = made["evaluation"][-1]
            self.assertLessEqual(abs(last["loss"] - expected["evaluation"]), CLOSE, task)
            if task == "segmentation":
                self.assertAlmostEqual(last["accuracy"], expected["accuracy"], places=9)

    def test_plans_train_the_same_parameters(self):
        for task in TASKS:
            options = ["unet", *SMALL, f"task={task}", "dropout=0.1", "--threads", 1, "--steps", 3]
            digests = {self.run_json("train", *options, *plan)["parameter_digest"]
                       for plan in ([], ["--budget", "90%"], ["--policy", "recompute"])}
            self.assertEqual(len(digests), 1, task)

    def test_regions_are_the_net(self):
        names = ["stem", "down1", "shrink1", "down2", "shrink2", "down3", "grow2", "up2", "grow1", "up1", "head"]
        self.cairn("plan", "unet", *SMALL, *[word for name in names for word in ("--region", name + "=recompute")])
        self.fails(2, "plan", "unet", *SMALL, "--region", "x=keep", says=f"nearest of {len(names)} are")

    def test_noise_is_of_seed_and_sample(self):
        file = self.folder / "noise.lua"
        file.write_text(NOISE)
        self.fails(3, "plan", file, says="same true differ true mean")

    def test_refusals(self):
        for options, says in ((["image=18"], ["image=18", "3 sizes"]), (["widths=4,x"], "whole numbers with commas"),
                              (["task=denoise", "heads=3"], ["heads=3", "8 channels"])):
            self.fails(2, "plan", "unet", *SMALL, *options, says=says)


if __name__ == "__main__":
    main()
