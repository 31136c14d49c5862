"""What must not change numbers does not: pairs of runs that differ in policy, budget, tier, accumulation's plan, resuming,
processors or environment, and end in the same parameters bit by bit. Each pair has a name; CAIRN_TEST=long runs all."""
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import CAIRN, HANGS, ROOT, Case, main  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/support"))
from campaign import LONG, taken  # noqa: E402

ONE_IN = 32  # of the pairs in a run that is not long
LEAST = 500
STEPS, MIDDLE = 4, 2
SMALL = ["layers=2", "heads=2", "width=16", "vocab=64", "seq=16", "batch=3", "rate=3e-3", "data=random"]
MODELS = {
    "mlp": ["mlp", "width=24", "samples=96", "batch=8"],
    "mlp_mse": ["mlp", "width=24", "samples=96", "batch=8", "activation=gelu", "loss=mse"],
    "gpt2": ["gpt2", *SMALL],
    "gpt2_dropout": ["gpt2", *SMALL, "dropout=0.1", "positions=24"],
    "gpt2_wide": ["gpt2", *SMALL, "layers=1", "width=64", "seq=48", "batch=6"],  # work for several threads
    "llama": ["llama", *SMALL, "kv_heads=1"],
    "llama_tied": ["llama", *SMALL, "kv_heads=2", "tied=true", "eps=1e-6"],
}
PRECISIONS = {"f32": [], "bf16": ["--amp", "bf16"]}
ACCUMULATE = {"one": [], "three": ["--accumulate", "3"]}
THREADS = ["--threads", "3"]  # of which the bits may depend
PLANS = {
    "keep": ["--policy", "keep"],
    "recompute": ["--policy", "recompute"],
    "offload host": ["--policy", "offload", "--tiers", "host"],
    "offload disk": ["--policy", "offload", "--tiers", "disk"],
    "offload host,disk": ["--policy", "offload", "--tiers", "host,disk"],
    "slow link": ["--policy", "offload", "--link", "200MiB"],
    "budget 90%": ["--budget", "90%"],
    "budget 70%": ["--budget", "70%"],
    "budget 70% host": ["--budget", "70%", "--tiers", "host"],
    "budget 60% disk": ["--budget", "60%", "--tiers", "disk"],
    "budget 50% host,disk": ["--budget", "50%", "--tiers", "host,disk"],
    "smallest": ["--budget", "1"],
    "smallest host": ["--budget", "1", "--tiers", "host"],
    "smallest disk": ["--budget", "1", "--tiers", "disk"],
}
ENVIRONMENTS = {
    "OMP_NUM_THREADS": {"OMP_NUM_THREADS": "1"},
    "OMP_WAIT_POLICY": {"OMP_WAIT_POLICY": "passive"},
    "OMP_PROC_BIND": {"OMP_PROC_BIND": "true"},
    "OMP_SCHEDULE": {"OMP_SCHEDULE": "dynamic,1", "OMP_NESTED": "true"},
    "OMP_DYNAMIC": {"OMP_DYNAMIC": "true"},
    "OMP_THREAD_LIMIT": {"OMP_THREAD_LIMIT": "1"},
    "OMP_MAX_ACTIVE_LEVELS": {"OMP_MAX_ACTIVE_LEVELS": "0"},
    "MALLOC": {"MALLOC_PERTURB_": "165", "MALLOC_ARENA_MAX": "1"},
    "locale": {"LC_ALL": "de_DE.UTF-8", "LANG": "tr_TR.UTF-8"},
    "empty": {name: None for name in ("OMP_NUM_THREADS", "HOME", "LANG", "TERM", "TMPDIR", "XDG_CACHE_HOME")},
}
OTHERS = ("resumed", "resumed twice under other plans", "saved after every step", "one processor", "another TMPDIR")


def pairs():
    """All pairs: (name, model, arguments that both have, what the second run differs in)."""
    for model, precision, accumulate in itertools.product(MODELS, PRECISIONS, ACCUMULATE):
        shared = [*PRECISIONS[precision], *ACCUMULATE[accumulate], *THREADS]
        for other in (*PLANS, *ENVIRONMENTS, *OTHERS):
            if other != "smallest disk" or accumulate == "one":
                yield f"{model}, {precision}, {accumulate}: {other}", model, shared, other


class Equivalence(Case):
    def run_once(self, model, shared, more, environment=None, resumed=None, affinity=None):
        command = [CAIRN, "train", *(["--resume", resumed] if resumed else MODELS[model]), *shared, "--json", "--quiet",
                   *map(str, more)]
        changed = {**self.environment, **(environment or {})}
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS, cwd=self.folder,
                              env={name: value for name, value in changed.items() if value is not None},
                              preexec_fn=(lambda: os.sched_setaffinity(0, affinity)) if affinity else None)
        smallest = re.search(r"smallest budget that (?:fits|does) is (\d+)", done.stderr)
        if done.returncode == 4 and smallest and "--budget" in more:
            at = more.index("--budget") + 1
            self.assertNotEqual(more[at], smallest.group(1))
            return self.run_once(model, shared, [*more[:at], smallest.group(1), *more[at + 1:]], environment, resumed)
        self.assertEqual(done.returncode, 0, f"{' '.join(command)}\n{done.stderr}")
        result = json.loads(done.stdout)
        self.assertEqual(result["peak_bytes"], result["planned_peak_bytes"])
        return result

    def second(self, model, shared, other, name):
        """The run that differs; its losses, or those of its last part, and its parameters."""
        steps, out = ["--steps", STEPS], ["--out", re.sub(r"\W+", "-", name)]
        if other in PLANS:
            return self.run_once(model, shared, [*steps, *PLANS[other]])
        if other in ENVIRONMENTS:
            return self.run_once(model, shared, steps, ENVIRONMENTS[other])
        if other == "resumed":
            self.run_once(model, shared, ["--steps", MIDDLE, *out])
            return self.run_once(model, shared, steps, resumed=out[1])
        if other == "resumed twice under other plans":
            self.run_once(model, shared, ["--steps", 1, "--policy", "recompute", *out])
            self.run_once(model, shared, ["--steps", MIDDLE + 1, "--policy", "offload"], resumed=out[1])
            return self.run_once(model, shared, [*steps, "--policy", "keep"], resumed=out[1])
        if other == "saved after every step":
            return self.run_once(model, shared, [*steps, "--save-every", 1, *out])
        if other == "one processor":
            return self.run_once(model, shared, steps, affinity={min(os.sched_getaffinity(0))})
        self.assertEqual(other, "another TMPDIR")
        (self.folder / "elsewhere").mkdir(exist_ok=True)
        return self.run_once(model, shared, [*steps, "--policy", "offload", "--tiers", "disk"],
                             {"TMPDIR": str(self.folder / "elsewhere")})

    def test_pairs(self):
        every = list(pairs())
        self.assertEqual(len({name for name, *_ in every}), len(every))
        self.assertGreaterEqual(len(every), LEAST)
        first, count = {}, 0
        for point, (name, model, shared, other) in enumerate(every):
            if not taken(point, ONE_IN):
                continue
            with self.subTest(name):
                key = (model, *shared)
                if key not in first:
                    first[key] = self.run_once(model, shared, ["--steps", STEPS])
                wanted, found = first[key], self.second(model, shared, other, name)
                self.assertEqual(found["parameter_digest"], wanted["parameter_digest"])
                self.assertEqual(found["loss"], wanted["loss"][-len(found["loss"]):])
                count += 1
                if LONG:
                    print(f"{count} of {point + 1} equal: {name}", flush=True)
        print(f"{count} of {len(every)} pairs")
        self.assertGreaterEqual(count, LEAST if LONG else 1)


main()
