"""Losses of the effective batch: the two passes of training, and averages of parameters (ema=)."""
import json
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Case, main  # noqa: E402

# Two towers, whose rows of equal number belong together; the loss is of all pairs of the effective batch.
PAIRS = """
local nn = require("cairn").nn
local function tower(o, graph, name)
  local x = graph:input(name, { o.batch, 8 })
  local net = nn.Sequential():add(nn.Linear(8, 16), "up"):add(nn.GELU()):add(nn.Dropout(o.dropout))
    :add(nn.Linear(16, 6), "down")
  local y = nn.Sequential():add(nn.Region(name, nil, net), name):build(nn.context(graph, true), x)
  return o.effective and graph:op("effective", y, { micro_steps = o.micro_steps }) or y
end
return {
  options = { { "batch", 4, "rows", whole = true, least = 1 }, { "dropout", 0, "", least = 0, below = 1 },
              { "effective", true, "the loss is of the effective batch" }, { "rows", 96, "of the data", whole = true } },
  training = { steps = 4, rate = 1e-2 },
  model = function(o, graph)
    local a, b = tower(o, graph, "a"), tower(o, graph, "b")
    local numbers = graph:op("row_numbers", a)
    local there, weight = graph:op("linear_cross_entropy", a, b, numbers)
    return { loss = graph:op("add", there, (graph:op("linear_cross_entropy", b, a, numbers))), weight = weight }
  end,
  dataset = function(o)
    local function rows(index, shift)
      local list = {}
      for i = 1, o.batch * 8 do list[i] = math.sin((index * o.batch * 8 + i) * 0.37 % 50 + shift) end
      return list
    end
    return { batches = o.rows / o.batch, batch = function(index)
      return { a = rows(index % (o.rows / o.batch), 0), b = rows(index % (o.rows / o.batch), 0.5) }, o.batch
    end }
  end,
}
"""


class Contrastive(Case):
    def setUp(self):
        super().setUp()
        (self.folder / "pairs.lua").write_text(PAIRS)

    def pairs(self, *options):
        return json.loads(self.cairn("train", "pairs.lua", "--json", "--quiet", "--threads", 1, *options).stdout)

    def test_micro_batches_are_one_batch(self):
        whole = self.pairs("batch=16")
        parts = self.pairs("batch=4", "--accumulate", 4)
        plain = self.pairs("batch=4", "--accumulate", 4, "effective=false")
        for one, other, apart in zip(whole["loss"], parts["loss"], plain["loss"]):
            self.assertAlmostEqual(other / one, 1, delta=2e-6)
            self.assertGreater(abs(apart / one - 1), 1e-2)
        self.assertEqual(parts["plan"]["counters"]["two_passes"], 1)
        self.assertEqual(whole["plan"]["counters"]["two_passes"], 0)

    def test_plans_and_resuming_change_no_bit(self):
        # 5 micro-batches do not divide an epoch of 24: such a step goes on into the next one.
        given = ["--accumulate", 5, "dropout=0.2", "--steps", 8]
        whole = self.pairs(*given)
        self.assertEqual(whole["steps"], 8)
        for other in (["--budget", "80%", "--tiers", "host"], ["--policy", "recompute"], ["--prefetch", 3]):
            self.assertEqual(self.pairs(*given, *other)["parameter_digest"], whole["parameter_digest"], other)
        self.pairs(*given[:-1], 3, "--out", "run")
        rest = json.loads(self.cairn("train", "pairs.lua", "--resume", "run", "--steps", 8, "--json", "--quiet").stdout)
        self.assertEqual(rest["parameter_digest"], whole["parameter_digest"])


class Averages(Case):
    def test_they_are_saved_and_taken_where_asked(self):
        (self.folder / "data.csv").write_text("a,b,y\n" + "".join(
            f"{i % 7},{i * 5 % 11},{(i % 7) * 2 - (i * 5 % 11)}\n" for i in range(64)))
        given = ["regress", "data=data.csv", "width=8", "eval_fraction=0.25", "rate=0.05", "--threads", 1, "--json", "--quiet"]
        self.cairn("train", *given, "ema=0.5", "--steps", 6, "--out", "run")
        self.cairn("train", *given, "--steps", 6, "--out", "without")
        plain, average, own = (json.loads(self.cairn("evaluate", run, "--json", "--quiet", *how).stdout)
                               for run, how in (("run", []), ("run", ["--ema"]), ("without", [])))
        self.assertEqual(plain["loss"], own["loss"], "training is as without averages")
        self.assertNotEqual(plain["loss"], average["loss"])
        self.fails(3, "evaluate", "without", "--ema", "--quiet", says="trained without ema")
        exported = {}
        for name, how in (("own", []), ("average", ["--ema"])):
            self.cairn("export", "run", name + ".safetensors", *how, "--quiet")
            blob = (self.folder / (name + ".safetensors")).read_bytes()
            size, = struct.unpack("<Q", blob[:8])
            exported[name] = blob[8 + size:]
            self.assertNotIn(b"ema", blob[8:8 + size])
        self.assertNotEqual(exported["own"], exported["average"])
        self.cairn("train", *given, "ema=0.5", "--steps", 3, "--out", "cut")
        self.cairn("train", "--resume", "cut", "--steps", 6, "--quiet")
        again = json.loads(self.cairn("evaluate", "cut", "--ema", "--json", "--quiet").stdout)
        self.assertEqual(again["loss"], average["loss"])
        self.fails(2, "train", *given, "ema=1", says="ema")


main()
