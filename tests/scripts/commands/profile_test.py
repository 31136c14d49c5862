"""Costs: `cairn profile`, --profile, --device-model, and budgets that cannot be."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, TINY, Case, main  # noqa: E402


class Profile(Case):
    def profile(self, *arguments, recipe="gpt2", model=TINY):
        done = self.cairn("profile", recipe, *model, "--threads", 2, "--steps", 2, "--json", *arguments)
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    def plan(self, *arguments):
        return json.loads(self.cairn("plan", "gpt2", *TINY, "--json", "--threads", 2, *arguments).stdout)

    def read(self, name="cairn-profile.json"):
        return json.loads((self.folder / name).read_text())

    def test_measures_and_plans(self):
        result = self.profile()
        self.assertGreater(result["step_seconds_median"], 0)
        self.assertGreater(result["predicted_step_seconds"], 0)
        profile = self.read()
        self.assertEqual(profile["format"], "cairn.profile/1")
        self.assertEqual(profile["machine"]["threads"], 2)
        self.assertEqual({link["tier"] for link in profile["links"]}, {"host", "disk"})
        names = {op["op"] for op in profile["ops"]}
        self.assertLessEqual({"linear", "attention_grad", "optimizer", "host"}, names)
        for op in profile["ops"]:
            self.assertGreater(op["count"], 0)
            self.assertGreaterEqual(op["median_seconds"], 0)
        planned = self.plan("--profile", "cairn-profile.json")
        self.assertEqual(planned["measured_ops"], planned["ops"])
        self.assertAlmostEqual(planned["plan"]["predicted_step_seconds"], result["predicted_step_seconds"])
        self.assertEqual(self.plan()["measured_ops"], 0)
        twice = self.plan("--profile", "cairn-profile.json", "--accumulate", 2)
        self.assertLess(twice["plan"]["predicted_step_seconds"], 2 * planned["plan"]["predicted_step_seconds"])
        self.assertIn(f"{planned['ops']} of {planned['ops']} ops measured",
                      self.cairn("plan", "gpt2", *TINY, "--threads", 2, "--profile", "cairn-profile.json").stdout)
        trained = self.train("--profile", "cairn-profile.json", "--steps", 2)
        self.assertEqual(trained["plan"]["predicted_step_seconds"], planned["plan"]["predicted_step_seconds"])
        self.assertEqual(trained["parameter_digest"], self.train("--steps", 2)["parameter_digest"])

    def test_tiers_none(self):
        self.assertEqual(set(self.profile("--tiers", "none")), set(self.profile()))
        self.cairn("profile", "gpt2", *TINY, "--tiers", "none", "--predicted")
        for words in (["--link", "1GiB"], ["--policy", "offload"]):
            self.fails(2, "profile", "gpt2", *TINY, "--tiers", "none", *words, says=["--tiers none", words[0]])

    def test_a_profile_grows(self):
        self.profile("--profile-out", "p.json")
        first = {op["signature"] for op in self.read("p.json")["ops"]}
        result = self.profile("--profile-out", "p.json", recipe="mlp", model=["samples=64"])
        both = {op["signature"] for op in self.read("p.json")["ops"]}
        self.assertLess(first, both)
        self.assertEqual(result["ops"], len(both))
        self.assertEqual(len(self.read("p.json")["links"]), 2)
        (self.folder / "p.json").write_text("{")
        self.fails(3, "profile", "gpt2", *TINY, "--profile-out", "p.json", says="p.json")

    def test_the_throttle_is_kept(self):
        self.profile("--link", "2e9", "--policy", "offload", "--tiers", "host")
        link = next(link for link in self.read()["links"] if link["tier"] == "host")
        self.assertEqual(link["stated_bytes_per_second"], 2e9)
        self.cairn("plan", "gpt2", *TINY, "--threads", 2, "--link", "2e9", "--profile", "cairn-profile.json",
                   "--problem-out", "problem.json")
        host = self.read("problem.json")["links"][0]
        self.assertEqual(host["out_bytes_per_second"], link["out_bytes_per_second"])
        self.assertEqual(host["latency_seconds"], link["latency_seconds"])

    def test_a_link_that_would_take_hours(self):
        self.fails(3, "profile", "gpt2", *TINY, "--link", 8, says=["throttled to 8 bytes per second", "state 1048576 or more"])

    def test_the_trace(self):
        self.profile("--policy", "offload", "--trace", "trace.json", "--threads", 1)
        events = self.read("trace.json")["traceEvents"]
        lanes = {event["args"]["name"] for event in events if event["ph"] == "M"}
        self.assertEqual(lanes, {"compute", "copy to host", "copy from host"})
        self.assertGreaterEqual(len({event["tid"] for event in events if event["ph"] == "X"}), 3)
        peak = max(event["args"]["alive"] for event in events if event["ph"] == "C")
        planned = json.loads(self.cairn("plan", "gpt2", *TINY, "--json", "--threads", 1, "--policy", "offload").stdout)
        self.assertEqual(peak, planned["live_peak_bytes"])

    def test_text_and_budget(self):
        text = self.cairn("profile", "gpt2", *TINY, "--steps", 2, "--budget", "80%").stdout
        for word in ("linear", "update", "host", "disk", "cairn-profile.json", "cairn-trace.json", "predicted"):
            self.assertIn(word, text)

    def test_another_machine(self):
        self.profile()
        profile = self.read()
        profile["machine"]["processor"] = "Abacus 9000"
        (self.folder / "other.json").write_text(json.dumps(profile))
        for command in (["plan", "gpt2"], ["train", "gpt2", "data=random", "--steps", 1], ["verify", "gpt2", "data=random"]):
            self.fails(3, *command, *TINY, "--threads", 2, "--profile", "other.json", says=("another machine", "Abacus 9000"))
        self.fails(3, "profile", "gpt2", *TINY, "--threads", 2, "--profile-out", "other.json", says="another machine")
        forced = self.plan("--profile", "other.json", "--force-profile")
        self.assertEqual(forced["measured_ops"], forced["ops"])
        self.fails(3, "plan", "gpt2", *TINY, "--threads", 1, "--profile", "cairn-profile.json", says="threads")
        self.fails(2, "plan", "gpt2", *TINY, "--force-profile", says="--profile")

    def test_malformed(self):
        for text, says in (("", "not JSON"), ("{", "not JSON"), ("[]", "object"), ('{"format": "cairn.plan/1"}', "cairn.plan/1"),
                           ('{"format": "cairn.profile/1", "machine": {"processor": 5}}', "machine.processor"),
                           ("[" * 100000, "not JSON")):
            (self.folder / "bad.json").write_text(text)
            self.fails(3, "plan", "gpt2", *TINY, "--profile", "bad.json", says=says)
            self.fails(3, "plan", "gpt2", *TINY, "--device-model", "./bad.json", says=says)
        self.fails(3, "plan", "gpt2", *TINY, "--profile", "nowhere.json", says="nowhere.json")
        self.fails(3, "plan", "gpt2", *TINY, "--profile", "/dev/zero", says="/dev/zero is a device; a file is needed")
        self.fails(3, "plan", "gpt2", *TINY, "--profile", self.folder, says=str(self.folder))

    def test_device_models(self):
        seconds = {}
        # Large enough for arithmetic to outweigh launches, which a GPU has more of.
        wide = ["layers=1", "heads=8", "width=512", "vocab=256", "seq=128", "batch=4", "--amp", "bf16", "--json"]
        for name in ("h200", "H100", "rtx4090", "cpu"):
            large = json.loads(self.cairn("plan", "gpt2", *wide, "--device-model", name).stdout)
            seconds[name] = large["plan"]["predicted_step_seconds"]
            plan = self.plan("--device-model", name, "--amp", "bf16")
            self.assertGreater(plan["plan"]["predicted_step_seconds"], 0)
            memory = json.loads((ROOT / f"scripts/devices/{name.lower()}.json").read_text())["memory_bytes"]
            self.assertEqual(plan["budget_bytes"], memory)
            self.fails(3, "plan", "gpt2", *TINY, "--device-model", name, "--budget", memory + 1, says=str(memory))
            self.assertEqual(self.plan("--device-model", name, "--budget", memory)["budget_bytes"], memory)
        self.assertLess(seconds["h200"], seconds["cpu"])
        self.fails(2, "plan", "gpt2", *TINY, "--device-model", "abacus", says=("abacus", "h200", "rtx4090"))
        self.fails(2, "train", "gpt2", *TINY, "data=random", "--device-model", "h200", says="cairn plan")
        self.fails(2, "plan", "gpt2", *TINY, "--device-model", "h200", "--profile", "p.json", says="exclude")

    def test_every_device_model_names_its_sources(self):
        files = sorted((ROOT / "scripts/devices").glob("*.json"))
        self.assertEqual([file.stem for file in files], ["a10", "a100-40", "a100-80", "cpu", "h100", "h200", "l4", "l40s",
                                                     "rtx3090", "rtx4090", "rtx5090", "t4"])
        for file in files:
            model = json.loads(file.read_text())
            for word in ("memory", "f32", "bf16", "launch", "host", "disk"):
                self.assertTrue(any(word in line for line in model["sources"]), f"{file.name}: {word}")

    def test_budgets_that_cannot_be(self):
        self.cairn("plan", "gpt2", *TINY, "--problem-out", "problem.json")
        commands = {"plan": ["plan", "gpt2", *TINY], "train": ["train", "gpt2", *TINY, "data=random", "--steps", 1],
                    "problem": ["plan", "--problem", "problem.json"]}
        for name, command in commands.items():
            with self.subTest(name):
                for nothing in ("0", "0%", "0KiB", "0.2"):
                    self.fails(2, *command, "--budget", nothing, says="nothing")
                self.fails(4, *command, "--budget", 1, says="budget")
                if name == "problem":  # for a device that is not known
                    self.cairn(*command, "--budget", "100TiB")
                else:
                    self.fails(3, *command, "--budget", "100TiB", says=("109951162777600", "memory"))

    def test_drift_is_told_once(self):
        self.profile()
        profile = self.read()
        for op in profile["ops"]:
            op["median_seconds"] *= 1000
        (self.folder / "slow.json").write_text(json.dumps(profile))
        command = ["train", "gpt2", *TINY, "data=random", "--threads", 2, "--steps", 8, "--profile", "slow.json"]
        self.assertEqual(self.cairn(*command).stderr.count("`cairn profile` measures again"), 1)
        self.assertEqual(self.cairn(*command, "--quiet").stderr, "")


main()
