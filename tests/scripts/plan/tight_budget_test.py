"""Little above the smallest budget a step takes a few times as long, not tens of times."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Case, main  # noqa: E402

GPT2 = ["gpt2", "data=random", "layers=8", "heads=8", "width=512", "vocab=8192", "seq=512", "batch=8", "--amp", "bf16",
        "--tiers", "host", "--device-model", "h100"]


class TightBudget(Case):
    def slowdown(self, *options, above=1.02):
        budget = int(above * self.smallest_budget(*GPT2, *options))
        found = self.cairn("plan", *GPT2, *options, "--budget", budget, "--json")
        plan = json.loads(found.stdout)["plan"]
        return plan["predicted_step_seconds"] / plan["keep_all_step_seconds"]

    def test_is_no_cliff(self):
        self.assertLess(self.slowdown(), 4)

    def test_is_no_cliff_where_updates_are_fused(self):
        self.assertLess(self.slowdown("--fuse-update", "clip=0"), 4)


if __name__ == "__main__":
    main()
