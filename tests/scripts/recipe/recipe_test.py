"""Mistakes in a recipe: each is told with its place, what was given and what is wanted, and trains nothing."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Case, main  # noqa: E402

RECIPE = """local nn = require("cairn").nn
return {
  options = { { "width", 8, "of the hidden layer", whole = true, least = 1 } },
  training = { steps = 2, rate = 0.05 },
  model = function(o, graph)
    local net = nn.Sequential():add(nn.Linear(2, o.width)):add(nn.ReLU()):add(nn.Linear(o.width, 1))
    return nn.attach(graph, net, nn.MSECriterion(), { 4, 2 })
  end,
  dataset = function(o, run)
    local x, y = { 0, 0, 0, 1, 1, 0, 1, 1 }, { 0, 1, 1, 0 }
    return { batch = function(index)
      return { input = x, target = y }, 4
    end }
  end,
}
"""
OPTIONS = '{ { "width", 8, "of the hidden layer", whole = true, least = 1 } }'
TRAINING = "{ steps = 2, rate = 0.05 }"
BATCH = "return { input = x, target = y }, 4"
ATTACH = "return nn.attach(graph, net, nn.MSECriterion(), { 4, 2 })"
BATCHES = "    end }\n  end,\n}"

# What is written instead of what, and what the message must hold.
MISTAKES = {
    "options a number": (OPTIONS, "5", "mine.lua: 'options' is 5, a number; wanted: a list of rows"),
    "options a map": (OPTIONS, "{ width = 8 }", "options.width is 8, a number; wanted: rows in a list"),
    "an option without a name": (OPTIONS, "{ { 8 } }", "row 1 of options: the name is 8, a number"),
    "an option without a default": (OPTIONS, '{ { "width" } }', "option 'width': the default is nothing"),
    "an option with a table": (OPTIONS, '{ { "width", {} } }', "option 'width': the default is a table"),
    "an option's words": (OPTIONS, '{ { "width", 8, 9 } }', "option 'width': the words is 9, a number"),
    "an option with two rows": (OPTIONS, '{ { "width", 8 }, { "width", 9 } }', "option 'width' has two rows"),
    "an option with an odd name": (OPTIONS, '{ { "the width", 8 } }', "the name is 'the width', a string"),
    "an option's unknown field": (OPTIONS, '{ { "width", 8, hole = true } }',
                                  "option 'width': unknown 'hole'; did you mean 'whole'?"),
    "an option's field of a wrong type": (OPTIONS, '{ { "width", 8, least = "one" } }', "least is 'one', a string"),
    "a default that must be above": (OPTIONS, '{ { "width", 0.5, above = 0.5 } }', "the default is 0.5, a number; wanted: above 0.5"),
    "a default below its least": (OPTIONS, '{ { "width", 0, least = 1 } }', "the default is 0, a number; wanted: at least 1"),
    "a fractional default": (OPTIONS, '{ { "width", 8.5, whole = true } }', "8.5, a number; wanted: a whole number"),
    "a default that is no choice": (OPTIONS, '{ { "width", "x", choices = { "a", "b" } } }', "wanted: one of a, b"),
    "training a number": (TRAINING, "3", "'training' is 3, a number; wanted: a table of defaults"),
    "training's key mistyped": (TRAINING, "{ step = 3 }", "training.step: there is no such default; did you mean 'steps'?"),
    "training's unknown key": (TRAINING, "{ inertia = 3 }", "training.inertia: there is no such default (known: steps rate"),
    "training without a name": (TRAINING, "{ 3 }", "training.1: there is no such default"),
    "negative steps": (TRAINING, "{ steps = -1 }", "training.steps is -1, a number; wanted: at least 1"),
    "fractional steps": (TRAINING, "{ steps = 2.5 }", "training.steps is 2.5, a number; wanted: a whole number"),
    "a rate in words": (TRAINING, '{ rate = "fast" }', "training.rate is 'fast', a string; wanted: a number"),
    "a negative rate": (TRAINING, "{ rate = -1 }", "training.rate is -1, a number; wanted: above 0"),
    "a rate that is not a number": (TRAINING, "{ rate = 0 / 0 }", "training.rate is"),
    "beta2 of one": (TRAINING, "{ beta2 = 1 }", "training.beta2 is 1, a number; wanted: below 1"),
    "an unknown schedule": (TRAINING, '{ schedule = "stair" }', "wanted: one of constant, cosine, linear"),
    "a default given twice": (OPTIONS, '{ { "width", 8 }, { "rate", 0.1 } }', "training.rate: options has a row 'rate'"),
    "a part mistyped": ("training = {", "trainning = {", "'trainning' is no part of a recipe; did you mean 'training'?"),
    "a part of a wrong type": ("training = {", "generator = 5, training = {", "'generator' is 5, a number; wanted: function"),
    "model a table": (ATTACH, "return 5", "mine.lua:5: model must return { loss =, weight = }"),
    "no loss": (ATTACH, "return { weight = 3 }", "model must return { loss =, weight = }"),
    "a loss of 3": (ATTACH, "return { loss = 3 }", "mine.lua:5: model: loss is 3, a number; wanted: a value of the graph"),
    "a weight of 3": (ATTACH, 'return { loss = graph:input("x", { 1 }), weight = 3 }', "model: weight is 3, a number"),
    "a loss of another graph": (ATTACH, 'return { loss = require("cairn").graph():input("x", { 1 }) }',
                                "loss is a value of another graph"),
    "dataset returns 5": ("return { batch", "do return 5 end return { batch",
                          "mine.lua:9: what dataset returns is 5, a number; wanted: { batch = function"),
    "dataset returns nothing": ("return { batch", "do return end return { batch", "what dataset returns is nothing"),
    "no batch": ("return { batch", "return { batches", "dataset: batch is nothing; wanted: function(index)"),
    "batches in words": (BATCHES, '    end, batches = "ten" }\n  end,\n}',
                         "dataset: batches is 'ten', a string; wanted: a whole number of at least 1"),
    "no batches": (BATCHES, "    end, batches = 0 }\n  end,\n}", "dataset: batches is 0, a number"),
    "fractional batches": (BATCHES, "    end, batches = 2.5 }\n  end,\n}", "dataset: batches is 2.5, a number"),
    "batch returns nothing": (BATCH, "return", "mine.lua:11: micro-batch 0: batch returned nothing; wanted: arrays by"),
    "batch returns a number": (BATCH, "return 5, 4", "batch returned 5, a number; wanted: arrays by input name (input"),
    "an epoch that ends": (BATCHES, "    end, batches = 1 }\n  end,\n}", "take index % batches",
                           BATCH, "if index < 1 then return { input = x, target = y }, 4 end"),
    "an input left out": (BATCH, "return { input = x }, 4",
                          "mine.lua:11: micro-batch 0: batch gave nothing for input 'target', f32[4, 1]"),
    "an input left out later": (BATCH, "return { input = x, target = index == 0 and y or nil }, 4",
                                "micro-batch 1: batch gave nothing for input 'target'"),
    "an input mistyped": (BATCH, "return { input = x, targets = y }, 4",
                          "'targets' is no input of the graph; did you mean 'target'? (inputs: input, target)"),
    "a parameter for an input": (BATCH, 'return { input = x, target = y, ["1.weight"] = x }, 4', "is no input"),
    "too few numbers": (BATCH, "return { input = { 1, 2, 3 }, target = y }, 4", "input 'input': 3 numbers given, 8 needed"),
    "too many numbers": (BATCH, "return { input = x, target = x }, 4", "input 'target': 8 numbers given, 4 needed"),
    "a string among numbers": (BATCH, 'return { input = x, target = { 1, 2, "3", 4 } }, 4', "number 3 is a string"),
    "an array that is a number": (BATCH, "return { input = x, target = 5 }, 4", "an array of numbers or an FFI buffer"),
    "a short FFI array": (BATCH, 'return { input = require("ffi").new("float[7]"), target = y }, 4',
                          "an array of 28 bytes given, 32 needed"),
    "an FFI array of another type": (BATCH, 'return { input = require("ffi").new("double[4]"), target = y }, 4',
                                     "an array of double given, float needed for f32"),
    "tokens in words": (BATCH, 'return { input = x, target = y }, "four"', "batch's second result) is 'four', a string"),
    "negative tokens": (BATCH, "return { input = x, target = y }, -4", "batch's second result) is -4, a number"),
    "an op mistyped": (ATTACH, 'return { loss = graph:op("msse", graph:input("input", { 1 })) }',
                       "unknown op 'msse'; did you mean 'mse'? (known: embedding linear"),
    "a number added to a value": (ATTACH, 'return { loss = graph:input("x", { 1 }) + 1 }',
                                  "mine.lua:7: '+' takes two values of a graph, not a number; a number only scales"),
    "a value divided by a table": (ATTACH, 'local x = graph:input("x", { 1 }) return { loss = x / {} }',
                                   "mine.lua:7: '/' takes two values of a graph, not a table"),
    "a fractional dimension": (ATTACH, 'return { loss = graph:input("x", { 1.5 }) }', "'x': dimension 1 is 1.5"),
    "what does not end": (ATTACH, 'local x = graph:input("x", { 1 }) while true do x = x * 2 end',
                          "a graph has at most 1048512 values"),
}


class Recipe(Case):
    def write(self, text):
        path = self.folder / "mine.lua"
        path.write_text(text)
        return path

    def test_it_trains_without_a_mistake(self):
        self.assertIn("steps 1 to 2", self.cairn("train", self.write(RECIPE)).stdout)

    def test_mistakes(self):
        for name, (old, new, says, *more) in MISTAKES.items():
            with self.subTest(name):
                self.assertEqual(RECIPE.count(old), 1)
                text = RECIPE.replace(old, new)
                if more:
                    self.assertEqual(text.count(more[0]), 1)
                    text = text.replace(*more)
                done = self.fails(3, "train", self.write(text), "--out", "run", "--force", says=("mine.lua", says))
                self.assertEqual(done.stdout, "")
                # Whole steps before it are kept.
                self.assertEqual(bool(list(self.folder.glob("run/step-*"))), "; saved run/step-" in done.stderr)

    def test_mistakes_in_regions(self):
        attach = next(line for line in RECIPE.splitlines() if ATTACH in line)
        inside = """    graph:region("r", function()
      graph:input("r", { 1 })
      %s
    end)
""" + attach
        path = self.write(RECIPE.replace(attach, inside % 'nn.Linear(2, 1):build(nn.context(graph, true), 5)'))
        line = 2 + path.read_text().splitlines().index('      graph:input("r", { 1 })')
        self.fails(3, "train", path, says=f"mine.lua:{line}: ")
        caught = """    local ok, why = pcall(graph.region, graph, "r", function() error("not today") end)
    assert(not ok and why:find("not today", 1, true))
"""
        self.assertIn("steps 1 to 2", self.cairn("train", self.write(RECIPE.replace(attach, caught + attach))).stdout)

    def test_whole_numbers(self):
        text = (RECIPE.replace("nn.MSECriterion()", "nn.CrossEntropyCriterion()").replace("nn.Linear(o.width, 1)",
                                                                                        "nn.Linear(o.width, 2)"))
        self.cairn("train", self.write(text))
        for number, says in ((0.5, "number 3 is 0.5; i32 holds whole numbers"), (2 ** 31, "from -2147483648 to 2147483647"),
                             ("0 / 0", "number 3 is")):
            self.fails(3, "train", self.write(text.replace("{ 0, 1, 1, 0 }", f"{{ 0, 1, {number}, 0 }}")), says=says)

    def test_a_whole_number_that_its_neighbour_is_taken_for_is_refused(self):
        settings = ["data=random", "layers=1", "width=32", "seq=16"]
        self.cairn("plan", "gpt2", *settings, "warmup=9007199254740991")
        for value in ("9007199254740992", "9007199254740993"):
            self.fails(2, "plan", "gpt2", *settings, f"warmup={value}",
                       says=f"warmup={value}; wanted: a whole number of at most 9007199254740991")

    def test_arithmetic_of_values(self):
        """x + x - x * 3 / 2 and what it composes to have the same loss; so has -(-x)."""
        text = RECIPE.replace(ATTACH, """local x = graph:input("input", { 4, 2 })
    local w = graph:parameter("w", { 1, 2 }, { init = "constant", scale = 0.5 })
    local y = graph:op("linear", %s, w)
    local loss, weight = graph:op("mse", y, graph:input("target", { 4, 1 }))
    return { loss = loss, weight = weight }""")
        losses = set()
        for expression in ("x + x - x * 3 / 2", "-(-x) * 0.5", "x * 0.5", "(x - x) + 0.5 * x"):
            self.write(text % expression)
            losses.add(tuple(self.train("--steps", 2, recipe=self.folder / "mine.lua")["loss"]))
        self.assertEqual(len(losses), 1, losses)

    def test_options_of_the_built_in_recipes(self):
        for recipe in ("gpt2", "llama"):
            data = ("train", recipe, "data=random")
            self.fails(2, *data, "heads=3", says=("heads=3", "width=256"))
            self.fails(2, *data, "layers=1000000000", says=("layers=1000000000", "at most 6000"))
            self.fails(2, *data, "vocab=1e20", says="vocab=1e20; wanted: a whole number")
            self.fails(4, *data, "batch=1000000000", says=("TiB", "device 'cpu', which has", "smallest budget that fits"))
            self.fails(3, *data, "width=1000000000", "heads=2", "kv_heads=1" if recipe == "llama" else "heads=2",
                       says=("_proj" if recipe == "llama" else "c_attn.weight", "overflows"))
        self.fails(2, "train", "llama", "data=random", "kv_heads=3", says=("kv_heads=3", "heads=4"))
        self.fails(2, "train", "llama", "data=random", "width=36", "heads=4", "kv_heads=4", says=("heads=4", "even"))
        self.fails(2, "train", "mlp", "samples=10000000000", says="at most")
        self.fails(2, "train", "gpt2", "data=random", "rate=fast", says="rate=fast; wanted: a number")
        self.fails(2, "train", "gpt2", "data=random", "beta1=1", says="beta1=1; wanted: below 1")
        self.fails(2, "plan", "gpt2", "layrs=3", says="did you mean 'layers'?")

    def test_what_is_given_twice_is_said(self):
        done = self.cairn("plan", "gpt2", "layers=1", "width=16", "layers=2")
        self.assertIn("layers=1 was given, too; the last counts: layers=2", done.stderr)
        self.assertEqual(self.cairn("plan", "gpt2", "layers=1", "width=16", "layers=2", "--quiet").stderr, "")


main()
