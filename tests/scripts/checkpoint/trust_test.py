"""A checkpoint is data: nothing runs because of what it says or of where it lies, whoever made it."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from forging import STEP, Forging  # noqa: E402
from harness import ROOT, TINY, main  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/support"))
from campaign import taken  # noqa: E402


class Trust(Forging):
    def test_the_marker_is_left_by_what_runs(self):
        evil = self.evil("evil.lua")
        self.cairn("generate", "run", "--prompt", "x", "--recipe", evil, "--recipe-changed", code=3)
        self.assertTrue(self.marker.exists(), "these tests see what runs")

    def test_recipes_that_a_checkpoint_names(self):
        inside, beside, elsewhere = (self.evil(path) for path in (f"A/{STEP}/evil.lua", "A/evil.lua", "evil.lua"))
        (self.folder / "alias").symlink_to(self.folder / "A")
        (self.folder / "link.lua").symlink_to(inside)
        inside.unlink()
        names = [f"A/{STEP}/evil", f"A/{STEP}/evil.lua", f"./A/{STEP}/evil", "A/evil", "A/evil.lua", "evil", "evil.lua",
                 "./evil", str(inside), str(beside), str(elsewhere), f"@{elsewhere}", f"={elsewhere}", "../evil",
                 f"{self.folder.name}/../evil.lua", f"../{self.folder.name}/evil", f"alias/{STEP}/evil", "alias/evil",
                 "link", "link.lua", "..", ".", "/", "", "gpt2/../../../evil", f"{ROOT}/scripts/recipes/../../../evil",
                 "\x1b[31mevil", "évil", "evil\nreturn"]
        for number, name in enumerate(names):
            for old in (True, False):
                if not taken(2 * number + old, 5):
                    continue
                with self.subTest(name=name, old=old):
                    self.forge(f"A/{STEP}", old, recipe=name)
                    self.evil(inside)
                    self.everything("A", 3, ["does not come with cairn", "--recipe FILE"],
                                    ("generate", "export", "resume") if old else ("resume",))
                    if not old:  # the recipe is not asked for
                        self.everything("A", 0, (), ("generate", "export"))
                    inside.unlink()

    def test_the_current_directory_chooses_nothing(self):
        for old in (True, False):
            folder = self.folder / ("old" if old else "new")
            self.forge(folder / STEP, old)
            for name in ("gpt2", "gpt2.lua", "scripts/recipes/gpt2.lua", f"{STEP}/gpt2.lua", "recipes/gpt2.lua"):
                self.evil(folder / name)
            for where, directory in ((folder, "."), (folder, STEP), (folder / STEP, ".")):
                with self.subTest(old=old, where=where.name, directory=directory):
                    self.everything(directory, 0, cwd=where)

    def test_links_to_checkpoints(self):
        self.forge(f"real/{STEP}", True, recipe="evil")
        (self.folder / "B").mkdir()
        (self.folder / "B" / STEP).symlink_to(self.folder / "real" / STEP)
        (self.folder / "C").symlink_to(self.folder / "B")
        for place in ("evil.lua", "real/evil.lua", "B/evil.lua", f"real/{STEP}/evil.lua", "step-00000009/evil.lua"):
            self.evil(place)
        for directory in ("B", "C", f"B/{STEP}", f"C/{STEP}"):
            self.everything(directory, 3, ["does not come with cairn"])
        self.forge(f"real/{STEP}", recipe=f"../real/{STEP}/evil")
        (self.folder / "real" / STEP / "generator.cairn").rename(self.folder / "elsewhere")
        (self.folder / "real" / STEP / "generator.cairn").symlink_to(self.folder / "elsewhere")
        self.everything("C", 0, (), ("generate", "export"))  # a link to data is data

    def test_a_name_is_the_installations_also_on_the_command_line(self):
        self.evil("gpt2.lua")
        done = self.cairn("train", "gpt2", "--resume", "run", "--steps", 2)
        self.assertIn("./gpt2.lua", done.stderr)
        self.cairn("plan", "gpt2", *TINY, "data=random")
        self.nothing_ran()

    def test_modules_in_the_current_directory(self):
        modules = [path.relative_to(folder) for folder in (ROOT / "scripts", ROOT / "bindings/lua")
                   for path in folder.rglob("*.lua")]
        modules += [pathlib.Path(name) for name in ("bit.lua", "ffi.lua", "cli/native.lua", "cairn/library.lua",
                                                    "recipes/none.lua", "jit/opt.lua", "table/new.lua", "string/buffer.lua")]
        for module in modules:
            self.evil(f"run/{module}")
        for paths in ({}, {"LUA_PATH": "./?.lua;;", "LUA_CPATH": "./?.so;;"}, {"LUA_PATH": "?.lua", "LUA_INIT": "@evil.lua"}):
            with self.subTest(paths=paths):
                self.environment.update(paths)
                self.everything(".", 0, cwd=self.folder / "run")
                self.cairn("inspect", ".", cwd=self.folder / "run")
                self.nothing_ran("inspect")

    def test_modules_of_a_recipe_lie_beside_it(self):
        self.evil("somewhere/part.lua")
        builtin = (ROOT / "scripts/recipes/gpt2.lua").read_text()
        recipe = self.folder / "mine/recipe.lua"
        recipe.parent.mkdir()
        recipe.write_text('assert(require("part") == "beside")\n' + builtin)
        (recipe.parent / "part.lua").write_text('return "beside"\n')
        where = self.folder / "somewhere"
        self.cairn("train", recipe, *TINY, f"data={self.text}", "--steps", 2, "--out", "run", "--quiet", cwd=where)
        self.everything("run", 0, (), ("generate", "export"), cwd=where)
        self.cairn("train", recipe, "--resume", "run", "--steps", 3, "--quiet", cwd=where)
        self.nothing_ran()

    def test_another_text_is_refused_before_it_runs(self):
        recipe = self.folder / "mine.lua"
        recipe.write_text((ROOT / "scripts/recipes/gpt2.lua").read_text())
        self.cairn("train", recipe, *TINY, f"data={self.text}", "--steps", 2, "--out", "mine", "--quiet")
        self.fails(3, "train", "--resume", "mine", "--steps", 3, says=("mine.lua", "--recipe FILE"))
        self.cairn("train", "--resume", "mine", "--recipe", recipe, "--steps", 3, "--quiet")
        text = recipe.read_text()
        recipe.write_text(text + f'io.open("{self.marker}", "w"):close()\n' + "return {}\n")
        line = text.count("\n") + 1
        for command in (["train", recipe, "--resume", "mine", "--steps", 4], ["generate", "mine", "--prompt", "x", "--recipe", recipe],
                        ["export", "mine", "o.safetensors", "--recipe", recipe], ["train", "llama", "--resume", "mine", "--steps", 4]):
            done = self.fails(3, *command, says=("is not the text", "--recipe-changed"))
            self.nothing_ran(command[0])
        self.fails(2, "train", "gpt2", "--resume", "mine", "--recipe", recipe, says="--recipe")
        self.fails(2, "train", "--recipe", recipe, says="--resume")
        self.fails(2, "train", recipe, "--recipe-changed", says="--resume")
        self.fails(2, "generate", "mine", "--prompt", "x", "--recipe-changed", says="--recipe FILE")
        recipe.write_text(text + "-- a word\n")
        self.fails(3, "train", recipe, "--resume", "mine", "--steps", 4, says=f"line {line} differs")
        done = self.cairn("train", recipe, "--resume", "mine", "--steps", 4, "--recipe-changed")
        self.assertIn("is not the text", done.stderr)

    def test_values_that_no_run_writes(self):
        wrong = {"amp": "evil", "accumulate": "-1", "seed": "1e999", "next_batch": "0x10", "threads": "two",
                 "option.layers": "evil", "option.rate": "nan", "option.width": "1e99", "steps": "\x1b[31m",
                 "parts": "4294967296"}
        for key, value in wrong.items():
            with self.subTest(key=key):
                self.forge(f"bad/{STEP}", **{key: value})
                command = ["train", "--resume", "bad", "--out", "other", "--force"]
                done = self.fails(3, *command, says="" if key == "option.width" else "bad/")
                self.assertNotIn("\x1b", done.stderr)
        for key, value in {"tokenizer": "evil", "generator": "../evil.lua", "names": "/etc/passwd"}.items():
            with self.subTest(key=key):
                self.forge(f"bad/{STEP}", **{key: value})
                self.everything("bad", 3, ["bad/"], ("generate",))
        self.forge(f"bad/{STEP}", **{"tokenizer": "bpe", "tokenizer.file": "../../text.txt"})
        self.everything("bad", 3, ["tokenizer"], ("generate",))
        self.forge(f"bad/{STEP}", files=[])
        self.everything("bad", 3, ["bad/", ".cairn"], ("generate", "export"))

    def test_links_in_a_run_directory(self):
        victim = self.folder / "victim"
        victim.write_text("precious\n")
        for name in ("metrics.jsonl", "plan.html", ".lock", ".saving"):
            with self.subTest(name):
                target = self.folder / "run" / name
                target.unlink(missing_ok=True)
                target.symlink_to(victim)
                if name == ".saving":  # a name of cairn's own is taken: it takes another
                    self.cairn("train", "--resume", "run", "--steps", 3, "--quiet")
                else:
                    self.fails(5, "train", "--resume", "run", "--steps", 3, says=(name, "link"))
                self.assertEqual(victim.read_text(), "precious\n")
                target.unlink(missing_ok=True)


main()
