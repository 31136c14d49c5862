"""`optimizer=`: SGD and Lion by name; recipes with parameter groups."""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import TINY, Case, main  # noqa: E402

SGD = ["optimizer=sgd", "momentum=0.9", "rate=0.1"]
NESTEROV = [*SGD, "nesterov=true", "weight_decay=0.01"]
LION = ["optimizer=lion", "rate=1e-3"]
ADAM = ["optimizer=adam", "weight_decay=0.01"]
# Wide enough for states of 8 bits: 4096 elements.
ADAMW8 = ["optimizer=adamw8", "width=64", "heads=4"]
ADAFACTOR = ["optimizer=adafactor", "rate=1e-2"]
MUON = ["optimizer=muon", "rate=1e-2", "otherwise_rate=1e-3"]
GROUPED = """
local gpt2 = require "recipes.gpt2"
local mine = {{}}
for key, value in pairs(gpt2) do mine[key] = value end
mine.groups = function(o) return {groups} end
return mine
"""


class Optimizers(Case):
    def test_every_plan_gives_the_same_bits(self):
        for options in (SGD, LION, ADAM, ADAMW8, MUON):
            kept = self.train("--steps", 3, "--policy", "keep", *options)
            with self.subTest(options=options):
                self.assertEqual(kept["optimizer"], options[0].split("=")[1])
                self.assertLess(kept["loss"][-1], kept["loss"][0])
                found = self.train("--steps", 3, *options, "--budget", "70%", "--tiers", "host")
                self.assertEqual(found["parameter_digest"], kept["parameter_digest"])
                self.assertEqual(found["loss"], kept["loss"])
                self.assertEqual(found["peak_bytes"], found["planned_peak_bytes"])
                # Weights that are large beside activations: gradients are what is most where backward ends.
                few = ["clip=0", "width=64", "seq=4", "batch=1"]
                apart = self.train("--steps", 3, *options, *few)
                fused = self.train("--steps", 3, *options, *few, "--fuse-update")
                self.assertEqual(fused["parameter_digest"], apart["parameter_digest"])
                self.assertLess(fused["peak_bytes"]["device"], apart["peak_bytes"]["device"])

    def test_state_is_the_optimizers(self):
        def optimizer_bytes(*options):
            planned = self.cairn("plan", "gpt2", *TINY, "data=random", *options, "--json")
            return json.loads(planned.stdout)["memory_bytes"]["optimizer"]
        state = {name: optimizer_bytes(*options) for name, options in {
            "adamw": [], "lion": LION, "momentum": SGD, "sgd": ["optimizer=sgd"], "adafactor": ADAFACTOR,
            "muon": MUON}.items()}
        self.assertGreater(state["lion"], 0)
        self.assertEqual(state["momentum"], state["lion"])
        self.assertLess(state["lion"], state["adamw"])
        self.assertLess(state["sgd"], 4096)  # what updates read
        self.assertLess(state["adafactor"], state["lion"] / 4)
        self.assertTrue(state["lion"] < state["muon"] < state["adamw"], state)

    def test_states_of_8_bits(self):
        wide = [*TINY, "width=128", "heads=4", "data=random"]

        def planned(*options):
            return json.loads(self.cairn("plan", "gpt2", *wide, *options, "--json").stdout)["memory_bytes"]["optimizer"]
        self.assertLess(planned("optimizer=adamw8") / planned(), 0.27)
        plain, eight = (self.train("--steps", 20, "width=128", "heads=4", *options) for options in ([], ["optimizer=adamw8"]))
        self.assertEqual(eight["peak_bytes"], eight["planned_peak_bytes"])
        for with_8, without in zip(eight["loss"], plain["loss"]):
            self.assertAlmostEqual(with_8 / without, 1, delta=0.01)
        self.train("--steps", 1, *ADAMW8, "--out", "eight")
        tensors = json.loads(self.cairn("inspect", "eight", "--json").stdout)["tensors"]
        self.assertEqual(tensors["wte.weight/m"]["dtype"], "dynamic8")
        self.assertEqual(tensors["wte.weight/v"]["dtype"], "udynamic8")
        self.assertEqual(tensors["wte.weight/v"]["offset"] - tensors["wte.weight/m"]["offset"], 256 * 64 // 256 * 260)
        self.assertEqual(tensors["wpe.weight/m"]["dtype"], "f32", "1024 elements")

    def test_resumed_is_uninterrupted(self):
        for options in (NESTEROV, LION, ADAM, ADAMW8, ADAFACTOR):
            with self.subTest(options=options):
                out = options[0].split("=")[1]
                whole = self.train("--steps", 4, *options)
                self.train("--steps", 2, *options, "--out", out)
                rest = json.loads(self.cairn("train", "--resume", out, "--steps", 4, "--json", "--quiet").stdout)
                self.assertEqual(rest["optimizer"], out)
                self.assertEqual(rest["loss"], whole["loss"][2:])
                self.assertEqual(rest["parameter_digest"], whole["parameter_digest"])

    def test_the_rest_of_muons_parameters(self):
        self.train("--steps", 2, *MUON, "beta1=0.8", "--out", "run")
        state = json.loads(self.cairn("inspect", "run", "--json").stdout)["state"]
        groups = {group["pattern"]: group for group in state["groups"]}
        self.assertEqual([(pattern, group["optimizer"]) for pattern, group in groups.items()],
                         [("", "muon"), ("/adamw", "adamw")])
        self.assertEqual(groups["/adamw"]["hypers"]["beta1"], 0.8)
        self.assertAlmostEqual(groups["/adamw"]["hypers"]["rate_scale"], 0.1)
        self.assertEqual(groups[""]["hypers"]["momentum"], 0.95)
        self.assertEqual(groups[""]["hypers"]["nesterov"], 1)
        listed = self.cairn("inspect", "run").stdout
        for name in ("h.0.mlp.c_fc.weight/momentum", "wte.weight/m", "wte.weight/v", "ln_f.bias/v"):
            self.assertIn(name, listed)
        self.fails(3, "train", "--resume", "run", "--steps", 4, "optimizer=adamw", says=("muon", "/adamw"))
        self.fails(3, "train", "--resume", "run", "--steps", 4, "ns_steps=3", says=("ns_steps 3", "ns_steps 5"))

    def test_the_rate_of_what_muon_leaves_reaches_every_group(self):
        recipe = self.folder / "grouped.lua"

        def grouped(rows):
            recipe.write_text(f"""
            local recipe = {{}}
            for key, value in pairs(require "recipes.gpt2") do recipe[key] = value end
            recipe.groups = function() return {{ {rows} }} end
            return recipe""")
            options = [recipe, *TINY, f"data={self.text}", *MUON, "weight_decay=0.1", "--steps", 3, "--threads", 2]
            run = json.loads(self.cairn("train", *options, "--json", "--quiet", "--out", "run", "--force").stdout)
            state = json.loads(self.cairn("inspect", "run", "--json").stdout)["state"]
            return run["parameter_digest"], {group["pattern"]: group["hypers"]["rate_scale"] for group in state["groups"]}

        plain = self.train("--steps", 3, *MUON, "weight_decay=0.1")["parameter_digest"]
        for rows in ('{ pattern = "*.bias", weight_decay = 0.1 }', '{ pattern = "h.*", optimizer = "muon" }',
                     '{ pattern = "h.*", weight_decay = 0.1 }, { pattern = "w?e.weight", weight_decay = 0.1 }'):
            with self.subTest(rows=rows):
                self.assertEqual(grouped(rows)[0], plain)
        # A group's own scale multiplies that rate; a rest that is named has what is said of it.
        scales = grouped('{ pattern = "*.bias", rate_scale = 2 }, { pattern = "h.*.weight", rate_scale = 3 }, '
                         '{ pattern = "h.*.weight/adamw", rate_scale = 0.5 }')[1]
        self.assertEqual({pattern: round(scale, 6) for pattern, scale in scales.items()},
                         {"": 1, "/adamw": 0.1, "*.bias": 2, "*.bias/adamw": 0.2, "h.*.weight": 3,
                          "h.*.weight/adamw": 0.5})

    def test_state_that_does_not_split_from_the_disk(self):
        for options in (ADAFACTOR, MUON):
            with self.subTest(options=options):
                resident = self.train("--steps", 3, *options, "--policy", "keep")
                least = self.fails(4, "train", "gpt2", *TINY, f"data={self.text}", *options, "--policy", "keep",
                                   "--tiers", "disk", "--budget", 1, says="smallest")
                budget = re.search(r"smallest[^0-9]*([0-9]+)", least.stderr)[1]
                found = self.train("--steps", 3, *options, "--policy", "keep", "--tiers", "disk", "--budget", budget)
                self.assertEqual(found["memory_bytes"]["optimizer"], 0)
                self.assertEqual(found["parameter_digest"], resident["parameter_digest"])
                self.assertEqual(found["peak_bytes"], found["planned_peak_bytes"])

    def test_another_optimizers_state_is_refused(self):
        self.train("--steps", 2, *LION, "--out", "run")
        self.fails(3, "train", "--resume", "run", "--steps", 4, "optimizer=adamw", says=("lion", "adamw"))
        self.fails(3, "train", "--resume", "run", "--steps", 4, "optimizer=sgd", "momentum=0.9", says=("lion", "sgd"))
        rest = json.loads(self.cairn("train", "--resume", "run", "--steps", 3, "--json", "--quiet").stdout)
        self.assertEqual(rest["steps"], 3)

    def test_what_an_optimizer_does_not_have_is_refused(self):
        for options, says in {
                ("momentum=0.9",): ("momentum=0.9", "'adamw'", "beta1"),
                ("optimizer=lion", "nesterov=true"): ("nesterov=true", "'lion'", "beta2"),
                ("optimizer=sgd", "beta1=0.5"): ("beta1=0.5", "'sgd'", "momentum"),
                ("optimizer=adamax",): ("optimizer=adamax", "adamw", "sgd", "lion"),
                ("optimizer=adam", "momentum=0.9"): ("momentum=0.9", "'adam'", "beta1"),
                ("optimizer=sgd", "momentum=1"): ("momentum=1", "below 1"),
                ("optimizer=sgd", "nesterov=maybe"): ("nesterov=maybe", "true or false"),
                ("optimizer=muon", "ns_steps=0"): ("ns_steps=0", "at least 1"),
                ("optimizer=muon", "ns_steps=2.5"): ("ns_steps=2.5", "whole number"),
                ("optimizer=muon", "dampening=0.5"): ("dampening=0.5", "'muon'", "ns_steps", "beta1"),
                ("optimizer=adafactor", "clip_threshold=0.5"): ("clip_threshold=0.5", "at least 1"),
                ("optimizer=adafactor", "beta2_decay=0.8"): ("beta2_decay=0.8", "at most 0"),
                ("optimizer=adafactor", "eps1=0"): ("eps1=0", "at least 1e-30"),
                ("optimizer=adafactor", "otherwise_rate=1e-3"): ("otherwise_rate=1e-3", "'adafactor'"),
                ("optimizer=sgd", "weight_decay=-1"): ("weight_decay=-1", "at least 0")}.items():
            with self.subTest(options=options):
                self.fails(2, "train", "gpt2", *TINY, f"data={self.text}", *options, says=says)

    def test_ranges_are_those_of_the_library(self):
        """At the edges of what the command takes the library does, too (runtime/ops/optimizers.cc)."""
        model = ["mlp", "layers=1", "width=4", "batch=4", "--steps", 1, "--quiet"]
        edges = {"adamw": [("weight_decay", ["0", "1e38"], ["-1e-9", "1.1e38"])],
                 "adafactor": [("eps1", ["1e-30", "1e38"], ["9e-31", "1e39"]), ("eps2", ["0", "1e38"], ["-1", "1e39"]),
                               ("clip_threshold", ["1", "1e38"], ["0.9", "1e39"]),
                               ("beta2_decay", ["-1e38", "0"], ["-1e39", "0.1"])],
                 "muon": [("ns_steps", ["1", "99"], ["0", "100"]), ("otherwise_rate", ["0", "1e36"], ["-1", "1e37", "1e39"])]}
        for optimizer, rows in edges.items():
            for name, taken, refused in rows:
                for value in taken:  # a parameter that is no number after such a step is another matter
                    done = self.cairn("train", *model, f"optimizer={optimizer}", "rate=1e-2", f"{name}={value}")
                    self.assertEqual(done.returncode, 0)
                for value in refused:
                    self.fails(2, "train", *model, f"optimizer={optimizer}", "rate=1e-2", f"{name}={value}", says=f"{name}=")

    def test_nesterov_without_what_it_needs_is_refused(self):
        for options, says in {
                ("optimizer=sgd", "nesterov=true"): ("nesterov with momentum 0", "give a momentum"),
                ("optimizer=sgd", "momentum=0.9", "dampening=0.5", "nesterov=true"):
                    ("nesterov with dampening 0.5", "leave dampening at 0")}.items():
            for command in ("plan", "train"):
                with self.subTest(command=command, options=options):
                    self.fails(3, command, "gpt2", *TINY, f"data={self.text}", *options, says=says)

    def test_help_knows_them(self):
        text = " ".join(self.cairn("train", "gpt2", "--help").stdout.split())
        for words in ("optimizer=adamw ", "(adamw, sgd, lion, adam, adamw8,", "momentum=0", "nesterov=false", "lengths="):
            self.assertIn(words, text)

    def grouped(self, groups, *options, code=0):
        (self.folder / "mine.lua").write_text(GROUPED.format(groups=groups))
        return self.cairn("train", "mine.lua", *TINY, f"data={self.text}", "--json", "--quiet", "--threads", 2,
                          "--steps", 4, *options, code=code)

    def test_groups_of_a_recipe(self):
        plain = json.loads(self.grouped("{}").stdout)
        groups = """{ { pattern = "*.bias", rate_scale = 2, weight_decay = 0 },
                      { pattern = "wte.weight", optimizer = "lion", rate_scale = 0.1 } }"""
        mixed = json.loads(self.grouped(groups).stdout)
        self.assertEqual(plain["parameter_digest"], self.train("--steps", 4)["parameter_digest"])
        self.assertNotEqual(mixed["parameter_digest"], plain["parameter_digest"])
        self.assertLess(mixed["memory_bytes"]["optimizer"], plain["memory_bytes"]["optimizer"])
        self.assertLess(mixed["loss"][-1], mixed["loss"][0])
        self.assertEqual(mixed["peak_bytes"], mixed["planned_peak_bytes"])
        self.grouped(groups, "--steps", 2, "--out", "run")
        rest = self.cairn("train", "mine.lua", "--resume", "run", "--steps", 4, "--json", "--quiet")
        self.assertEqual(json.loads(rest.stdout)["parameter_digest"], mixed["parameter_digest"])
        state = json.loads(self.cairn("inspect", "run", "--json").stdout)["state"]
        self.assertEqual([group["pattern"] for group in state["groups"]], ["", "*.bias", "wte.weight"])
        self.assertEqual(state["groups"][2]["optimizer"], "lion")
        self.assertEqual(state["groups"][1]["hypers"]["rate_scale"], 2)

    def test_groups_that_mix_optimizers(self):
        groups = """{ { pattern = "/adamw", rate_scale = 0.1 }, { pattern = "h.0.attn.*", optimizer = "adafactor" },
                      { pattern = "*.mlp.*.bias", weight_decay = 0 } }"""
        mixed = json.loads(self.grouped(groups, "optimizer=muon", "rate=1e-2").stdout)
        self.assertLess(mixed["loss"][-1], mixed["loss"][0])
        self.assertEqual(mixed["peak_bytes"], mixed["planned_peak_bytes"])
        muon = ["optimizer=muon", "rate=1e-2"]
        found = json.loads(self.grouped(groups, *muon, "--budget", "70%", "--tiers", "disk").stdout)
        self.assertEqual(found["peak_bytes"], found["planned_peak_bytes"])
        self.assertEqual(found["parameter_digest"], mixed["parameter_digest"])
        self.grouped(groups, "optimizer=muon", "rate=1e-2", "--steps", 3, "--out", "run")
        rest = self.cairn("train", "mine.lua", "--resume", "run", "--steps", 4, "--json", "--quiet")
        self.assertEqual(json.loads(rest.stdout)["parameter_digest"], mixed["parameter_digest"])
        state = json.loads(self.cairn("inspect", "run", "--json").stdout)["state"]
        self.assertEqual([group["pattern"] for group in state["groups"]],
                         ["", "/adamw", "h.0.attn.*", "*.mlp.*.bias", "*.mlp.*.bias/adamw"])

    def test_mistakes_in_groups(self):
        for groups, says in {
                "5": ("what groups returns", "5, a number"),
                "{ 'b' }": ("groups: row 1", "'b'"),
                "{ { optimizer = 'sgd' } }": ("groups: row 1", "pattern"),
                "{ { pattern = '*.biases' } }": ("'*.biases'", "matches no parameter", "wte.weight"),
                "{ { pattern = '*.bias' }, { pattern = 'h.0.*' } }": ("'*.bias'", "'h.0.*'", "'h.0."),
                "{ { pattern = '*.bias', optimizer = 'rmsprop' } }": ("'rmsprop'", "lion"),
                "{ { pattern = '*.bias', momentum = 0.5 } }": ("'adamw'", "'momentum'"),
                "{ { pattern = '*.bias', optimizer = 'muon' } }": ("'*.bias' asks for muon", "another optimizer"),
                "{ { pattern = 'wte.weight', optimizer = 'muon' } }": ("'wte.weight' asks for muon", "table"),
                "{ { pattern = '*.bias', optimizer = 2 } }": ("'*.bias'", "optimizer is 2", "cairn ops --optimizers"),
                "{ { pattern = '*.bias', rate_scale = 'much' } }": ("rate_scale is 'much'", "a number")}.items():
            with self.subTest(groups=groups):
                problem = self.grouped(groups, code=3).stderr
                for words in says:
                    self.assertIn(words, problem)


main()
