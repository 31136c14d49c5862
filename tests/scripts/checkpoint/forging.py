"""Checkpoints as a stranger could make them, for the tests of what runs and of what is refused."""
import json
import pathlib
import shutil

from harness import Case

FORGE = pathlib.Path(__file__).with_name("forge.lua")
STEP = "step-00000002"


class Forging(Case):
    """A trained model in `run`; forge() makes others of it, everything() gives them to the commands that read them."""

    def setUp(self):
        super().setUp()
        self.marker = self.folder / "ran"
        self.train("--steps", 2, "--out", "run")
        self.honest = json.loads(self.cairn("inspect", "run", "--json").stdout)["metadata"]

    def evil(self, path):
        """A file that leaves the marker when it runs."""
        path = self.folder / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'io.open("{self.marker}", "w"):close()\nreturn {{}}\n')
        return path

    def forge(self, to, old=False, files=None, **metadata):
        """The checkpoint of `run` with other metadata; old: as 1.0 wrote them, without generator and names."""
        wanted = {**self.honest, **metadata}
        for key in ("generator", "names") if old else ():
            wanted.pop(key, None)
        source = self.folder / "run" / STEP
        if files is None:
            files = [] if old else [source / "names.json", source / "generator.cairn"]
        shutil.rmtree(self.folder / to, ignore_errors=True)
        changes = self.folder / "changes.json"
        changes.write_text(json.dumps({"metadata": wanted, "files": [str(path) for path in files]}))
        self.cairn("lua", FORGE, source, to, changes)

    def commands(self, directory):
        return {"generate": ["generate", directory, "--prompt", "It", "--tokens", 2],
                "export": ["export", directory, "out.safetensors", "--quiet"],
                "resume": ["train", "--resume", directory, "--steps", 2, "--out", "other", "--force", "--quiet"]}

    def nothing_ran(self, what=""):
        self.assertFalse(self.marker.exists(), f"{what}: a file that the checkpoint chose was run")

    def everything(self, directory, code, says=(), only=("generate", "export", "resume"), **options):
        for name, command in self.commands(directory).items():
            if name not in only:
                continue
            done = self.cairn(*command, code=code, **options)
            for text in says:
                self.assertIn(text, done.stderr)
            self.nothing_ran(f"{name} {directory}")
