"""`schedule=` and its parameters, warm-up in steps, samples and tokens, rates that follow the effective batch."""
import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import TINY, Case, main  # noqa: E402

MLP = ["samples=64", "batch=8", "width=8", "layers=1", "rate=0.01"]
STEPS = 8
SCHEDULES = {
    "constant": [], "linear": ["minimum_rate=0.001"], "cosine": ["minimum_rate=0.001", "warmup=2"],
    "cosine:first_cycle=2": ["cycle_multiplier=2"], "step": ["step_size=2", "gamma=0.5"],
    "multistep": ["milestones=3,5", "gamma=0.5"], "onecycle": ["pct_start=0.5", "anneal=linear", "three_phase=true"],
    "wsd": ["decay_steps=4", "decay_shape=sqrt", "warmup=1"], "inverse_sqrt": ["warmup=2"], "polynomial": ["power=2"],
    "linear:3:start_factor=0.1:end_factor=1,constant:2,cosine": [],
}


class Schedules(Case):
    def logged(self, out):
        """The rates of the steps that a run directory tells of."""
        lines = (self.folder / out / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line)["rate"] for line in lines]

    def rates(self, *options, out="run", steps=STEPS, recipe="mlp", model=None):
        """The rates of a run's steps."""
        self.cairn("train", recipe, *(model or MLP), "--steps", steps, "--quiet", "--threads", 2, "--out", out,
                   "--force", *options)
        return self.logged(out)

    def assertNear(self, found, wanted):
        self.assertEqual(len(found), len(wanted))
        for one, other in zip(found, wanted):
            self.assertAlmostEqual(one, other, delta=1e-15)

    def test_every_schedule_resumes_where_it_was(self):
        listed = {row["name"] for row in json.loads(self.cairn("ops", "--schedules", "--json").stdout)}
        self.assertEqual(listed - {text.split(":")[0] for text in SCHEDULES}, set())
        for number, (text, options) in enumerate(SCHEDULES.items()):
            with self.subTest(schedule=text):
                options, out = [*options, f"schedule={text}", f"schedule_steps={STEPS}"], f"run{number}"
                whole = self.train("--steps", STEPS, "--out", "run", "--force", *options, recipe="mlp", model=MLP)
                rates = self.logged("run")
                self.rates(*options, out=out, steps=3)
                done = self.cairn("train", "--resume", out, "--steps", STEPS, "--json")
                rest = json.loads(done.stdout)
                self.assertEqual(rest["loss"], whole["loss"][3:])
                self.assertEqual(rest["parameter_digest"], whole["parameter_digest"])
                self.assertEqual(rest["resumed"]["differences"], [])
                self.assertEqual(self.logged(out), rates)

    def test_rates(self):
        self.assertNear(self.rates("schedule=step", "step_size=3", "gamma=0.5"),
                        [0.01 * 0.5 ** (step // 3) for step in range(STEPS)])
        self.assertNear(self.rates("schedule=multistep", "milestones=2,5"),
                        [0.01] * 2 + [0.001] * 3 + [0.0001] * 3)
        # A parameter of its own option counts in every stage that has it and does not say otherwise.
        self.assertNear(self.rates("schedule=step:2:step_size=1,step:2:step_size=1:gamma=0.1,step", "gamma=0.5",
                                   "step_size=2"),
                        [0.01, 0.005, 0.01, 0.001, 0.01, 0.01, 0.005, 0.005])
        self.assertNear(self.rates("schedule=linear:4:start_factor=0.5:end_factor=1,cosine"),
                        [0.005, 0.00625, 0.0075, 0.00875,
                         *(0.005 * (1 + math.cos(math.pi * step / 4)) for step in range(4))])

    def test_warm_up_in_samples_and_tokens(self):
        ramp = [0.0025, 0.005, 0.0075] + [0.01] * 5
        for option in ("warmup=4", "warmup_samples=32", "warmup_samples=25"):
            self.assertNear(self.rates(option), ramp[:3] + [0.01] * 5)
        self.assertNear(self.rates("warmup_samples=64", "--accumulate", 2), ramp)
        tiny = [*TINY, f"data={self.text}"]
        for option in ("warmup=4", "warmup_tokens=256", "warmup_tokens=193"):
            self.assertNear(self.rates(option, recipe="gpt2", model=tiny, steps=4),
                            [3e-3 * step / 4 for step in (1, 2, 3, 4)])
        # What is given takes the place of an earlier run's.
        self.rates("warmup=4", steps=2, out="other")
        self.cairn("train", "--resume", "other", "--steps", 4, "--quiet", "warmup_samples=80")
        self.assertNear(self.logged("other"), [0.0025, 0.005, 0.003, 0.004])

    def test_rates_follow_the_effective_batch(self):
        for rule, factor in (("linear", 0.5), ("sqrt", math.sqrt(0.5)), ("none", 1)):
            base = [] if rule == "none" else ["base_batch=32"]
            self.assertNear(self.rates(f"rate_scaling={rule}", *base, "--accumulate", 2, steps=2), [0.01 * factor] * 2)
        one = self.train("rate_scaling=linear", "base_batch=4", "--accumulate", 4, "--steps", 2, recipe="mlp", model=MLP)
        other = self.train("rate=0.08", "--accumulate", 4, "--steps", 2, recipe="mlp", model=MLP)
        self.assertEqual(one["parameter_digest"], other["parameter_digest"])

    def test_bad_input(self):
        def refused(*options, says, recipe="mlp", code=2):
            self.fails(code, "train", recipe, *MLP, "--steps", 5, *options, says=says)
        refused("schedule=cosin", says=("one of constant, cosine", "polynomial", "did you mean 'cosine'"))
        refused("schedule=step:pct_start=0.3", says=("a parameter of step", "'pct_start'", "step_size gamma"))
        refused("schedule=linear:100:nonsense,cosine", says=("'nonsense'", "linear"))
        refused("schedule=linear,cosine", says="schedule 1 of 2, linear, says no steps")
        refused("schedule=cosine", "warmup=6", says=("ends at step 5", "warm-up takes 6", "schedule_steps"))
        refused("schedule=linear:5,cosine", says=("ends at step 5", "schedule_steps"))
        refused("schedule=step", says="step_size is 0")
        refused("schedule=step", "step_size=2", "gamma=1.5", says=("gamma is 1.5", "at most 1"))
        refused("schedule=multistep", says="needs milestones")
        refused("schedule=multistep", "milestones=5,3", says=("3 after 5",))
        refused("schedule=multistep", "milestones=5,three", says=("milestones=5,three", "300,600"))
        refused("schedule=wsd", "decay_steps=6", says=("wsd needs at least 6",))
        refused("schedule=wsd", "decay_shape=round", says="linear, cosine, sqrt")
        refused("schedule=onecycle", "warmup=1", says=("onecycle climbs by itself", "leave that 0"))
        refused("schedule=onecycle", "three_phase=maybe", says="true or false")
        refused("schedule=cosine", "gamma=0.5", says=("cosine has no gamma", "first_cycle"))
        refused("milestones=3", says="constant has no milestones")
        refused("rate=0", says="rate=0; wanted: above 0")
        refused("rate=1e39", says="rate=1e39; wanted: at most 1e+38")
        refused("minimum_rate=1e39", says="minimum_rate=1e39; wanted: at most 1e+38")
        refused("rate=-1", says="rate=-1")
        refused("rate=inf", says="a number")
        refused("warmup=1", "warmup_samples=8", says="exclude each other")
        refused("warmup_tokens=8", says=("no option seq", "warmup_samples"))
        refused("rate_scaling=linear", says=("needs base_batch=N",))
        refused("rate_scaling=cubic", says="none, linear, sqrt")
        refused("base_batch=8", says="rate_scaling=linear")
        refused("schedule=onecycle", "optimizer=sgd", code=3, says=("momentum of sgd", "cycle_momentum"))
        self.rates("schedule=onecycle", "optimizer=sgd", "cycle_momentum=false")
        self.rates("schedule=onecycle", "optimizer=sgd", "momentum=0.9")

    def test_a_recipes_own_options_are_its_own(self):
        recipe = self.folder / "own.lua"
        recipe.write_text("""
            local mlp, own = require "recipes.mlp", {}
            for key, value in pairs(mlp) do own[key] = value end
            own.options = { { "gamma", 7, "something else" } }
            for _, row in ipairs(mlp.options) do table.insert(own.options, row) end
            own.training = { warmup = 2, schedule = "step", step_size = 3 }
            return own""")
        ramp = [0.005, 0.01]
        self.assertNear(self.rates("gamma=8", recipe=recipe), [*ramp, *[0.01] * 3, *[0.001] * 3])
        self.assertNear(self.rates("schedule=step:gamma=0.5", recipe=recipe), [*ramp, *[0.01] * 3, *[0.005] * 3])
        # A run that ends in the recipe's warm-up is the beginning of a longer one; the user's own warm-up is not.
        recipe.write_text(recipe.read_text().replace('schedule = "step"', 'schedule = "cosine", steps = 30'))
        self.assertNear(self.rates(recipe=recipe, steps=1), ramp[:1])
        self.fails(2, "train", recipe, *MLP, "--steps", 2, "warmup=3", says="ends at step 2")
        # A recipe's warm-up gives way to the one asked for.
        self.assertNear(self.rates("warmup_samples=8", recipe=recipe)[:2], [0.01, 0.01])
        recipe.write_text(recipe.read_text().replace("warmup = 2", "warmup = 2, warmup_samples = 5"))
        self.fails(2, "train", recipe, *MLP, says="exclude each other")


main()
