"""The bars of `./dev gpu`: what is judged met, missed and not measured, from results made up here."""
import copy
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench/gpu"))
import bars  # noqa: E402

SECONDS = {"124m": 0.1, "1.5b": 0.3, "4096": 0.5}


def cairn(seconds, device=100, copies=0):
    return {"step_seconds_median": seconds, "peak_bytes": {"device": device}, "planned_peak_bytes": {"device": device},
            "plan": {"bound_step_seconds": seconds / 1.01}, "stall_seconds": 0.0, "submit_seconds_median": 20e-6,
            "copies": {"host": {"out_bytes": copies, "in_bytes": copies, "out_seconds": copies / 48e9,
                                "in_seconds": copies / 50e9}}}


def everything_met():
    raw = {"curve: float32": {"limit": 1e-4, "largest": 1e-6, "met": True},
           "rates": {"copy_bytes_per_second": 4e12,
                     "kernels": [{"model": "124m", "name": "gelu", "flops": 0, "bytes": 4e9, "seconds": 1.1e-3},
                                 {"model": "124m", "name": "linear", "flops": 1e12, "bytes": 4e9, "seconds": 1},
                                 {"model": "124m", "name": "none", "error": "no kernel takes it"}],
                     "links": [{"tier": "host", "way": way, "both": both, "bytes": size, "bytes_per_second": rate}
                               for way in ("out", "in") for both, size, rate in
                               ((False, 1, 10e9), (False, 256, 50e9), (True, 256, 30e9))]}}
    for shape, seconds in SECONDS.items():
        raw[f"cairn {shape}, keep everything"] = cairn(seconds)
        for label in ("50 %", "40 %", "25 %", "10 %", bars.EQUAL):
            raw[f"cairn {shape}, {label}"] = cairn(seconds * 1.01, copies=10**9)
        for label, slower in ((bars.COMPILE, 1.3), (bars.EAGER, 1.6), (bars.LAYERS, 2.0)):
            raw[f"{label}, {shape}"] = {"step_seconds_median": seconds * slower, "device_peak_bytes": 200}
    return raw


class Bars(unittest.TestCase):
    def verdicts(self, raw):
        return {row[0]: row[3] for row in bars.judge(raw)}

    def only_missed(self, change, *names):
        raw = copy.deepcopy(everything_met())
        change(raw)
        self.assertEqual({name for name, met in self.verdicts(raw).items() if met != "yes"}, set(names))

    def test_all_met(self):
        self.only_missed(lambda raw: None)

    def test_nothing_measured(self):
        self.assertEqual(set(self.verdicts({}).values()), {"not measured"})

    def test_a_failed_run_is_not_measured(self):
        def change(raw):
            raw["cairn 4096, 40 %"] = {"failed": 4}
        self.only_missed(change, "4096, 40 % of activations: slower than keeping all")

    def test_each_is_missed_alone(self):
        keep = "cairn 124m, keep everything"
        cases = [
            (lambda raw: raw["curve: float32"].update(largest=2e-4), "losses follow: float32"),
            (lambda raw: raw["rates"]["kernels"][0].update(seconds=1.2e-3), "memory-bound kernels, of the copy rate"),
            (lambda raw: raw["PyTorch compile, 1.5b"].update(device_peak_bytes=140),
             "1.5b: device peak beside torch.compile"),
            (lambda raw: raw["PyTorch compile, 124m"].update(step_seconds_median=0.119),
             "124m: tokens/s beside torch.compile"),
            (lambda raw: raw["cairn 1.5b, 10 %"]["plan"].update(bound_step_seconds=0.29),
             "1.5b, 10 % of activations: beyond the plan's bound"),
            (lambda raw: raw["cairn 4096, 40 %"].update(step_seconds_median=0.52),
             "4096, 40 % of activations: slower than keeping all"),
            (lambda raw: raw["PyTorch eager, checkpoint every layer, 1.5b"].update(step_seconds_median=0.485),
             "1.5b: slow-down at the bytes that PyTorch's checkpoints keep"),
            (lambda raw: raw["cairn 1.5b, 25 %"]["copies"]["host"].update(in_seconds=1 / 44),
             "offload copies, of the pinned rate"),
            (lambda raw: raw["cairn 1.5b, 25 %"].update(stall_seconds=0.01), "stall of plans that offload"),
            (lambda raw: raw["cairn 4096, 10 %"].update(planned_peak_bytes={"device": 99}),
             "planned bytes = measured bytes"),
            (lambda raw: raw[keep].update(submit_seconds_median=51e-6), "124m: host time of a replayed micro-step"),
        ]
        for change, name in cases:
            with self.subTest(name):
                self.only_missed(change, name)

    def test_other_bytes_than_pytorchs_are_no_comparison(self):
        self.only_missed(lambda raw: raw[f"cairn 124m, {bars.EQUAL}"].update(note="the smallest that fits"),
                         "124m: slow-down at the bytes that PyTorch's checkpoints keep")

    def test_a_speed_in_tokens(self):
        raw = everything_met()
        raw["cairn 124m, keep everything"]["step_seconds_median"] = 65536 / 614_000
        self.assertEqual(self.verdicts(raw)["124m: tokens/s"], "NO")

    def test_keeping_everything_in_as_many_bytes_is_no_slow_down(self):
        raw = everything_met()
        raw[f"cairn 1.5b, {bars.EQUAL}"] = {"kept": 5, "saved": 6}
        self.assertEqual(set(self.verdicts(raw).values()), {"yes"})


if __name__ == "__main__":
    unittest.main()
