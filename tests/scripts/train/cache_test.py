"""The cache of tokens: a directory of this user's alone, files that are of this text alone, and a run without it."""
import os
import pathlib
import shutil
import socket
import stat
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import CAIRN, TINY, Case, main  # noqa: E402

BPE = ["tokens=bpe", "vocab=290"]


class Cache(Case):
    def setUp(self):
        super().setUp()
        self.other = self.folder / "other.txt"
        self.other.write_text("".join(chr(97 + i * i % 26) for i in range(len(self.text.read_text()))))
        self.place = self.folder / "cache/cairn"

    def digest(self, *more, data=None):
        return self.train("--steps", 2, *more, data=data)["parameter_digest"]

    def noted(self, *more, says):
        done = self.cairn("train", "gpt2", *TINY, f"data={self.text}", "--steps", 1, *more)
        self.assertEqual(done.stderr.count("nothing is kept in a cache"), 1, done.stderr)
        self.assertIn(says, done.stderr)

    def kept(self):
        return sorted(path.name for path in self.place.glob("*.tokens"))

    def test_files_are_this_users_alone(self):
        os.umask(0)
        self.addCleanup(os.umask, 0o022)
        self.text.chmod(0o600)
        self.digest(*BPE, "eval_fraction=0.2")
        self.assertEqual(stat.S_IMODE(self.place.stat().st_mode), 0o700)
        for path in self.place.iterdir():
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600, path)
        self.assertEqual(len(self.kept()), 2)
        self.assertEqual([path for path in self.place.iterdir() if ".part" in path.name or path.name[0] == "."], [])
        self.place.chmod(0o755)  # as directories of before are
        self.digest()
        self.assertEqual(stat.S_IMODE(self.place.stat().st_mode), 0o700)

    def test_kept_files_are_of_their_text_alone(self):
        for options in ([], BPE):
            with self.subTest(options):
                shutil.rmtree(self.place, ignore_errors=True)
                wanted = self.digest(*options)
                mine = {path.name: path.read_bytes() for path in self.place.iterdir()}
                foreign = self.digest(*options, data=self.other)
                self.assertNotEqual(wanted, foreign)
                theirs = {path.name: path.read_bytes() for path in self.place.iterdir() if path.name not in mine}
                for kind in (".tokens", ".model", ""):  # the files alone, then with the records of another text
                    for name in mine:
                        for other in theirs:
                            if "tokens" in name and "tokens" in other or "model" in name and "model" in other:
                                if not kind or name.endswith(kind) and other.endswith(kind):
                                    (self.place / name).write_bytes(theirs[other])
                    self.assertEqual(self.digest(*options), wanted)
                    self.assertEqual((self.place / min(mine)).read_bytes(), mine[min(mine)])
                for name in mine:  # damaged ones are made again
                    (self.place / name).write_bytes(mine[name][:-1])
                    self.assertEqual(self.digest(*options), wanted)

    def test_directories_that_are_not_ours_are_not_used(self):
        wanted = self.digest()
        shutil.rmtree(self.place)
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        self.environment["HOME"] = "/nowhere"
        self.environment["TMPDIR"] = str(self.folder)

        def link(path):
            path.symlink_to(elsewhere)

        def open_to_others(path):
            path.mkdir()
            path.chmod(0o777)

        def someone_elses(path):
            path.mkdir(mode=0o700)
            os.chown(path, 12345, 12345)

        kinds = [link, open_to_others, lambda path: path.write_text(""), *([someone_elses] if os.getuid() == 0 else [])]
        for make, says in zip(kinds, ("a symbolic link", "others may write", "not a directory", "user 12345's")):
            for name in ("cache/cairn", f"cairn-{os.getuid()}"):
                make(self.folder / name)
            self.assertEqual(self.digest(), wanted)
            self.noted(says=says)
            self.assertEqual([*elsewhere.iterdir()], [])
            for name in ("cache/cairn", f"cairn-{os.getuid()}"):
                path = self.folder / name
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        shared = self.folder / "shared"  # where any user may put a directory in another's place
        shared.mkdir()
        shared.chmod(0o777)
        self.environment.update(XDG_CACHE_HOME=str(shared), TMPDIR=str(shared))
        self.noted(says="any user may put")
        self.assertEqual([*shared.iterdir()], [])

    def test_a_run_goes_on_without_a_cache(self):
        wanted, name = self.digest(), self.kept()[0]
        (self.place / name).unlink()
        (self.place / name).mkdir()  # a directory in the file's place
        self.assertEqual(self.digest(), wanted)
        self.noted(says=name)
        self.assertTrue((self.place / name).is_dir())
        (self.place / name).rmdir()
        os.mkfifo(self.place / name)
        self.assertEqual(self.digest(), wanted)
        self.assertTrue((self.place / name).is_file())
        record = self.place / (name + ".of")
        record.unlink()
        os.mkfifo(record)
        self.assertEqual(self.digest(), wanted)
        self.assertEqual([path for path in self.folder.iterdir() if path.name.startswith("cairn-")], [])

    @unittest.skipIf(os.getuid() != 0 or not pathlib.Path("/proc/self/ns/mnt").exists(), "mounting needs root")
    def test_full_and_read_only(self):
        (self.folder / "cache").mkdir()
        run = f"{CAIRN} train gpt2 {' '.join(TINY)} data=book.txt --steps 1"
        (self.folder / "book.txt").write_text(self.text.read_text() * 8)
        self.environment["HOME"] = ""
        script = (f"mount -t tmpfs -o size=8k tmpfs cache && {run} && {run} tokens=bpe vocab=290 && "
                  f"mount -o remount,ro cache && {run}")
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], cwd=self.folder,
                              capture_output=True, text=True, env=self.environment)
        if "Operation not permitted" in done.stderr:
            self.skipTest("mounting is not permitted here")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("nothing is kept in a cache", done.stderr)

    def test_a_checkpoint_names_no_text_to_copy(self):
        """Data that a checkpoint names are compared with what it was trained on before anything is made of them."""
        self.train("--steps", 1, "--out", "run")
        shutil.rmtree(self.place)
        self.text.write_text("changed " * 500)
        self.fails(3, "train", "--resume", "run", "--steps", 2, says="whose content")
        self.assertEqual(self.kept(), [])
        self.text.write_text("short")
        self.fails(3, "train", "gpt2", *TINY, f"data={self.text}", "--steps", 2, says="fewer than one window")
        self.assertEqual([*self.place.iterdir()], [])


class Kinds(Case):
    """What is no regular file is refused by its name at once; what is no text is said."""

    def test_no_files(self):
        os.mkfifo(self.folder / "pipe")
        (self.folder / "directory").mkdir()
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(self.folder / "socket"))
        names = {"pipe": "pipe", "/dev/zero": "device", "directory": "directory", "socket": "socket",
                 "/proc/kmsg": "empty"}
        for name, kind in names.items():
            with self.subTest(name):
                train = ("train", "gpt2", *TINY, "--steps", 1)
                self.fails(3, *train, f"data={name}", says=("data: ", name, kind))
                self.fails(3, *train, f"data={self.text}", f"eval_data={name}", says=("eval_data: ", name, kind))
                self.fails(3, *train, f"data={self.text}", "lengths=8,16", "seq=16", f"eval_data={name}", says=name)
                for option in ("--init", "--config", "--profile"):
                    self.refused(*train, "data=random", option, name, says=name)
                if kind != "empty":
                    self.fails(3, "plan", "--problem", name, says=(name, kind))
                    self.fails(3, "train", f"./{name}" if "/" not in name else name, "--steps", 1, says=kind)

    def refused(self, *command, says):
        done = subprocess.run([CAIRN, *map(str, command)], capture_output=True, text=True, cwd=self.folder,
                              env=self.environment, timeout=60)
        self.assertIn(done.returncode, (3, 5), done.stderr)
        self.assertIn(says, done.stderr)

    def notes(self, content, *more):
        self.text.write_bytes(content)
        done = self.cairn("train", "gpt2", *TINY, f"data={self.text}", "--steps", 1, *more)
        return done.stderr

    def test_what_is_no_text_is_said(self):
        text = self.text.read_text()
        for content, says in (
                (b"\x1f\x8b\x08" + os.urandom(900), "a gzip archive"), (b"PK\3\4" + bytes(900), "a zip archive"),
                (b"\x28\xb5\x2f\xfd" + bytes(900), "a zstd archive"), (text.encode("utf-16"), "a text in UTF-16"),
                (text.encode("utf-16-le"), "-f UTF-16LE"), (text.encode("utf-16-be"), "-f UTF-16BE"),
                (b'{"text": "one"}\n' * 100, "JSON lines"), (bytes(range(256)) * 8, "which are 0")):
            with self.subTest(says):
                found = self.notes(content)
                self.assertEqual(found.count("note: data: "), 1, found)
                self.assertIn(says, found)
        self.assertNotIn("note: data", self.notes(text.encode()))
        self.assertNotIn("note: data", self.notes('{"a" is no JSON\n'.encode() + text.encode()))

    def test_nothing_of_a_text_is_lost_to_its_zeros(self):
        line = b"one\0two\0three\0\xff\n"
        self.text.write_bytes(line * 50 + b"\n" + line * 30 + b"end")
        result = self.train("lengths=8,16", "--epochs", 1, "--progress-every", 1)
        self.assertEqual(sum(row["tokens"] for row in result["programs"]), 50 * len(line) - 2 + 30 * len(line) + 3 - 1)

    def test_a_rest_that_fills_no_window_is_said(self):
        self.assertIn("the last 500 of 1013 tokens fill no window of seq=512", self.notes(b"a" * 1013, "seq=512"))
        self.assertNotIn("fill no window", self.notes(b"a" * 1025, "seq=512"))
        found = self.notes(b"a\n" * 600, "seq=64", "eval_fraction=0.1")
        self.assertIn("note: eval_fraction=0.1", found)


class Vocabularies(Case):
    """A vocabulary is learned from what is trained on, and stays a run's own."""

    def test_nothing_is_learned_from_what_is_held_out(self):
        lines = ["the way back is marked by stones\n"] * 60
        self.text.write_text("".join(lines) + "ÄÖÜäöüßéèê zzzz\n" * 20)
        size = len("".join(lines)) / len(self.text.read_bytes())
        bpe = ["tokens=bpe", "vocab=280", f"eval_fraction={1 - size + 0.005:.3f}"]
        self.train("--steps", 1, *bpe, "--out", "run")
        model = next((self.folder / "run").glob("step-*/*.model")).read_bytes()
        self.assertNotIn("Ä".encode(), model)
        self.assertIn(b"ay", model)

    def test_a_run_keeps_its_vocabulary(self):
        bpe = ["tokens=bpe", "vocab=290"]
        self.train("--steps", 2, *bpe, "--out", "run")
        other = self.folder / "other.txt"
        other.write_text("quite another text, with letters of other words\n" * 80)
        model = next((self.folder / "run").glob("step-*/*.model"))
        before = model.read_bytes()
        self.cairn("train", "--resume", "run", "--steps", 4, f"data={other}", "--quiet")
        after = next((self.folder / "run").glob("step-00000004/*.model"))
        self.assertEqual((after.name, after.read_bytes()), (model.name, before))
        shutil.rmtree(self.folder / "cache")
        self.cairn("train", "--resume", "run/step-00000002", "--steps", 3, "--out", "again", "--quiet")


main()
