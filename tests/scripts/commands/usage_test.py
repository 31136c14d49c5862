"""Command lines: help, unknown words, missing values, types of options; every mistake is exit code 2 and says what."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import TINY, Case, main  # noqa: E402

COMMANDS = ("train", "plan", "verify", "profile", "inspect", "generate", "export", "devices", "ops")


class Usage(Case):
    def test_help(self):
        text = self.cairn("--help").stdout
        for command in COMMANDS:
            self.assertIn(f"cairn {command}", text)
            own = self.cairn(command, "--help").stdout
            self.assertIn("usage: cairn " + command, own)
            self.assertEqual(self.cairn("help", command).stdout, own)
        self.assertRegex(self.cairn("--version").stdout, r"^cairn 1\.\d+\.\d+\n$")
        self.assertNotIn("layers=4", self.cairn("train", "--help").stdout)
        self.assertNotIn("--device-model", self.cairn("train", "--help").stdout)  # refused with a word of its own, below
        for command in ("train", "plan"):
            self.assertIn("layers=4", self.cairn(command, "gpt2", "--help").stdout)
            self.assertIn("layers=4", self.cairn("help", command, "gpt2").stdout)
        self.assertEqual(self.cairn("help").stdout, self.cairn("--help").stdout)
        self.assertIn("usage: cairn lua FILE", self.cairn("help", "lua").stdout)
        self.fails(2, "help", "trian", says=("trian", "train"))

    def test_unknown_words(self):
        self.fails(2)
        self.fails(2, "trian", says=("trian", "train"))
        self.fails(2, "train", says="recipe")
        self.fails(2, "train", "gpt2", "mlp", says="mlp")
        self.fails(2, "train", "gpt2", "--bugdet", "5", says="--bugdet")
        self.fails(2, "train", "gpt2", "layres=3", says=("layres", "layers", "heads"))
        self.fails(2, "train", "gpt2", "data=random", "--device", "abacus", says=("abacus", "cpu"))
        self.fails(2, "train", "gpt2", "--device-model", "h100", says="it goes with `cairn plan`")
        self.fails(2, "devices", "all")

    def test_values(self):
        train = ("train", "gpt2", "data=random", *TINY)
        self.fails(2, *train, "--steps", says="--steps")
        self.fails(2, *train, "--steps", "--json", says="--steps needs a value")
        self.fails(2, *train, "--steps", "many", says="many")
        self.fails(2, *train, "--steps", "0", says="0")
        # From here on not every whole number is a number of Lua's: another seed would be taken, and nobody told.
        self.fails(2, *train, "--seed", "9007199254740993", says="too large; at most 9007199254740991")
        self.fails(2, *train, "--seed", "18446744073709551615", says="too large; at most 9007199254740991")
        self.fails(2, *train, "--json=yes", says="--json")
        for option in ("--out", "--resume", "--init", "--profile", "--config"):
            self.fails(2, *train, option, "", says=f"{option}: '' is no ")
        for option in ("--html", "--problem-out", "--plan-out", "--problem", "--device-model"):
            self.fails(2, "plan", *train[1:], f"{option}=", says=f"{option}: '' is no file")
        self.fails(2, *train, "steps=5", says=("unknown option 'steps'", "did you mean --steps 5?"))
        self.fails(2, *train, "quiet=1", says="did you mean --quiet?")
        self.fails(2, *train, "--budget", "lots", says="lots")
        self.fails(2, *train, "--budget", "-5", says="-5")
        self.fails(2, *train, "--budget", "5GB", says="GB")
        self.fails(2, *train, "--tiers", "host,moon", says="moon")
        self.fails(2, *train, "--amp", "int8", says=("int8", "bf16"))
        self.fails(2, *train, "--policy", "maybe", says="recompute")
        self.fails(2, *train, "layers=two", says="two")
        self.fails(2, *train, "layers=1.5", says="1.5")
        self.fails(2, *train, "layers=0", says="layers")
        self.fails(2, *train, "dropout=1", says="dropout")
        self.fails(2, *train, "tokens=words", says=("words", "bpe"))
        self.fails(2, *train, "schedule=sometimes", says="cosine")
        self.fails(2, *train, "--resume", "a", "--init", "b")
        self.fails(2, *train, "--save-every", "1", says="--out")

    def test_without_data(self):
        self.fails(2, "train", "gpt2", *TINY, says="data=FILE")

    def test_a_library_that_is_none(self):
        self.environment["CAIRN_LIBRARY"] = "/nowhere"
        for command in ("devices", "--version"):
            self.fails(1, command, says=("CAIRN_LIBRARY=/nowhere", "libcairn.so.1"))

    def test_devices(self):
        self.assertIn("cpu", self.cairn("devices").stdout)
        self.assertIn('"name":"cpu"', self.cairn("devices", "--json").stdout)


main()
