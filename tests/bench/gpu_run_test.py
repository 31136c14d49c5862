"""`./dev gpu` from the first part to the last, with programs that only answer as cairn and PyTorch would."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PERSISTENT, KEEP, SMALLEST = 1000, 2000, 1150  # bytes of every model here

CAIRN = """
import json, os, sys
words = sys.argv[1:]
def given(name, otherwise=None):
    return words[words.index(name) + 1] if name in words else otherwise
def option(name):
    return int(next(w.split("=")[1] for w in words if w.startswith(name + "=")))
broken = os.environ.get("BROKEN", "")
if broken and broken in words:
    sys.exit("it broke")
command = words[0]
tiers = lambda bytes: {"device": bytes, "host": 0, "disk": 0}
if command == "profile":
    open(given("--profile-out"), "w").write("{}")
    print(json.dumps({"links": []}))
elif command == "plan":
    assert given("--profile"), words
    print(json.dumps({"persistent_bytes": PERSISTENT, "planned_peak_bytes": tiers(KEEP)}))
elif command == "train" and "gpt2" in words:
    budget = int(given("--budget", KEEP))
    if budget < SMALLEST:
        sys.stderr.write("cairn: plan: no plan fits; the smallest budget that does is %d bytes. Its peak is at ..." % SMALLEST)
        sys.exit(4)
    seconds = option("batch") * option("seq") / {768: 800e3, 1600: 60e3, 4096: 20e3}[option("width")]
    copied = 0 if budget == KEEP else 4800
    seconds *= 1 if budget == KEEP else 1.005
    print(json.dumps({
        "loss": [1.0], "step_seconds_median": seconds, "stall_seconds": 0, "submit_seconds_median": 1e-5,
        "peak_bytes": tiers(budget), "planned_peak_bytes": tiers(budget), "driver_bytes": {"before": 1, "now": 2},
        "copies": {"host": {"out_bytes": copied, "in_bytes": copied, "out_seconds": 1e-7, "in_seconds": 1e-7}},
        "plan": {"predicted_step_seconds": seconds, "bound_step_seconds": seconds}}))
elif command == "devices":
    print(json.dumps([{"name": "cuda:0", "description": "made up; attention: rows of its own"}]))
elif command == "train":
    print(json.dumps({"loss": LOSS if "gpt2_small_batches.bin" in str(words) else [4.0] * 20}))
"""
RATES = """
import json
kernel = {"model": "124m", "name": "gelu", "op": "gelu", "row": "sweep", "bytes": 4e9, "flops": 0, "seconds": 1e-3}
links = [{"tier": "host", "way": way, "both": False, "bytes": 1, "bytes_per_second": 50e9} for way in ("out", "in")]
print(json.dumps({"device": "made up", "copy_bytes_per_second": 4.1e12, "kernels": [kernel], "links": links}))
"""
TORCH = """
import json, sys
words = sys.argv[1:]
if words[0] == "-c":
    sys.exit(0)
def given(name):
    return words[words.index(name) + 1]
if "--batches" in words:
    print(json.dumps({"loss": [4.0] * 20, "torch": "0"}))
    sys.exit(0)
seconds = int(given("--batch")) * int(given("--seq")) / {"768": 600e3, "1600": 50e3}[given("--width")]
slower = 1.3 if "--checkpoint" in words else 1.1 if "--mode" not in words else 1
print(json.dumps({"step_seconds_median": seconds * slower, "device_peak_bytes": 4000, "device_reserved_bytes": 5000,
                  "saved_bytes": 300}))
"""


class Run(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cairn-gpu-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        known = json.loads((ROOT / "tests/golden/data/gpt2_small_losses.json").read_text())["loss_float32"]
        numbers = f"PERSISTENT, KEEP, SMALLEST = {PERSISTENT}, {KEEP}, {SMALLEST}\nLOSS = {known}\n"
        for name, text in (("bin/cairn", numbers + CAIRN), ("bin/cairn_gpu_rates", RATES), ("python", TORCH),
                           ("bin/cairn_gpu_conformance", "")):
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"#!{sys.executable}\n{text}")
            path.chmod(0o755)

    def gpu(self, *words, code=0, broken=""):
        """Runs it; returns its text and its results."""
        done = subprocess.run(
            [sys.executable, ROOT / "bench/gpu/gpu.py", "--bundle", self.folder, "--torch", self.folder / "python", "--out",
             self.folder / "results", *words], capture_output=True, text=True, check=False,
            env=dict(os.environ, BROKEN=broken, PATH=os.defpath))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout, json.loads(next((self.folder / "results").glob("*.json")).read_text())

    def bars(self, results):
        return {row["bar"]: row["met"] for row in results["bars"]}

    def test_every_bar_is_judged_in_one_run(self):
        text, results = self.gpu()
        self.assertEqual(set(self.bars(results).values()), {"yes"}, text)
        names = list(results["runs"])
        order = ["rates", "cairn 124m, keep everything", "PyTorch compile, 124m", "cairn 1.5b, keep everything",
                 "cairn 4096, 40 %", "cairn 1.5b, 10 %", "PyTorch eager, save_on_cpu, 124m"]
        self.assertEqual(sorted(order, key=names.index), order)
        for early in ("conformance: every kernel against the reference", "PyTorch compiles, 124m", "curve: "
                      "PyTorch 0 beside it, bfloat16"):
            self.assertLess(names.index(early), names.index("rates"))
        equal = results["runs"]["cairn 1.5b, the bytes PyTorch saves, layers checkpointed"]
        self.assertEqual(equal["budget_bytes"], PERSISTENT + 300)
        self.assertIn("compute-sanitizer (not installed)", text)

    def test_a_budget_that_does_not_fit_is_the_smallest_that_does(self):
        text, results = self.gpu("--only", "124m")
        case = results["runs"]["cairn 124m, 10 %"]
        self.assertEqual((case["budget_bytes"], case["peak_bytes"]["device"]), (PERSISTENT + 100, SMALLEST))
        self.assertIn("| cairn 124m, 10 % (the smallest that fits) |", text)
        self.assertEqual(self.bars(results)["124m, 10 % of activations: beyond the plan's bound"], "yes")
        self.assertEqual(self.bars(results)["1.5b: tokens/s"], "not measured")

    def test_what_time_does_not_cover_is_left_out_and_said(self):
        text, results = self.gpu("--minutes", "0")
        self.assertEqual(results["runs"], {})
        self.assertRegex(text, "Left out, .*: .*verify mlp.*rates.*cairn 1.5b, keep everything")
        self.assertEqual(set(self.bars(results).values()), {"not measured"})

    def test_what_fails_is_said_and_the_rest_goes_on(self):
        text, results = self.gpu("--only", "verify,rates", code=1, broken="mlp")
        self.assertIn("FAILED: verify mlp: 1 it broke", text)
        self.assertRegex(text, r"\| verify mlp \| FAILED \|")
        self.assertEqual(self.bars(results)["memory-bound kernels, of the copy rate"], "yes")

    def test_a_part_that_there_is_not(self):
        done = subprocess.run([sys.executable, ROOT / "bench/gpu/gpu.py", "--only", "all"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no part 'all'", done.stderr)


if __name__ == "__main__":
    unittest.main()
