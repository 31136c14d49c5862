"""Whatever ends a run: the last whole step is saved, its metrics are there, and a resumed run has the bits of a whole one."""
import json
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import CAIRN, Case, main  # noqa: E402

MODEL = ["layers=1", "width=16", "heads=2", "seq=16", "batch=2", "vocab=64"]
# GPT-2 on data that are counted, with two micro-batches a step. Where `when` says, what `how` names happens, once: a file
# that is there already says that it has.
RECIPE = r"""
local gpt2, ffi = require "recipes.gpt2", require "ffi"
ffi.cdef "int kill(int pid, int signal); int getpid(void); int chmod(const char* path, unsigned mode);"
local recipe = {}
for key, value in pairs(gpt2) do recipe[key] = value end
recipe.training = { steps = 12, rate = 1e-3 }
recipe.options = { unpack(gpt2.options) }
for _, row in ipairs { { "how", "nothing", "what happens" }, { "when", "training", "where" }, { "at", 10, "micro-batch" } } do
  table.insert(recipe.options, row)
end
local HOW = {
  error = function() error("cannot read sample") end,
  table_error = function() error({ "odd" }) end,
  call_nil = function() local nothing = nil; nothing() end,
  memory = function() return ("x"):rep(2 ^ 31 - 1) end,  -- more than the interpreter has
  outside = function(tokens, o) tokens[5] = o.vocab end,
  fraction = function(tokens) tokens[5] = 1.5 end,
  short = function(tokens) tokens[#tokens] = nil end,
  none = function() return true end,
}
for number = 1, 30 do
  HOW["signal" .. number] = function() ffi.C.kill(ffi.C.getpid(), number) end
end
local function happens(o, where, index, tokens)
  if o.when ~= where or o.how == "nothing" or index ~= o.at then return end
  local mark = os.getenv("TMPDIR") .. "/happened"
  local file = io.open(mark)
  if file then
    file:close()
    return
  end
  io.open(mark, "w"):close()
  return HOW[o.how](tokens, o)
end
local function batch(o, where, index)
  local tokens, targets = {}, {}
  for i = 1, o.batch * o.seq do
    tokens[i] = (index * 7 + i) % o.vocab
    targets[i] = (index * 7 + i + 1) % o.vocab
  end
  if happens(o, where, index, tokens) then return nil end
  return { tokens = tokens, targets = targets }, o.batch * o.seq
end
recipe.dataset = function(o)
  return { batches = 24, batch = function(index) return batch(o, "training", index) end,
           tokenizer = { kind = "bytes", opened = { encode = function() return { 1, 2 } end, vocabulary = function() return 64 end,
             decode = function(_, tokens) happens(o, "sampling", o.at, {}); return "text " .. #tokens end } } }
end
recipe.evaluation = function(o)
  if o.how ~= "nothing" and o.when == "no evaluation" then return end
  return { data = function() return { batches = 2, batch = function(index)
    return batch(o, "evaluation", index == 1 and o.at or -1)
  end } end }
end
recipe.on_step = function(row) happens(MADE, "on_step", row.step, {}) end
local model = recipe.model
recipe.model = function(o, graph, purpose)
  MADE = o
  local ends = model(o, graph, purpose)
  ends.metrics = ends.metrics or {}
  ends.metrics.odd = { outputs = { loss = ends.loss }, better = "lower", training = true, measure = function()
    if purpose == "training" then
      MEASURED = (MEASURED or -1) + 1
      happens(o, "measuring", MEASURED, {})
    end
    return 1, 1
  end }
  return ends
end
return recipe
"""


class WaysOut(Case):
    def setUp(self):
        super().setUp()
        (self.folder / "mine.lua").write_text(RECIPE)
        self.options = ["mine.lua", *MODEL, "--accumulate", 2, "--threads", 1, "--quiet"]
        self.whole = self.run_whole()

    def run_whole(self):
        found = json.loads(self.cairn("train", *self.options, "--json", "--eval-every", 3, "--out", "whole").stdout)
        return found["parameter_digest"]

    def lines(self, name, run="run"):
        path = self.folder / run / name
        return [json.loads(line)["step"] for line in path.read_text().splitlines()] if path.exists() else []

    def saved(self):
        return sorted(int(path.name[5:]) for path in (self.folder / "run").glob("step-*"))

    def begin_again(self):
        for path in ("run", "happened"):
            os.system(f"rm -rf '{self.folder / path}'")

    def goes_on(self, *options):
        """The resumed run has the whole one's bits, and every line once."""
        done = json.loads(self.cairn("train", "mine.lua", "--resume", "run", "--threads", 1, "--quiet", "--json", *options).stdout)
        self.assertEqual(done["parameter_digest"], self.whole)
        self.assertEqual(self.lines("metrics.jsonl"), list(range(1, 13)))
        self.assertEqual(self.lines("evaluations.jsonl"), [3, 6, 9, 12])

    def test_the_last_whole_step_is_saved_and_goes_on(self):
        for when, at, step in (("training", 10, 5), ("training", 11, 5), ("evaluation", 10, 3), ("measuring", 10, 5),
                               ("measuring", 11, 6), ("on_step", 7, 7)):
            for how, code in (("error", 3), ("call_nil", 3), ("table_error", 3), ("memory", 4), ("outside", 3), ("fraction", 3),
                              ("short", 3), ("none", 3)):
                if how not in ("error", "memory") and (when, at) != ("training", 10):
                    continue
                with self.subTest(when=when, at=at, how=how):
                    self.begin_again()
                    done = self.fails(code, "train", *self.options, f"how={how}", f"when={when}", f"at={at}", "--eval-every", 3,
                                      "--out", "run", says=f"; saved run/step-{step:08}")
                    self.assertEqual(done.stdout, "")
                    self.assertEqual(self.saved(), [step])
                    self.assertEqual(self.lines("metrics.jsonl"), list(range(1, step + 1)))
                    self.assertTrue((self.folder / "run/report.html").exists())
                    self.goes_on()

    def test_in_the_evaluation_behind_the_last_step(self):
        self.fails(3, "train", *self.options, "how=error", "when=evaluation", "at=10", "--out", "run",
                   says=("cannot read sample", "; saved run/step-00000012"))
        done = json.loads(self.cairn("train", "mine.lua", "--resume", "run", "--quiet", "--json").stdout)
        self.assertEqual([row["step"] for row in done["evaluation"]], [12])
        self.assertEqual((done["loss"], done["parameter_digest"]), ([], self.whole))
        again = json.loads(self.cairn("train", "mine.lua", "--resume", "run", "--quiet", "--json").stdout)
        self.assertEqual(again["evaluation"], [])

    def test_in_a_sample_of_text(self):
        self.fails(3, "train", *self.options, "how=error", "when=sampling", "at=10", "--sample-every", 4, "--eval-every", 3,
                   "--out", "run", says=("cannot read sample", "; saved run/step-00000004"))
        self.goes_on()
        self.assertEqual(self.lines("samples.jsonl"), [4, 8, 12])

    def test_errors_of_the_library(self):
        for status, code, says in (("OUT_OF_MEMORY", 4, "; saved run/step-00000005"), ("IO", 5, "; saved run/step-00000005"),
                                   ("INTERNAL", 1, "; saved run/step-00000005"),
                                   ("NON_FINITE", 7, "; parameters that were partly updated are not saved")):
            for call in (11, 12):
                with self.subTest(status=status, call=call):
                    self.begin_again()
                    (self.folder / "mine.lua").write_text(f"""
                        local core, stepper = require "cairn.core", require "cairn.stepper"
                        local micro, calls = stepper.Stepper.micro, 0
                        function stepper.Stepper:micro(...)
                          calls = calls + 1
                          if calls ~= {call} then return micro(self, ...) end
                          return nil, core.make_error(core.C.CAIRN_STATUS_{status}, "refused")
                        end
                        {RECIPE}""")
                    done = self.fails(code, "train", *self.options, "--out", "run", says=("refused", says))
                    self.assertEqual(done.stdout, "")
                    self.assertEqual(self.saved(), [5] if "; saved" in says else [])
        (self.folder / "mine.lua").write_text(RECIPE)

    def test_signals_save_wherever_they_come(self):
        for when, at, step in (("training", 10, 5), ("evaluation", 10, 3), ("measuring", 10, 5), ("on_step", 7, 7)):
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU):
                if when != "training" and number not in (signal.SIGINT, signal.SIGHUP):
                    continue
                with self.subTest(when=when, signal=number.name):
                    self.begin_again()
                    done = self.cairn("train", *self.options, f"how=signal{int(number)}", f"when={when}", f"at={at}",
                                      "--eval-every", 3, "--out", "run", code=130)
                    self.assertIn(f"interrupted; saved run/step-{step:08}", done.stderr)
                    self.goes_on()

    def test_an_evaluation_inside_an_effective_batch_changes_no_bit(self):
        self.cairn("train", *self.options, "how=signal15", "at=11", "--out", "run", code=130)
        state = json.loads(self.cairn("inspect", "run", "--json").stdout)["state"]
        self.assertEqual((state["step"], state["micro"]), (5, 1))
        done = json.loads(self.cairn("train", "mine.lua", "--resume", "run", "--quiet", "--json", "--eval-every", 5).stdout)
        self.assertEqual(self.lines("evaluations.jsonl"), [5, 10, 12])
        self.assertEqual(done["parameter_digest"], self.whole)

    def test_signals_that_come_often_do_not_stop_the_saving(self):
        (self.folder / "mine.lua").write_text(RECIPE.replace(
            "ffi.C.kill(ffi.C.getpid(), number) end", "for _ = 1, 9 do ffi.C.kill(ffi.C.getpid(), number) end end"))
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGXCPU):
            self.begin_again()
            self.cairn("train", *self.options, f"how=signal{int(number)}", "--out", "run", code=130)
            self.assertEqual(len(self.saved()), 1)

    def test_who_reads_what_is_shown_may_go(self):
        reader, writer = os.pipe()
        os.close(reader)
        process = subprocess.Popen([CAIRN, "train", *map(str, self.options[:-1]), "how=none", "at=0", "--out", "run"], cwd=self.folder,
                                   env=self.environment, stdout=writer, stderr=writer)
        os.close(writer)
        self.assertEqual((process.wait(), self.saved()), (3, []))  # nothing whole, and nothing to say it to
        self.begin_again()
        reader, writer = os.pipe()
        os.close(reader)
        (self.folder / "happened").touch()
        process = subprocess.Popen([CAIRN, "train", *map(str, self.options[:-1]), "how=none", "--sample-every", "2", "--out", "run"],
                                   cwd=self.folder, env=self.environment, stdout=writer, stderr=writer)
        os.close(writer)
        self.assertEqual((process.wait(), self.saved()), (5, [12]))  # its result cannot be told; the run is saved

    def test_without_out_it_says_that_nothing_is_kept(self):
        self.fails(3, "train", *self.options, "how=error", says=("cannot read sample", "of 5 steps nothing is kept without --out"))
        self.begin_again()
        done = self.fails(3, "train", *self.options, "how=error", "at=1", says="cannot read sample")
        self.assertNotIn("kept", done.stderr)

    def test_what_cannot_be_saved_there_is_saved_elsewhere(self):
        blocked = """local count = 0
        recipe.on_step = function(row)
          if row.step == 5 then os.execute("mv run gone && touch run") end
        end
        return recipe"""
        (self.folder / "mine.lua").write_text(RECIPE.replace("return recipe\n", blocked))
        done = self.fails(5, "train", *self.options, "--save-every", 6, "--out", "run",
                          says=("could not be saved in run", "instead: move it into run"))
        (aside,) = self.folder.glob("cairn-*/step-0000000[56]")
        self.assertIn(str(aside), done.stderr)
        (self.folder / "run").unlink()
        (self.folder / "gone").rename(self.folder / "run")
        aside.rename(self.folder / "run" / aside.name)
        (self.folder / "mine.lua").write_text(RECIPE)
        found = json.loads(self.cairn("train", "mine.lua", "--recipe-changed", "--resume", "run", "--quiet", "--json").stdout)
        self.assertEqual((found["first_step"], found["parameter_digest"]), (int(aside.name[5:]), self.whole))

    def test_the_recipe_ends_the_run(self):
        for answer in ('"stop"', "false"):
            self.begin_again()
            (self.folder / "mine.lua").write_text(RECIPE.replace("return recipe\n", f"""recipe.on_step = function(row)
              assert(row.outcome == "applied" and row.loss > 0 and row.gradient_norm > 0 and row.rate == 1e-3)
              assert(row.metrics.odd == 1)
              if row.step == 5 then return {answer} end
            end
            return recipe\n"""))
            found = json.loads(self.cairn("train", *self.options, "--eval-every", 3, "--json", "--out", "run").stdout)
            self.assertEqual((found["ended"], found["steps"]), ("recipe", 5))
            self.assertEqual([row["step"] for row in found["evaluation"]], [3, 5])
            self.assertEqual(self.saved(), [5])

    def test_time_is_over(self):
        self.fails(2, "train", *self.options, "--max-time", "5", says=("--max-time", "90s"))
        found = json.loads(self.cairn("train", *self.options, "--steps", 1000000, "--max-time", "1s", "--json", "--out", "run").stdout)
        self.assertEqual((found["ended"], self.saved()[-1]), ("time", found["steps"]))
        self.assertGreater(found["steps"], 0)
        text = self.cairn("train", "mine.lua", "--resume", "run", "--quiet", "--max-time", "1s").stdout
        self.assertIn("--max-time was over", text)

    def test_the_last_step_was_not_finite(self):
        (self.folder / "mine.lua").write_text(RECIPE.replace("return recipe\n", """
            recipe.amp_rules = nil
            local dataset = recipe.dataset
            recipe.training.rate = 1e30
            recipe.training.clip = 0
            return recipe\n"""))
        done = self.cairn("train", *self.options, "--steps", 3, "--json", "--out", "run", "how=x", "when=no evaluation", code=7)
        found = json.loads(done.stdout)
        self.assertGreater(found["skipped_steps"], 0)
        self.assertEqual(found["ended"], "nonfinite")
        self.assertIn("saved in run/step-00000003", done.stderr)


main()
