#!/usr/bin/env python3
"""The command on an emulated GPU: devices, train, verify, profile, the tables of `./dev gpu`; and where there is none."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scripts"))
from harness import CAIRN, ROOT, TINY, Case, main  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/support"))
from campaign import LONG  # noqa: E402

PLUGIN = pathlib.Path(CAIRN).resolve().parents[1] / "emulated/lib"
GPU = ["--device", "cuda:0"]


# A recipe that writes, before one micro-batch, how often threads of loops have waited for work.
COUNTING = r"""
local recipe = dofile "%(recipe)s"
local dataset = recipe.dataset
recipe.dataset = function(o, run)
  local made = dataset(o, run)
  local batch = made.batch
  made.batch = function(index)
    if index == %(index)d then
      local process = io.open("/proc/self/stat"):read("*n")
      local tasks = io.popen(("cat /proc/%%d/task/*/status"):format(process)):read("*a")
      local waits = 0
      for count in tasks:gmatch("Name:\tcairn/work.-\nvoluntary_ctxt_switches:\t(%%d+)") do waits = waits + count end
      local out = io.open("%(counts)s", "w")
      out:write(waits)
      out:close()
    end
    return batch(index)
  end
  return made
end
return recipe
"""


class OnGpu(Case):
    def setUp(self):
        super().setUp()
        self.find_plugin(PLUGIN)

    def find_plugin(self, folder):
        """In this folder, before those that ctest names (a libcairn that plans faster)."""
        self.environment["LD_LIBRARY_PATH"] = os.pathsep.join([str(folder), os.environ.get("LD_LIBRARY_PATH", "")]).rstrip(":")

    def train(self, *arguments):
        model = ["gpt2", *TINY, f"data={self.text}", *GPU]
        return json.loads(self.cairn("train", *model, "--json", "--quiet", "--steps", 4, *arguments).stdout)

    def test_a_stale_plugin_is_refused_by_name(self):
        for stale in ("other_abi", "no_abi"):
            folder = pathlib.Path(CAIRN).resolve().parents[1] / "stale" / stale
            self.find_plugin(folder)
            done = self.fails(1, "train", "mlp", *GPU, says=f"{folder}/libcairn_cuda.so")
            self.assertIn("version of cairn", done.stderr)
            self.assertNotIn("cuda:0", self.cairn("devices").stdout)

    def test_devices_names_it(self):
        self.assertRegex(self.cairn("devices").stdout, r"cuda:0 .*emulated")

    def test_plans_change_no_bit_and_take_the_bytes_they_said(self):
        for amp in ("off", "bf16"):
            keep = self.train("--amp", amp, "--policy", "keep")
            for plan in (["--policy", "recompute"], ["--policy", "offload"], ["--accumulate", 1, "--budget", "70%"],
                         ["--policy", "offload", "--tiers", "disk"]):
                run = self.train("--amp", amp, *plan)
                self.assertEqual(run["parameter_digest"], keep["parameter_digest"], plan)
                self.assertEqual(run["loss"], keep["loss"])
                self.assertEqual(run["peak_bytes"], run["planned_peak_bytes"])
        self.assertEqual(run["copies"]["disk"]["out_bytes"], run["copies"]["disk"]["in_bytes"])
        self.assertGreater(run["copies"]["disk"]["out_bytes"], 0)

    def test_losses_are_the_cpus(self):
        gpu = self.train()
        words = ["train", "gpt2", *TINY, f"data={self.text}", "--json", "--quiet", "--steps", 4]
        cpu = json.loads(self.cairn(*words).stdout)
        for a, b in zip(gpu["loss"], cpu["loss"]):
            self.assertAlmostEqual(a, b, delta=1e-4 * b)

    def test_llama_and_profiles(self):
        profile = self.folder / "gpu.profile"
        model = ["llama", *TINY, "kv_heads=1", f"data={self.text}", *GPU]
        trace = self.folder / "trace.json"
        self.cairn("profile", *model, "--steps", 2, "--profile-out", profile, "--trace", trace, "--quiet")
        self.cairn("train", *model, "--profile", profile, "--steps", 2, "--quiet")
        self.assertGreater(len(json.loads(trace.read_text())["traceEvents"]), 50)
        links = {link["tier"]: link for link in json.loads(profile.read_text())["links"]}
        for tier in ("host", "disk"):  # each direction alone, and what is left of it while both run
            self.assertGreater(min(links[tier]["out_bytes_per_second"], links[tier]["in_bytes_per_second"]), 1e6)
            self.assertLessEqual(links[tier]["both_ways_factor"], 1)
            self.assertEqual(links[tier]["stated_bytes_per_second"], 0)

    def test_the_profile_keeps_which_kernels_are_fastest(self):
        profile, trace = self.folder / "gpu.profile", self.folder / "trace.json"
        model = ["mlp", *GPU]

        def digest(*words):
            done = self.cairn("train", *model, "--steps", 2, "--json", "--quiet", *words)
            return json.loads(done.stdout)["parameter_digest"]

        # The library's first algorithm and its sums are slow: others are measured to be better, and kept.
        self.environment.update(CAIRN_EMULATED_SLOW_PRODUCTS="1", CAIRN_EMULATED_SLOW_SUMS="1")
        self.cairn("profile", *model, "--steps", 1, "--profile-out", profile, "--trace", trace, "--quiet")
        choices = {c["signature"]: c for c in json.loads(profile.read_text())["choices"]}
        biases = [c for s, c in choices.items() if s.startswith("linear_grad_weight") and c["choice"].count("columns")]
        self.assertGreater(len(biases), 1, choices)
        self.assertGreater(len([s for s in choices if s.startswith("linear(")]), 1)
        for choice in choices.values():
            self.assertLess(choice["seconds"], choice["own_seconds"])
        # What is faster today does not matter any more: the profile decides, under every plan.
        for name in ("CAIRN_EMULATED_SLOW_PRODUCTS", "CAIRN_EMULATED_SLOW_SUMS"):
            del self.environment[name]
        plans = ([], ["--policy", "recompute"], ["--policy", "offload"], ["--budget", "90%"])
        digests = {digest("--profile", profile, *plan) for plan in plans}
        self.assertEqual(len(digests), 1)
        own = {digest() for _ in range(2)}
        self.assertEqual(len(own), 1)
        self.assertNotEqual(own, digests, "the emulated algorithms differ in their bits")

    def test_updates_on_the_host_take_several_threads(self):
        """The plugin's thread-locals are not the library's: what it sets for kernels of the host, these do not see."""
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("one processor")
        recipe, counts = self.folder / "counting.lua", self.folder / "switches"
        recipe.write_text(COUNTING % {"recipe": ROOT / "scripts/recipes/gpt2.lua", "counts": counts, "index": 7})
        self.environment.pop("CAIRN_RATES", None)  # only what is measured of the host's memory makes plans use it
        run = json.loads(self.cairn("train", recipe, "layers=2", "heads=2", "width=64", "seq=64", "batch=2", "data=random",
                                    *GPU, "--budget", "20%", "--tiers", "host", "--steps", 9, "--json", "--quiet").stdout)
        updates = run["plan"]["host_updates"]
        if updates < 3:
            self.skipTest("this machine's memory is too slow for updates on the host")
        # A worker sleeps between steps, and is woken again; one that nobody asks sleeps once.
        self.assertGreater(int(counts.read_text()), 4)

    def test_rates_are_measured_once(self):
        self.environment.pop("CAIRN_RATES", None)
        words = ["plan", "mlp", *GPU, "--json"]
        first = self.cairn(*words)
        if "busy" in first.stderr:
            self.skipTest("other programs keep the processors busy")
        self.assertEqual(json.loads(first.stdout)["plan"]["rates"], "measured")
        kept = next((self.folder / "cache/cairn").glob("rates-*.json"))
        rates = json.loads(kept.read_text())
        self.assertEqual(rates["machine"]["device"], "cuda:0")
        self.assertEqual({c["dtype"] for c in rates["classes"] if c["op"] == "linear"}, {"f32", "bf16"})
        self.assertEqual([link["tier"] for link in rates["links"]], ["host"])
        self.assertEqual(json.loads(self.cairn(*words).stdout)["plan"]["rates"], "cached")
        # Where no memory can be pinned there is no link to measure, and plans need none.
        kept.unlink()
        self.environment["CAIRN_EMULATED_FAILURES"] = "cudaHostRegister=801"
        again = self.cairn(*words)
        if "busy" not in again.stderr:
            self.assertEqual(json.loads(kept.read_text())["links"], [])

    def test_training_without_offloading_registers_no_memory(self):
        self.environment["CAIRN_EMULATED_FAILURES"] = "cudaHostRegister=801"
        self.cairn("train", "mlp", *GPU, "--steps", 4, "--quiet")
        self.cairn("train", "mlp", *GPU, "--steps", 4, "--quiet", "--policy", "recompute")
        self.fails(4, "train", "mlp", *GPU, "--steps", 1, "--policy", "offload", says="cannot be pinned")
        words = ["mlp", *GPU, "--steps", 1, "--profile-out", self.folder / "p", "--trace", self.folder / "t"]
        self.assertIn("the link to host is not measured", self.cairn("profile", *words).stderr)

    def test_devices_says_who_computes_attention(self):
        for version, says in (("92500", "attention by cuDNN 9.25.0"), ("91200", "(before 9.25)"),
                              ("0", "attention by cairn's own kernels: libcudnn.so.9 cannot be opened")):
            self.environment["CAIRN_EMULATED_CUDNN"] = version
            self.assertIn(says, self.cairn("devices").stdout)

    def test_bits_depend_on_no_order_that_the_hardware_leaves_open(self):
        digests = set()
        for seed, policy in enumerate(8 * ["keep", "offload"] if LONG else ["keep", "offload"]):
            self.environment["CAIRN_EMULATION_SEED"] = str(seed)
            digests.add(self.train("--policy", policy)["parameter_digest"])
        self.assertEqual(len(digests), 1)

    def test_verify(self):
        result = json.loads(self.cairn("verify", "mlp", *GPU, "--budgets", 1, "--json", "--quiet").stdout)
        self.assertTrue(result["ok"], result["problems"])
        self.assertIsNone(result.get("link_bytes_per_second"))

    def test_what_a_gpu_cannot(self):
        self.fails(3, "train", "mlp", *GPU, "--link", "1GiB", says="cannot be throttled")
        self.fails(1, "train", "mlp", "--device", "cuda:7", says="only 1 GPU")

    def test_a_budget_that_does_not_fit_names_one_that_does(self):
        sys.path.insert(0, str(ROOT / "bench/gpu"))
        from training import SMALLEST  # with which bench/gpu tries again
        words = ["train", "mlp", *GPU, "--steps", 1, "--json", "--quiet", "--budget"]
        smallest = int(SMALLEST.search(self.fails(4, *words, "1KiB").stderr).group(1))
        self.assertLessEqual(json.loads(self.cairn(*words, smallest).stdout)["peak_bytes"]["device"], smallest)

    def test_the_whole_table(self):
        bundle = self.folder / "bundle"
        (bundle / "bin").mkdir(parents=True)
        (bundle / "lib").symlink_to(PLUGIN)
        rates = pathlib.Path(CAIRN).with_name("cairn_gpu_rates")
        for program in (pathlib.Path(CAIRN), rates):
            (bundle / "bin" / program.name).symlink_to(program)
        parts = "verify,curve,rates,tiny" if rates.exists() else "verify,curve,tiny"
        words = [sys.executable, ROOT / "bench/gpu/gpu.py", "--bundle", bundle, "--quick", "--only", parts, "--steps",
                 "4", "--out", self.folder / "results"]
        done = subprocess.run(words, capture_output=True, text=True, env=self.environment, cwd=self.folder, check=False,
                              timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for row in ("verify mlp | passed", "cairn tiny, keep everything", "cairn tiny, 50 %", "## Bars",
                    "| planned bytes = measured bytes | every case | 2 cases | yes |",
                    "| losses follow: committed losses of PyTorch, float32 | <= 1e-04 |"):
            self.assertIn(row, done.stdout)
        self.assertIn("attention by cuDNN 9.25.0", done.stdout)
        self.assertNotIn("NOT as planned", done.stdout)
        self.assertEqual(len(list((self.folder / "results").iterdir())), 2)
        runs = json.loads(next((self.folder / "results").glob("*.json")).read_text())["runs"]
        keep, curve = runs["cairn tiny, keep everything"], runs["curve: committed losses of PyTorch, float32"]
        driver = keep["driver_bytes"]
        self.assertGreaterEqual(driver["now"] - driver["before"], keep["peak_bytes"]["device"])
        self.assertLess(curve["largest"], curve["limit"])
        if rates.exists():
            self.rates(runs["rates"], done.stdout)

    def rates(self, found, text):
        self.assertNotIn("Kernels that did not run", text)
        self.assertNotIn("Links that were not measured", text)
        self.assertGreater(found["copy_bytes_per_second"], 0)
        for kernel in found["kernels"]:
            self.assertGreater(kernel["seconds"], 0, kernel)
            self.assertGreater(kernel["bytes"], 0, kernel)
        rows = {k["row"] for k in found["kernels"] if k["op"] == "attention_grad"}
        self.assertEqual(rows, {"cudnn", "mma", "tiles"})
        self.assertEqual({(r["tier"], r["way"], r["both"]) for r in found["links"]},
                         {(tier, way, both) for tier in ("host", "disk") for way in ("out", "in")
                          for both in (False, True)})


class WithoutGpu(Case):
    def test_no_plugin_is_an_error_that_says_so(self):
        if "cuda:0" in self.cairn("devices").stdout:
            self.skipTest("there is a GPU here")
        self.fails(1, "train", "mlp", *GPU, says="cuda:0")

    def test_the_library_looks_for_the_plugin_beside_itself(self):
        library = pathlib.Path(CAIRN).resolve().parents[1] / "lib/libcairn.so.1"
        words = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
        self.assertRegex(words, r"R(UN)?PATH.*\[\$ORIGIN\]")

    def test_dev_gpu_says_that_nothing_was_checked(self):
        environment = dict(os.environ, PATH="/usr/bin:/bin")
        done = subprocess.run([ROOT / "dev", "gpu"], capture_output=True, text=True, env=environment, check=False)
        if "GPU 0" in done.stdout:
            self.skipTest("there is a GPU here")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("there is no GPU here", done.stdout)


if __name__ == "__main__":
    main()
