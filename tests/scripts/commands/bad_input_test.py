"""Bad input of every kind: a clear message, the right exit code, nothing lost."""
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import CAIRN, TINY, Case, main  # noqa: E402


class BadInput(Case):
    def gpt2(self, code, *arguments, says=()):
        return self.fails(code, "train", "gpt2", *TINY, *arguments, says=says)

    def recipe(self, text):
        path = self.folder / "mine.lua"
        path.write_text(text)
        return path

    def test_data(self):
        self.gpt2(3, "data=/nowhere/text.txt", says="/nowhere/text.txt")
        (self.folder / "empty.txt").write_text("")
        self.gpt2(3, "data=empty.txt", says="empty")
        (self.folder / "short.txt").write_text("abc")
        self.gpt2(3, "data=short.txt", says="short.txt")
        self.gpt2(3, f"data={self.folder}", says=(str(self.folder), "is a directory"))
        self.gpt2(3, "data=/dev/zero", says="/dev/zero is a device")
        os.mkfifo(self.folder / "pipe")
        self.gpt2(3, "data=pipe", says="pipe is a pipe")

    def test_what_is_of_the_wrong_kind_is_bad_input(self):
        for path in ("/dev/null", self.folder):
            for words in (["inspect"], ["export"], ["train", "gpt2", *TINY, "data=random", "--steps", 1, "--init"],
                          ["train", "gpt2", *TINY, "data=random", "--steps", 1, "--resume"], ["plan", "--problem"],
                          ["plan", "gpt2", *TINY, "--profile"], ["plan", "gpt2", *TINY, "--device-model"]):
                self.fails(3, *words, path, *(["out.safetensors"] if words[0] == "export" else []), says=str(path))

    def test_a_problem_without_an_end(self):
        self.fails(3, "plan", "--problem", "/dev/zero", says="/dev/zero is a device; a file is needed")

    def test_token_outside_the_vocabulary(self):
        done = self.fails(3, "train", "gpt2", *TINY, "vocab=64", f"data={self.text}", "--steps", 2,
                          says=("micro-batch 0: ", "vocabulary", "0..63"))
        self.assertEqual(done.stderr.count("input '"), 1, done.stderr)

    def test_over_budget_names_the_smallest(self):
        done = self.gpt2(4, "data=random", "--budget", "1KiB", says="budget")
        numbers = sorted({int(number) for number in re.findall(r"\d{4,}", done.stderr)})
        self.assertTrue(numbers)
        fitting = [n for n in numbers if self.fits(n)]
        self.assertTrue(fitting, f"none of {numbers} fits")

    def fits(self, budget):
        command = [CAIRN, "plan", "gpt2", *TINY, "--budget", str(budget)]
        return subprocess.run(command, env=self.environment, capture_output=True, timeout=60).returncode == 0

    def test_a_gpu_where_there_is_none(self):
        command = [CAIRN, "train", "gpt2", *TINY, "data=random", "--device", "cuda:0", "--steps", "1"]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cuda", done.stderr.lower())

    def test_non_finite(self):
        done = self.fails(7, "train", "gpt2", *TINY, "rate=1e30", f"data={self.text}", "--steps", 20, "--max-skips", 3,
                          "--out", "run", says=("not finite", "saved in run/step-"))
        self.assertIn("loss", done.stdout)
        self.cairn("inspect", "run")

    def test_numbers_that_are_not_finite_or_not_positive(self):
        data = f"data={self.text}"
        for name, values in {"rate": ("nan", "inf", "-1", "0"), "clip": ("nan", "inf", "-1"),
                             "loss_scale": ("nan", "inf", "-1"), "loss_scale_growth": ("nan", "inf", "0.5"),
                             "loss_scale_backoff": ("nan", "inf", "-1"), "loss_scale_interval": ("nan", "0", "1.5")}.items():
            for value in values:
                with self.subTest(name=name, value=value):
                    self.fails(2, "train", "gpt2", *TINY[:-1], data, "--amp", "fp16", f"{name}={value}", "--steps", 1, says=name)
        for value in ("0", "-1", "1.5", "nan"):
            self.fails(2, "train", "gpt2", *TINY, data, "--accumulate", value, "--steps", 1, says="--accumulate")

    def test_a_step_of_which_nothing_counts(self):
        text = """
            local nn = require("cairn").nn
            return {
              options = { { "batch", 4, "rows", whole = true, least = 1 } },
              model = function(o, g) return nn.attach(g, nn.Linear(2, 3), nn.CrossEntropyCriterion(), { o.batch, 2 }) end,
              dataset = function(o) return { batches = 8, batch = function(index)
                local at = index % 8
                local counts = at < 4 or at == 7
                return { input = { 1, 2, 3, 4, 5, 6, 7, 8 }, target = counts and { 0, -100, 1, 2 } or { -100, -100, -100, -100 } }
              end } end,
            }"""
        words = ["train", self.recipe(text), "--steps", 4, "--quiet"]
        done = self.cairn(*words[:-1], "--accumulate", 2)  # that one is skipped
        self.assertIn("note: step 3 is skipped: the weights of its 2 micro-batch(es) add up to 0", done.stderr)
        self.assertRegex(done.stdout, "\nskipped +1 step in all, 1 of them")
        self.fails(3, *words, "--accumulate", 2, "--max-skips", 1, says=("add up to 0", "something counts"))
        self.cairn(*words, "--accumulate", 4)  # of each step something counts

    def test_recipes(self):
        self.fails(2, "train", "nosuch", says=("nosuch", "gpt2", "mlp"))
        self.fails(3, "train", self.folder, says="recipe")
        self.fails(3, "train", self.recipe("return {"), says="mine.lua:1")
        self.fails(3, "train", self.recipe("\n\nlocal x = nil + 1\nreturn {}"), says=("mine.lua:3", "arithmetic"))
        self.fails(3, "train", self.recipe("return 5"), says="table")
        self.fails(3, "train", self.recipe("return { dataset = print }"), says="model")
        self.fails(3, "train", self.recipe("return { options = { 5 }, model = print, dataset = print }"), says="options")
        self.fails(3, "train", self.recipe("return { model = function() end, dataset = print }"), says="model must return")

    def test_a_mistake_in_a_model_names_the_line(self):
        text = """return {
  dataset = function() end,
  model = function(o, graph)
    local x = graph:input("x", { 4, 8 })
    return { loss = graph:op("linear", x, graph:parameter("w", { 3, 9 })) }
  end,
}
"""
        self.fails(3, "train", self.recipe(text), says=("mine.lua:5", "linear", "8", "9"))
        self.fails(3, "train", self.recipe(text.replace('"linear"', '"liner"')), says=("mine.lua:5", "liner"))
        inside = """local nn = require("cairn").nn
return {
  dataset = function() end,
  model = function(o, graph)
    return nn.attach(graph, nn.Linear(9, 3), nn.MSECriterion(), { 4, 8 })
  end,
}
"""
        self.fails(3, "train", self.recipe(inside), says=("mine.lua:4", "linear"))  # a tail call: where the function begins

    def test_a_mistake_in_batches_names_the_line(self):
        text = """local nn = require("cairn").nn
return {
  model = function(o, graph) return nn.attach(graph, nn.Linear(2, 1), nn.MSECriterion(), { 4, 2 }) end,
  dataset = function()
    return { batch = function(index)
      return { input = no_such_thing.field }
    end }
  end,
}
"""
        self.fails(3, "train", self.recipe(text), says=("mine.lua:6", "no_such_thing"))
        wrong = text.replace("no_such_thing.field", "{ 1, 2, 3 }")
        self.fails(3, "train", self.recipe(wrong), says=("mine.lua:5", "3 numbers", "8 needed"))
        self.fails(3, "train", self.recipe(text.replace("input = no_such_thing.field", "thing = { 1 }")), says="thing")

    def test_a_recipe_of_ones_own(self):
        text = """local nn = require("cairn").nn
return {
  options = { { "width", 8, "of the hidden layer", whole = true, least = 1 } },
  training = { steps = 5, rate = 0.05 },
  model = function(o, graph)
    local net = nn.Sequential():add(nn.Linear(2, o.width)):add(nn.ReLU()):add(nn.Linear(o.width, 1))
    return nn.attach(graph, net, nn.MSECriterion(), { 4, 2 })
  end,
  dataset = function()
    return { batch = function(index)
      local x, y = {}, {}
      for i = 1, 4 do
        x[2 * i - 1], x[2 * i] = math.sin(index + i), math.cos(index + i)
        y[i] = x[2 * i - 1] + x[2 * i]
      end
      return { input = x, target = y }, 4
    end }
  end,
}
"""
        path = self.recipe(text)
        self.assertIn("steps 1 to 5", self.cairn("train", path, "width=16").stdout)
        self.cairn("train", path, "--out", "run", "--quiet")
        self.fails(3, "train", "--resume", "run", "--steps", 9, says=("mine.lua", "--recipe FILE"))  # it names it itself
        self.assertIn("steps 6 to 9", self.cairn("train", path, "--resume", "run", "--steps", 9).stdout)

    def test_a_path_is_named_once(self):
        (self.folder / "it's here").write_text("nothing of ours")
        for path in ("nowhere", "text.txt", ".", "it's here"):
            for command in (["inspect", path], ["generate", path, "--prompt", "x"], ["export", path, "x.safetensors"]):
                self.assertEqual(self.fails(3, *command).stderr.count(f"'{path}'"), 1, command)
                self.assertNotIn(f"{path}: '{path}'", self.fails(3, *command).stderr)

    def test_files(self):
        self.fails(3, "inspect", "nowhere.bin", says="nowhere.bin")
        (self.folder / "noise.bin").write_bytes(bytes(range(256)) * 16)
        self.fails(3, "inspect", "noise.bin")
        self.gpt2(3, "data=random", "--init", "nowhere.safetensors", says="nowhere.safetensors")
        self.gpt2(3, "data=random", "--init", "noise.bin")
        self.fails(5, "train", "gpt2", *TINY, "data=random", "--steps", 1, "--out", "noise.bin", says="noise.bin")

    def test_says_why_a_directory_cannot_be_made(self):
        refusing = "/sys/cairn-run"
        try:
            os.mkdir(refusing)
        except OSError as problem:
            self.fails(5, "train", "mlp", "--steps", 1, "--out", refusing, says=(refusing, problem.strerror))
        else:
            os.rmdir(refusing)
        self.fails(3, "plan", "--problem", "noise.bin")
        self.fails(3, "plan", "--problem", "nowhere.json", says="nowhere.json")


main()
