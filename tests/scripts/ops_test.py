"""`cairn ops`: the list of ops is the library's own, and the page made of it is fresh."""
import json

from harness import ROOT, Case, main


class Ops(Case):
    def test_page_is_fresh(self):
        page = (ROOT / "capi/docs/ops.md").read_text(encoding="utf-8")
        self.assertEqual(self.cairn("ops", "--markdown").stdout, page,
                         "capi/docs/ops.md is older than ops.def: cairn ops --markdown > capi/docs/ops.md")

    def test_every_op_can_be_added_and_no_other(self):
        listed = {op["name"]: op for op in json.loads(self.cairn("ops", "--json").stdout)}
        self.assertIn("linear", listed)
        for hidden in ("linear_grad_input", "adamw", "pack_weight", "custom"):
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


main()
