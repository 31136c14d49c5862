"""Where predicted seconds come from without a profile: the model, a file, what was kept of earlier, what is measured."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import TINY, Case, main  # noqa: E402


def name_of(machine):
    """The file of a machine, as the library names it: FNV-1a over what a file must have in common with it."""
    digest = 0xcbf29ce484222325
    for byte in "|".join(str(machine[key]) for key in ("processor", "isa", "device", "threads", "cairn")).encode():
        digest = (digest ^ byte) * 0x100000001b3 % 2**64
    return f"rates-{digest:016x}.json"


class Rates(Case):
    def plan(self, *arguments, code=0):
        return json.loads(self.cairn("plan", "gpt2", *TINY, "--threads", 2, "--json", *arguments, code=code).stdout)["plan"]

    measured = None  # once for all tests

    def profile(self):
        path = self.folder / "p.json"
        if Rates.measured is None:
            self.cairn("profile", "gpt2", *TINY, "--threads", 2, "--steps", 1, "--quiet", "--profile-out", path)
            Rates.measured = path.read_text()
        path.write_text(Rates.measured)
        return path

    def file(self, factor, **changes):
        """Rates by which everything takes `factor` times what the model says, of this machine but for the changes."""
        machine = json.loads(self.profile().read_text())["machine"] | changes
        classes = [{"op": op, "dtype": "f32", "modelled_seconds": 1, "seconds": factor, "count": 1}
                   for op in ("linear", "linear_grad_input", "linear_grad_weight", "add", "optimizer", "host")]
        text = json.dumps({"format": "cairn.rates/1", "machine": machine, "measuring_seconds": 0.5, "launch_seconds": 0,
                           "links": [], "classes": classes})
        return machine, text

    def test_the_model_says_the_same_every_time(self):
        first = self.plan("--budget", "90%")
        self.assertEqual(first["rates"], "model")
        again = self.plan("--budget", "90%", "--rates", "model")
        for plan in first, again:
            del plan["solve_seconds"]
        self.assertEqual(first, again)
        self.assertFalse((self.folder / "cache").exists())

    def test_a_file(self):
        (self.folder / "slow.json").write_text(self.file(10)[1])
        (self.folder / "slower.json").write_text(self.file(30)[1])
        slow, slower = self.plan("--rates", "slow.json"), self.plan("--rates", "slower.json")
        self.assertEqual(slow["rates"], "file")
        self.assertAlmostEqual(slower["predicted_step_seconds"] / slow["predicted_step_seconds"], 3, places=6)
        text = self.cairn("plan", "gpt2", *TINY, "--threads", 2, "--rates", "slow.json").stdout
        self.assertRegex(text, r"rates +from a file; products .* GFLOP/s in float32, .*slow\.json")
        self.environment["CAIRN_RATES"] = "slow.json"
        self.assertEqual(self.plan()["predicted_step_seconds"], slow["predicted_step_seconds"])
        trained = self.train("--steps", 1, "--threads", 2)
        self.assertEqual(trained["plan"]["rates"], "file")

    def test_what_was_kept(self):
        machine, text = self.file(10)
        kept = self.folder / "cache/cairn" / name_of(machine)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(text)
        (self.folder / "same.json").write_text(text)
        cached = self.plan("--rates", "cache")
        self.assertEqual(cached["rates"], "cached")
        self.assertEqual(cached["predicted_step_seconds"], self.plan("--rates", "same.json")["predicted_step_seconds"])
        kept.write_text("{")
        done = self.cairn("plan", "gpt2", *TINY, "--threads", 2, "--json", "--rates", "cache")
        # Measured anew; on a machine that is busy with other work not even that, and it says so.
        self.assertIn(json.loads(done.stdout)["plan"]["rates"], ("measured", "model"))
        self.assertRegex(done.stderr, "measured again|busy")

    def test_wrong_files_and_words(self):
        self.fails(3, "plan", "gpt2", *TINY, "--rates", "nothing.json", says="nothing.json")
        (self.folder / "broken.json").write_text("{")
        self.fails(3, "plan", "gpt2", *TINY, "--rates", "broken.json", says="broken.json: rates: not JSON")
        (self.folder / "other.json").write_text(self.file(1, processor="Abacus")[1])
        self.fails(3, "plan", "gpt2", *TINY, "--threads", 2, "--rates", "other.json", says="Abacus")
        for option, value in ("profile", "p.json"), ("device-model", "h100"):
            self.fails(2, "plan", "gpt2", *TINY, "--rates", "model", f"--{option}", value, says="--rates does not go with")

    def test_other_sources(self):
        self.assertEqual(self.plan("--profile", self.profile())["rates"], "profile")
        self.assertEqual(self.plan("--device-model", "h100")["rates"], "device-model")


main()
