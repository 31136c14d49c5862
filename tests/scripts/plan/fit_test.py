"""`cairn plan --fit`, and the device models that it plans for."""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, TINY, Case, main  # noqa: E402

TIERS = ("device", "host", "disk")
MLP = ["layers=3", "width=32", "batch=256"]


class Fit(Case):
    def fit(self, *arguments, recipe="mlp", model=MLP):
        return json.loads(self.cairn("plan", recipe, *model, "--fit", "--json", "--threads", 2, *arguments).stdout)

    def plan(self, *arguments, recipe="mlp", model=MLP):
        return json.loads(self.cairn("plan", recipe, *model, "--json", "--threads", 2, *arguments).stdout)

    def test_updates_beside_backward_are_a_row_where_they_are_quicker(self):
        model = ["layers=1", "heads=4", "width=256", "seq=64", "batch=2", "data=random"]
        table = self.fit("--device-model", "rtx4090", "--budget", "4MiB", recipe="gpt2", model=model)
        rows = {" ".join(row["levers"]): row for row in table["rows"]}
        host, beside = rows["--tiers host"], rows["--tiers host --fuse-update clip=0"]
        self.assertGreater(beside["smallest_budget_bytes"], host["smallest_budget_bytes"])
        self.assertLess(beside["budget_step_seconds"], 0.98 * host["budget_step_seconds"])

    def check(self, table, *arguments, recipe="mlp", model=MLP):
        """Every row against the plan that its options make when they are typed."""
        for row in table["rows"]:
            with self.subTest(row["levers"]):
                bytes_ = row["smallest_budget_bytes"]
                plan = self.plan(*arguments, *row["levers"], "--budget", bytes_, recipe=recipe, model=model)
                self.assertEqual(plan["plan"]["predicted_step_seconds"], row["predicted_step_seconds"])
                for key in ("memory_bytes", "tier_bytes", "planned_peak_bytes"):
                    self.assertEqual(plan[key], row[key])
                self.assertEqual(plan["plan"]["packed_bytes"], row["packed_bytes"])
                self.assertEqual(sum(row["memory_bytes"].values()), row["planned_peak_bytes"]["device"])
                for tier in TIERS[1:]:
                    self.assertEqual(sum(row["tier_bytes"][tier].values()), row["planned_peak_bytes"][tier])
                self.assertLessEqual(row["planned_peak_bytes"]["device"], bytes_)
                self.assertEqual(row["fits"], bytes_ <= table["budget_bytes"])
                self.assertEqual(row["budget_step_seconds"] is not None, row["fits"])
                if row["fits"]:
                    self.assertLessEqual(row["budget_step_seconds"], row["predicted_step_seconds"] * (1 + 1e-9))
                self.assertTrue(row["peak_at"])
                self.assertIsNone(row["why"])
                self.fails(4, "plan", recipe, *model, "--threads", 2, *arguments, *row["levers"], "--budget", bytes_ - 1)

    @staticmethod
    def by_levers(table):
        return {" ".join(row["levers"]): row for row in table["rows"]}

    def test_every_row_is_what_its_options_plan(self):
        table = self.fit()
        rows = self.by_levers(table)
        self.assertEqual(list(rows)[:5], ["--policy keep", "", "--tiers host", "--tiers disk", "--fuse-update clip=0"])
        self.check(table)
        small = {name: row["smallest_budget_bytes"] for name, row in rows.items()}
        self.assertGreater(small["--policy keep"], small[""])
        self.assertGreater(small[""], small["--tiers host"])
        self.assertGreater(small[""], small["--fuse-update clip=0"])
        self.assertIn("clip=0", rows["--fuse-update clip=0"]["needs"])
        self.assertGreater(rows["--tiers host"]["tier_bytes"]["host"]["optimizer"], 0)
        self.assertGreater(rows["--tiers disk"]["tier_bytes"]["disk"]["parameters"], 0)

    def test_keeping_all_regions_leaves_what_lies_in_none(self):
        model = ["layers=3", "width=32", "heads=2", "seq=32", "batch=2", "data=random"]
        table = self.fit(recipe="gpt2", model=model)
        keeps = self.by_levers(table)["--policy keep"]
        whole = self.plan("--policy", "keep", recipe="gpt2", model=model)["planned_peak_bytes"]["device"]
        self.assertLess(keeps["smallest_budget_bytes"], whole)
        self.check({**table, "rows": [keeps]}, recipe="gpt2", model=model)
        # A share is of keeping everything.
        self.assertEqual(self.fit("--budget", "50%", recipe="gpt2", model=model)["budget_bytes"], whole // 2)

    def test_a_region_that_there_is_not(self):
        for arguments in (["--region", "nothing=keep"], ["--region", "nothing=offload:host"]):
            self.fails(2, "plan", "gpt2", *TINY, "data=random", "--fit", *arguments, says=["--region", "'nothing'"])

    def test_a_budget_marks_the_rows_that_fit(self):
        whole = self.plan("--policy", "keep")["planned_peak_bytes"]["device"]
        table = self.fit("--budget", "80%")
        self.assertEqual(table["budget_bytes"], int(0.8 * whole))
        fits = [row["fits"] for row in table["rows"]]
        self.assertIn(True, fits)
        self.assertIn(False, fits)
        for row in table["rows"]:
            self.assertEqual(row["fits"], row["smallest_budget_bytes"] <= table["budget_bytes"])
            if row["fits"]:
                plan = self.plan(*row["levers"], "--budget", table["budget_bytes"])
                self.assertEqual(plan["plan"]["predicted_step_seconds"], row["budget_step_seconds"])
        self.assertTrue(any(row["fits"] for row in self.fit("--budget", whole)["rows"]))

    def test_nothing_fits(self):
        table = self.fit("--budget", 1000)
        self.assertFalse(any(row["fits"] for row in table["rows"]))
        self.assertTrue(all(row["predicted_step_seconds"] for row in table["rows"]))
        text = self.cairn("plan", "mlp", *MLP, "--fit", "--budget", 1000).stdout
        self.assertIn("nothing of this fits", text)
        self.assertIn("--tiers host", text)

    def test_a_device_that_is_not_there(self):
        table = self.fit("--device-model", "t4")
        self.assertEqual((table["device"], table["budget_bytes"]), ("NVIDIA T4", 16e9))
        rows = self.by_levers(table)
        self.assertEqual(list(rows)[:4],
                         ["--policy keep --tiers none", "--tiers none", "--tiers host", "--tiers disk"])
        self.check({**table, "rows": [row for row in table["rows"] if "disk" not in " ".join(row["levers"])
                                      and "--fuse-update" not in row["levers"]]}, "--device-model", "t4")
        self.assertEqual(rows["--tiers none"]["planned_peak_bytes"]["host"], 0)
        self.assertGreater(rows["--tiers none"]["smallest_budget_bytes"], rows["--tiers host"]["smallest_budget_bytes"])

    def model(self, **changes):
        """A device model of a file, with some of its keys changed."""
        model = json.loads((ROOT / "scripts/devices/t4.json").read_text())
        model["memory_bytes"] = 16000000000
        model.update(changes)
        path = self.folder / "device.json"
        path.write_text(json.dumps(model))
        return path

    def test_a_device_that_is_too_small_for_all_has_seconds_all_the_same(self):
        table = self.fit("--device-model", self.model(memory_bytes=4096))
        for row in table["rows"]:
            self.assertFalse(row["fits"])
            self.assertGreater(row["predicted_step_seconds"], 0)

    def test_a_device_without_a_tier(self):
        link = {"tier": "host", "latency_seconds": 1e-5, "out_bytes_per_second": 1e9, "in_bytes_per_second": 1e9,
                "both_ways_factor": 1}
        table = self.fit("--device-model", self.model(links=[link]))
        self.assertFalse(any("disk" in word for row in table["rows"] for word in row["levers"]))
        self.assertEqual([note for note in table["notes"] if "disk" in note],
                         ["the device model names no link to the tier disk: nothing is sent there"])

    def test_two_tiers_where_one_is_too_small(self):
        def link(tier, capacity):
            return {"tier": tier, "latency_seconds": 1e-5, "out_bytes_per_second": 1e9, "in_bytes_per_second": 1e9,
                    "both_ways_factor": 1, "capacity_bytes": capacity}
        table = self.fit("--device-model", self.model(links=[link("host", 20000), link("disk", 20000)]))
        rows = self.by_levers(table)
        both = rows["--tiers host,disk"]
        for tier in ("host", "disk"):
            self.assertGreater(rows[f"--tiers {tier}"]["smallest_budget_bytes"], both["smallest_budget_bytes"])
            self.assertGreater(both["planned_peak_bytes"][tier], 0)
            self.assertLessEqual(both["planned_peak_bytes"][tier], 20000)

    LARGE = ["layers=14", "heads=2", "width=16", "seq=16", "vocab=64", "batch=1", "data=random"]

    def small_device(self, memory, host):
        link = {"tier": "host", "latency_seconds": 1e-5, "out_bytes_per_second": 1e9, "in_bytes_per_second": 1e9,
                "both_ways_factor": 1, "capacity_bytes": host}
        return self.model(memory_bytes=memory, links=[link])

    def test_a_large_model_has_rows_that_bytes_alone_decide(self):
        """Weights, states and gradients take 16 bytes an element, of which the tier has room for some."""
        device = self.small_device(400000, 300000)
        table = self.fit("--device-model", device, recipe="gpt2", model=self.LARGE)
        self.assertTrue(any(note.startswith("a large model: ") for note in table["notes"]), table["notes"])
        rows = self.by_levers(table)
        for levers in ("--policy keep --tiers none", "--tiers none", "--tiers host"):
            row = rows[levers]
            self.assertIs(row["fits"], False)
            self.assertIsNone(row["smallest_budget_bytes"])
            self.assertGreater(row["at_least_bytes"], 400000)
        self.assertEqual(rows["--tiers none"]["at_least_bytes"] - rows["--tiers host"]["at_least_bytes"], 300000)
        kept = rows["--policy keep --tiers none"]
        self.assertEqual(kept["at_most_bytes"], kept["planned_peak_bytes"]["device"])
        self.assertGreater(kept["at_most_bytes"], kept["at_least_bytes"])
        text = self.cairn("plan", "gpt2", *self.LARGE, "--fit", "--device-model", device).stdout
        self.assertRegex(text, r"\n--tiers none +> \d")
        self.assertRegex(text, r"\n--policy keep --tiers none +<= \d")
        # What is planned all the same needs no less.
        device = self.small_device(4000000, 300000)
        text = self.fails(4, "plan", "gpt2", *self.LARGE, "--threads", 2, "--device-model", device, "--tiers", "host",
                          "--budget", rows["--tiers host"]["at_least_bytes"] + 1000).stderr
        exact = re.search(r"smallest budget that does is (\d+) bytes", text)
        self.assertIsNotNone(exact, text)
        self.assertLess(rows["--tiers host"]["at_least_bytes"], int(exact[1]))

    def test_rows_of_a_large_model_that_fit_are_plans(self):
        device = self.small_device(400000, 10**9)
        table = self.fit("--device-model", device, recipe="gpt2", model=self.LARGE)
        row = self.by_levers(table)["--tiers host"]
        plan = self.plan("--device-model", device, "--tiers", "host", recipe="gpt2", model=self.LARGE)
        self.assertIsNone(row["predicted_step_seconds"])
        if row["budget_step_seconds"] is None:  # the machine had no time for it
            self.assertTrue(any("left open" in note for note in table["notes"]) or row["fits"])
        else:
            self.assertIs(row["fits"], True)
            self.assertEqual(row["budget_step_seconds"], plan["plan"]["predicted_step_seconds"])
            for key in ("memory_bytes", "tier_bytes", "planned_peak_bytes"):
                self.assertEqual(row[key], plan[key])
        if row["smallest_budget_bytes"]:
            self.plan("--device-model", device, "--tiers", "host", "--budget", row["smallest_budget_bytes"],
                      recipe="gpt2", model=self.LARGE)
            self.fails(4, "plan", "gpt2", *self.LARGE, "--threads", 2, "--device-model", device, "--tiers", "host",
                       "--budget", row["smallest_budget_bytes"] - 1)

    def test_several_micro_batches_have_no_update_inside_backward(self):
        table = self.fit("--accumulate", 2)
        self.assertFalse(any("--fuse-update" in row["levers"] for row in table["rows"]))
        self.assertTrue(any("2 micro-batches" in note for note in table["notes"]))

    def test_what_does_not_go_with_it(self):
        for words in (["--sweep"], ["--tiers", "host"], ["--policy", "keep"], ["--fuse-update", "clip=0"],
                      ["--html", "x.html"], ["--problem-out", "x.json"], ["--plan-out", "x"]):
            self.fails(2, "plan", "mlp", "--fit", *words, says=[words[0], "--fit"])
        self.plan("--problem-out", "problem.json")
        self.fails(2, "plan", "--problem", "problem.json", "--fit", says=["--problem", "--fit"])
        for device in [], ["--device-model", "t4"]:
            self.fails(3, "plan", "mlp", "--fit", "--budget", "100TiB", *device, says=["109951162777600", "memory"])
        self.fails(2, "plan", "mlp", "batch=auto", "global_batch=8", "--fit", says="batch=auto")
        self.fails(2, "plan", "gpt2", *TINY, "lengths=8,16", f"data={self.text}", "--fit", says="one program")


class Models(Case):
    """The device models that come with cairn."""

    # By what a step of a model that fits all takes, from the slowest to the fastest, in bfloat16 and in float32.
    BF16 = ["t4", "l4", "rtx3090", "a10", "rtx4090", "l40s", "rtx5090", "a100-40", "a100-80", "h100", "h200"]
    F32 = ["t4", "l4", "a100-40", "a100-80", "a10", "rtx3090", "rtx4090", "l40s", "h100", "h200", "rtx5090"]
    GPT2 = ["data=random", "layers=12", "heads=12", "width=768", "vocab=50304", "seq=1024", "batch=1"]

    def test_each_plans_gpt2_and_they_differ_as_the_cards_do(self):
        models = json.loads(self.cairn("devices", "--models", "--json").stdout)
        names = {model["model"] for model in models}
        self.assertEqual(names, {*self.BF16, "cpu"})
        for model in models:
            self.assertTrue(all(model["sources"]), model["model"])
            self.assertEqual([link["tier"] for link in model["links"]], ["host", "disk"])
        for amp, order in (("bf16", self.BF16), ("off", self.F32)):
            seconds = [json.loads(self.cairn("plan", "gpt2", *self.GPT2, "--device-model", name, "--amp", amp, "--json").stdout)
                       ["plan"]["predicted_step_seconds"] for name in order]
            self.assertEqual(seconds, sorted(seconds, reverse=True), amp)
        text = self.cairn("devices", "--models").stdout
        for name in names:
            self.assertIn(name, text)

    def test_an_unknown_one_is_told_of_the_others(self):
        self.fails(2, "plan", "mlp", "--device-model", "rtx9090", says=["rtx9090", "a100-80", "l40s", "rtx5090"])

    def test_no_tier_at_all(self):
        self.fails(2, "plan", "mlp", "--tiers", "none", "--link", "1e9", says=["--tiers none", "--link"])
        self.fails(2, "plan", "mlp", "--tiers", "none", "--policy", "offload", says=["--tiers none", "offload"])
        self.fails(2, "plan", "mlp", "--tiers", "none,host", says="none,host")
        plain = json.loads(self.cairn("plan", "mlp", "--json", "--budget", "100%").stdout)
        none = json.loads(self.cairn("plan", "mlp", "--json", "--budget", "100%", "--tiers", "none").stdout)
        self.assertEqual(plain["planned_peak_bytes"], none["planned_peak_bytes"])


if __name__ == "__main__":
    main()
