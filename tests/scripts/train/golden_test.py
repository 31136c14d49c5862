"""The recipe gpt2.lua, from PyTorch's initial weights on PyTorch's batches, follows PyTorch's loss: with every optimizer
and in every precision."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, Case, main  # noqa: E402

GOLDEN = ROOT / "tests/golden"
DATA = GOLDEN / "data"


# By precision: how far a loss may be from PyTorch's in float32.
APART = {("--amp", "off"): 1e-5, ("--amp", "bf16"): 2e-2, ("--amp", "fp16"): 2e-2,
         ("--amp", "bf16", "parameters=bf16"): 2e-2}


class Golden(Case):
    def losses(self, model, *options):
        return self.found(model, *options)["loss"]

    def found(self, model, *options):
        shape = [f"{name}={model[name]}" for name in ("layers", "heads", "width", "vocab", "seq", "batch")]
        done = self.cairn("train", GOLDEN / "gpt2_batches.lua", *shape, f"batches={DATA / 'gpt2_small_batches.bin'}",
                          "--init", DATA / "gpt2_small.safetensors", "--steps", model["steps"], "--json", "--quiet",
                          *options)
        return json.loads(done.stdout)

    def check(self, name, wanted, model, *options):
        """In every precision."""
        for precision, most in APART.items():
            with self.subTest(optimizer=name, precision=precision):
                found = self.losses(model, *options, *precision)
                self.assertEqual(len(found), model["steps"])
                apart = max(abs(a - b) for a, b in zip(found, wanted))
                self.assertLess(apart, most)

    def test_every_optimizer_in_every_precision(self):
        model = json.loads((DATA / "gpt2_small_losses.json").read_text())
        settings = [f"{name}={model[name]}" for name in ("rate", "weight_decay", "beta1", "beta2", "clip")]
        self.check("adamw", model["loss_float32"], model, *settings)
        golden = json.loads((DATA / "gpt2_small_optimizers.json").read_text())
        for optimizer in ("sgd", "adam", "lion", "adafactor", "muon"):
            options = [f"{name}={value}" for name, value in golden[optimizer]["options"].items()]
            self.check(optimizer, golden[optimizer]["loss_float32"], model, f"optimizer={optimizer}", *options)

    def test_accuracy_is_that_of_argmax(self):
        model = json.loads((DATA / "gpt2_small_losses.json").read_text())
        golden = json.loads((DATA / "gpt2_small_accuracy.json").read_text())
        settings = [f"{name}={model[name]}" for name in ("rate", "weight_decay", "beta1", "beta2", "clip")]
        wanted = [hits / golden["targets"] for hits in golden["hits"]]
        self.assertGreater(wanted[-1], 0.25)
        found = self.found(model, *settings, "metrics=accuracy")
        self.assertEqual(found["metrics"]["accuracy"], wanted)
        self.assertEqual(found["parameter_digest"], self.found(model, *settings)["parameter_digest"])
        for device in ("reference", "cpu"):  # a step of micro-batches of one window each
            with self.subTest(device=device):
                parts = self.found({**model, "batch": 1}, *settings, "metrics=accuracy", "--accumulate", model["batch"],
                                   "--device", device)
                self.assertEqual(parts["metrics"]["accuracy"], wanted)

    def test_states_of_8_bits(self):
        """Where PyTorch has whole states: within a hundredth, and not the same, for there are blocks in this model."""
        model = json.loads((DATA / "gpt2_small_losses.json").read_text())
        settings = [f"{name}={model[name]}" for name in ("rate", "weight_decay", "beta1", "beta2", "clip")]
        whole, blocks = self.losses(model, *settings), self.losses(model, *settings, "optimizer=adamw8")
        self.assertNotEqual(whole, blocks)
        for found, wanted in zip(blocks, model["loss_float32"]):
            self.assertLess(abs(found - wanted), 1e-2 * wanted)


main()
