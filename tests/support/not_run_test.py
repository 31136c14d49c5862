"""What a run of ctest left out is listed, whoever skipped it and however it said so."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

NOT_RUN = pathlib.Path(__file__).resolve().parents[1] / "not_run.py"

SKIPPING = '''
import sys, unittest
class First(unittest.TestCase):
    def test_a(self): self.skipTest("no such device: none")
    def test_b(self):
        """Says what it is about.

        In more than a line."""
        self.skipTest("it isn't there")
    def test_c(self):
        print("not run: a part of it: too old", file=sys.stderr, flush=True)
    def test_d(self):
        print("a word of its own", file=sys.stderr, flush=True)
        self.skipTest("after a word")
    def test_e(self): pass
@unittest.skip("the whole class")
class Second(unittest.TestCase):
    def test_f(self): pass
class Third(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest("not set up")
    def test_g(self): pass
class Fourth(unittest.TestCase):
    def test_fails(self): self.assertEqual("skipped 'never'", "%s")
'''
GOOGLE = '''[ RUN      ] Sums.Long
tests/sums_test.cc:12: Skipped
needs amx

[  SKIPPED ] Sums.Long (0 ms)
[ RUN      ] Sums.Short
[       OK ] Sums.Short (0 ms)
not run on this processor: kernel 'amx_f32' of op 'linear': needs amx
'''


def unittests(verbosity, wanted="skipped 'never'", after=""):
    ending = f'''
done = unittest.main(verbosity={verbosity}, exit=False).result
{after}
sys.exit(not done.wasSuccessful())'''
    return SKIPPING % wanted.replace('"', r'\"') + ending


class NotRun(unittest.TestCase):
    def listed(self, programs):
        """What is listed of a run of these programs, by name, as {(entry, reason): names}."""
        with tempfile.TemporaryDirectory() as folder:
            build = pathlib.Path(folder) / "release"
            build.mkdir()
            lines = []
            for name, text in programs.items():
                (build / f"{name}.py").write_text(text)
                lines.append(f'add_test({name} "{sys.executable}" "{build}/{name}.py")\n')
            (build / "CTestTestfile.cmake").write_text("".join(lines))
            subprocess.run(["ctest", "--test-dir", build], capture_output=True, check=False)
            text = subprocess.run([sys.executable, NOT_RUN, build], capture_output=True, text=True, check=True).stdout
        found, reason = {}, ""
        for line in text.splitlines():
            if line.startswith("not run in release: "):
                count, reason = line.removeprefix("not run in release: ").split(" because: ", 1)
                self.assertGreater(int(count), 0)
            else:
                entry, names = line.strip().split(": ", 1)
                found[entry, reason] = names
        return found

    def test_unittest_that_says_why(self):
        for wanted in ("skipped 'never'", "another, so that one fails"):
            found = self.listed({"verbose": unittests(2, wanted)})
            self.assertEqual(found, {("verbose", "no such device: none"): "test_a", ("verbose", "it isn't there"): "test_b",
                                     ("verbose", "too old"): "a part of it", ("verbose", "after a word"): "test_d",
                                     ("verbose", "the whole class"): "test_f", ("verbose", "not set up"): "setUpClass"})

    def test_unittest_that_only_counts(self):
        why = "unittest counts them and does not say why (verbosity=2 does)"
        for wanted in ("skipped 'never'", "another, so that one fails"):
            found = self.listed({"brief": unittests(1, wanted)})
            self.assertEqual(found[("brief", why)], "5 tests")
        told = self.listed({"told": unittests(
            1, after="for test, why in done.skipped: print(f'not run: {test.id()}: {why}')")})
        self.assertNotIn(("told", why), told)
        self.assertEqual(told[("told", "it isn't there")], "__main__.First.test_b")
        self.assertEqual(told[("told", "no such device: none")], "__main__.First.test_a")
        self.assertEqual(len(told), 6)

    def test_googletest(self):
        found = self.listed({"google": f"print({GOOGLE!r})", "other": "print('not run: all of it: no time')"})
        self.assertEqual(found, {("google", "needs amx"): "Sums.Long, kernel 'amx_f32' of op 'linear'",
                                 ("other", "no time"): "all of it"})

    def test_nothing_where_nothing_was_left_out(self):
        self.assertEqual(self.listed({"whole": "print('OK (expected failures=1)')"}), {})


if __name__ == "__main__":
    unittest.main(verbosity=2)
