"""Command lines: help, unknown words, missing values, types of options; every mistake is exit code 2 and says what."""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, TINY, Case, main  # noqa: E402

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
        recipes = sorted(path.stem for path in (ROOT / "scripts/recipes").glob("*.lua"))
        self.assertIn(f"a name: {', '.join(recipes)}", " ".join(text.split()))
        listed = re.findall(r"^  cairn (\w+)", text, flags=re.M)
        self.assertEqual(sorted(listed), sorted(path.stem for path in (ROOT / "scripts/cli/commands").glob("*.lua")))

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

    def test_whole_numbers_have_bounds(self):
        """Of the command line, of a run.json, of a checkpoint (checkpoint/trust_test.py): no number is too large to be told."""
        for number in ("4294967296", "18446744073709551616", "9" * 40):
            for command in ("train", "plan", "verify", "profile"):
                self.fails(2, command, "mlp", "--threads", number, says=("--threads", "at most 4096"))
            for command in ("train", "plan"):
                self.fails(2, command, "mlp", "--accumulate", number, says=("--accumulate", "at most 2147483647"))
            self.fails(2, "train", "mlp", "--epochs", number, says="at most 2147483647")
            for name in ("threads", "accumulate"):
                (self.folder / "run.json").write_text(f'{{"recipe": "mlp", "arguments": {{"{name}": {number}}}}}')
                self.fails(3, "train", "--config", "run.json", says=("run.json", f"--{name}", "at most"))

    def test_what_is_meant(self):
        """What belongs before an option, behind it, or has another name elsewhere is named as it is typed here."""
        train = ("train", "mlp")
        for given, meant in ((["--batch", "8"], "batch=8"), (["steps=10"], "--steps 10"), (["budget=60%"], "--budget 60%"),
                             (["lr=0.1"], "rate=0.1"), (["--learning-rate", "0.1"], "rate=0.1"), (["batch_size=8"], "batch=8"),
                             (["--batch_size=8"], "batch=8"), (["epochs=3"], "--epochs 3"), (["out=run"], "--out run"),
                             (["num_layers=3"], "layers=3"), (["n_layer=3"], "layers=3"), (["hidden_size=8"], "width=8"),
                             (["n_embd=8"], "width=8"), (["max_steps=3"], "--steps 3"), (["--output-dir", "x"], "--out x")):
            self.fails(2, *train, *given, says=f"did you mean {meant}?")
        self.fails(2, "train", "gpt2", "block_size=8", says="did you mean seq=8?")
        self.fails(2, "train", "gpt2", "n_head=8", says="did you mean heads=8?")
        self.fails(2, "generate", "run", "--max-new-tokens", "8", says="did you mean --tokens 8?")

    def test_options_that_do_not_go_together(self):
        self.fails(2, "train", "mlp", "--budget", "7000%", says="7000%")
        for value in ("0.9", "0.8"):  # also where it is the default
            self.fails(2, "train", "mlp", "optimizer=sgd", f"beta1={value}", says="'sgd' has no beta1")
        self.fails(2, "train", "mlp", "rate=0.001", "minimum_rate=0.002", says="minimum_rate=0.002 is above rate=0.001")
        self.fails(2, "plan", "mlp", "--fuse-update", "--accumulate", 2, says="accumulate")
        self.fails(2, "plan", "mlp", "--amp", "fp16", "parameters=bf16", says="parameters=bf16")
        self.fails(2, "plan", "mlp", "--tiers", "disk", "--region", "layer*=offload:host", says="--tiers disk")

    def test_json_of_failures(self):
        """Every command that prints JSON prints an object with the error, whatever it is."""
        for code, status, words in ((2, "USAGE", ["train", "mlp", "--bogus"]), (2, "USAGE", ["plan", "nosuch"]),
                                    (2, "USAGE", ["devices", "all"]), (3, "NOT_FOUND", ["inspect", "nofile"]),
                                    (3, "BAD_INPUT", ["train", "./nosuch.lua"]), (2, "USAGE", ["generate", "x"]),
                                    (4, "OVER_BUDGET", ["plan", "mlp", "--budget", "1000"])):
            done = self.cairn(*words, "--json", code=code)
            error = json.loads(done.stdout)["error"]
            self.assertEqual((error["code"], error["status"]), (code, status), words)
            self.assertEqual(done.stderr, f"cairn: {error['message']}\n")

    def test_help_fits_and_tells_the_defaults(self):
        for columns in (60, 80, 120):
            self.environment["COLUMNS"] = str(columns)
            for command in (["--help"], ["train", "gpt2", "--help"], ["plan", "mlp", "--help"], ["devices"]):
                for line in self.cairn(*command).stdout.splitlines():
                    self.assertLessEqual(len(line), columns, line)
        text = self.cairn("train", "mlp", "--help").stdout
        self.assertRegex(text, r"\n  rate=0\.01\s")
        self.assertRegex(text, r"\n  schedule=constant\s")
        self.assertIn("300 steps", " ".join(text.split()))

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
