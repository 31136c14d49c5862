"""`cairn generate` shows text as it comes, in whole characters; its JSON is JSON; `cairn export` says what it did not do."""
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import CAIRN, ROOT, TINY, Case, main  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/support"))
from campaign import LONG  # noqa: E402

UMLAUTS = "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich — 日本語も、🙂 auch. " * 60


class Generate(Case):
    def raw(self, *arguments):
        return subprocess.run([CAIRN, *map(str, arguments)], capture_output=True, env=self.environment, cwd=self.folder,
                              timeout=60, check=True).stdout

    def prepare(self, *more, steps=3):
        self.text.write_text(UMLAUTS)
        self.train("--steps", steps, "--out", "run", *more)

    def test_json_whatever_bytes_come(self):
        self.prepare()  # it knows nothing: any bytes
        for seed in range(40 if LONG else 4):
            command = ["generate", "run", "--prompt", "größ", "--tokens", 60, "--seed", seed, "--temperature", 3, "--top-k", 0]
            blob = self.raw(*command, "--json")
            found = json.loads(blob.decode("utf-8"))
            self.assertEqual(found["prompt_tokens"], 6)
            self.assertEqual(len(found["tokens"]), 66)
            self.assertEqual(found["text"], bytes(found["tokens"]).decode("utf-8", errors="replace"))
            self.assertIn("\ufffd", found["text"])
            self.assertEqual(self.raw(*command).decode("utf-8"), found["text"] + "\n")

    def test_any_bytes_as_utf8(self):
        random_ = random.Random(20261122)
        pieces = [bytes([byte]) for byte in range(256)] + [text.encode() for text in "é€日🙂\u07ff\u0800\uffff\U0010ffff"] + [
            b"\xed\xa0\x80", b"\xc0\xaf", b"\xe0\x80\x80", b"\xf0\x8f\xbf\xbf", b"\xf4\x90\x80\x80", b"\xf0\x9f\x99"]
        program = pathlib.Path(__file__).with_name("unicode.lua")
        for _ in range(200 if LONG else 5):
            blob = b"".join(random_.choices(pieces, k=5000))
            (self.folder / "bytes").write_bytes(blob)
            self.assertEqual(self.raw("lua", program, "bytes").decode("utf-8"), blob.decode("utf-8", errors="replace"))

    def test_invalid_prompts(self):
        self.prepare()
        for prompt in (b"\xff", b"a\xe2\x82", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"\x00"[:0] + b"\x1b\x7f"):
            command = [CAIRN.encode(), b"generate", b"run", b"--prompt", prompt, b"--tokens", b"1", b"--json"]
            done = subprocess.run(command, capture_output=True, env=self.environment, cwd=self.folder, timeout=60, check=True)
            found = json.loads(done.stdout.decode("utf-8"))
            self.assertEqual(found["text"], bytes(found["tokens"]).decode("utf-8", errors="replace"))
            self.assertEqual(bytes(found["tokens"])[:-1], prompt)

    def test_streaming_gives_the_same_text(self):
        self.prepare("tokens=bpe", "vocab=400", steps=20)
        command = ["generate", "run", "--prompt", "Zwölf 日本", "--tokens", 40]
        self.assertEqual(self.raw(*command).decode("utf-8"), json.loads(self.raw(*command, "--json"))["text"] + "\n")

    def test_streaming_keeps_the_spaces_between_tokens(self):
        """Of a tokenizer that drops the space before a text, as Llama 2's does."""
        self.text.write_text(UMLAUTS)
        self.cairn("train", "llama", "data=" + str(self.text), "layers=1", "heads=2", "width=16", "seq=16", "batch=2", "vocab=659",
                   "--steps", 1, "--out", "run")
        self.cairn("export", "run", "model", "--to", "hf")
        tokenizer = ROOT / "tests/runtime/data/tokenizer/golden/llama2.json"
        (self.folder / "model/tokenizer.json").write_bytes(tokenizer.read_bytes())
        for seed in range(3):
            command = ["generate", "model", "--prompt", "the way", "--tokens", 12, "--seed", seed, "--temperature", 2]
            text = json.loads(self.raw(*command, "--json"))["text"]
            self.assertEqual(self.raw(*command).decode("utf-8"), text + "\n")

    def test_text_comes_as_it_is_made_in_whole_characters(self):
        self.prepare("layers=4", "width=64", "seq=128", steps=40)
        command = [CAIRN, "generate", "run", "--prompt", "Zwölf", "--tokens", "300", "--threads", "1"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=self.environment, cwd=self.folder)
        pieces = []
        while True:
            piece = os.read(process.stdout.fileno(), 65536)
            if not piece:
                break
            pieces.append(piece)
            time.sleep(0.001)
        process.stdout.close()
        self.assertEqual(process.wait(), 0)
        self.assertGreater(len(pieces), 10, "it comes in pieces")
        for piece in pieces:
            piece.decode("utf-8")  # whole characters, each time

    def test_a_closed_output_is_an_error(self):
        self.prepare()
        with open("/dev/full", "w") as full:
            done = subprocess.run([CAIRN, "generate", "run", "--prompt", "x"], stdout=full, stderr=subprocess.PIPE, text=True,
                                  env=self.environment, cwd=self.folder, timeout=60)
        self.assertEqual(done.returncode, 5)
        self.assertIn("stdout", done.stderr)

    def test_no_recipe_is_needed(self):
        recipe = self.folder / "mine.lua"
        recipe.write_text((ROOT / "scripts/recipes/gpt2.lua").read_text())
        self.cairn("train", recipe, *TINY, f"data={self.text}", "--steps", 2, "--out", "mine", "--quiet")
        self.cairn("train", "gpt2", *TINY, f"data={self.text}", "--steps", 2, "--out", "run", "--quiet")
        recipe.unlink()
        self.text.unlink()
        # A recipe of the user's is not run: its graph reads the whole window for each token, the other has caches.
        for more in (["generate", "--prompt", "x", "--tokens", 5, "--temperature", 0, "--json"], ["export"]):
            found = []
            for name in ("mine", "run"):
                target = [f"{name}.safetensors", "--quiet"] if more[0] == "export" else []
                done = self.raw(more[0], name, *more[1:], *target)
                made = (self.folder / target[0]).read_bytes() if target else json.loads(done)
                if not target:
                    self.assertGreater(made.pop("prefill_seconds"), 0)
                    self.assertGreater(made.pop("decode_tokens_per_second"), 0)
                    self.assertEqual(made.pop("cache_bytes") > 0, name == "run")
                    self.assertEqual(made.pop("peak_bytes"), made.pop("planned_peak_bytes"))
                found.append(made)
            self.assertEqual(*found)

    def generated(self, *more):
        return json.loads(self.cairn("generate", "run", *more, "--json").stdout)

    def test_several_prompts_at_once(self):
        self.prepare()
        prompts = ["ab", "cabbage", "x"]
        more = ["--max-tokens", 6, "--temperature", 0]
        made = self.generated(*(word for prompt in prompts for word in ("--prompt", prompt)), *more)
        self.assertEqual(made["peak_bytes"], made["planned_peak_bytes"])
        self.assertEqual(len(made["texts"]), 3)
        alone = [self.generated("--prompt", prompt, *more) for prompt in prompts]
        for text, prompt, single in zip(made["texts"], prompts, alone, strict=True):
            self.assertEqual(text["tokens"], single["tokens"])
            self.assertEqual((text["prompt_tokens"], len(text["tokens"])), (len(prompt), len(prompt) + 6))
        self.assertEqual(made["tokens"], alone[0]["tokens"])
        longest = len("cabbage") + 6 - 1
        self.assertEqual(made["cache_bytes"], 3 * alone[0]["cache_bytes"] // (2 + 6 - 1) * longest)

    def test_caches_go_to_a_tier_if_the_budget_asks(self):
        self.train("--steps", 1, "--out", "run", "kv_heads=1", "layers=3", "width=64", recipe="llama")
        # Two texts, at places of their own in the caches.
        command = ["--prompt", "a test", "--prompt", "it", "--max-tokens", 180, "--temperature", 0, "--threads", 1]
        plain, tiers = self.generated(*command), ["--tiers", "host", "--link", 4 * 10 ** 9]
        cache, least = plain["cache_bytes"], 1
        for _ in range(2):  # of the program that reads prompts, and of the one that decodes
            refused = self.fails(4, "generate", "run", *command, "--budget", least, *tiers, says="smallest budget")
            least = int(re.search(r"smallest budget that does is (\d+) bytes", refused.stderr)[1])
        self.assertLess(least, cache)  # the layers' caches take turns on the device
        for budget, host in ((plain["peak_bytes"]["device"] - 1, 0), (least, cache * 2 // 3)):
            found = self.generated(*command, "--budget", budget, *tiers)
            self.assertEqual(found["texts"], plain["texts"])
            self.assertEqual(found["peak_bytes"], found["planned_peak_bytes"])
            self.assertLessEqual(found["peak_bytes"]["device"], budget)
            self.assertGreater(found["peak_bytes"]["host"], host)
            self.assertEqual(found["cache_bytes"], cache)

    def test_texts_end_before_a_stop(self):
        self.prepare()
        more = ["--prompt", "a", "--max-tokens", 12, "--seed", 5]
        whole = self.generated(*more)
        stop = next(c for c in whole["text"][1:] if c.isprintable() and c != "\ufffd")
        made = self.generated(*more, "--stop", stop, "--stop", "no such text")
        self.assertEqual(made["text"], whole["text"][:whole["text"].index(stop, 1)])
        self.assertEqual(made["tokens"], whole["tokens"][:len(made["tokens"])])
        self.assertEqual((made["finish_reason"], whole["finish_reason"]), ("stop", "length"))

    def test_limits_of_a_draw(self):
        self.prepare()
        more = ["--prompt", "a", "--max-tokens", 8]
        greedy = self.generated(*more, "--temperature", 0)["tokens"]
        for limit in (["--top-k", 1], ["--top-p", 1e-9], ["--min-p", 1]):
            self.assertEqual(self.generated(*more, *limit)["tokens"], greedy, limit)
        self.assertNotEqual(self.generated(*more, "--temperature", 0, "--repetition-penalty", 50)["tokens"], greedy)
        self.assertNotEqual(self.generated(*more, "--seed", 1)["tokens"], self.generated(*more, "--seed", 2)["tokens"])
        self.fails(2, "generate", "run", *more, "--top-p", 0, says="--top-p must be above 0")
        self.fails(2, "generate", "run", *more, "--min-p", 2, says="--min-p must be from 0 to 1")

    def test_export_makes_no_directories(self):
        self.prepare()
        self.fails(5, "export", "run", "no/where/m.safetensors", says=("no/where", "make it first"))
        self.assertFalse((self.folder / "no").exists())
        self.fails(3, "export", "run", ".", says="regular file")
        self.cairn("export", "run", "m.safetensors", "--quiet")
        (self.folder / "there").mkdir()
        self.cairn("export", "run", pathlib.Path("there/m.safetensors"), "--quiet")
        self.assertEqual((self.folder / "m.safetensors").read_bytes(), (self.folder / "there/m.safetensors").read_bytes())


main()
