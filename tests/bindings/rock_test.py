"""The Lua binding as a rock: its list of modules and its version are those of the sources, and `luarocks make` installs what a
plain LuaJIT then trains with.

    rock_test.py LIBRARY"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

LIBRARY = pathlib.Path(sys.argv[1])
ROOT = pathlib.Path(__file__).resolve().parents[2]
LUA = ROOT / "bindings/lua"
HEADER = (ROOT / "capi/include/cairn/cairn.h").read_text()
PARTS = ("MAJOR", "MINOR", "PATCH")
VERSION = ".".join(re.search(rf"^#define CAIRN_VERSION_{part} (\d+)$", HEADER, flags=re.M)[1] for part in PARTS)
SPEC = LUA / f"cairn-{VERSION}-1.rockspec"
TRAIN = """
local cairn = require "cairn"
local nn, optim = cairn.nn, cairn.optim
local trainer = assert(nn.Trainer {
  model = nn.Sequential():add(nn.Linear(2, 32)):add(nn.ReLU()):add(nn.Linear(32, 1)),
  criterion = nn.MSECriterion(), input = { 4, 2 }, optim = optim.adamw { learningRate = 0.01 },
})
local first, last
for step = 1, 50 do
  last = assert(trainer:step({ 0, 0, 0, 1, 1, 0, 1, 1 }, { 0, 1, 1, 0 })).loss
  first = first or last
end
assert(last < first / 2)
print(cairn.version(), debug.getinfo(cairn.version, "S").source)
"""


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Rock(unittest.TestCase):
    def test_the_list_of_modules(self):
        self.assertEqual([path.name for path in LUA.glob("*.rockspec")], [SPEC.name], "one, of the header's version")
        text = SPEC.read_text()
        self.assertIn(f'version = "{VERSION}-1"', text)
        listed = re.findall(r'^    \["([\w.]+)"\] = "([\w/]+)\.lua",$', text, flags=re.M)
        files = sorted(path.relative_to(LUA).with_suffix("").as_posix() for path in LUA.rglob("*.lua")
                       if "examples" not in path.parts)
        self.assertEqual(sorted(name for _, name in listed), files)
        for module, name in listed:
            self.assertEqual(module, name.replace("/", "."))

    @unittest.skipUnless(shutil.which("luarocks") and shutil.which("luajit"), "no luarocks here; ./dev test long installs it")
    def test_luarocks_make(self):
        with tempfile.TemporaryDirectory(prefix="cairn-rock-") as scratch:
            folder = pathlib.Path(scratch)
            prefix, tree = folder / "prefix", folder / "tree"
            (prefix / "lib").mkdir(parents=True)
            for name in ("libcairn.so", "libcairn.so.1"):
                (prefix / "lib" / name).symlink_to(LIBRARY.resolve())
            luarocks = ["luarocks", "--lua-version", "5.1", "--tree", tree]
            environment = dict(os.environ, HOME=scratch)
            run(*luarocks, "lint", SPEC, env=environment)
            copy = folder / "source"
            shutil.copytree(LUA, copy)
            done = subprocess.run([*map(str, luarocks), "make", SPEC.name, f"CAIRN_DIR={folder}"], cwd=copy, env=environment,
                                  capture_output=True, text=True, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("Could not find library file for CAIRN", done.stdout + done.stderr)
            run(*luarocks, "make", SPEC.name, f"CAIRN_DIR={prefix}", cwd=copy, env=environment)
            (folder / "train.lua").write_text(TRAIN)
            environment["LUA_PATH"] = f"{tree}/share/lua/5.1/?.lua"
            environment["LD_LIBRARY_PATH"] = str(prefix / "lib")
            environment.pop("CAIRN_LIBRARY", None)
            said = run("luajit", folder / "train.lua", cwd=folder, env=environment)
            self.assertEqual(said.split(), [VERSION, f"@{tree}/share/lua/5.1/cairn.lua"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
