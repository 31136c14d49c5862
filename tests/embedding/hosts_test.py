"""cairn inside of other programs (tests/embedding/*host.cc): their threads, signals, locale, limits, loading and unloading."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from support.campaign import LONG  # noqa: E402

OUT_OF_MEMORY = 3


def run(program, *arguments, **environment):
    """Runs a host, which must end by itself with exit code 0; returns its lines, the last one split."""
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=600,
                          env=dict(os.environ, **environment), check=False)
    what = f"{' '.join(map(str, arguments))}: ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    if done.returncode != 0:
        raise AssertionError(what)
    *lines, last = done.stdout.splitlines()
    status, digest, message = last.split(" ", 2)
    return lines, int(status), digest, message


class Hosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host = os.environ["HOST"]
        cls.digests = {}

    def digest(self, threads=2, **environment):
        """What the run gives where nothing is special."""
        if threads not in self.digests:
            _, status, digest, message = run(self.host, "train", threads, **environment)
            self.assertEqual(status, 0, message)
            self.digests[threads] = digest
        return self.digests[threads]

    def same(self, result, threads=2):
        _, status, digest, message = result
        self.assertEqual(status, 0, message)
        self.assertEqual(digest, self.digest(threads))

    def test_threads_have_names_and_leave_signals_to_the_host(self):
        lines, status, _, message = run(self.host, "threads")
        self.assertEqual(status, 0, message)
        threads = [re.fullmatch(r"thread (\S+) blocks ([0-9a-f]+)", line).groups() for line in lines]
        names = sorted(name for name, _ in threads)
        wanted = ["cairn/compute", "cairn/copy-help", "cairn/copy-help", "cairn/copy-in", "cairn/copy-out",
                  *["cairn/disk-in"] * 4, *["cairn/disk-out"] * 4, "cairn/work-1", "cairn/work-2"]
        self.assertEqual([name for name in names if name.startswith("cairn/")], wanted)
        self.assertEqual(len(names), len(wanted) + 1, f"threads without a name: {names}")
        for name, blocked in threads:
            mask = int(blocked, 16)
            if name.startswith("cairn/"):
                for signal in (1, 2, 10, 14, 15, 17):  # HUP INT USR1 ALRM TERM CHLD
                    self.assertTrue(mask >> (signal - 1) & 1, f"{name} takes signal {signal}")
                for fault in (4, 7, 8, 11):  # ILL BUS FPE SEGV
                    self.assertFalse(mask >> (fault - 1) & 1, f"{name} blocks its own fault {fault}")
            else:
                self.assertEqual(mask, 0, "the host's own mask was changed")

    def test_a_storm_of_signals(self):
        self.same(run(self.host, "storm"))

    def test_two_at_once(self):
        self.same(run(self.host, "two"))

    def test_a_locale_with_commas(self):
        plain, *rest = run(self.host, "locale", 0)
        self.same((plain, *rest))
        folder = pathlib.Path(tempfile.mkdtemp(prefix="cairn-locale-"))
        self.addCleanup(shutil.rmtree, folder)
        made = shutil.which("localedef") and subprocess.run(
            ["localedef", "-i", "de_DE", "-f", "UTF-8", str(folder / "de_DE.UTF-8")], capture_output=True, check=False)
        german = {"LC_ALL": "de_DE.UTF-8", "LOCPATH": str(folder)} if made and (folder / "de_DE.UTF-8").exists() else {}
        if not german:
            print("not run: setlocale(de_DE.UTF-8): no such locale can be made here; the C++ locale alone", file=sys.stderr)
        lines, *rest = run(self.host, "locale", 1, **german)
        self.same((lines, *rest))
        timeless = [re.sub(r'"(\w*solve_seconds)": [-+.e0-9]+', r'"\1": 0', text) for text in (plain[-1], lines[-1])]
        self.assertIn('"solve_seconds": 0', timeless[0])
        self.assertEqual(*timeless)

    def test_limited_processes(self):
        """However few threads there may be: an error that says so, or the same bits."""
        worked = 0
        for most in range(1, 12):
            _, status, digest, message = run(self.host, "processes", most, 4)
            if status == 0:
                worked += 1
                self.assertEqual(digest, self.digest(4))
            else:
                self.assertEqual(worked, 0, f"{most} processes fail, fewer did not: {message}")
                self.assertEqual(status, OUT_OF_MEMORY, message)
                self.assertRegex(message, "cannot start.*thread")
                self.assertIn("RLIMIT_NPROC", message)
        self.assertGreater(worked, 0)
        self.assertLess(worked, 11)

    def test_limited_memory(self):
        """However little address space there may be: an error that says so, or the same bits."""
        outcomes = set()
        for kib in range(0, 256 * 1024, 512 if LONG else 8 * 1024):
            _, status, digest, message = run(self.host, "memory", kib << 10)
            outcomes.add(status)
            if status == 0:
                self.assertEqual(digest, self.digest(4))
            else:
                self.assertEqual(status, OUT_OF_MEMORY, f"{kib} KiB: {message}")
        self.assertEqual(outcomes, {0, OUT_OF_MEMORY})

    def test_loaded_and_unloaded_again_and_again(self):
        rounds = 200 if LONG else 20
        _, status, digest, message = run(os.environ["LOADING_HOST"], "again", os.environ["PLUGIN"], rounds)
        self.assertEqual(status, 0, message)
        self.assertEqual(len(digest), 32)

    def test_in_a_host_with_openmp(self):
        if "OPENMP_HOST" not in os.environ:
            self.skipTest("no OpenMP for hosts here")
        for environment in ({}, {"OMP_NUM_THREADS": "1"}, {"OMP_MAX_ACTIVE_LEVELS": "3"}):
            self.same(run(os.environ["OPENMP_HOST"], "around", **environment))

    def test_in_an_mpi_job(self):
        if "MPI_HOST" not in os.environ:
            self.skipTest("no MPI (mpicxx) here; ./dev test long installs one")
        command = [os.environ["MPIRUN"], "-n", "2", os.environ["MPI_HOST"]]
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                           OMPI_MCA_rmaps_base_oversubscribe="1")
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split()[:2], ["0", self.digest()])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=2)
