"""What a refusal by the budget names beside the smallest budget: the next lever that would fit."""
import json
import pathlib
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, Case, main  # noqa: E402

MLP = ["layers=3", "width=32", "batch=256"]
HEAD = re.compile(r"no plan fits a budget of (\d+) bytes.*\nthe smallest budget that does is (\d+) bytes \(.*\); its peak is ")
FITS = re.compile(r"; with (.*) it fits: the smallest budget is then (\d+) bytes \(")
CLOSEST = re.compile(r"; no lever alone makes it fit; closest comes (.*): (\d+) bytes \(")


class Refusal(Case):
    def refused(self, *arguments, command="plan", model=MLP):
        done = self.cairn(command, "mlp", *model, "--threads", 2, *arguments, code=4)
        self.assertRegex(done.stderr, HEAD)
        self.assertEqual(len([line for line in done.stderr.splitlines() if not line.startswith("note: ")]), 3)
        return done.stderr

    def smallest(self, *arguments):
        return int(HEAD.search(self.refused(*arguments, "--budget", 1))[2])

    def without_room(self):
        """A device whose tiers hold nothing."""
        model = json.loads((ROOT / "scripts/devices/t4.json").read_text())
        for link in model["links"]:
            link["capacity_bytes"] = 1
        path = self.folder / "closed.json"
        path.write_text(json.dumps({**model, "memory_bytes": int(model["memory_bytes"])}))
        return path

    def named(self, text):
        found = FITS.search(text)
        self.assertIsNotNone(found, text)
        return found[1], int(found[2])

    def check_that_it_fits(self, words, least, budget):
        """The lever as it is typed has just this smallest budget."""
        self.assertLessEqual(least, budget)
        self.cairn("plan", "mlp", *MLP, "--threads", 2, *words.split(), "--budget", least)
        self.cairn("plan", "mlp", *MLP, "--threads", 2, *words.split(), "--budget", budget)
        self.refused(*words.split(), "--budget", least - 1)

    def test_a_tier_first(self):
        least = self.smallest()
        words, bytes_ = self.named(self.refused("--budget", least - 1))
        self.assertEqual(words, "--tiers host")
        self.check_that_it_fits(words, bytes_, least - 1)

    def test_a_tier_that_is_full_is_named(self):
        text = self.refused("--device-model", self.without_room(), "--tiers", "disk", "--budget", 1)
        self.assertIn("; the tier 'disk' has room for 1 bytes and no more", text)
        self.assertNotIn("room for", self.refused("--device-model", "t4", "--tiers", "host", "--budget", 1))

    def test_then_smaller_micro_batches(self):
        given = ["--tiers", "host,disk", "--accumulate", 2]  # several micro-batches: no update inside backward
        words, bytes_ = self.named(self.refused(*given, "--budget", self.smallest(*given) - 1))
        self.assertEqual(words, "batch=128 --accumulate 4")
        self.cairn("plan", "mlp", *MLP, "--threads", 2, "--tiers", "host,disk", *words.split(), "--budget", bytes_)

    def test_an_update_inside_backward_where_no_tier_helps(self):
        given = ["--device-model", self.without_room()]
        words, bytes_ = self.named(self.refused(*given, "--budget", self.smallest(*given) - 1))
        self.assertEqual(words, "--fuse-update clip=0")
        self.cairn("plan", "mlp", *MLP, *given, *words.split(), "--budget", bytes_)

    def test_none_fits(self):
        found = CLOSEST.search(self.refused("--budget", 1000))
        self.assertIsNotNone(found)
        self.assertLess(int(found[2]), self.smallest())
        self.assertGreater(int(found[2]), 1000)

    def test_frozen_parameters(self):
        text = self.refused("--tiers", "host,disk", "batch=1", "--accumulate", 2, "--budget", 1000)
        self.assertTrue(CLOSEST.search(text) or text.rstrip().endswith("no lever alone makes it fit"), text)
        given = ["--device-model", self.without_room(), "--accumulate", 2, "batch=1"]
        words, bytes_ = self.named(self.refused(*given, "--budget", self.smallest(*given) - 1))
        self.assertIn("frozen", words)
        self.assertGreater(bytes_, 1000)

    def test_a_recipe_that_does_not_go_with_a_lever(self):
        (self.folder / "whole.lua").write_text("""local mlp = require "recipes.mlp"
local whole = {}
for key, value in pairs(mlp) do whole[key] = value end
whole.model = function(o, graph, purpose)
  if o.batch < 256 then error("batches below 256 are not for this") end
  return mlp.model(o, graph, purpose)
end
return whole
""")
        given = ["--tiers", "host,disk", "--accumulate", 2]
        done = self.cairn("plan", "whole.lua", *MLP, *given, "--threads", 2, "--budget", 1000, code=4)
        self.assertRegex(done.stderr, HEAD)
        self.assertNotIn("not for this", done.stderr)
        self.assertIn("lever", done.stderr)

    def test_a_share_and_training(self):
        text = self.refused("--budget", "1%")
        self.assertRegex(text, CLOSEST)
        text = self.refused("--budget", self.smallest() - 1, command="train")
        self.assertEqual(self.named(text)[0], "--tiers host")

    def test_programs_of_one_store(self):
        least = int(HEAD.search(self.refused("remainder=own", "samples=1000", "--budget", 1))[2])
        words, bytes_ = self.named(self.refused("remainder=own", "samples=1000", "--budget", least - 1))
        self.assertEqual(words, "--tiers host")
        self.cairn("plan", "mlp", *MLP, "--threads", 2, "remainder=own", "samples=1000", *words.split(), "--budget", bytes_)

    def test_shrinking_runs_do_not_look_for_it(self):
        done = self.cairn("train", "mlp", *MLP, "--steps", 1, "--on-oom", "shrink", "--budget", 1000, code=4)
        self.assertNotIn("lever", done.stderr)

    def test_the_unit_that_was_typed(self):
        """What was typed stands in the first line, and what is to be typed instead, in its unit, in the third."""
        for typed, unit in (("100KiB", "KiB"), ("0.1MiB", "MiB"), ("10%", "%"), ("10000", "")):
            text = self.refused("--budget", typed)
            self.assertIn(typed if unit else "a budget of 10000 bytes", text.splitlines()[0])
            instead = re.search(rf"^try --budget ([\d.]+{unit})(?:;|$)", text, re.MULTILINE)[1]
            self.cairn("plan", "mlp", *MLP, "--threads", 2, "--budget", instead)

    def test_json(self):
        done = self.cairn("plan", "mlp", *MLP, "--threads", 2, "--budget", "100KiB", "--json", code=4)
        error = json.loads(done.stdout)["error"]
        self.assertEqual((error["code"], error["status"], error["budget_bytes"]), (4, "OVER_BUDGET", 102400))
        self.assertEqual(f"cairn: {error['message']}\n", done.stderr)
        self.assertIn(f"the smallest budget that does is {error['smallest_budget_bytes']} bytes", error["message"])

    def test_what_no_machine_holds_is_refused_at_once(self):
        """Weights alone are more than the machine has, or more than it can plan in the time that somebody waits."""
        vast = ["gpt2", "data=random", "layers=2000", "width=8192", "heads=64", "seq=16", "batch=1"]
        wide = ["gpt2", "data=random", "layers=1", "width=32", "heads=2", "seq=16", "batch=1", "vocab=2000000000"]
        for command in (["train", *vast], ["train", *wide], ["plan", *vast, "--budget", "1GiB"], ["verify", *vast],
                        ["profile", *vast]):
            began = time.monotonic()
            done = self.cairn(*command, "--threads", 1, "--quiet", code=4)
            self.assertLess(time.monotonic() - began, 10)
            self.assertEqual(len(done.stderr.splitlines()), 3, done.stderr)
            self.assertRegex(done.stderr, r"the weights up to '[\w.]+' alone take \d+ bytes")


if __name__ == "__main__":
    main()
