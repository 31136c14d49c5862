"""What the environment says to other libraries changes no bit: loops are split by --threads alone."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scripts"))
from harness import Case, main  # noqa: E402

# Large enough that every kernel's loops are split.
MODEL = ["layers=2", "heads=4", "width=128", "vocab=512", "seq=64", "batch=4", "data=random"]
SETTINGS = [{}, {"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "7"}, {"OMP_THREAD_LIMIT": "1"}, {"OMP_THREAD_LIMIT": "2"},
            {"OMP_DYNAMIC": "true"}, {"OMP_MAX_ACTIVE_LEVELS": "0"}, {"OMP_NUM_THREADS": "3", "OMP_DYNAMIC": "true"},
            {"OMP_WAIT_POLICY": "active"}, {"GOMP_SPINCOUNT": "0"}, {"OMP_PROC_BIND": "true"}]


class Environment(Case):
    def digest(self, *arguments):
        return self.train(*arguments, "--steps", 3, data=False, model=MODEL)["parameter_digest"]

    def test_settings_of_openmp_change_no_bit(self):
        self.environment.pop("OMP_NUM_THREADS", None)
        plain = dict(self.environment)
        for amp in ("off", "bf16"):
            digests = {}
            for setting in SETTINGS:
                self.environment = dict(plain, **setting)
                digests.setdefault(self.digest("--threads", 4, "--amp", amp), []).append(setting)
            self.assertEqual(len(digests), 1, f"amp {amp}: {digests}")


if __name__ == "__main__":
    main()
