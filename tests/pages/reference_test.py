"""The reference in capi/docs: its pages are what the header and the tables give now, name every function, and list every key
that commands print with --json, and no other."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

CAIRN = os.environ["CAIRN"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
MADE = ROOT / "capi/docs/reference"


def output(*words, cwd=None):
    environment = dict(os.environ, XDG_CACHE_HOME=str(cwd)) if cwd else None
    done = subprocess.run([CAIRN, *words], capture_output=True, text=True, check=False, cwd=cwd, env=environment)
    if done.returncode != 0:
        raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Made(unittest.TestCase):
    def test_pages_are_fresh(self):
        with tempfile.TemporaryDirectory() as folder:
            output("lua", str(ROOT / "scripts/pages/make_reference.lua"), folder)
            made = sorted(path.name for path in pathlib.Path(folder).iterdir())
            self.assertEqual(made, ["commands.md", "functions.md", "json.md", "nn.md", "options.md"])
            for name in made:
                self.assertEqual((MADE / name).read_text(encoding="utf-8"),
                                 (pathlib.Path(folder) / name).read_text(encoding="utf-8"),
                                 f"capi/docs/reference/{name} is old: ./dev docs makes it anew")

    def test_every_function_is_there(self):
        text = (MADE / "functions.md").read_text(encoding="utf-8")
        symbols = re.findall(r"^\w*?(cairn_\w+)", (ROOT / "capi/abi/symbols.txt").read_text(encoding="utf-8"), re.M)
        self.assertGreater(len(symbols), 80)
        self.assertEqual([symbol for symbol in symbols if not re.search(rf"[ *]{symbol}\(", text)], [])

    def test_every_struct_is_there(self):
        text = (MADE / "functions.md").read_text(encoding="utf-8")
        structs = re.findall(r"^} (cairn_\w+);", (ROOT / "capi/include/cairn/cairn.h").read_text(encoding="utf-8"), re.M)
        self.assertGreater(len(structs), 25)
        self.assertEqual([struct for struct in structs if f"### `{struct}`\n" not in text], [])


def expanded(key):
    """"a.{b, c}" -> "a.b", "a.c"."""
    braces = re.match(r"(.*?)\{(.*?)\}(.*)", key)
    if not braces:
        return [key]
    before, words, after = braces.groups()
    return [each for word in words.split(", ") for each in expanded(before + word + after)]


def documented():
    """{command: patterns of keys} of the page."""
    sections = re.split(r"^## ", (MADE / "json.md").read_text(encoding="utf-8"), flags=re.M)[1:]
    return {section.split("\n")[0]: [key for row in re.findall(r"^\| `([^`]+)` \|", section, re.M) for key in expanded(row)]
            for section in sections}


def pattern(key):
    return re.compile(re.escape(key).replace("NAME", r".+"))


def keys(value, path=""):
    """Paths to what is no object: an empty one, and arrays of numbers and words, count as that."""
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from keys(each, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and any(isinstance(each, (dict, list)) for each in value):
        for each in value:
            yield from keys(each, path + "[]")
    else:
        yield path


SMALL = "layers=1 width=16 heads=2 seq=8 batch=4 data=book.txt"
RULED = """local gpt2 = require "recipes.gpt2"
local ruled = {}
for key, value in pairs(gpt2) do ruled[key] = value end
ruled.amp_rules = function() return { { op = "layernorm", class = "full" }, { op = "linear", class = "full" } } end
return ruled
"""
# Command of the page, and lines whose output together has every key; `damage` shortens a
# checkpoint; `prepare` runs a command of another page.
RUNS = {
    "train": [
        f"train gpt2 {SMALL} --steps 4 eval_fraction=0.1 --eval-every 2 --best perplexity --early-stop 9 --out run metrics=accuracy",
        "damage run/step-00000004",
        "train gpt2 --resume run --steps 5 --accumulate 2",
        f"train gpt2 {SMALL} batch=auto global_batch=4 --dry-run --budget 180KiB",
        f"train gpt2 {SMALL} --steps 1 --budget 180KiB --on-oom shrink",
        "train gpt2 layers=1 width=16 heads=2 seq=16 batch=1 data=rows.jsonl template=chat.jinja --steps 1",
        "train resnet image=8 width=4 batch=2 samples=8 eval_samples=4 bad=skip --steps 1",
        "train classify data=texts.csv layers=1 width=8 heads=2 seq=8 batch=2 --steps 1 --out texts",
    ],
    "plan": [f"plan gpt2 {SMALL} batch=auto global_batch=4 --budget 180KiB", f"plan ruled.lua {SMALL} --amp bf16 eval_fraction=0.1"],
    "plan --sweep": ["plan mlp --sweep"],
    "plan --fit": ["plan mlp --fit"],
    "verify": ["verify mlp --steps 2 --budgets 1"],
    "profile": ["profile mlp --steps 2", "profile mlp --predicted"],
    "generate": ["generate run --prompt Once --prompt A --tokens 2"],
    "tokenize": [f"tokenize {ROOT}/tests/runtime/data/tokenizer/golden/gpt2.json book.txt --offsets"],
    "evaluate": ["evaluate run", "evaluate texts data=texts.csv"],
    "logits": ["logits run --tokens 1,2"],
    "models": ["models"],
    "export": ["export run run.safetensors", "export run model --to hf",
               "prepare train model data=book.txt batch=4 lora=2 --format nf4 --steps 1 --out tuned", "export tuned merged --to hf --merge base"],
    "template": ["template model rows.jsonl template=chat.jinja"],
    "convert": ["convert model model.gguf"],
    "chat": ["chat model --prompt A --length 3 template=chat.jinja"],
    "inspect": ["inspect run", "inspect tuned"],
    "devices": ["devices"],
    "devices --models": ["devices --models"],
    "ops": ["ops"],
    "ops --formats": ["ops --formats"],
    "ops --optimizers": ["ops --optimizers"],
    "ops --schedules": ["ops --schedules"],
    "ops --counters": ["ops --counters"],
    "ops --amp": ["ops --amp"],
}


class JsonKeys(unittest.TestCase):
    maxDiff = None

    def test_they_are_those_of_the_page(self):
        pages = documented()
        self.assertEqual(sorted(pages), sorted(RUNS))
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "book.txt").write_text("Once upon a time a pile of stones marked the way back. " * 40)
            (folder / "ruled.lua").write_text(RULED)
            (folder / "rows.jsonl").write_text('{"messages": [{"role": "user", "content": "Once"}, '
                                               '{"role": "assistant", "content": "more"}]}\n')
            (folder / "chat.jinja").write_text("{% for m in messages %}{{ m.content }}.{% endfor %}")
            (folder / "texts.csv").write_text("text,label\na good one,pos\na bad one,neg\n")
            for command, lines in RUNS.items():
                found = set()
                for line in lines:
                    if line.startswith("damage "):
                        largest = max((folder / line.split()[1]).iterdir(), key=lambda path: path.stat().st_size)
                        largest.write_bytes(largest.read_bytes()[:-1])
                        continue
                    if line.startswith("prepare "):
                        output(*line.split()[1:], "--quiet", cwd=folder)
                        continue
                    found |= set(keys(json.loads(output(*line.split(), "--json", cwd=folder))))
                rows = [(key, pattern(key)) for key in pages[command]]
                # An array or object that happens to be empty says nothing about its elements.
                unknown = [key for key in found if not any(row.fullmatch(key) for _, row in rows)
                           and not any(name.startswith((key + "[]", key + ".")) for name, _ in rows)]
                missing = [key for key, row in rows if not any(row.fullmatch(each) for each in found)]
                self.assertEqual((sorted(unknown), missing), ([], []), command)


class Pictures(unittest.TestCase):
    def test_of_a_page(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            output("plan", "mlp", "--html", "plan.html", "--quiet", cwd=folder)
            output("lua", str(ROOT / "scripts/pictures.lua"), "plan.html", ".", cwd=folder)
            for name, title in (("budget.svg", "Seconds of forward and backward over the budget"),
                                ("memory.svg", "Device memory over one forward and backward")):
                text = (folder / name).read_text(encoding="utf-8")
                self.assertEqual(xml.etree.ElementTree.fromstring(text).get("aria-label"), title)
                self.assertIn("prefers-color-scheme:dark", text)
                self.assertNotIn("class='h'", text)
                drawn = (ROOT / "capi/docs/pictures" / name).read_text(encoding="utf-8")
                self.assertEqual(re.search("<style>.*?</style>", drawn)[0], re.search("<style>.*?</style>", text)[0],
                                 f"capi/docs/pictures/{name} is old: ./dev quickstart --pictures capi/docs/pictures")
            (folder / "other.html").write_text("<html></html>")
            with self.assertRaisesRegex(AssertionError, "no page about a plan"):
                output("lua", str(ROOT / "scripts/pictures.lua"), "other.html", ".", cwd=folder)


if __name__ == "__main__":
    unittest.main(verbosity=2)
