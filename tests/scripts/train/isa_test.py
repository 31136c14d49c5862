"""The instruction set that CAIRN_ISA asks for: named, refused, obeyed; its bits and its profiles are its own."""
import json
import pathlib
import platform
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import TINY, Case, main  # noqa: E402

ARM = platform.machine() in ("aarch64", "arm64")
# In ascending order. Of x86 each contains those before it; of AArch64 a processor may lack one in between.
SETS = ["portable", "neon", "neon_bf16", "sve", "sve_bf16"] if ARM else ["portable", "avx2", "avx512", "avx512_bf16", "amx"]
NEEDS = {"neon_bf16": {"bf16"}, "sve": {"sve"}, "sve_bf16": {"sve", "bf16"}}


class Isa(Case):
    def setUp(self):
        super().setUp()
        self.environment.pop("CAIRN_ISA", None)
        self.own = self.used()
        # AVX512_BF16 is there on some processors that are faster without it.
        flags = pathlib.Path("/proc/cpuinfo").read_text().split()
        if ARM:
            self.available = [name for name in SETS if NEEDS.get(name, set()) <= set(flags)]
            self.assertEqual(self.own, self.available[-1])
            return
        faster = self.own == "avx512" and "avx512_bf16" in flags
        self.available = SETS[:SETS.index(self.own) + (2 if faster else 1)]

    def used(self, asked=None):
        if asked is not None:
            self.environment["CAIRN_ISA"] = asked
        devices = json.loads(self.cairn("devices", "--json").stdout)
        return next(device["isa"] for device in devices if device["name"] == "cpu")

    def test_every_set_of_this_processor_can_be_asked_for(self):
        for name in self.available:
            with self.subTest(name):
                self.assertEqual(self.used(name), name)
                table = self.cairn("devices").stdout
                self.assertIn(" " + name + " ", table)
        self.assertEqual(self.used(""), self.own)

    def test_others_are_refused(self):
        for name in ["avx", "AVX2", "amx ", "best", "avx2" if ARM else "neon"]:
            self.environment["CAIRN_ISA"] = name
            says = (f"CAIRN_ISA={name}", "known are " + ", ".join(reversed(SETS)),
                    "this processor has " + ", ".join(reversed(self.available)))
            self.fails(3, "devices", says=says)
            self.fails(3, "train", "gpt2", *TINY, "data=random", "--steps", 1, says=says)

    def test_a_set_that_the_processor_lacks_is_refused(self):
        missing = [name for name in SETS if name not in self.available]
        if not missing:
            self.skipTest(f"needs a processor without {SETS[-1]}")
        self.environment["CAIRN_ISA"] = missing[-1]
        self.fails(3, "devices", says=(f"CAIRN_ISA={missing[-1]}", "lacks", self.available[-1]))

    def test_losses_are_near_and_bits_are_those_of_the_set(self):
        losses, digests = {}, {}
        for name in self.available:
            self.environment["CAIRN_ISA"] = name
            runs = [self.train("--steps", 4), self.train("--steps", 4, "--policy", "recompute")]
            self.assertEqual(runs[0]["parameter_digest"], runs[1]["parameter_digest"], name)
            losses[name], digests[name] = runs[0]["loss"], runs[0]["parameter_digest"]
        for name in self.available:
            for loss, expected in zip(losses[name], losses["portable"]):
                self.assertAlmostEqual(loss, expected, delta=1e-4)
        # Sums of eight numbers at a time, not of four, or fused: the words are obeyed.
        for name in set(digests) & {"avx2", "neon"}:
            self.assertNotEqual(digests["portable"], digests[name])

    def test_a_resumed_run_says_that_the_set_is_another(self):
        if len(self.available) < 2:
            self.skipTest("needs avx2")
        self.train("--steps", 1, "--out", "run")
        self.environment["CAIRN_ISA"] = self.available[0]
        done = self.cairn("train", "--resume", "run", "--steps", 2, "--json")
        self.assertEqual(json.loads(done.stdout)["resumed"]["differences"],
                         [{"what": "the instruction set (CAIRN_ISA)", "was": self.own, "now": self.available[0]}])
        self.assertIn(f"the instruction set (CAIRN_ISA) was {self.own} and is {self.available[0]} after step 1", done.stderr)

    def test_a_profile_of_another_set_is_not_taken(self):
        if len(self.available) < 2:
            self.skipTest("needs avx2")
        lower = self.available[self.available.index(self.own) - 1]
        self.cairn("profile", "gpt2", *TINY, "data=random", "--threads", 2, "--steps", 3)
        self.environment["CAIRN_ISA"] = lower
        self.fails(3, "plan", "gpt2", *TINY, "--threads", 2, "--profile", "cairn-profile.json",
                   says=("instruction set", "there", "here"))


main()
