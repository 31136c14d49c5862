"""Manual pages and completions (scripts/pages): each option that --help prints is in them, and the tools and shells that read
them take them as they are."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

CAIRN, PAGES = os.environ["CAIRN"], pathlib.Path(os.environ["PAGES"])
HERE = pathlib.Path(__file__).resolve().parent
COMMANDS = re.findall(r"^  cairn (\w+) ", subprocess.run([CAIRN, "--help"], capture_output=True, text=True, check=True).stdout,
                      flags=re.M)


def output(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def help_of(*words):
    """{option: whether it takes a value}, and the options of the recipe, as --help prints them."""
    text = output(CAIRN, *words, "--help")
    options = {name: value != "" for name, value in re.findall(r"^  --([\w-]+)( [A-Z][A-Z|]*)? ", text, flags=re.M)}
    options = {name: value for name, value in options.items()
               if "not here" not in re.search(rf"^  --{name} .*$", text, flags=re.M)[0]}
    return options, re.findall(r"^  (\w+)=", text, flags=re.M)


def needs(program):
    return unittest.skipUnless(shutil.which(program), f"no {program} here; ./dev test long installs it")


class Pages(unittest.TestCase):
    def test_every_option_is_everywhere(self):
        self.assertEqual(len(COMMANDS), 19)
        texts = {shell: path.read_text() for shell, path in
                 {"bash": PAGES / "bash/cairn", "zsh": PAGES / "zsh/_cairn", "fish": PAGES / "fish/cairn.fish"}.items()}
        for command in COMMANDS:
            page = (PAGES / f"man1/cairn-{command}.1").read_text()
            if command == "lua":
                continue
            options, _ = help_of(command)
            self.assertIn("json", options)
            bash = re.search(rf"^_cairn_options.*?^    {command}\) echo '(.*?)'", texts["bash"], flags=re.M | re.S)[1].split()
            self.assertEqual(sorted(bash), sorted(f"--{name}" for name in (*options, "help")))
            zsh = re.search(rf"^_cairn_of_{command}\(\) {{.*?^}}", texts["zsh"], flags=re.M | re.S)[0]
            for name, value in options.items():
                roff = name.replace("-", r"\-")
                self.assertIn(f'.BI "\\-\\-{roff} " ' if value else f'.B "\\-\\-{roff}"\n', page)
                self.assertIn(f"'--{name}=[" if value else f"'--{name}[", zsh)
                self.assertRegex(texts["fish"], rf"from {command}' -l {name}{' -[xr]' if value else ' -d'} ")

    def test_every_option_of_a_recipe(self):
        page = (PAGES / "man7/cairn-recipes.7").read_text()
        bash = (PAGES / "bash/cairn").read_text()
        for recipe in ("classify", "gpt2", "llama", "mlp", "regress"):
            _, names = help_of("train", recipe)
            self.assertGreater(len(names), 20)
            section = re.search(rf'^\.SH "{recipe.upper()}"\n(.*?)^\.SH', page, flags=re.M | re.S)[1]
            self.assertEqual(re.findall(r'^\.BI "(\w+)=" ', section, flags=re.M), names)
            self.assertIn(f"    {recipe}) echo '{' '.join(name + '=' for name in names)}' ;;", bash)

    def test_the_list_of_pages(self):
        pages = sorted(path.name for path in PAGES.glob("man*/*"))
        self.assertEqual(pages, sorted(["cairn.1", "cairn-recipes.7", *(f"cairn-{name}.1" for name in COMMANDS)]))
        top = (PAGES / "man1/cairn.1").read_text()
        for command in COMMANDS:
            self.assertIn(f".BR cairn\\-{command} (1)", top)

    @needs("mandoc")
    def test_mandoc_finds_nothing_wrong(self):
        done = subprocess.run(["mandoc", "-Tlint", *sorted(PAGES.glob("man*/*"))], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        text = re.sub(".\b", "", output("mandoc", "-Tutf8", PAGES / "man1/cairn-plan.1"))  # bold is a letter over itself
        self.assertRegex(text, r"\n +--budget VALUE\n +bytes of the device \(KiB")
        self.assertIn("SEE ALSO\n       cairn(1), cairn-recipes(7)\n", text)

    @needs("groff")
    def test_man_warns_of_nothing(self):
        environment = dict(os.environ, LC_ALL="C.UTF-8", MANWIDTH="80")
        for page in PAGES.glob("man*/*"):
            done = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", page], capture_output=True, text=True,
                                  check=False, env=environment)
            self.assertEqual((done.returncode, done.stderr), (0, ""), page)


# What is offered behind a line: what must be among it, and what not.
LINES = [
    ("cairn tr", ["train"], ["plan", "--amp"]),
    ("cairn train --am", ["--amp"], ["--budget"]),
    ("cairn train --amp ", ["off", "bf16", "fp16"], ["gpt2"]),
    ("cairn plan ", ["gpt2", "llama", "mlp", "net.lua"], ["attention"]),
    ("cairn train gpt2 opt", ["optimizer="], ["layers="]),
    ("cairn train gpt2 schedule=c", ["constant", "cosine"], ["linear"]),
    ("cairn train gpt2 optimizer=ad", ["adam", "adamw", "adamw8", "adafactor"], ["sgd"]),
    ("cairn train mlp acti", ["activation="], []),
    ("cairn train mlp lay", ["layers="], ["heads="]),
    ("cairn ops soft", ["softmax"], ["linear"]),
    ("cairn train --init ", ["net.lua", "weights.safetensors"], ["gpt2"]),
    ("cairn plan --device-model ", ["h100", "rtx4090", "cpu", "net.lua", "weights.safetensors"], ["gpt2"]),
    ("cairn plan --device-model h", ["h100", "h200"], ["l4", "net.lua"]),
    ("cairn plan --device-model=l", ["l4", "l40s"], ["h100", "net.lua"]),
    ("cairn plan --device-model we", ["weights.safetensors"], ["net.lua", "h100"]),
    ("cairn inspect we", ["weights.safetensors"], ["net.lua"]),
    ("cairn devices --j", ["--json"], ["--quiet"]),
]

BASH = r"""
source "$1"
line=$2
# As readline cuts a line into words, '=' being one of its own; a blank at the end begins an empty one.
read -ra COMP_WORDS <<<"${line//=/ = }"
case $line in *' ' | *=) COMP_WORDS+=('') ;; esac
[[ $line != *= ]] || unset 'COMP_WORDS[-1]'
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$line COMP_POINT=${#line}
_cairn cairn "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
"""


class Completions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="cairn-complete-")
        cls.folder = pathlib.Path(cls.scratch.name)
        for name in ("net.lua", "weights.safetensors"):
            (cls.folder / name).touch()

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def check(self, offered):
        """offered(line): the words, each without the key= before it."""
        for line, wanted, unwanted in LINES:
            found = offered(line)
            for word in wanted:
                self.assertIn(word, found, line)
            for word in unwanted:
                self.assertNotIn(word, found, line)

    def test_bash(self):
        self.check(lambda line: output("bash", "--norc", "-c", BASH, "bash", PAGES / "bash/cairn", line,
                                       cwd=self.folder).splitlines())
        self.assertIn("sgd", output("bash", "--norc", "-c", BASH, "bash", PAGES / "bash/cairn", "cairn train gpt2 optimizer=",
                                    cwd=self.folder).splitlines())

    @needs("zsh")
    def test_zsh(self):
        self.check(lambda line: output("zsh", "-f", HERE / "zsh_complete.zsh", PAGES / "zsh", self.folder, line).splitlines())

    @needs("fish")
    def test_fish(self):
        def offered(line):
            out = output("fish", "-N", "-c", f"source {PAGES / 'fish/cairn.fish'}; complete -C '{line}'", cwd=self.folder,
                         env=dict(os.environ, HOME=str(self.folder)))
            words = [row.split("\t")[0] for row in out.splitlines()]
            return words + [part for word in words if "=" in word for part in (word.split("=")[1], word.split("=")[0] + "=")]
        self.check(offered)


if __name__ == "__main__":
    unittest.main(verbosity=2)
