"""lora=: the losses that PEFT finds, whatever the kind, the family and the budget; what is frozen and what is refused.
tests/golden/models/make_adapters.py made what is expected."""
import json
import pathlib
import shutil
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from adapter_numbers import numbers  # noqa: E402
from harness import ROOT, TINY, Case, main  # noqa: E402

GOLDEN = ROOT / "tests/golden/data"
CASES = json.loads((GOLDEN / "adapters.json").read_text())


def read(path):
    """Tensors of a safetensors file by name: (dtype, shape, bytes)."""
    data = path.read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    header.pop("__metadata__", None)
    return {name: (row["dtype"], row["shape"], data[begin + row["data_offsets"][0]:begin + row["data_offsets"][1]])
            for name, row in header.items()}


def write(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


class Golden(Case):
    def directory(self, name):
        """The model's directory, with the matrices of adapters among its weights."""
        case, folder = CASES[name], self.folder / name
        shutil.copytree(next(GOLDEN.glob(f"*coders/{case['model']}")), folder)
        tensors = read(folder / "model.safetensors")
        for key, shape in case["shapes"].items():
            count = 1
            for dim in shape:
                count *= dim
            tensors[key] = ("F32", shape, struct.pack(f"<{count}f", *numbers(key, count)))
        write(folder / "model.safetensors", tensors)
        return folder

    def test_losses_are_those_of_peft(self):
        for name, case in CASES.items():
            with self.subTest(name):
                folder = self.directory(name)
                data, options = folder / "data.jsonl", case["options"].split()
                if not data.exists():
                    tokens = json.loads((folder / "expected.json").read_text())["tokens"]
                    data = folder / "data.bin"
                    data.write_bytes(bytes(tokens))
                    options.append(f"seq={len(tokens) - 1}")
                run = self.train(f"data={data}", "rate=1e-3", "weight_decay=0", "clip=0", *options, "--steps", 5,
                                 recipe=folder)
                for ours, theirs in zip(run["loss"], case["losses"], strict=True):
                    self.assertLess(abs(ours - theirs), 3e-6 * theirs, name)


LORA = ["lora=4", "lora_alpha=6", "lora_dropout=0.1"]


class Runs(Case):
    def setUp(self):
        super().setUp()
        self.text.write_bytes(bytes((7 * i * i + 3 * i) % 251 for i in range(2000)))

    def told(self, *arguments):
        return json.loads(self.cairn(*arguments, "--json").stdout)

    def run_of(self, *arguments, recipe="gpt2"):
        return self.train(f"data={self.text}", *arguments, "--threads", 1, recipe=recipe)

    def test_plans_never_change_numbers(self):
        for kind, budgets in (("lora", (0, 3000, 9000, "80%", "95%")), ("dora", (1000, "90%"))):
            options = [*LORA, f"lora_kind={kind}", "--steps", 3, "--accumulate", 2]
            once = self.run_of(*options)
            least = self.smallest_budget("gpt2", *TINY, f"data={self.text}", *options, "--threads", 1)
            digests = {once["parameter_digest"]}
            for budget in budgets:
                run = self.run_of(*options, "--budget", budget if isinstance(budget, str) else least + budget)
                self.assertEqual(run["peak_bytes"], run["planned_peak_bytes"])
                digests.add(run["parameter_digest"])
            self.assertEqual(len(digests), 1, kind)

    def test_what_is_frozen_has_no_gradient_and_no_state(self):
        # c_attn, c_proj, c_fc, c_proj of both blocks, of width 16.
        learnt = 2 * sum(4 * (a + b) for a, b in ((16, 48), (16, 16), (16, 64), (64, 16)))
        memory = self.told("plan", "gpt2", *TINY, f"data={self.text}", "lora=4")["memory_bytes"]
        self.assertLess(memory["gradients"], 1.3 * 4 * learnt + 4096)
        self.assertLess(memory["optimizer"], 1.3 * 8 * learnt + 8192)

    def test_the_first_loss_is_that_of_the_model_in_bits_or_not(self):
        model = ["layers=1", "heads=2", "width=64", "vocab=256", "seq=16", "batch=2", f"data={self.text}"]
        self.cairn("train", "gpt2", *model, "--steps", 1, "--out", "base", "--quiet")
        self.cairn("export", "base", "base.safetensors")
        plain, *others = [self.told("train", "gpt2", *model, "--init", "base.safetensors", "--steps", 1, "--quiet", *options)[
            "loss"][0] for options in ([], ["lora=8"], ["lora=8", "lora_kind=dora", "--format", "h.*.weight=int8"],
                                       ["lora=8", "lora_kind=pissa"],
                                       ["lora=8", "lora_kind=pissa", "--format", "h.*.weight=int8"])]
        for other, close in zip(others, (1e-9, 1e-3, 1e-6, 1e-3)):
            self.assertLess(abs(other - plain), close)

    def test_a_new_head_trains(self):
        folder = GOLDEN / "encoders/bert_body"
        self.cairn("train", folder, f"data={GOLDEN / 'encoders/bert_classify/data.jsonl'}", "task=classify", "seq=12", "batch=7",
                   "pair=other", "lora=2", "--steps", 1, "--out", "run", "--quiet")
        told = json.loads(self.told("inspect", "run")["metadata"]["adapter"])
        self.assertEqual(told["modules_to_save"], ["bert.pooler.dense", "classifier"])
        self.assertNotIn("classifier", [row["module"] for row in told["modules"]])

    def test_every_recipe_takes_them(self):
        for recipe, options in (("llama", []), ("mlp", [])):
            with self.subTest(recipe):
                run = self.run_of("lora=2", "--steps", 2, *options, recipe=recipe) if recipe == "llama" else self.train(
                    "lora=2", "--steps", 2, recipe=recipe)
                self.assertEqual(len(run["loss"]), 2)

    def test_a_run_goes_on_and_is_used(self):
        options = [*LORA, "lora_kind=dora", "modules_to_save=ln_f"]
        once = self.run_of(*options, "--steps", 4)
        self.cairn("train", "gpt2", *TINY, f"data={self.text}", *options, "--steps", 2, "--threads", 1, "--quiet",
                   "--out", "run")
        rest = self.told("train", "--resume", "run", "--steps", 4, "--threads", 1, "--quiet")
        self.assertEqual(rest["parameter_digest"], once["parameter_digest"])
        # Without dropout, cached or not.
        logits = self.told("logits", "run", "--tokens", "97,98,99")["logits"]
        made = self.told("generate", "run", "--prompt", "abc", "--max-tokens", 3, "--temperature", 0)
        self.assertEqual(len(made["tokens"]), made["prompt_tokens"] + 3)
        self.assertEqual(made["tokens"][made["prompt_tokens"]], max(range(256), key=logits.__getitem__))
        self.told("eval", "run", f"data={self.text}")
        told = json.loads(self.told("inspect", "run")["metadata"]["adapter"])
        self.assertEqual((told["r"], told["dora"], told["modules_to_save"]), (4, True, ["ln_f"]))
        self.assertEqual(told["modules"][0], {
            "module": "h.0.attn.c_attn", "kind": "linear", "rank": 4, "alpha": 6, "scale": 1.5, "dora": True,
            "a": "h.0.attn.c_attn.lora_A.weight", "b": "h.0.attn.c_attn.lora_B.weight",
            "magnitude": "h.0.attn.c_attn.lora_magnitude_vector", "weight": "h.0.attn.c_attn.weight"})

    def test_refused(self):
        data = f"data={self.text}"
        for options, code, says in (
                (["lora=4", "lora_targets=q_proj"], 3, ("'q_proj' (targets)", "matches no module", "h.0.attn.c_attn")),
                (["lora=4", "lora_targets=*c_proj,h.0.mlp.c_proj"], 3, ("both match", "h.0.mlp.c_proj")),
                (["lora=4", "lora_targets=wte"], 3, ("'wte'", "tied", "modules_to_save")),
                (["lora=4", "modules_to_save=score"], 3, ("'score' (saved)", "matches no module")),
                (["lora_alpha=4"], 2, ("goes with lora=RANK",)),
                (["lora=4", "lora_ranks=c_attn"], 2, ("lora_ranks=c_attn", "PATTERN=NUMBER")),
                (["lora=4", "lora_kind=pissa", "lora_ranks=c_attn=99"], 3, ("no 99 singular values",)),
                (["lora=4", "lora_dropout=1"], 2, ("lora_dropout=1", "below 1")),
                (["lora=-1"], 2, ("lora=-1",))):
            with self.subTest(options):
                self.fails(code, "train", "gpt2", *TINY, data, *options, "--steps", 1, says=says)

    def test_plus_is_a_group(self):
        plain, plus = self.run_of("lora=4", "--steps", 3), self.run_of("lora=4", "lora_plus=8", "--steps", 3)
        self.assertEqual(plain["loss"][:1], plus["loss"][:1])
        self.assertNotEqual(plain["loss"][2], plus["loss"][2])


if __name__ == "__main__":
    main()
