"""`cairn plan`, `verify`, `profile`."""
import json

from harness import TINY, Case, main


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

    def test_sweep(self):
        rows = self.plan("--sweep")
        peaks = [row["planned_peak_bytes"]["device"] for row in rows]
        self.assertGreater(len(rows), 2)
        self.assertEqual(peaks, sorted(peaks, reverse=True))
        for row in rows:
            self.assertIn("gap", row["plan"])
            if row["budget_bytes"]:
                self.assertLessEqual(row["planned_peak_bytes"]["device"], row["budget_bytes"])
        self.assertIn("slower", self.cairn("plan", "gpt2", *TINY, "--sweep").stdout)

    def test_files(self):
        text = self.cairn("plan", "gpt2", *TINY, "--html", "plan.html", "--plan-out", "plan.cairn").stdout
        self.assertIn("activations", text)
        self.assertIn("<svg", (self.folder / "plan.html").read_text())
        self.cairn("inspect", "plan.cairn")

    def test_problem_and_back(self):
        plan = self.plan("--problem-out", "problem.json", "--budget", "80%")
        problem = json.loads((self.folder / "problem.json").read_text())
        self.assertEqual(problem["format"], "cairn.problem/1")
        self.assertEqual(plan["format"], "cairn.plan/1")
        self.assertEqual(plan["arena_bytes"], plan["planned_peak_bytes"]["device"])
        again = json.loads(self.cairn("plan", "--problem", "problem.json", "--json").stdout)
        self.assertEqual(again["format"], "cairn.plan/1")
        self.assertEqual(again["steps"], plan["steps"])
        half = json.loads(self.cairn("plan", "--problem", "problem.json", "--budget", "85%", "--json").stdout)
        self.assertLessEqual(half["arena_bytes"], half["budget_bytes"])
        self.fails(4, "plan", "--problem", "problem.json", "--budget", 1)
        self.assertIn("predicted", self.cairn("plan", "--problem", "problem.json").stdout)
        self.fails(2, "plan", "gpt2", "--problem", "problem.json")
        self.fails(2, "plan", "--problem", "problem.json", "--amp", "bf16")

    def test_profile(self):
        self.cairn("profile", "gpt2", *TINY, "--policy", "offload", "--trace", "trace.json")
        events = json.loads((self.folder / "trace.json").read_text())["traceEvents"]
        lanes = {event["args"]["name"] for event in events if event["ph"] == "M"}
        self.assertIn("compute", lanes)
        self.assertIn("copy to host", lanes)
        used = {event["tid"] for event in events if event["ph"] == "X"}
        self.assertGreaterEqual(len(used), 3)
        peak = max(event["args"]["alive"] for event in events if event["ph"] == "C")
        planned = self.plan("--policy", "offload")
        self.assertEqual(peak, planned["live_peak_bytes"])

    def test_verify(self):
        done = self.cairn("verify", "gpt2", *TINY, f"data={self.text}", "--steps", 2, "--json", "--quiet")
        result = json.loads(done.stdout)
        self.assertTrue(result["ok"], result["problems"])
        names = [run["name"] for run in result["runs"]]
        for name in ("keep", "recompute", "offload to host", "offload to disk", "resumed", "1 batch of both"):
            self.assertIn(name, names)
        self.cairn("verify", "mlp", "samples=128", "--steps", 2)


main()
