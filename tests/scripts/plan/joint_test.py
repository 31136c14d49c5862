"""batch=auto global_batch=N: micro-batch, accumulation and plan chosen together."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import TINY, Case, main  # noqa: E402

MODEL = [setting for setting in TINY if not setting.startswith("batch=")]


class Joint(Case):
    def plan(self, *arguments, recipe="gpt2", model=MODEL):
        return json.loads(self.cairn("plan", recipe, *model, "--json", "--threads", 2, *arguments).stdout)

    def test_updates_inside_backward_leave_one_micro_batch(self):
        fused = ["--fuse-update", "clip=0"]
        chosen = self.plan("batch=auto", "global_batch=4", *fused)
        self.assertEqual([(c["batch"], c["accumulate"]) for c in chosen["candidates"]], [(4, 1)])
        self.assertEqual(chosen["planned_peak_bytes"], self.plan("batch=4", *fused)["planned_peak_bytes"])
        self.fails(4, "plan", "gpt2", *MODEL, "batch=auto", "global_batch=4", *fused, "--budget", 1000,
                   says="with batch=4 and 1 micro-batches")

    def check_choice(self, chosen, total, budget, recipe="gpt2", model=MODEL, extra=()):
        """The choice, and every candidate, against plans made one at a time."""
        best = 0
        self.assertEqual(sorted(c["batch"] for c in chosen["candidates"]), [d for d in range(1, total + 1) if total % d == 0])
        for candidate in chosen["candidates"]:
            batch, times = candidate["batch"], candidate["accumulate"]
            self.assertEqual(batch * times, total)
            separate = [f"batch={batch}", "--accumulate", times, "--budget", budget, *extra]
            if candidate["fits"]:
                alone = self.plan(*separate, recipe=recipe, model=model)
                self.assertEqual(alone["plan"]["predicted_step_seconds"], candidate["predicted_step_seconds"])
                self.assertEqual(alone["planned_peak_bytes"], candidate["planned_peak_bytes"])
                self.assertLessEqual(candidate["planned_peak_bytes"]["device"], budget)
                self.assertAlmostEqual(alone["samples_per_second"], candidate["samples_per_second"])
                best = max(best, total / alone["plan"]["predicted_step_seconds"])
            else:
                self.fails(4, "plan", recipe, *model, *separate)
                need = candidate["smallest_budget_bytes"]
                self.assertGreater(need, budget)
                self.plan(f"batch={batch}", "--budget", need, *extra, recipe=recipe, model=model)
        self.assertEqual(chosen["samples_per_second"], best)
        first = chosen["candidates"][0]
        for key in ("batch", "accumulate", "samples_per_second", "planned_peak_bytes"):
            self.assertEqual(chosen[key], first[key])
        self.assertEqual(chosen["plan"]["predicted_step_seconds"], first["predicted_step_seconds"])
        fast = [c["samples_per_second"] for c in chosen["candidates"] if c["fits"]]
        self.assertEqual(fast, sorted(fast, reverse=True))

    def test_the_choice_is_the_best_of_separate_plans(self):
        small = self.plan("batch=2")["planned_peak_bytes"]["device"]
        chosen = self.plan("batch=auto", "global_batch=12", "--budget", small)
        self.check_choice(chosen, 12, small)
        self.assertTrue(chosen["candidates"][0]["fits"])
        self.assertFalse(chosen["candidates"][-1]["fits"])

    def test_other_recipes_and_costs(self):
        llama = [*MODEL, "kv_heads=1"]
        budget = self.plan("batch=2", recipe="llama", model=llama)["planned_peak_bytes"]["device"]
        self.check_choice(self.plan("batch=auto", "global_batch=4", "--budget", budget, "--device-model", "h200",
                                    recipe="llama", model=llama),
                          4, budget, "llama", llama, ["--device-model", "h200"])
        budget = self.plan("batch=8", recipe="mlp", model=[])["planned_peak_bytes"]["device"]
        self.check_choice(self.plan("batch=auto", "global_batch=16", "--budget", budget, recipe="mlp", model=[]),
                          16, budget, "mlp", [])

    def test_budgets(self):
        free = self.plan("batch=auto", "global_batch=4")
        self.assertTrue(all(c["fits"] for c in free["candidates"]))
        self.assertEqual(free["plan"]["recompute_bytes"], 0)
        keep = self.plan("batch=4")["planned_peak_bytes"]["device"]
        share = self.plan("batch=auto", "global_batch=4", "--budget", "60%")
        self.assertEqual(share["budget_bytes"], int(0.6 * keep))
        self.check_choice(share, 4, int(0.6 * keep))
        done = self.fails(4, "plan", "gpt2", *MODEL, "batch=auto", "global_batch=4", "--budget", 1000,
                          says=["no micro-batch fits", "1000 bytes", "smallest budget"])
        need = int(done.stderr.split("that fits is ")[1].split()[0])
        self.assertLessEqual(self.plan("batch=auto", "global_batch=4", "--budget", need)["planned_peak_bytes"]["device"],
                             need)
        self.fails(4, "plan", "gpt2", *MODEL, "batch=auto", "global_batch=4", "--budget", need - 4096)

    def test_training_takes_the_choice(self):
        small = self.plan("batch=2")["planned_peak_bytes"]["device"]
        chosen = self.plan("batch=auto", "global_batch=6", "--budget", small)
        run = ["global_batch=6", "--budget", small, "--steps", 4]
        joint = self.train("batch=auto", *run, model=MODEL)
        self.assertEqual((joint["batch"], joint["accumulate"]), (chosen["batch"], chosen["accumulate"]))
        self.assertEqual(joint["peak_bytes"], chosen["planned_peak_bytes"])
        self.assertEqual(joint["peak_bytes"], joint["planned_peak_bytes"])
        self.assertEqual([c["batch"] for c in joint["candidates"]], [c["batch"] for c in chosen["candidates"]])
        fixed = self.train(f"batch={chosen['batch']}", *run, model=MODEL)
        self.assertEqual(fixed["accumulate"], chosen["accumulate"])
        self.assertEqual(fixed["parameter_digest"], joint["parameter_digest"])
        for batch in (1, 3, 6):  # other micro-batches: other sums, close losses
            other = self.train(f"batch={batch}", "global_batch=6", "--steps", 4, model=MODEL)
            for a, b in zip(other["loss"], joint["loss"]):
                self.assertAlmostEqual(a, b, delta=1e-4 * b)

    def test_resume(self):
        run = ["global_batch=4", "--budget", "70%"]
        whole = self.train("batch=auto", *run, "--steps", 4, model=MODEL)
        self.train("batch=auto", *run, "--steps", 2, "--out", "run", model=MODEL)
        done = self.cairn("train", "--resume", "run", "--steps", 4, "--json", "--quiet", "--threads", 2)
        resumed = json.loads(done.stdout)
        self.assertEqual(resumed["parameter_digest"], whole["parameter_digest"])
        self.assertEqual((resumed["batch"], resumed["accumulate"]), (whole["batch"], whole["accumulate"]))
        self.fails(2, "train", "--resume", "run", "batch=auto", "global_batch=4", says="--resume")

    def test_words_for_people(self):
        text = self.cairn("plan", "gpt2", *MODEL, "batch=auto", "global_batch=4").stdout
        for word in ("samples/s", "slower", "chosen", "recomputed", "offloaded"):
            self.assertIn(word, text)
        self.assertIn("global_batch", self.cairn("plan", "gpt2", "--help").stdout)
        done = self.cairn("train", "mlp", "batch=auto", "global_batch=8", "--steps", 1)
        self.assertIn("chosen", done.stderr)
        self.assertNotIn("chosen", self.cairn("train", "mlp", "batch=auto", "global_batch=8", "--steps", 1, "--quiet").stderr)

    def test_misuse(self):
        for arguments, says in ((["batch=auto"], "needs global_batch"),
                                (["batch=auto", "global_batch=4", "--accumulate", 2], "--accumulate"),
                                (["batch=3", "global_batch=4"], "does not divide"),
                                (["batch=2", "global_batch=4", "--accumulate", 3], "--accumulate 3"),
                                (["batch=2", "global_batch=-4"], "global_batch"),
                                (["batch=2", "global_batch=some"], "global_batch"),
                                (["batch=most"], "a number")):
            for command in ("plan", "train"):
                with self.subTest(command=command, arguments=arguments):
                    self.fails(2, command, "gpt2", *MODEL, "data=random", *arguments, says=says)
        self.fails(2, "plan", "gpt2", *MODEL, "batch=auto", "global_batch=4", "--sweep", says="--sweep")
        for command in ("verify", "profile"):
            self.fails(2, command, "gpt2", *MODEL, "data=random", "batch=auto", says="cairn plan")
            self.fails(2, command, "gpt2", *MODEL, "data=random", "global_batch=4", says="cairn plan")
        (self.folder / "plain.lua").write_text(
            "local nn = require('cairn').nn\nreturn { model = function(o, g) return nn.attach(g, nn.Linear(2, 1), "
            "nn.MSECriterion(), { 4, 2 }) end, dataset = function() return { batch = function() end } end }\n")
        self.fails(2, "plan", "plain.lua", "batch=auto", "global_batch=4", says="unknown option")
        self.cairn("plan", "plain.lua", "--json")


main()
