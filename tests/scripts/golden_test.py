"""The recipe gpt2.lua, from PyTorch's initial weights on PyTorch's batches, follows PyTorch's loss."""
import json

from harness import ROOT, Case, main

GOLDEN = ROOT / "tests/golden"
DATA = GOLDEN / "data"


class Golden(Case):
    def test_losses(self):
        golden = json.loads((DATA / "gpt2_small_losses.json").read_text())
        settings = [f"{name}={golden[name]}" for name in ("layers", "heads", "width", "vocab", "seq", "batch", "rate",
                                                          "weight_decay", "beta1", "beta2", "clip")]
        done = self.cairn("train", GOLDEN / "gpt2_batches.lua", *settings, f"batches={DATA / 'gpt2_small_batches.bin'}",
                          "--init", DATA / "gpt2_small.safetensors", "--steps", golden["steps"], "--json", "--quiet")
        losses = json.loads(done.stdout)["loss"]
        self.assertEqual(len(losses), golden["steps"])
        for step, (found, wanted) in enumerate(zip(losses, golden["loss_float32"])):
            self.assertLess(abs(found - wanted), 1e-5, f"step {step}: {found}, PyTorch has {wanted}")

    def test_losses_of_optimizers(self):
        model = json.loads((DATA / "gpt2_small_losses.json").read_text())
        golden = json.loads((DATA / "gpt2_small_optimizers.json").read_text())
        shape = [f"{name}={model[name]}" for name in ("layers", "heads", "width", "vocab", "seq", "batch")]
        for optimizer in ("adafactor", "muon"):
            options = [f"{name}={value!r}" for name, value in golden[optimizer]["options"].items()]
            done = self.cairn("train", GOLDEN / "gpt2_batches.lua", *shape, f"optimizer={optimizer}", *options,
                              f"batches={DATA / 'gpt2_small_batches.bin'}", "--init", DATA / "gpt2_small.safetensors",
                              "--steps", model["steps"], "--json", "--quiet")
            losses = json.loads(done.stdout)["loss"]
            self.assertEqual(len(losses), model["steps"])
            for step, (found, wanted) in enumerate(zip(losses, golden[optimizer]["loss_float32"])):
                self.assertLess(abs(found - wanted), 1e-5, f"{optimizer}, step {step}: {found}, PyTorch has {wanted}")


main()
