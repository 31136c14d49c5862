"""`cairn plan`, `profile --predicted`."""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import TINY, Case, main  # noqa: E402


class Plan(Case):
    def plan(self, *arguments):
        return json.loads(self.cairn("plan", "gpt2", *TINY, "--json", *arguments).stdout)

    def test_plan_is_what_training_takes(self):
        planned = self.plan("--policy", "recompute", "--threads", 2)
        trained = self.train("--policy", "recompute", "--steps", 1)
        self.assertEqual(planned["planned_peak_bytes"], trained["peak_bytes"])
        for key in ("keep_bytes", "recompute_bytes", "offload_host_bytes", "offload_disk_bytes"):
            self.assertEqual(planned["plan"][key], trained["plan"][key])
        for key in ("predicted_step_seconds", "bound_step_seconds"):
            self.assertGreater(planned["plan"][key], 0)
        self.assertLessEqual(planned["plan"]["bound_step_seconds"], planned["plan"]["predicted_step_seconds"] * (1 + 1e-9))

    def test_budgets(self):
        whole = self.plan("--policy", "keep")["planned_peak_bytes"]["device"]
        for text, limit in (("80%", 0.8 * whole), (f"{whole - 1}", whole - 1), (f"{whole / 1024:.3f}KiB", whole)):
            with self.subTest(text):
                self.assertLessEqual(self.plan("--budget", text)["planned_peak_bytes"]["device"], limit)

    def test_state_on_the_host_tier_of_a_cpu_is_updated_there(self):
        whole = self.plan()
        self.assertEqual(whole["plan"]["update_at"], "device")
        budget = whole["planned_peak_bytes"]["device"] - whole["memory_bytes"]["optimizer"] // 2
        there = self.plan("--budget", budget, "--tiers", "host")
        self.assertEqual(there["plan"]["update_at"], "host")
        self.assertEqual(there["plan"]["predicted_step_seconds"], whole["plan"]["predicted_step_seconds"])
        self.assertGreater(there["tier_bytes"]["host"]["optimizer"], 0)
        self.assertIn("on the host, updated there",
                      self.cairn("plan", "gpt2", *TINY, "--budget", budget, "--tiers", "host").stdout)
        for away in (("--tiers", "disk"), ("--tiers", "host", "--device-model", "rtx4090")):
            self.assertEqual(self.plan("--budget", budget, *away)["plan"]["update_at"], "device", away)

    def test_packs_are_given_up_where_a_budget_needs_their_bytes(self):
        kept = "--accumulate", 4, "--policy", "keep"  # so that packed weights are worth their bytes, and all that may go
        whole = self.plan("--amp", "bf16", *kept)
        packed = whole["plan"]["packed_bytes"]
        if packed == 0:
            self.skipTest("needs amx")
        self.assertEqual(whole["plan"]["unpacked_bytes"], 0)
        budget = whole["planned_peak_bytes"]["device"] - packed // 2
        tight = self.plan("--amp", "bf16", *kept, "--budget", budget)
        self.assertGreater(tight["plan"]["unpacked_bytes"], 0)
        self.assertEqual(tight["plan"]["packed_bytes"] + tight["plan"]["unpacked_bytes"], packed)
        self.assertIn("given up", self.cairn("plan", "gpt2", *TINY, "--amp", "bf16", *kept, "--budget",
                                           budget).stdout)
        once = self.plan("--amp", "bf16", "--policy", "keep")  # packed once, used once: nothing is kept packed
        self.assertEqual((once["plan"]["packed_bytes"], once["plan"]["unpacked_bytes"]), (0, packed))
        self.assertEqual(self.plan()["plan"]["packed_bytes"], 0)

    def test_sweep(self):
        rows = self.plan("--sweep")
        peaks = [row["planned_peak_bytes"]["device"] for row in rows]
        self.assertGreater(len(rows), 2)
        self.assertEqual(peaks, sorted(peaks, reverse=True))
        for row in rows:
            self.assertIn("gap", row["plan"])
            if row["budget_bytes"]:
                self.assertLessEqual(row["planned_peak_bytes"]["device"], row["budget_bytes"])
            for hand in row["by_hand"].values():  # nobody by hand is faster within the same bytes
                if row["planned_peak_bytes"]["device"] <= hand["budget_bytes"] <= row["budget_bytes"]:
                    self.assertLessEqual(row["plan"]["predicted_step_seconds"],
                                         hand["predicted_step_seconds"] * (1 + 1e-9))
        self.assertEqual(set(rows[0]["by_hand"]), {"keep_all", "per_layer", "sqrt_n"})
        text = self.cairn("plan", "gpt2", *TINY, "--sweep").stdout
        for word in ("--json plans each budget again", "slower", "bound", "gap", "by hand", "every layer checkpointed (2 layers)", "sqrt(n)"):
            self.assertIn(word, text)
        self.fails(2, "plan", "gpt2", *TINY, "--sweep", "--budget", "80%")

    def test_more_memory_is_not_slower_in_a_sweep(self):
        model = ["mlp", "layers=5", "width=8", "--tiers", "host,disk", "--rates", "model"]
        rows = json.loads(self.cairn("plan", *model, "--sweep", "--json").stdout)
        seconds = [row["plan"]["predicted_step_seconds"] for row in rows]
        self.assertEqual(seconds, sorted(seconds))
        self.assertGreater(len(set(seconds)), 1)
        for row in rows:
            plan = row["plan"]
            self.assertGreaterEqual(row["budget_bytes"], row["planned_peak_bytes"]["device"])
            self.assertAlmostEqual(plan["gap"], plan["predicted_step_seconds"] / plan["bound_step_seconds"] - 1)

    def test_a_sweep_is_of_what_the_options_plan(self):
        """Down to the smallest budget that there is; and for people the same numbers as in JSON."""
        model = ["layers=2", "width=16", "heads=2", "seq=16", "batch=2", "data=random", "--rates", "model"]
        for words in (["--tiers", "host"], ["--amp", "bf16", "--accumulate", "2"], ["--fuse-update", "clip=0"]):
            words = ["gpt2", *model, *words, "--quiet"]
            rows = json.loads(self.cairn("plan", *words, "--sweep", "--json").stdout)
            budgets = [row["budget_bytes"] for row in rows]
            self.assertEqual(budgets, sorted(set(budgets), reverse=True))
            plan = json.loads(self.cairn("plan", *words, "--budget", budgets[-1], "--json").stdout)
            self.assertEqual(plan["planned_peak_bytes"], rows[-1]["planned_peak_bytes"])
            self.fails(4, "plan", *words, "--budget", budgets[-1] - 1, says=f"does is {budgets[-1]} bytes")
            table = self.cairn("plan", *words, "--sweep").stdout.split("\n\n")[0].splitlines()[1:]
            self.assertEqual(len(table), len(rows))
            for line, row in zip(table, rows):
                slower = row["plan"]["predicted_step_seconds"] / rows[0]["plan"]["keep_all_step_seconds"] - 1
                self.assertIn(f" {100 * slower:.1f}% ", line)
                self.assertIn(f" {100 * row['plan']['gap']:.2f}% ", line)
        self.assertIn("peak, host", self.cairn("plan", "gpt2", *model, "--tiers", "host", "--sweep").stdout)

    def test_sweep_of_a_problem(self):
        self.plan("--problem-out", "problem.json", "--tiers", "host", "--link", "1e9")
        rows = json.loads(self.cairn("plan", "--problem", "problem.json", "--sweep", "--json").stdout)
        self.assertGreater(len(rows), 2)
        for row in rows[0], rows[len(rows) // 2]:  # beside the recipe's own plan under that budget
            other = self.plan("--budget", row["budget_bytes"], "--tiers", "host", "--link", "1e9")
            unknown = {"packed_bytes", "unpacked_bytes", "update_at", "deferred_updates", "host_updates", "host_adds",
                       "counters", "rates"}  # to a problem
            self.assertEqual(set(row["plan"]), set(other["plan"]) - unknown)
            if row is rows[0]:
                self.assertEqual(row["planned_peak_bytes"], other["planned_peak_bytes"])
                for key in ("keep_bytes", "recompute_bytes", "offload_host_bytes"):
                    self.assertEqual(row["plan"][key], other["plan"][key])
            # In between, a recipe has more to choose from: which ops write over what they read.
            for plan in row, other:
                self.assertLessEqual(plan["planned_peak_bytes"]["device"], row["budget_bytes"] or float("inf"))
        self.fails(2, "plan", "--problem", "problem.json", "--sweep", "--html", "x.html")

    def test_sweep_of_a_problem_without_ops(self):
        problem = {"format": "cairn.problem/1", "values": [], "ops": [], "turnaround": 0, "links": [], "budget_bytes": 0}
        (self.folder / "empty.json").write_text(json.dumps(problem))
        self.assertNotIn("nan", self.cairn("plan", "--problem", "empty.json", "--sweep").stdout)
        self.assertEqual(self.cairn("plan", "--problem", "empty.json", "--sweep", "--json").stdout, "[]\n")

    def test_files(self):
        text = self.cairn("plan", "gpt2", *TINY, "--html", "plan.html", "--plan-out", "plan.cairn").stdout
        self.assertIn("activations", text)
        page = (self.folder / "plan.html").read_text()
        for part in ("Seconds of forward and backward over the budget", "Device memory over one forward and backward", "<h2>Values</h2>"):
            self.assertIn(part, page)
        data = re.search(r"id='values-data'>(.*?)</script>", page, re.DOTALL).group(1)
        rows = json.loads(data)
        self.assertEqual(len(rows["name"]), self.plan()["values"])
        self.cairn("inspect", "plan.cairn")

    def test_problem_and_back(self):
        plan = self.plan("--problem-out", "problem.json", "--budget", "80%")
        problem = json.loads((self.folder / "problem.json").read_text())
        self.assertEqual(problem["format"], "cairn.problem/1")
        self.assertEqual(plan["format"], "cairn.plan/1")
        self.assertEqual(plan["arena_bytes"], plan["planned_peak_bytes"]["device"])
        self.assertEqual(plan["tier_bytes"], self.plan("--budget", "80%")["tier_bytes"])
        again = json.loads(self.cairn("plan", "--problem", "problem.json", "--json").stdout)
        self.assertEqual(again["format"], "cairn.plan/1")
        self.assertEqual(again["steps"], plan["steps"])
        half = json.loads(self.cairn("plan", "--problem", "problem.json", "--budget", "85%", "--json").stdout)
        self.assertLessEqual(half["arena_bytes"], half["budget_bytes"])
        self.fails(4, "plan", "--problem", "problem.json", "--budget", 1)
        self.assertIn("predicted", self.cairn("plan", "--problem", "problem.json").stdout)
        self.fails(2, "plan", "gpt2", "--problem", "problem.json")
        for words in (["--amp", "bf16"], ["--link", "1e9"], ["--fuse-update"]):
            self.fails(2, "plan", "--problem", "problem.json", *words, says=f"{words[0]} does not go with --problem")

    def test_an_update_inside_backward_says_what_training_needs(self):
        needs = "needs clip=0; here clip is 1"
        self.assertIn(needs, self.cairn("plan", "gpt2", *TINY, "--fuse-update").stderr)
        for words in (["clip=0"], ["--quiet"]):
            self.assertNotIn(needs, self.cairn("plan", "gpt2", *TINY, "--fuse-update", *words).stderr)

    def test_a_budget_is_never_rounded_up(self):
        op = {"name": "a", "seconds": 1, "workspace_bytes": 0, "inputs": [], "outputs": ["v"], "recomputable": True}
        bytes_ = 2**52 + 1  # half a byte more is no number of its own
        problem = {"format": "cairn.problem/1", "values": [{"name": "v", "bytes": bytes_ + 1, "persistent": False}],
                   "ops": [op], "turnaround": 1, "links": [], "budget_bytes": 0}
        (self.folder / "large.json").write_text(json.dumps(problem))
        plan = self.cairn("plan", "--problem", "large.json", "--budget", bytes_ + 1, "--json").stdout
        self.assertEqual(json.loads(plan)["budget_bytes"], bytes_ + 1)
        self.fails(4, "plan", "--problem", "large.json", "--budget", bytes_, says=f"a budget of {bytes_} bytes")
        self.fails(4, "plan", "gpt2", *TINY, "--budget", "1.9", says="a budget of 1 bytes")

    def test_predicted_trace(self):
        self.cairn("profile", "gpt2", *TINY, "--policy", "offload", "--predicted", "--trace", "trace.json")
        events = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
        lanes = {event["args"]["name"] for event in events if event["ph"] == "M"}
        self.assertIn("compute", lanes)
        self.assertIn("copy to host", lanes)
        used = {event["tid"] for event in events if event["ph"] == "X"}
        self.assertGreaterEqual(len(used), 3)
        peak = max(event["args"]["alive"] for event in events if event["ph"] == "C")
        planned = self.plan("--policy", "offload")
        self.assertEqual(peak, planned["live_peak_bytes"])


main()
