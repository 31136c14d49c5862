#!/usr/bin/env python3
"""Conversations by a template: text, tokens and what is learned of them; forms of messages; what is refused and its line."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from words import Words
from harness import main

ROLES = "{{ {'user': '<u>', 'assistant': '<a>', 'system': 'w39', 'tool': '<t>'}[m.role] }} "
PROMPT = "{% if add_generation_prompt %}<a> {% endif %}"
PLAIN = "{{ bos_token }} {% for m in messages %}" + ROLES + "{{ m.content }} {{ eos_token }} {% endfor %}" + PROMPT
# Of what was said before, the thought that ends with w30 is left out.
FORGETS = PLAIN.replace("{{ m.content }}", "{{ m.content if loop.last else m.content.split('w30 ')[-1] }}")
# Only the last turn ends with <e>; others end with <t>.
ENDS = PLAIN.replace("{{ eos_token }}", "{{ eos_token if loop.last else '<t>' }}")
# The prompt of an answer opens a thought, which answers close at once.
THINKS = PLAIN.replace(PROMPT, "{% if add_generation_prompt %}<a> w31 {% endif %}").replace(
    "{{ m.content }}", "{{ ('w31 w32 ' if m.role == 'assistant' else '') ~ m.content }}")
CALLS = PLAIN.replace("{{ m.content }}", "{{ m.content or '' }}{% for c in m.tool_calls %}w33 {{ c.function.name }}{% endfor %}").replace(
    "{{ bos_token }}", "{{ bos_token }} {% for t in tools or [] %}w34 {{ t.function.name }} {% endfor %}")


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


class Chat(Words):
    def seen(self, template, rows, *settings):
        """Of each row its words, those that are learned in brackets."""
        made = []
        for row in self.templated(self.model("llama", template), self.rows(rows), *settings):
            words = row["text"].split()
            self.assertEqual(len(words), len(row["ids"]))
            text, on = "", 0
            for word, learned in zip(words, row["mask"], strict=True):
                text += ("[" if learned and not on else "] " if on and not learned else " ") + word
                on = learned
            made.append(text.strip() + ("]" if on else ""))
        return made

    def test_answers_are_learned(self):
        rows = [{"messages": [user("w7"), assistant("w8")]},
                {"messages": [{"role": "system", "content": "w6"}, user("w7"), assistant("w8 w9"), user("w10"), assistant("w11")]},
                {"prompt": "w7", "completion": "w8"}, {"prompt": "w7", "completion": "w8", "system": "w6"}, {"text": "w7 w8 "}]
        self.assertEqual(self.seen(PLAIN, rows), [
            "<s> <u> w7 <e> <a>[w8 <e>]", "<s> w39 w6 <e> <u> w7 <e> <a>[w8 w9 <e>] <u> w10 <e> <a>[w11 <e>]",
            "<s> <u> w7 <e> <a>[w8 <e>]", "<s> w39 w6 <e> <u> w7 <e> <a>[w8 <e>]", "[w7 w8 <e>]"])
        self.assertEqual(self.seen(PLAIN, rows[:1], "train_on=all"), ["[<s> <u> w7 <e> <a> w8 <e>]"])

    def test_forms_of_messages(self):
        rows = [{"conversations": [{"from": "human", "value": "w7"}, {"from": "gpt", "value": "w8"}], "system": "w6"},
                {"conversations": [user("w7"), assistant("w8")]}, {"prompt": [user("w7"), assistant("w8"), user("w9")],
                                                                  "completion": [assistant("w10")]},
                {"messages": [user("w7"), assistant("w8", weight=0), user("w9"), assistant("w10")]}]
        self.assertEqual(self.seen(PLAIN, rows), [
            "<s> w39 w6 <e> <u> w7 <e> <a>[w8 <e>]", "<s> <u> w7 <e> <a>[w8 <e>]",
            "<s> <u> w7 <e> <a> w8 <e> <u> w9 <e> <a>[w10 <e>]", "<s> <u> w7 <e> <a> w8 <e> <u> w9 <e> <a>[w10 <e>]"])

    def test_calls_of_tools(self):
        tools = [{"type": "function", "function": {"name": "w20"}}]
        call = {"type": "function", "function": {"name": "w20", "arguments": {"a": 1}}}
        rows = [{"messages": [user("w7"), {"role": "assistant", "content": None, "tool_calls": [call]},
                              {"role": "tool", "content": "w8"}, assistant("w9")], "tools": tools},
                {"conversations": [{"from": "human", "value": "w7"}, {"from": "function_call", "value": json.dumps(call["function"])},
                                   {"from": "observation", "value": "w8"}, {"from": "gpt", "value": "w9"}], "tools": json.dumps(tools)}]
        self.assertEqual(self.seen(CALLS, rows), ["<s> w34 w20 <u> w7 <e> <a>[w33 w20 <e>] <t> w8 <e> <a>[w9 <e>]"] * 2)

    def test_what_rows_say_reaches_the_template_as_it_is(self):
        row = '{"tools": [{"z": 1.50, "a": {"y": 0, "b": [null, "\\u00e9"]}}], "messages": [' \
              '{"role": "user", "more": 1234567890123456789, "content": "w7"}, {"role": "assistant", "content": "w8"}]}'
        template = "{{ tools | tojson }} {{ messages[0].more }} " + PLAIN
        text = self.templated(self.model("llama", template), self.rows([row]))[0]["text"]
        self.assertTrue(text.startswith('[{"z": 1.5, "a": {"y": 0, "b": [null, "é"]}}] 1234567890123456789 <s> <u> w7'), text)

    def test_templates_that_write_an_answer_in_two_ways(self):
        rows = [{"messages": [user("w7"), assistant("w29 w30 w8"), user("w9"), assistant("w28 w30 w10")]},
                {"messages": [user("w7"), assistant("w8"), user("w9"), assistant("w10")]}]
        self.assertEqual(self.seen(FORGETS, rows), ["<s> <u> w7 <e> <a>[w8 <e>] <u> w9 <e> <a>[w28 w30 w10 <e>]",
                                                    "<s> <u> w7 <e> <a>[w8 <e>] <u> w9 <e> <a>[w10 <e>]"])
        self.assertEqual(self.seen(ENDS, rows[1:]), ["<s> <u> w7 <t> <a>[w8 <t>] <u> w9 <t> <a>[w10 <e>]"])
        self.assertEqual(self.seen(THINKS, rows[1:]), ["<s> <u> w7 <e> <a> w31[w32 w8 <e>] <u> w9 <e> <a> w31[w32 w10 <e>]"])

    def test_refusals_name_the_line(self):
        good, bad = {"messages": [user("w7"), assistant("w8")]}, {"messages": [user("w6"), assistant("w8")]}
        for template, says in (
            (PLAIN.replace("{{ m.content }}", "{% if m.content == 'w6' %}{{ raise_exception('no w6 here') }}{% endif %}{{ m.content }}"), "no w6 here"),
            (PLAIN.replace("{{ m.content }}", "{{ m.content if messages[0].content == 'w7' else '' }}"), "leaves it out"),
        ):
            done = self.cairn("template", self.model("llama", template), self.rows([good, bad]), code=3)
            self.assertIn("line 2: ", done.stderr)
            self.assertIn(says, done.stderr)
        self.fails(3, "template", self.model("llama", "{% for"), self.rows([good]), says="chat_template.jinja")

    def test_where_templates_are(self):
        model, rows = self.model("llama"), self.rows([{"messages": [user("w7"), assistant("w8")]}])
        config = json.loads((model / "tokenizer_config.json").read_text())
        for given in (PLAIN, [{"name": "default", "template": PLAIN}, {"name": "rag", "template": "no"}]):
            (model / "tokenizer_config.json").write_text(json.dumps({**config, "chat_template": given}))
            self.assertEqual(len(self.templated(model, rows)[0]["ids"]), 7)
        (model / "chat_template.jinja").write_text("no")
        (model / "additional_chat_templates").mkdir()
        (model / "additional_chat_templates/tool_use.jinja").write_text(PLAIN)
        tools = [{"type": "function", "function": {"name": "w20"}}]
        with_tools = self.rows([{"messages": [user("w7"), assistant("w8")], "tools": tools}], "tools.jsonl")
        self.assertEqual(len(self.templated(model, with_tools)[0]["ids"]), 7)
        self.fails(3, "template", model, rows, says=["line 1", "leaves it out"])
        self.fails(3, "template", model, rows, "template=none", says=["line 1", "template=FILE"])
        other = self.folder / "other.jinja"
        other.write_text(PLAIN.replace("{{ bos_token }}", "w1"))
        self.assertEqual(self.templated(model, rows, f"template={other}")[0]["text"][:2], "w1")

    def test_a_run_keeps_its_template(self):
        model = self.model("llama", PLAIN)
        data = self.rows([{"messages": [user(f"w{i}"), assistant(f"w{i + 1}")]} for i in range(7, 30)])
        options = [model, f"data={data}", "seq=16", "batch=2", "rate=1e-3", "eval_fraction=0.2"]
        through = self.json("train", *options, "--steps", 6)
        self.assertAlmostEqual(through["tokens_supervised_share"], 2 / 7)
        dated = self.folder / "dated.jinja"
        dated.write_text(PLAIN + "{% if false %}{{ strftime_now('%d') }}{% endif %}")
        said = self.cairn("train", *options, f"template={dated}", "--steps", 1, "--threads", 1).stderr
        self.assertIn("dated.jinja writes the date", said)
        self.json("train", *options, "--steps", 2, "--out", "run")
        (model / "chat_template.jinja").unlink()
        rest = self.json("train", "--resume", "run", "--steps", 6)
        self.assertEqual(rest["parameter_digest"], through["parameter_digest"])
        self.assertEqual(self.json("evaluate", "run")["loss"], through["evaluation"][-1]["loss"])


if __name__ == "__main__":
    main()
