"""`lengths=`: buckets of lengths on one store; recipes with programs of their own."""
import json
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import TINY, Case, main  # noqa: E402

LENGTHS = "lengths=8,16,32"


def texts(count=48):
    """Paragraphs of 2 to some 50 letters."""
    draw = random.Random(3)
    words = "a pile of stones that marks the way back over the hills".split()
    return "\n\n".join(" ".join(draw.choice(words) for _ in range(draw.randint(1, 11))) for _ in range(count)) + "\n"


def batches_of(text, batch):
    """Micro-batches of an epoch by length, and the predictions in them."""
    rows, predictions = {8: 0, 16: 0, 32: 0}, {8: 0, 16: 0, 32: 0}
    for paragraph in text.strip().split("\n\n"):
        left = len(paragraph) - 1  # every letter but the first is predicted
        while left > 0:
            piece = min(left, 32)
            length = min(length for length in rows if length >= piece)
            rows[length] += 1
            predictions[length] += piece
            left -= piece
    return {length: -(-count // batch) for length, count in rows.items()}, predictions


# Two programs: the rows of a micro-batch, and half of them.
PROGRAMS = """
local gpt2 = require "recipes.gpt2"
local mine = {}
for key, value in pairs(gpt2) do mine[key] = value end
mine.programs = function(o, run) return %s end
mine.dataset = function(o, run)
  return { batches = 4, batch = function(index)
    local tokens, targets, program = {}, {}, 1
    if index %% 4 == 3 then program = %s end
    local rows = program == 2 and o.batch / 2 or o.batch
    for i = 1, rows * o.seq do
      tokens[i], targets[i] = (index + i) %% 7, (index + i + 1) %% 7
    end
    return { tokens = tokens, targets = targets }, rows * o.seq, program
  end }
end
return mine
"""
HALF = """{ { name = "whole", o = o }, { name = "rest", o = setmetatable({ batch = o.batch / 2 }, { __index = o }) } }"""


class Lengths(Case):
    def setUp(self):
        super().setUp()
        self.documents = self.folder / "documents.txt"
        self.documents.write_text(texts())

    def buckets(self, *arguments):
        return self.train(LENGTHS, "--accumulate", 2, *arguments, data=self.documents)

    def resumed(self, *arguments):
        return json.loads(self.cairn("train", "--resume", "run", "--json", "--quiet", *arguments).stdout)

    def test_programs_are_told_and_plans_change_no_bit(self):
        batches, predictions = batches_of(self.documents.read_text(), 4)
        self.assertEqual(sum(batches.values()) % 2, 1)
        steps = (sum(batches.values()) + 1) // 2  # of two micro-batches, the last one of one
        kept = self.buckets("--steps", steps)
        rows = kept["programs"]
        self.assertEqual([(row["name"], row["length"]) for row in rows],
                         [("length-8", 8), ("length-16", 16), ("length-32", 32)])
        self.assertEqual({row["length"]: row["micro_batches"] for row in rows}, batches)
        self.assertEqual({row["length"]: row["tokens"] for row in rows}, predictions)
        self.assertEqual(kept["peak_bytes"], kept["planned_peak_bytes"])
        self.assertLess(kept["loss"][-1], kept["loss"][0])
        self.assertNotIn("programs", self.train("--steps", 1))
        tight = self.buckets("--steps", steps, "--budget", "75%", "--tiers", "host")
        self.assertEqual(tight["parameter_digest"], kept["parameter_digest"])
        self.assertEqual(tight["loss"], kept["loss"])
        self.assertEqual(tight["programs"], rows)
        self.assertEqual(tight["peak_bytes"], tight["planned_peak_bytes"])
        self.assertLess(tight["peak_bytes"]["device"], kept["peak_bytes"]["device"])

    def test_resumed_inside_an_epoch_generates_and_exports(self):
        whole = self.buckets("--steps", 6)
        first = self.buckets("--steps", 3, "--out", "run")
        rest = self.resumed("--steps", 6)
        self.assertEqual(rest["loss"], whole["loss"][3:])
        self.assertEqual(rest["parameter_digest"], whole["parameter_digest"])
        for a, b, both in zip(first["programs"], rest["programs"], whole["programs"]):
            self.assertEqual(a["micro_batches"] + b["micro_batches"], both["micro_batches"])
            self.assertEqual(a["tokens"] + b["tokens"], both["tokens"])
        self.cairn("generate", "run", "--prompt", "a pile", "--tokens", 4)
        self.cairn("export", "run", "weights.safetensors")
        taken = self.train("--steps", 1, "--init", "weights.safetensors", "seq=32")
        self.assertEqual(taken["steps"], 1)

    def test_metrics_are_those_of_the_program_that_ran(self):
        # Shorter windows take a part of the position table: one op more, so that their values have other names.
        for recipe in ("gpt2", "llama"):
            found = self.train(LENGTHS, "metrics=accuracy", f"eval_data={self.documents}", "rate=1e-30", "weight_decay=0",
                               "--epochs", 1, "--accumulate", 1000, recipe=recipe, data=self.documents)
            self.assertEqual(found["metrics"]["accuracy"], [found["evaluation"][0]["accuracy"]])

    def test_fewer_lengths_are_a_difference_and_others_of_the_same_longest_go_on(self):
        self.buckets("--steps", 2, "--out", "run")
        rest = self.resumed("lengths=16,32", "--steps", 4)
        self.assertEqual([row["length"] for row in rest["programs"]], [16, 32])
        self.assertIn("lengths", json.dumps(rest["resumed"]["differences"]))
        self.fails(3, "train", "--resume", "run", "lengths=16,64", "--steps", 6, says="another model")

    def test_text_tells_programs(self):
        text = self.cairn("train", "gpt2", *TINY, f"data={self.documents}", LENGTHS, "--steps", 2, "--quiet").stdout
        self.assertRegex(text, r"(?m)^length-8 +\d+ micro-batches, \d+ tokens\nlength-16 ")

    def test_random_texts(self):
        again = [self.train(LENGTHS, "--steps", 2, data="random")["parameter_digest"] for _ in range(2)]
        self.assertEqual(again[0], again[1])

    def test_mistakes(self):
        for command, option, says in (
                ("train", "lengths=0", "'0' is no length"), ("train", "lengths=x", "'x' is no length"),
                ("train", "lengths=8,", "'' is no length"), ("train", "lengths=-8", "'-8' is no length"),
                ("train", "lengths=8.5", "'8.5' is no length"), ("train", "lengths=nan", "'nan' is no length"),
                ("train", "lengths=0x10", "'0x10' is no length"), ("train", "lengths=8,16,8", "8 is there twice"),
                ("plan", "lengths=8,x", "'x' is no length"), ("verify", "lengths=8", "cairn train"),
                ("profile", "lengths=8", "cairn train")):
            with self.subTest(command=command, option=option):
                self.fails(2, command, "gpt2", *TINY, f"data={self.documents}", option, says=("lengths=", says))
        self.fails(2, "train", "gpt2", *TINY, f"data={self.documents}", LENGTHS, "batch=auto", "global_batch=8",
                   says=("lengths=", "batch=auto"))
        (self.folder / "blank.txt").write_text("\n\n%\n\n")
        self.fails(3, "train", "gpt2", *TINY, "data=blank.txt", LENGTHS, says=("blank.txt", "no text"))
        self.fails(3, "train", "gpt2", *TINY, "data=nowhere.txt", LENGTHS, says="nowhere.txt")

    def own(self, programs, other="2", code=0, arguments=()):
        (self.folder / "mine.lua").write_text(PROGRAMS % (programs, other))
        return self.cairn("train", "mine.lua", *TINY, "--json", "--quiet", "--threads", 2, *arguments, code=code)

    def test_programs_of_a_recipe(self):
        found = json.loads(self.own(HALF, arguments=["--steps", 2, "--accumulate", 4]).stdout)
        self.assertEqual(found["programs"], [
            {"name": "whole", "length": None, "micro_batches": 6, "tokens": 6 * 4 * 16},
            {"name": "rest", "length": None, "micro_batches": 2, "tokens": 2 * 2 * 16}])
        self.assertEqual(found["peak_bytes"], found["planned_peak_bytes"])
        self.own(HALF, arguments=["--steps", 1, "--accumulate", 4, "--out", "run"])
        rest = json.loads(self.cairn("train", "mine.lua", "--resume", "run", "--steps", 2, "--json", "--quiet").stdout)
        self.assertEqual(rest["parameter_digest"], found["parameter_digest"])

    def test_a_program_that_never_runs_is_named_and_not_planned_for(self):
        # The smaller one alone: both start at the larger one's arguments, and the last micro-batch is that of `rest`.
        text = PROGRAMS.replace("local tokens, targets, program = {}, {}, 1", "local tokens, targets, program = {}, {}, 2")
        (self.folder / "mine.lua").write_text(text % (HALF, "2"))
        run = ["train", "mine.lua", *TINY, "--steps", 2, "--threads", 2, "--quiet"]
        found = json.loads(self.cairn(*run, "--json").stdout)
        self.assertEqual(found["programs_not_run"], ["whole"])
        self.assertEqual(found["peak_bytes"], found["planned_peak_bytes"])
        whole = json.loads(self.own(HALF, arguments=["--steps", 1, "--accumulate", 4]).stdout)
        self.assertEqual(whole["programs_not_run"], [])
        self.assertLess(found["peak_bytes"]["device"], whole["peak_bytes"]["device"])
        (self.folder / "mine.lua").write_text(text % (HALF, "2"))
        self.assertIn("equal", self.cairn(*run).stdout)

    def test_commands_of_one_program(self):
        (self.folder / "mine.lua").write_text(PROGRAMS % (HALF, "2"))
        for command in ("verify", "profile"):
            self.fails(2, command, "mine.lua", *TINY, says=("2 programs", "whole, rest", "cairn train"))

    def test_mistakes_in_programs(self):
        for programs, other, says in (
                (HALF, "3", ("micro-batch 3", "is 3, a number", "1 to 2")),
                (HALF, "nil", ("micro-batch 3", "third result) is nothing", "1 to 2")),
                (HALF, "'rest'", ("micro-batch 3", "is 'rest', a string", "1 to 2")),
                ("5", "2", ("what programs returns", "5, a number")),
                ("{}", "2", ("what programs returns",)),
                ("{ { o = o } }", "1", ("programs: row 1", "name")),
                ("{ { name = 'a', o = o }, { name = 'a', o = o } }", "2", ("'a'",)),
                ("{ { name = 'a', o = o }, { name = 'b', o = setmetatable({ width = 8 }, { __index = o }) } }", "2",
                 ("'wte.weight'", "'a'", "'b'"))):
            with self.subTest(programs=programs, other=other):
                problem = self.own(programs, other, code=3, arguments=["--steps", 4]).stderr
                for words in says:
                    self.assertIn(words, problem)


if __name__ == "__main__":
    main()
