"""`cairn train`: the JSON object to the letter, equal bits under every plan, exact memory, other recipes."""
import json
import os
import pathlib
import pty
import resource
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import CAIRN, TINY, Case, main  # noqa: E402

KEYS = {"steps", "loss", "step_seconds_median", "tokens_per_second", "peak_bytes", "planned_peak_bytes",
        "activation_peak_bytes", "memory_bytes", "stall_seconds", "process_peak_rss_bytes", "parameter_digest",
        "skipped_steps", "plan", "submit_seconds_median", "driver_bytes"}
PLAN_KEYS = {"keep_bytes", "recompute_bytes", "offload_host_bytes", "offload_disk_bytes", "predicted_step_seconds",
             "bound_step_seconds", "gap", "solve_seconds"}
TIERS = {"device", "host", "disk"}


class Train(Case):
    def test_no_home_is_made(self):
        """Token files go to TMPDIR, then; without that the run ends and says so."""
        for cache in (None, "relative"):
            self.environment.pop("XDG_CACHE_HOME", None)
            if cache:
                self.environment["XDG_CACHE_HOME"] = cache
            self.environment["HOME"] = str(self.folder / "nobody")
            self.environment["TMPDIR"] = str(self.folder)
            self.train("--steps", 1)
            self.assertTrue((self.folder / f"cairn-{os.getuid()}").is_dir())
            self.environment["TMPDIR"] = str(self.folder / "nowhere")
            self.fails(5, "train", "gpt2", *TINY, f"data={self.text}", "--steps", 1,
                       says=f"no place for token files: there is no directory '{self.folder / 'nowhere'}'")
            for name in ("nobody", "nowhere", "relative"):
                self.assertFalse((self.folder / name).exists(), name)

    def test_a_limit_on_file_sizes_is_an_error_of_a_write(self):
        for limit in (1, 1 << 10, 1 << 12, 1 << 14):  # from the first record to the report at the end
            self.cairn("train", "mlp", "width=8", "--steps", 9, "--save-every", 4, "--out", f"out-{limit}", "--quiet",
                       code=5, preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))

    def test_json(self):
        result = self.train("--steps", 4)
        self.assertEqual(KEYS - result.keys(), set())
        self.assertEqual(PLAN_KEYS - result["plan"].keys(), set())
        self.assertEqual(result["peak_bytes"].keys(), TIERS)
        self.assertEqual(result["memory_bytes"].keys(),
                         {"parameters", "gradients", "optimizer", "activations", "workspace"})
        self.assertEqual(result["steps"], 4)
        self.assertEqual(len(result["loss"]), 4)
        self.assertLess(abs(result["loss"][0] - 5.545), 0.2)  # log 256: it knows nothing yet
        self.assertLess(result["loss"][3], result["loss"][0])
        self.assertRegex(result["parameter_digest"], "^[0-9a-f]{32}$")
        self.assertEqual(result["skipped_steps"], 0)
        self.assertEqual(sum(result["memory_bytes"].values()), result["peak_bytes"]["device"])
        self.assertEqual(result["driver_bytes"], {"before": 0, "now": 0})  # a CPU has no driver
        self.assertLess(result["submit_seconds_median"], result["step_seconds_median"])
        for key in ("step_seconds_median", "tokens_per_second", "process_peak_rss_bytes", "submit_seconds_median"):
            self.assertGreater(result[key], 0, key)
        process = result["process_memory"]
        self.assertEqual(process["peak_rss_bytes"], result["process_peak_rss_bytes"])
        self.assertEqual(process["plan_bytes"], sum(result["peak_bytes"][tier] for tier in ("device", "host")))
        for key in ("library_bytes", "interpreter_bytes", "code_bytes"):
            self.assertGreater(process[key], 0, key)
        parts = {"plan_bytes", "library_bytes", "interpreter_bytes", "code_bytes", "data_bytes", "other_bytes"}
        self.assertEqual(process.keys(), parts | {"peak_rss_bytes"})
        self.assertGreaterEqual(sum(process[key] for key in parts), process["peak_rss_bytes"])

    def test_what_the_process_takes_beyond_the_plan_is_one_line(self):
        text = self.cairn("train", "gpt2", *TINY, f"data={self.text}", "--steps", 1, "--quiet").stdout
        self.assertRegex(text, r"(?m)^process +\S+ \w+ at its peak: .* planned, .* the library's heap, .* code")

    def test_a_disk_tier_in_memory_is_told(self):
        if "tmpfs" not in subprocess.run(["stat", "-f", "-c", "%T", "/dev/shm"], capture_output=True, text=True).stdout:
            self.skipTest("no tmpfs here")
        self.environment["TMPDIR"] = "/dev/shm"
        run = ["gpt2", *TINY, f"data={self.text}", "--policy", "offload"]
        for command in (["train", *run, "--steps", 1], ["plan", *run]):
            self.assertIn("tmpfs", self.cairn(*command, "--tiers", "disk").stderr)
            self.assertNotIn("tmpfs", self.cairn(*command, "--tiers", "host").stderr)
        self.assertEqual(json.loads(self.cairn("devices", "--json").stdout)[0]["disk_access"], "memory")
        self.assertIn("memory", self.cairn("devices").stdout)

    def test_every_plan_gives_the_same_bits_and_its_promised_peak(self):
        keep = self.train("--steps", 3, "--policy", "keep")
        plans = {
            "auto": [], "recompute": ["--policy", "recompute"], "host": ["--policy", "offload"],
            "disk": ["--policy", "offload", "--tiers", "disk"], "80%": ["--budget", "80%"],
            "throttled": ["--policy", "offload", "--link", "1GiB"],
        }
        results = {name: self.train("--steps", 3, *options) for name, options in plans.items()}
        for name, result in {"keep": keep, **results}.items():
            with self.subTest(name):
                self.assertEqual(result["parameter_digest"], keep["parameter_digest"])
                self.assertEqual(result["loss"], keep["loss"])
                self.assertEqual(result["peak_bytes"], result["planned_peak_bytes"])
        self.assertGreater(results["recompute"]["plan"]["recompute_bytes"], 0)
        self.assertGreater(results["host"]["plan"]["offload_host_bytes"], 0)
        self.assertGreater(results["disk"]["plan"]["offload_disk_bytes"], 0)
        self.assertGreater(results["disk"]["peak_bytes"]["disk"], 0)
        self.assertLess(results["recompute"]["activation_peak_bytes"], keep["activation_peak_bytes"])
        self.assertLessEqual(results["80%"]["peak_bytes"]["device"], 0.8 * keep["peak_bytes"]["device"])

    def test_optimizer_state_in_a_tier(self):
        for accumulate in (1, 3):
            keep = self.train("--steps", 3, "--policy", "keep", "--accumulate", accumulate)
            self.assertEqual(keep["plan"]["optimizer_host_bytes"], 0)
            for tier in ("host", "disk"):
                with self.subTest(tier=tier, accumulate=accumulate):
                    found = self.train("--steps", 3, "--tiers", tier, "--budget", "65%", "--accumulate", accumulate)
                    self.assertGreater(found["plan"][f"optimizer_{tier}_bytes"], 0)
                    self.assertGreater(found["copies"][tier]["in_bytes"], 0)
                    self.assertEqual(found["parameter_digest"], keep["parameter_digest"])
                    self.assertEqual(found["peak_bytes"], found["planned_peak_bytes"])
                    self.assertLess(found["memory_bytes"]["optimizer"], keep["memory_bytes"]["optimizer"])

    def test_update_fused_into_backward(self):
        apart = self.train("--steps", 3, "clip=0")
        for options in ([], ["--policy", "recompute"], ["--amp", "bf16"]):
            with self.subTest(options=options):
                wanted = self.train("--steps", 3, "clip=0", *options)
                fused = self.train("--steps", 3, "clip=0", "--fuse-update", *options)
                self.assertEqual(fused["parameter_digest"], wanted["parameter_digest"])
                self.assertEqual(fused["loss"], wanted["loss"])
                self.assertEqual(fused["peak_bytes"], fused["planned_peak_bytes"])
        few = ["clip=0", "width=64", "seq=4", "batch=1"]  # of activations: gradients are what is most where backward ends
        self.assertLess(self.train("--steps", 1, *few, "--fuse-update")["peak_bytes"]["device"],
                        self.train("--steps", 1, *few)["peak_bytes"]["device"])
        self.assertEqual(apart["parameter_digest"], self.train("--steps", 3, "clip=0", "--policy", "keep")["parameter_digest"])
        self.fails(2, "train", "gpt2", *TINY, f"data={self.text}", "--steps", 1, "--fuse-update",
                   says=("--fuse-update", "clip is 1; give clip=0"))
        self.fails(2, "train", "gpt2", *TINY, f"data={self.text}", "--steps", 1, "--fuse-update", "clip=0",
                   "--accumulate", 2, says="accumulate")

    def test_seed_and_accumulation(self):
        one = self.train("--steps", 2, "--seed", 7)
        self.assertEqual(one["loss"], self.train("--steps", 2, "--seed", 7)["loss"])
        self.assertNotEqual(one["loss"], self.train("--steps", 2, "--seed", 8)["loss"])
        parts = self.train("batch=2", "--steps", 1, "--accumulate", 2, "--seed", 7)
        self.assertAlmostEqual(parts["loss"][0], one["loss"][0], places=5)

    def test_remainder_of_an_epoch_is_a_step_of_its_own(self):
        self.text.write_text("abcdefgh" * 20)  # 160 tokens: 9 windows of 17; batches of 4: 3 per epoch, the last with 1
        result = self.train("--steps", 4, "--accumulate", 2)
        self.assertEqual(result["steps"], 4)
        self.assertEqual(result["skipped_steps"], 0)

    def test_random_data_dropout_bpe(self):
        self.train("--steps", 2, "dropout=0.1", data="random")
        self.train("--steps", 2, "tokens=bpe", "vocab=300")

    def test_bf16(self):
        result = self.train("--steps", 3, "--amp", "bf16")
        self.assertLess(result["loss"][2], result["loss"][0])

    def test_reference_device_agrees(self):
        fast, slow = self.train("--steps", 2), self.train("--steps", 2, "--device", "reference")
        for a, b in zip(fast["loss"], slow["loss"]):
            self.assertAlmostEqual(a, b, places=4)

    def test_other_recipes(self):
        spiral = self.train("--steps", 200, recipe="mlp", model=["width=32", "samples=256"])
        self.assertLess(spiral["loss"][-1], 0.5 * spiral["loss"][0])
        squares = self.train("--steps", 100, recipe="mlp", model=["loss=mse", "activation=gelu", "samples=256"])
        self.assertLess(squares["loss"][-1], squares["loss"][0])
        llama = self.train("--steps", 4, recipe="llama", model=[*TINY, "kv_heads=1"])
        self.assertLess(llama["loss"][-1], llama["loss"][0])

    def test_progress_on_a_terminal(self):
        command = [CAIRN, "train", "gpt2", *TINY, f"data={self.text}", "--steps", "3", "--json"]
        for more, shown in (([], True), (["--quiet"], False)):
            master, slave = pty.openpty()
            done = subprocess.run([*command, *more], env=self.environment, cwd=self.folder, stdout=subprocess.PIPE,
                                  stderr=slave, timeout=60)
            os.write(slave, b"END")
            os.close(slave)
            text = b""
            while not text.endswith(b"END"):
                text += os.read(master, 4096)
            os.close(master)
            self.assertEqual(len(json.loads(done.stdout)["loss"]), 3)
            self.assertEqual(b"step 3/3" in text, shown)
            self.assertEqual(text != b"END", shown)

    def test_text_for_people(self):
        done = self.cairn("train", "gpt2", *TINY, f"data={self.text}", "--steps", 3, "--threads", 2, "--out", "run")
        for word in ("loss", "tokens/s", "activations", "planned", "measured", "equal", "run/step-00000003", "plan.html"):
            self.assertIn(word, done.stdout)
        self.assertEqual(done.stderr, "")  # it is no terminal
        self.assertIn("<svg", (self.folder / "run/plan.html").read_text())
        rows = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        self.assertEqual([row["step"] for row in rows], [1, 2, 3])


main()
