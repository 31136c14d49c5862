#!/usr/bin/env python3
"""Parameters by patterns of their names: `frozen`, and --format, from training to files."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

MODEL = ["layers=2", "heads=2", "width=64", "vocab=256", "seq=16", "batch=2", "rate=3e-3"]
INT8 = ["frozen=h.*", "--format", "h.*.weight=int8"]
MATRICES = 2 * 12 * 64 * 64  # elements of the blocks' matrices


class Formats(harness.Case):
    def run_of(self, *words, recipe="gpt2"):
        return self.train(*words, recipe=recipe, model=MODEL)

    def exact(self, result):
        self.assertEqual(result["peak_bytes"], result["planned_peak_bytes"])

    def test_the_rest_trains_in_fewer_bytes(self):
        for amp in ("off", "bf16"):
            plain = self.run_of("frozen=h.*", "--steps", 3, "--amp", amp)
            stored = self.run_of(*INT8, "--steps", 3, "--amp", amp)
            for result in (plain, stored):
                self.exact(result)
            self.assertEqual(plain["memory_bytes"]["parameters"] - stored["memory_bytes"]["parameters"],
                             MATRICES * 4 - MATRICES // 64 * 68 + self.packed(plain))
            self.assertLess(stored["loss"][-1], stored["loss"][0])
            for a, b in zip(plain["loss"], stored["loss"]):
                self.assertAlmostEqual(a, b, delta=0.01 * a)
            whole = self.run_of("--steps", 1, "--amp", amp)
            self.assertLess(stored["memory_bytes"]["optimizer"], whole["memory_bytes"]["optimizer"] / 2)

    def packed(self, result):
        """Bytes of packed forms of frozen weights, which are counted as parameters."""
        return result["plan"].get("packed_bytes", 0)

    def test_budgets_and_tiers_change_no_bit(self):
        expected = self.run_of(*INT8, "--steps", 2)
        for more in (["--budget", "85%"], ["--budget", "45%", "--tiers", "host"], ["--budget", "45%", "--tiers", "host,disk"],
                     ["--policy", "recompute"]):
            found = self.run_of(*INT8, "--steps", 2, *more)
            self.exact(found)
            for key in ("loss", "parameter_digest"):
                self.assertEqual(found[key], expected[key], more)

    def test_weights_are_decoded_once_where_there_is_room(self):
        words = [*INT8, "--accumulate", 4, "seq=256"]  # of few rows, a product reads the blocks as fast
        once = self.run_of(*words, "--steps", 2)
        self.assertEqual(once["plan"]["counters"]["derived_bytes"], MATRICES * 4)
        least = self.smallest_budget("gpt2", *MODEL, f"data={self.text}", *words, "--threads", 2)
        each_time = self.run_of(*words, "--steps", 2, "--budget", least)
        self.exact(each_time)
        self.assertEqual(each_time["plan"]["counters"]["derived_bytes"], 0)
        self.assertLess(each_time["peak_bytes"]["device"], once["peak_bytes"]["device"])
        self.assertGreater(each_time["plan"]["predicted_step_seconds"], once["plan"]["predicted_step_seconds"])
        for key in ("loss", "parameter_digest"):
            self.assertEqual(each_time[key], once[key])

    def test_losses_are_those_of_the_numbers_that_are_stored(self):
        self.run_of(*INT8, "--steps", 2, "--out", "a")
        self.cairn("export", "a", "a.safetensors", "--quiet")
        stored = self.run_of(*INT8, "--init", "a.safetensors", "--steps", 3)
        plain = self.run_of("frozen=h.*", "--init", "a.safetensors", "--steps", 3)
        self.assertEqual(stored["loss"], plain["loss"])
        self.assertNotEqual(stored["parameter_digest"], plain["parameter_digest"])

    def test_a_checkpoint_holds_the_format_and_a_run_goes_on_with_it(self):
        whole = self.run_of(*INT8, "--steps", 4)
        self.run_of(*INT8, "--steps", 2, "--out", "run")
        tensors = json.loads(self.cairn("inspect", "run", "--json").stdout)["tensors"]
        self.assertEqual({name for name, row in tensors.items() if row["dtype"] == "int8"},
                         {f"h.{i}.{part}.weight" for i in (0, 1)
                          for part in ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")})
        self.assertIn("int8", self.cairn("inspect", "run").stdout)
        rest = json.loads(self.cairn("train", "--resume", "run", "--steps", 4, "--threads", 2, "--json", "--quiet").stdout)
        self.assertEqual(rest["parameter_digest"], whole["parameter_digest"])
        self.fails(3, "train", "--resume", "run", "--steps", 4, "--format", "h.*=f32", says=("int8", "h.0."))
        for command in (["generate", "run", "--prompt", "It", "--tokens", 3], ["evaluate", "run", f"data={self.text}"]):
            self.cairn(*command, "--quiet")

    def test_names_of_blocks(self):
        found = self.run_of(*INT8, "--steps", 1, recipe="llama")
        same = self.run_of("frozen=model.layers.*", "--format", "model.layers.*.weight=int8", "--steps", 1, recipe="llama")
        self.assertEqual(found["parameter_digest"], same["parameter_digest"])
        self.exact(found)

    def test_the_last_rule_counts(self):
        plan = ["plan", "gpt2", *MODEL, f"data={self.text}", "--json", "--quiet", "frozen=h.*", "--format", "h.*=int8"]
        def bytes_of(*words):
            return json.loads(self.cairn(*plan, *words).stdout)["memory_bytes"]["parameters"]
        self.assertEqual(bytes_of("--format", "h.1.*=f32", "--format", "h.1.*=int8"), bytes_of())
        self.assertGreater(bytes_of("--format", "h.1.*=f32"), bytes_of())

    def test_plans_are_verified_with_it(self):
        small = ["layers=1", "width=64", "heads=2", "seq=8", "vocab=32", "batch=2"]
        done = self.cairn("verify", "gpt2", *small, *INT8, "--steps", 2, "--budgets", 1, "--threads", 1, "--quiet")
        self.assertIn("all plans give the same bits", done.stdout)

    def test_what_is_refused_is_named(self):
        narrow = [word if word != "width=64" else "width=48" for word in MODEL]
        for model, words, code, says in (
                (MODEL, ["--format", "h.*.weight=int8"], 3, ("h.0.", "int8", "f32, bf16 or split")),
                (MODEL, ["frozen=h.*", "--format", "*.weight=int8"], 3, ("'wte.weight'", "trained", "f32, bf16 or split")),
                (MODEL, ["frozen=k.*"], 3, ("frozen=k.*", "wte.weight")),
                (MODEL, ["frozen=h.*", "--format", "k.*=int8"], 3, ("k.*=int8", "no parameter", "wte.weight")),
                (MODEL, ["frozen=h.*", "--format", "h.*=int3"], 3, ("int3", "int8")),
                (narrow, INT8, 3, ("h.0.attn.c_attn.weight", "[144, 48]", "64")),
                (MODEL, ["frozen=h.*", "--format", "h.*"], 2, ("h.*", "PATTERN=FORMAT"))):
            for command in (["plan"], ["train", "--steps", "1"]):
                self.fails(code, command[0], "gpt2", *model, f"data={self.text}", *command[1:], *words, says=says)

    def test_the_formats_are_listed(self):
        rows = {row["name"]: row for row in json.loads(self.cairn("ops", "--formats", "--json").stdout)}
        self.assertEqual({key: rows["int8"][key] for key in ("bits", "block", "scale_bytes", "computed_as", "read", "trains")},
                         {"bits": 8, "block": 64, "scale_bytes": 4, "computed_as": "f32", "read": "dequantised",
                          "trains": False})
        self.assertEqual({name for name, row in rows.items() if row["trains"]}, {"f32", "bf16", "split"})
        text = self.cairn("ops", "--formats").stdout
        for word in ("int8", "64 values are", "dynamic8", "frozen"):
            self.assertIn(word, text)
        self.cairn("ops", "--formats", "int8")


if __name__ == "__main__":
    harness.main()
