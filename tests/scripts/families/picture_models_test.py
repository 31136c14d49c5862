"""Models of pictures as the transformers library saves them: losses of twenty steps and what evaluation then computes,
against PyTorch; back as a directory. tests/golden/models/make_pictures.py made the models and what is expected."""
import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, Case, main, png

MODELS = ROOT / "tests/golden/data/pictures"
CLOSE = 1e-5
PLAIN = ["rate=1e-3", "weight_decay=0", "clip=0", "warmup=0", "schedule=constant", "batch=4"]
SIZES = {"clip": ["seq=6", "vocab=19"], "siglip": ["seq=6", "vocab=19"]}

# The recipe on the data of make_pictures.py, which writes what an evaluation computes into a file.
RECIPE = """
local ffi = require "ffi"
local base = require "recipes.%(recipe)s"
local own = {}
for key, value in pairs(base) do own[key] = value end
local SEQ, VOCAB = 6, 19
local function batch(o, index)
  local count = o.batch * o.image * o.image * 3
  local input, target = ffi.new("float[?]", count), {}
  for i = 0, count - 1 do
    local n = i + 1000 * index
    input[i] = math.sin(0.37 * n) + math.sin(0.011 * n)
  end
  local text, last = {}, {}
  for i = 0, o.batch - 1 do
    target[i + 1] = (index + i) %% 3
    local length = 2 + (index + i) %% (SEQ - 1)
    last[i + 1] = i * SEQ + length - 1
    for t = 0, SEQ - 1 do
      text[#text + 1] = t < length - 1 and (index + 3 * i + 5 * t) %% (VOCAB - 2) + 1 or t == length - 1 and VOCAB - 1 or 0
    end
  end
  if o.seq then return { input = input, text = text, last = %(last)s } end
  return { input = input, target = target }
end
own.settle = function(o)
  return { model = o.model:find("{", 1, true) and o.model or io.open(o.model):read "*a" }
end
own.dataset = function(o) return { batch = function(index) return batch(o, index) end } end
own.evaluation = function(o)
  return { data = function() return { batches = 1, batch = function() return batch(o, 100) end } end }
end
own.model = function(o, graph, purpose)
  local ends = base.model(o, graph, purpose)
  if purpose == "evaluation" then
    local outputs = {}
    for i, value in ipairs { ends.output, ends.other } do outputs["v" .. i] = value end
    ends.metrics = { seen = { better = "higher", outputs = outputs, measure = function(numbers)
      local file = io.open(%(out)s, "w")
      for i = 1, 2 do
        for _, number in ipairs(numbers["v" .. i] or {}) do file:write(("%%.9g "):format(number)) end
      end
      file:close()
      return 1, 1
    end } }
  end
  return ends
end
return own
"""


def tensors(path):
    """Names, shapes and bytes of a safetensors file."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (row["shape"], data[8 + size:][slice(*row["data_offsets"])]) for name, row in header.items()}


class Pictures(Case):
    def names(self):
        return sorted(path.name for path in MODELS.iterdir())

    def recipe(self, name):
        config = json.loads((MODELS / name / "config.json").read_text())
        recipe = {"dinov2": "vit"}.get(config["model_type"], config["model_type"])
        file = self.folder / f"{name}.lua"
        out = str(self.folder / f"{name}.txt")
        file.write_text(RECIPE % {"recipe": recipe, "out": json.dumps(out), "last": "last" if name == "clip" else "nil"})
        return file, out

    def options(self, name):
        config = json.loads((MODELS / name / "config.json").read_text())
        image = config.get("image_size", config.get("vision_config", {}).get("image_size", 16))
        return [f"model={MODELS / name / 'config.json'}", f"image={image}",
                *([] if name in SIZES else ["classes=3"]), *SIZES.get(name, []), *PLAIN,
                *(["optimizer=sgd", "momentum=0.9"] if "resnet" in name else ["beta2=0.999"]), "--threads", 1]

    def test_losses_and_what_is_then_computed(self):
        for name in self.names():
            with self.subTest(name):
                file, out = self.recipe(name)
                expected = json.loads((MODELS / name / "expected.json").read_text())
                made = json.loads(self.cairn("train", file, *self.options(name), "--init", MODELS / name, "--steps", 20,
                                             "--json").stdout)
                for found, wanted in zip(made["loss"], expected["losses"], strict=True):
                    self.assertLessEqual(abs(found - wanted), CLOSE * max(1, abs(wanted)), (name, made["loss"]))
                numbers = [float(word) for word in pathlib.Path(out).read_text().split()]
                for found, wanted in zip(numbers, expected["outputs"], strict=True):
                    self.assertLessEqual(abs(found - wanted), 1e-4, name)
                self.assertLessEqual(abs(made["evaluation"][-1]["loss"] - expected["evaluation"]), 1e-4, name)

    def test_a_head_over_other_classes_begins_fresh(self):
        for name in ("red", "blue"):
            (self.folder / "set" / name).mkdir(parents=True)
            for i in range(2):
                (self.folder / "set" / name / f"{i}.png").write_bytes(png(8, 8, (250 * (name == "red"), i, 250 * (name == "blue"))))
        done = self.cairn("train", MODELS / "vit", f"data=folder:{self.folder / 'set'}", "batch=2", "evaluate=none", "--steps", 2,
                          "--out", "run")
        self.assertIn("has another shape of, and begins fresh: classifier.weight, classifier.bias", done.stderr)
        self.cairn("export", "run", "out", "--to", "hf")
        config = json.loads((self.folder / "out/config.json").read_text())
        self.assertEqual(config["id2label"], {"0": "blue", "1": "red"})
        self.assertEqual(tensors(self.folder / "out/model.safetensors")["classifier.bias"][0], [2])

    def test_back_as_they_came(self):
        for name in ("vit", "resnet", "siglip"):
            file, _ = self.recipe(name)
            self.cairn("train", file, *self.options(name), "rate=1e-30", "--init", MODELS / name, "--steps", 1,
                       "--out", f"run-{name}")
            self.cairn("export", f"run-{name}", f"out-{name}", "--to", "hf", "--recipe", file)
            came = tensors(MODELS / name / "model.safetensors")
            made = tensors(self.folder / f"out-{name}/model.safetensors")
            for tensor, (shape, data) in came.items():
                if tensor.endswith("num_batches_tracked"):
                    continue
                self.assertEqual(made[tensor][0], shape, tensor)
                if "running" in tensor:
                    self.assertNotEqual(made[tensor][1], data, tensor)  # a step moved them
                else:
                    self.assertEqual(made[tensor][1], data, tensor)


if __name__ == "__main__":
    main()
