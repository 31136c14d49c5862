"""What a run writes of itself: metrics.jsonl, evaluations.jsonl, TensorBoard's events, report.html, samples.jsonl."""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import unittest
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import TINY, Case, main  # noqa: E402

EVALUATES = ["eval_fraction=0.2", "--eval-every", 4]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def fields(data):
    """Fields of a protocol buffers message: {number: [value, ...]}."""
    def varint(at):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            shift, at = shift + 7, at + 1
            if data[at - 1] < 128:
                return value, at
    found, at = {}, 0
    while at < len(data):
        tag, at = varint(at)
        if tag & 7 == 0:
            value, at = varint(at)
        else:
            size = {1: 8, 5: 4}.get(tag & 7)
            if size is None:
                size, at = varint(at)
            value, at = data[at:at + size], at + size
        found.setdefault(tag >> 3, []).append(value)
    return found


def sums(page):
    """The tables of the plan's sums: by what they are by, {name: cells as numbers}, the last of them the total."""
    found = {}
    for text in re.findall('<table class="numbers sums">(.*?)</table>', page, re.S):
        what, rows = re.search("<th>(.*?)</th>", text)[1], {}
        for row in re.findall("<tr.*?</tr>", text)[1:]:
            name, values = re.findall("<td>(.*?)</td>", row)
            rows[name] = [int(values)] + [float(number) for number in re.findall('title="(\\S+) ', row)]
        found[what] = rows
    return found


def events(path):
    """Events of a file as (step, {tag: value}, session status), its checksums checked."""
    data, at, found = pathlib.Path(path).read_bytes(), 0, []
    while at < len(data):
        (size,) = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8)[0] == masked(data[at:at + 8])
        body = data[at + 12:at + 12 + size]
        assert struct.unpack_from("<I", data, at + 12 + size)[0] == masked(body)
        at += size + 16
        event = fields(body)
        assert struct.unpack("<d", event[1][0])[0] > 1.6e9
        scalars = {}
        for summary in event.get(5, []):
            for value in fields(summary)[1]:
                value = fields(value)
                scalars[value[1][0].decode()] = struct.unpack("<f", value[2][0])[0]
        status = fields(event[7][0])[1][0] if 7 in event else None
        found.append((event.get(2, [0])[0], scalars, status, event.get(3)))
    return found


class Records(Case):
    def lines(self, name, run="run"):
        return [json.loads(line) for line in (self.folder / run / name).read_text().splitlines()]

    def event_files(self):
        return sorted((self.folder / "run").glob("events.out.tfevents.*"))

    def resumed(self, *arguments):
        return json.loads(self.cairn("train", "--resume", "run", "--json", "--quiet", *arguments).stdout)

    def test_checksums_of_known_texts(self):
        self.assertEqual(crc32c(b"123456789"), 0xE3069283)
        (self.folder / "crc.lua").write_text("""local crc = require("cli.report.tensorboard").crc
            io.write(crc("123456789"), " ", crc(""), " ", crc(("\\0"):rep(32)), " ", crc(("\\255"):rep(32)))""")
        self.assertEqual(self.cairn("lua", "crc.lua").stdout, f"{0xE3069283} 0 {0x8A9136AA} {0x62A8AB43}")

    def test_events_hold_what_the_lines_hold(self):
        self.train("--steps", 6, *EVALUATES, "metrics=accuracy", "--out", "run")
        (path,) = self.event_files()
        found = events(path)
        self.assertEqual(found[0][3], [b"brain.Event:2"])
        steps = [(step, scalars) for step, scalars, *_ in found if "train/loss" in scalars]
        lines = self.lines("metrics.jsonl")
        self.assertEqual([step for step, _ in steps], [1, 2, 3, 4, 5, 6])
        for (_, scalars), line in zip(steps, lines):
            for name in ("loss", "gradient_norm", "rate", "perplexity", "accuracy"):
                self.assertAlmostEqual(scalars[f"train/{name}"], line[name], delta=1e-6 * abs(line[name]))
            self.assertAlmostEqual(scalars["train/tokens_per_second"], line["tokens"] / line["seconds"],
                                   delta=1e-6 * line["tokens"] / line["seconds"])
            self.assertEqual(scalars["train/skipped_steps"], 0)
        evaluated = [(step, scalars) for step, scalars, *_ in found if "eval/loss" in scalars]
        for (step, scalars), line in zip(evaluated, self.lines("evaluations.jsonl")):
            self.assertEqual(step, line["step"])
            self.assertAlmostEqual(scalars["eval/loss"], line["loss"], delta=1e-6)
            self.assertAlmostEqual(scalars["eval/perplexity"], line["perplexity"], delta=1e-4)
            self.assertAlmostEqual(scalars["eval/accuracy"], line["accuracy"], delta=1e-6)
        self.assertEqual([step for step, _ in evaluated], [4, 6])

    def test_a_resumed_run_says_from_where_and_a_new_one_begins_anew(self):
        self.train("--steps", 4, "--out", "run")
        first = self.event_files()
        self.resumed("--steps", 6)
        (later,) = set(self.event_files()) - set(first)
        found = events(later)
        self.assertEqual([(step, status) for step, _, status, _ in found[:2]], [(0, None), (5, 1)])
        self.assertEqual([step for step, scalars, *_ in found if scalars], [5, 6])
        self.train("--steps", 2, "--out", "run", "--force")
        self.assertEqual(len(self.event_files()), 1)
        self.assertEqual([line["step"] for line in self.lines("metrics.jsonl")], [1, 2])

    def test_log_every(self):
        found = self.train("--steps", 7, "--log-every", 3, *EVALUATES, "--out", "run")
        self.assertEqual(len(found["loss"]), 7)
        self.assertEqual([line["step"] for line in self.lines("metrics.jsonl")], [3, 6, 7])
        self.assertEqual([line["loss"] for line in self.lines("metrics.jsonl")], [found["loss"][i] for i in (2, 5, 6)])
        self.assertEqual([line["step"] for line in self.lines("evaluations.jsonl")], [4, 7])

    @unittest.skipUnless(os.environ.get("TENSORBOARD_PYTHON"), "a Python with tensorboard: $TENSORBOARD_PYTHON")
    def test_tensorboards_own_reader(self):
        self.train("--steps", 4, *EVALUATES, "--out", "run")
        self.resumed("--steps", 6)
        program = """import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
found = EventAccumulator(sys.argv[1])
found.Reload()
print(json.dumps({tag: [[e.step, e.value] for e in found.Scalars(tag)] for tag in found.Tags()["scalars"]}))"""
        read = json.loads(subprocess.run([os.environ["TENSORBOARD_PYTHON"], "-c", program, self.folder / "run"],
                                         capture_output=True, text=True, check=True).stdout)
        lines = self.lines("metrics.jsonl")
        self.assertEqual([step for step, _ in read["train/loss"]], [line["step"] for line in lines])
        for (_, value), line in zip(read["train/loss"], lines):
            self.assertAlmostEqual(value, line["loss"], delta=1e-6 * abs(line["loss"]))
        self.assertIn("eval/perplexity", read)

    def test_the_page_needs_nothing_else(self):
        self.text.write_text("a <b>&amp; text with \"marks\" " * 99)
        self.train("--steps", 6, *EVALUATES, "--sample-every", 3, "--sample-prompt", "<script>alert(1)</script>",
                   "--out", "run")
        page = (self.folder / "run/report.html").read_text()
        for words in ("<script", "http:", "https:", "url(", "@import", "src="):
            self.assertNotIn(words, page)
        for words in ("prefers-color-scheme: dark", "Loss", "Perplexity", "Accuracy", "Learning rate", "Gradient norm",
                      "Tokens per second", "Evaluation", "&lt;script&gt;alert(1)", "skipped steps", "peak, device"):
            self.assertIn(words, page)
        drawings = re.findall("<svg.*?</svg>", page, re.S)
        self.assertEqual(len(drawings), 6)
        for drawing in drawings:
            tree = xml.etree.ElementTree.fromstring(drawing)
            lines = [path for path in tree.iter("path") if "line" in path.get("class")]
            self.assertTrue(lines)
            for line in lines:
                for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", line.get("d")):
                    self.assertTrue(0 <= float(x) <= 640 and 0 <= float(y) <= 220, (x, y))
        self.assertEqual([row["step"] for row in self.lines("samples.jsonl")], [3, 6])
        self.assertTrue(self.lines("samples.jsonl")[0]["text"].startswith("<script>"))

    def test_the_page_names_the_options_that_say_something(self):
        self.cairn("train", "mlp", "width=8", "layers=1", "clip=2", "--steps", 2, "--out", "run", "--quiet")
        for page in ("report.html", "plan.html"):
            text = (self.folder / "run" / page).read_text()
            for word in ("width=8", "layers=1", "noise=0.03", "rate=0.01", "schedule=constant", "optimizer=adamw", "clip=2"):
                self.assertIn(word, text)
            self.assertNotIn("final_div_factor", text)

    def test_the_sums_of_the_plan_add_up_to_the_plan(self):
        held = ["--tiers", "host,disk", "--region", "h1=recompute", "--region", "h2/mlp=offload:host", "--region",
                "h2/attn=offload:disk"]
        for options, regions in ((["layers=6", *held], ["outside of regions", "h0", "h1", "h2", "h3 to h5"]),
                                 (["layers=3", "clip=0", "--fuse-update"], ["outside of regions", "h0 to h2"])):
            with self.subTest(options=options):
                plan = self.train(*options, "--steps", 1, "--out", "run", "--force")["plan"]
                found = sums((self.folder / "run/report.html").read_text())
                self.assertEqual(list(found), ["op type", "region", "layer type"])
                totals = [plan[f"{name}_bytes"] for name in ("keep", "recompute", "offload_host", "offload_disk")]
                for rows in found.values():
                    total = rows.pop("in all")
                    self.assertEqual(total[1:5], totals)
                    for i, number in enumerate(total):
                        self.assertAlmostEqual(sum(row[i] for row in rows.values()), number, delta=1e-7 * number)
                    for row in rows.values():
                        self.assertAlmostEqual(sum(row[5:8]), row[8], delta=1e-7 * row[8])
                self.assertLessEqual({"linear", "attention", "layernorm", "gelu"}, set(found["op type"]))
                self.assertEqual(list(found["region"]), regions)
                self.assertEqual(set(found["layer type"]), {"h*/attn", "h*/mlp", "outside of regions"})
        self.assertIn("adamw", found["op type"])
        self.assertGreater(found["op type"]["linear"][7], found["op type"]["linear"][5])  # backward, forward
        # Nothing is copied here: the ops are all there is to a micro-batch.
        planned = json.loads(self.cairn("plan", "gpt2", *TINY, "layers=3", "clip=0", f"data={self.text}",
                                        "--fuse-update", "--threads", 2, "--problem-out", "problem.json", "--json",
                                        "--quiet").stdout)
        self.assertAlmostEqual(total[8], planned["predicted_seconds"], delta=1e-7 * total[8])

    def test_the_page_of_a_resumed_run_has_all_of_it(self):
        self.train("--steps", 4, *EVALUATES, "--out", "run")
        self.resumed("--steps", 8, "--eval-every", 4)
        page = (self.folder / "run/report.html").read_text()
        loss = re.search('<path class="line one" d="(.*?)"', page)[1]
        self.assertEqual(len(re.findall("[ML]", loss)), 8)
        for step in (4, 8):
            self.assertIn(f"<title>step {step}: ", page)

    def test_lines_that_were_damaged_are_no_end_of_a_run(self):
        self.train("--steps", 3, *EVALUATES, "--sample-every", 1, "--out", "run")
        kept = {path: path.read_text() for path in (self.folder / "run").glob("*.jsonl")}
        self.assertEqual(len(kept), 3)
        for pattern, damage in ((r'"loss":[^,]*', '"loss":{}'), (r'"tokens":\d+', '"tokens":null'), ('"applied"', "7"),
                                (r'"step":\d+', '"step":"x"'), (r'"text":', '"words":'), (r"(?m)^.*$", "[]")):
            with self.subTest(damage=damage):
                for path, text in kept.items():
                    path.write_text(re.sub(pattern, damage, text))
                self.cairn("train", "--resume", "run", "--steps", 3)
                self.assertIn("<table>", (self.folder / "run/report.html").read_text())

    def test_a_long_history_stays_small(self):
        (self.folder / "history.lua").write_text("""
            local history, report = require("cli.report.history").new(), require "cli.report.page"
            for step = 1, 100000 do
              history:add("metrics.jsonl", { step = step, loss = 1 / step, outcome = "applied", rate = 1e-3, tokens = 8,
                                             seconds = 0.5, gradient_norm = 2 })
            end
            history:add("metrics.jsonl", { step = 100000, outcome = "skipped_nonfinite" })
            assert(#history.steps <= 4097 and history.steps[#history.steps].step > 99900 and history.skipped == 1)
            io.write(report.page(history, { { "title", "x" } }))""")
        page = self.cairn("lua", "history.lua").stdout
        self.assertIn("100000: loss 1e-05", page)
        self.assertIn('class="skip"', page)
        self.assertLess(len(page), 1 << 20)

    def test_samples_are_what_generate_makes_of_a_checkpoint(self):
        for recipe, prompt, heat, more, cached in (
                ("gpt2", "It is", 0.8, [], False),  # of more tokens than it has positions
                ("gpt2", "It is", 0.8, ["seq=160"], True),
                ("llama", "", 0, [], True),
                ("llama", "a test", 0, ["--amp", "bf16"], True),
                ("llama", "a test", 1.5, ["--policy", "recompute"], True)):
            with self.subTest(recipe=recipe, prompt=prompt, more=more):
                plain = self.train("--steps", 4, *more, recipe=recipe)
                found = self.train("--steps", 4, "--sample-every", 2, "--sample-prompt", prompt, "--sample-temperature", heat,
                                   *more, "--save-every", 2, "--out", "run", "--force", recipe=recipe)
                for key in ("parameter_digest", "loss"):
                    self.assertEqual(found[key], plain[key])
                self.assertEqual(found["peak_bytes"], found["planned_peak_bytes"])
                tokens = {program["name"]: program["tokens"] for program in found["programs"]}
                self.assertEqual(tokens.get("decode"), 2 * (127 if prompt else 128) if cached else None)
                made = self.lines("samples.jsonl")
                self.assertEqual([row["step"] for row in made], [2, 4])
                for row in made:
                    again = json.loads(self.cairn(
                        "generate", f"run/step-{row['step']:08d}", "--prompt", prompt, "--max-tokens", 128, "--temperature",
                        heat, "--seed", 1337 + row["step"], *(more if "--amp" in more else []), "--json").stdout)
                    self.assertEqual((again["text"], again["cache_bytes"] > 0), (row["text"], cached))

    def test_samples_are_the_same_again_and_go_on(self):
        options = ["--sample-every", 2, "--sample-prompt", "It is"]
        self.train("--steps", 4, *options, "--out", "run")
        rest = self.lines("samples.jsonl")
        self.train("--steps", 2, *options, "--out", "again")
        self.cairn("train", "--resume", "again", "--steps", 4, *map(str, options), "--quiet")
        self.assertEqual(self.lines("samples.jsonl", "again"), rest)
        shown = self.cairn("train", "gpt2", *TINY, f"data={self.text}", "--steps", 2, *options).stderr
        self.assertRegex(shown, "sample after step 2: It is")


main()
