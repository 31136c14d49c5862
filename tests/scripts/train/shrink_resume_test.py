#!/usr/bin/env python3
"""--resume with --on-oom shrink: where a run stands in its data does not depend on the size of its micro-batches."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

MODEL = ["layers=2", "width=32", "heads=2", "seq=32", "vocab=64"]
# Records which samples are trained on, a line per micro-batch. Interrupts the run where it comes to micro-batch `stop`;
# is refused memory at its micro-batch `refused`, counted from 1.
RECIPE = """
local core, ffi, gpt2 = require "cairn.core", require "ffi", require "recipes.gpt2"
local stepper = require "cairn.stepper"
ffi.cdef "int raise(int);"
local micro, calls, shown = stepper.Stepper.micro, 0, nil
local recipe = {}
for key, value in pairs(gpt2) do recipe[key] = value end
function recipe.dataset(o)
  return { batches = 7, batch = function(index)
    if index == tonumber(os.getenv "STOP") then
      ffi.C.raise(2)
      while true do end
    end
    local tokens, targets = {}, {}
    for i = 1, o.batch do
      local sample = index % 7 * o.batch + i - 1
      for t = 1, o.seq do
        tokens[#tokens + 1] = t == 1 and sample % 64 or (sample * 5 + t * 3) % 64
        targets[#targets + 1] = (sample * 5 + t * 3 + 3) % 64
      end
    end
    return { tokens = tokens, targets = targets }, o.batch * o.seq
  end }
end
local session = require "cairn.session"
local write = session.Session.write
function session.Session:write(name, array)
  if name == "tokens" then shown = array end
  return write(self, name, array)
end
function stepper.Stepper:micro(...)
  calls = calls + 1
  if calls == tonumber(os.getenv "REFUSED") then
    self:discard()
    return nil, core.make_error(core.C.CAIRN_STATUS_OUT_OF_MEMORY, "no memory")
  end
  local report, err = micro(self, ...)
  local file = report and assert(io.open(os.getenv "SEEN", "a"))
  if file then
    for i = 1, #shown, 32 do file:write(shown[i], " ") end
    file:write("\\n")
    file:close()
  end
  return report, err
end
return recipe
"""


class ShrinkResume(harness.Case):
    def setUp(self):
        super().setUp()
        self.recipe = self.folder / "recorded.lua"
        self.recipe.write_text(RECIPE)
        plans = [json.loads(self.cairn("plan", "gpt2", *MODEL, "data=random", f"batch={batch}", "--policy", "keep",
                                       "--threads", 1, "--json").stdout) for batch in (8, 4)]
        between = sum(plan["planned_peak_bytes"]["device"] for plan in plans) // 2  # enough for 4 samples, not for 8
        self.small = ["--on-oom", "shrink", "--policy", "keep", "--budget", between]

    def run_it(self, *words, code=0, **environment):
        """Trains; returns the JSON (None where it was interrupted) and the samples of each micro-batch."""
        seen = self.folder / "seen"
        seen.unlink(missing_ok=True)
        self.environment.update(SEEN=str(seen), **{"STOP": "", "REFUSED": "", **environment})
        done = self.cairn("train", *words, "--threads", 1, "--json", "--quiet", code=code)
        lines = seen.read_text().splitlines() if seen.exists() else []
        return json.loads(done.stdout) if code == 0 else None, [[int(word) for word in line.split()] for line in lines]

    def begin(self, *words, **environment):
        return self.run_it(self.recipe, *MODEL, "batch=8", *words, **environment)

    def resume(self, out, *words, **environment):
        return self.run_it("--resume", out, "--recipe", self.recipe, *words, **environment)

    def flat(self, batches):
        return [sample for batch in batches for sample in batch]

    def test_between_steps(self):
        # As a run that is refused memory at that very step: over the end of an epoch of 56 samples.
        reference, seen = self.begin("--steps", 8, "--on-oom", "shrink", REFUSED="4")
        self.assertEqual(self.flat(seen), [*range(56), *range(8)])
        self.begin("--steps", 3, "--out", "run")
        found, seen = self.resume("run", "--steps", 8, *self.small)
        self.assertEqual((found["batch"], found["accumulate"]), (4, 2))
        self.assertEqual([row["step"] for row in found["shrunk"]], [3])
        self.assertEqual(self.flat(seen), [*range(24, 56), *range(8)])
        self.assertEqual(found["parameter_digest"], reference["parameter_digest"])
        # And once more: what is resumed has its micro-batches in parts already, and they become smaller still.
        self.begin("--steps", 3, "--out", "twice")
        self.resume("twice", "--steps", 5, *self.small)
        found, seen = self.resume("twice", "--steps", 8, "--on-oom", "shrink", REFUSED="2")
        self.assertEqual((found["batch"], found["accumulate"]), (2, 4))
        self.assertEqual(self.flat(seen)[4:], [*range(40, 56), *range(8)])  # the first half of 40..47 came to nothing

    def test_inside_an_accumulation(self):
        # The step under way begins anew, so that all of it is summed in micro-batches of one size.
        steps = ["--accumulate", 3, "--steps", 3]
        reference, seen = self.begin(*steps, "--on-oom", "shrink", REFUSED="5")
        self.assertEqual(self.flat(seen)[32:], [*range(24, 56)])
        for stop in (4, 5):
            with self.subTest(stop=stop):
                out = f"run{stop}"
                self.begin(*steps, "--out", out, code=130, STOP=str(stop))
                found, seen = self.resume(out, "--steps", 3, *self.small)
                self.assertEqual((found["batch"], found["accumulate"], found["steps"]), (4, 6, 3))
                self.assertEqual(self.flat(seen), [*range(24, 56)])
                self.assertEqual(found["parameter_digest"], reference["parameter_digest"])
        # With the memory that it had, it goes on where it was.
        undisturbed, _ = self.begin(*steps)
        self.begin(*steps, "--out", "whole", code=130, STOP="5")
        found, seen = self.resume("whole", "--steps", 3, "--on-oom", "shrink")
        self.assertEqual(self.flat(seen), [*range(40, 56)])
        self.assertEqual(found["parameter_digest"], undisturbed["parameter_digest"])
        # Refused in the step that was resumed: it begins anew, too.
        self.begin(*steps, "--out", "later", code=130, STOP="5")
        found, seen = self.resume("later", "--steps", 3, "--on-oom", "shrink", REFUSED="1")
        self.assertEqual(self.flat(seen), [*range(24, 56)])
        self.assertEqual(found["parameter_digest"], reference["parameter_digest"])


if __name__ == "__main__":
    harness.main()
