"""`cairn chat`: turns by the model's template, answers that end where its turns end, caches that are kept, what is refused."""
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import CAIRN, Case, main  # noqa: E402

TEMPLATE = """{%- for m in messages %}<|{{ 'bot' if m.role == 'assistant' else m.role }}|>
{{ m.content }}<|end|>
{% endfor %}{% if add_generation_prompt %}<|bot|>
{% endif %}
"""


class Chat(Case):
    def prepare(self):
        self.text.write_text("".join(f"<|user|>\nhello there {i}<|end|>\n<|bot|>\nhi yourself<|end|>\n" for i in range(30)))
        self.cairn("train", "llama", "data=" + str(self.text), "layers=1", "heads=2", "width=32", "seq=64", "batch=8", "vocab=256",
                   "rate=1e-2", "--steps", 60, "--out", "run", "--quiet")
        self.cairn("export", "run", "model", "--to", "hf", "--quiet")
        (self.folder / "chat.jinja").write_text(TEMPLATE)

    def said(self, *arguments, lines=""):
        return subprocess.run([CAIRN, "chat", *map(str, arguments)], input=lines, capture_output=True, env=self.environment,
                              cwd=self.folder, timeout=120, text=True, check=False)

    def test_turns(self):
        self.prepare()
        (self.folder / "model/chat_template.jinja").write_text(TEMPLATE)
        greedy = ("--sample-temperature", 0, "--length", 40, "--context", 200, "--threads", 1)
        self.assertEqual(self.said("model", *greedy, "--prompt", "hello there 3").stdout, "hi yourself\n")
        done = self.said("model", *greedy, "--json", lines="hello there 3\nhello there 5\n/reset\n\nhello there 6\n/exit\nnever\n")
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([row["text"] for row in rows], ["hi yourself"] * 3)
        self.assertEqual([row["finish_reason"] for row in rows], ["end"] * 3)
        first, second, third = rows
        self.assertEqual(first["read_tokens"], first["prompt_tokens"])
        self.assertLess(second["read_tokens"], second["prompt_tokens"] - first["prompt_tokens"])  # the rest is in the caches
        self.assertEqual(third["prompt_tokens"], first["prompt_tokens"])
        short = self.said("model", "--context", 64, "--threads", 1, "--length", 2, lines="hello there 3\n" + "x" * 80 + "\nhello\n")
        self.assertIn("the context holds 64", short.stderr)

        self.cairn("train", "model", "data=" + str(self.text), "seq=64", "batch=8", "lora=2", "rate=1e-9", "--steps", 1, "--out",
                   "tuned", "--quiet")
        self.assertEqual(self.said("model", "--adapter", "tuned", *greedy, "--prompt", "hello there 3").stdout, "hi yourself\n")

        (self.folder / "model/chat_template.jinja").unlink()
        for command, words in ((["model"], "template=FILE"), (["run"], "template=FILE")):
            done = self.said(*command, "--prompt", "a")
            self.assertEqual((done.returncode, words in done.stderr), (3, True), done.stderr)
        self.assertEqual(self.said("run", "template=chat.jinja", *greedy, "--prompt", "hello there 3").stdout, "hi yourself\n")
        (self.folder / "raises.jinja").write_text("{{ raise_exception('no ' ~ messages[0].content) }}")
        done = self.said("model", "template=raises.jinja", "--prompt", "luck")
        self.assertEqual((done.returncode, "raises.jinja, line 1: no luck" in done.stderr), (3, True), done.stderr)
        self.assertEqual(self.said("model", "colour=red").returncode, 2)


if __name__ == "__main__":
    main()
