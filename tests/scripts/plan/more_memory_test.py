"""More memory is not slower, whichever form of a plan wins."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Case, main  # noqa: E402

# Where little memory is missing, both the device's updates with all on it and the host's with much away are near the best.
GPT2 = ["gpt2", "data=random", "layers=12", "heads=12", "width=768", "seq=512", "batch=4", "--amp", "bf16"]


class MoreMemory(Case):
    def step(self, share):
        plan = self.cairn("plan", *GPT2, "--tiers", "host", "--device-model", "rtx4090", "--budget", f"{share}%", "--json")
        return json.loads(plan.stdout)["plan"]["predicted_step_seconds"]

    def test_is_not_slower_where_the_host_may_update(self):
        shares = [50, 55, 60, 80, 100]
        steps = [self.step(share) for share in shares]
        for share, less, more in zip(shares[1:], steps, steps[1:]):
            self.assertLessEqual(more, less * 1.003, f"{share} %: {steps}")


if __name__ == "__main__":
    main()
