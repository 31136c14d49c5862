"""`cairn ops`: the list of ops is the library's own, and the page made of it is fresh."""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, Case, main  # noqa: E402


class Ops(Case):
    def test_page_is_fresh(self):
        page = (ROOT / "capi/docs/ops.md").read_text(encoding="utf-8")
        self.assertEqual(self.cairn("ops", "--markdown").stdout, page,
                         "capi/docs/ops.md is older than ops.def: cairn ops --markdown > capi/docs/ops.md")

    def test_every_op_can_be_added_and_no_other(self):
        listed = {op["name"]: op for op in json.loads(self.cairn("ops", "--json").stdout)}
        self.assertIn("linear", listed)
        for hidden in ("linear_grad_input", "update", "pack_weight", "custom"):
            self.assertNotIn(hidden, listed)
        # With no operand at all each op is known, and refused for what it lacks.
        program = self.folder / "add.lua"
        program.write_text("""
            local cairn = require "cairn"
            for _, name in ipairs(arg) do
              local ok, problem = pcall(function() return cairn.graph():op(name) end)
              print(name, ok, tostring(problem):find("unknown op", 1, true) ~= nil)
            end""")
        for line in self.cairn("lua", program, *listed).stdout.splitlines():
            self.assertRegex(line, r"^\w+\tfalse\tfalse$")

    def test_one(self):
        text = self.cairn("ops", "dropout").stdout
        for words in ("dropout(x) -> y", "rate: real (required)", "1 - rate"):
            self.assertIn(words, text)
        self.fails(2, "ops", "dorpout", says=("dorpout", "dropout"))

    def test_amp(self):
        ops = {op["name"]: op["amp_class"] for op in json.loads(self.cairn("ops", "--json").stdout)}
        listed = {row["name"]: row for row in json.loads(self.cairn("ops", "--amp", "--json").stdout)}
        self.assertEqual([name for name, row in listed.items() if row["by_rule"]], ["half", "follow", "full"])
        self.assertEqual({op: name for name, row in listed.items() for op in row["ops"]}, ops)
        self.assertEqual((ops["linear"], ops["softmax"], ops["mse"]), ("half", "full", "mixed"))
        text = self.cairn("ops", "--amp", "half").stdout
        for words in ("half", "Rules may give it", "attention", "what is float32 is cast before"):
            self.assertIn(words, text)
        self.assertNotIn("softmax", text)
        self.assertIn("under --amp: full", self.cairn("ops", "softmax").stdout)
        self.fails(2, "ops", "--amp", "hafl", says=("no AMP class 'hafl'", "half"))
        self.fails(2, "ops", "--amp", "--optimizers", says="exclude each other")
        page = self.cairn("ops", "--amp", "--markdown").stdout
        self.assertIn(page, self.cairn("ops", "--markdown").stdout)

    def test_optimizers(self):
        listed = {row["name"]: row for row in json.loads(self.cairn("ops", "--optimizers", "--json").stdout)}
        self.assertEqual(next(iter(listed)), "adamw")
        self.assertEqual(listed["sgd"]["states"], [{"name": "momentum", "when": "momentum"}])
        self.assertEqual(listed["lion"]["hypers"][2]["default"], 0.99)
        self.assertEqual(listed["lion"]["hypers"][2]["allowed"], "at least 0 and below 1")
        options = " ".join(self.cairn("train", "mlp", "--help").stdout.split())
        for row in listed.values():  # every hyper-parameter is an option, said to be of this optimizer
            for hyper in row["hypers"]:
                if hyper["name"] not in ("rate_scale", "eps", "ns_eps"):
                    self.assertRegex(options, rf" {hyper['name']}=\S+ {re.escape(hyper['description'])} "
                                              rf"\([^()]*\b{row['name']}\b")
        text = self.cairn("ops", "--optimizers", "lion").stdout
        for words in ("lion", "states: m", "rate_scale=1 beta1=0.9 beta2=0.99", "sign("):
            self.assertIn(words, text)
        self.assertNotIn("sgd", text)
        self.fails(2, "ops", "--optimizers", "loin", says=("no optimizer 'loin'", "lion"))
        page = self.cairn("ops", "--optimizers", "--markdown").stdout
        self.assertIn(page, self.cairn("ops", "--markdown").stdout)

    def test_schedules(self):
        listed = {row["name"]: row for row in json.loads(self.cairn("ops", "--schedules", "--json").stdout)}
        self.assertEqual(next(iter(listed)), "constant")
        self.assertEqual(listed["wsd"]["parameters"][1], {
            "name": "decay_shape", "default": "linear", "words": ["linear", "cosine", "sqrt"], "list": False})
        self.assertTrue(listed["multistep"]["parameters"][0]["list"])
        self.assertEqual([name for name, row in listed.items() if not row["ends"]],
                         ["constant", "step", "multistep", "inverse_sqrt"])
        text = self.cairn("ops", "--schedules", "onecycle").stdout
        for words in ("pct_start=0.3 div_factor=25", "anneal=cos|linear", "three_phase", "momentum"):
            self.assertIn(words, text)
        self.assertNotIn("wsd", text)
        self.fails(2, "ops", "--schedules", "onecylce", says=("no schedule 'onecylce'", "did you mean 'onecycle'"))
        self.fails(2, "ops", "--schedules", "--optimizers", says="exclude each other")
        page = self.cairn("ops", "--schedules", "--markdown").stdout
        self.assertTrue(self.cairn("ops", "--markdown").stdout.endswith(page))


main()
