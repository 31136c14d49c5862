"""Models with experts: a tensor for each in files, the auxiliary loss over complete steps, digests of plans, caches."""
import json
import pathlib
import shutil
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from families_test import MODELS, Models
from harness import ROOT, main

EXPERTS = ("gpt_oss", "mixtral", "qwen3_moe")
PLAIN = ["rate=1e-2", "weight_decay=0", "clip=0"]


def tensors(path):
    """By name the header's row and the bytes."""
    data = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    body = data[8 + length:]
    return {name: (row["dtype"], row["shape"], body[slice(*row["data_offsets"])]) for name, row in header.items()}


def write(path, rows):
    header, body = {}, b""
    for name, (dtype, shape, data) in rows.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + body)


class Experts(Models):
    def words(self, tokens=8 * 11 + 1):
        """Tokens of which a step of three windows holds every kind; the last step of an epoch has two."""
        self.text.write_bytes(bytes(i * i * 7 % 37 + i % 3 for i in range(tokens)))
        return [f"data={self.text}", "seq=8", *PLAIN]

    def test_exported_as_it_came(self):
        for name in EXPERTS:
            self.cairn("train", MODELS / name, *self.words(), "frozen=model.layers.*", "--steps", 2, "--out", f"run-{name}",
                       "--quiet")
            told = json.loads(self.cairn("export", f"run-{name}", f"out-{name}", "--to", "hf", "--json").stdout)
            before, after = tensors(MODELS / name / "model.safetensors"), tensors(self.folder / f"out-{name}/model.safetensors")
            self.assertEqual(sorted(before), sorted(after))
            self.assertEqual(told["tensors"], len(after))
            changed = {key for key in before if before[key] != after[key]}
            self.assertEqual({key for key in changed if key.startswith("model.layers.")}, set(), name)
            self.assertIn("lm_head.weight", changed)
            self.cairn("logits", f"out-{name}", "--tokens", "1,2,3")

    def test_a_tensor_that_is_wrong_is_named(self):
        folder = self.folder / "changed"
        shutil.copytree(MODELS / "mixtral", folder)
        rows = tensors(folder / "model.safetensors")
        name = "model.layers.1.block_sparse_moe.experts.4.w2.weight"
        dtype, shape, data = rows.pop(name)
        write(folder / "model.safetensors", rows)
        self.fails(3, "logits", folder, "--tokens", "1", says=("1 missing in the file", name, "[16, 20]"))
        init = [*self.words(), "--steps", 1, "--init", folder, "--init-missing", "*layers.1*w2*"]
        recipe = ["decoder", f"model={folder / 'config.json'}"]
        self.fails(3, "train", *recipe, *init, says=("1 missing in the file", name))
        write(folder / "model.safetensors", {key: row for key, row in rows.items()
                                             if not (key.startswith("model.layers.1") and "w2" in key)})
        done = self.cairn("train", *recipe, *init)
        self.assertIn("lacks, and begins fresh: model.layers.1.block_sparse_moe.experts.w2.weight\n", done.stderr)
        write(folder / "model.safetensors", {**rows, name: (dtype, shape[::-1], data)})
        self.fails(3, "logits", folder, "--tokens", "1", says=("of another shape", name, "[20, 16]"))
        write(folder / "model.safetensors", {**rows, name: (dtype, shape, data),
                                             name.replace("4.w2", "7.w2"): (dtype, shape, data)})
        self.fails(3, "logits", folder, "--tokens", "1", says=("that the model has not", "experts.7.w2"))

    def test_digests_of_plans(self):
        """Choices are kept where everything else is made again or offloaded; frozen experts are read from the file."""
        for name, forms in {"gpt_oss": (["--policy", "recompute"], ["--policy", "offload", "--tiers", "host"]),
                            "qwen3_moe": (["--policy", "recompute"], ["--policy", "offload", "--tiers", "disk"])}.items():
            arguments = [*self.words(), "batch=2", "--accumulate", 2, "--steps", 2]
            whole = self.train(*arguments, recipe=MODELS / name)
            for form in forms:
                other = self.train(*arguments, *form, recipe=MODELS / name)
                self.assertEqual(other["parameter_digest"], whole["parameter_digest"], (name, form))
                self.assertEqual(other["peak_bytes"], other["planned_peak_bytes"])
        frozen = [*self.words(), "frozen=model.layers.*"]
        whole = self.train(*frozen, "--steps", 2, recipe=MODELS / "mixtral")
        least = self.smallest_budget(MODELS / "mixtral", *frozen, "--tiers", "disk")
        small = self.train(*frozen, "--steps", 2, "--tiers", "disk", "--budget", least, recipe=MODELS / "mixtral")
        self.assertEqual(small["parameter_digest"], whole["parameter_digest"])
        self.assertEqual(small["peak_bytes"], small["planned_peak_bytes"])
        self.assertGreater(small["tier_bytes"]["disk"]["parameters"], 0)

    def test_the_auxiliary_loss_is_of_the_complete_step(self):
        model = MODELS / "qwen3_moe"  # whose config asks for it
        one = self.train(*self.words(), "batch=3", "--steps", 4, recipe=model)
        three = self.train(*self.words(), "batch=1", "--accumulate", 3, "--steps", 4, recipe=model)
        apart = max(abs(a / b - 1) for a, b in zip(one["loss"], three["loss"], strict=True))
        self.assertLess(apart, 1e-6)
        self.assertEqual([(row["name"], row["micro_batches"]) for row in three["programs"]],
                         [("train", 11), ("train-sums", 11)])
        self.assertNotIn("programs", one)
        without = self.train(*self.words(), "batch=3", "balance=0", "--steps", 4, recipe=model)
        self.assertEqual(without["loss"][0], one["metrics"]["cross_entropy"][0])
        self.assertGreater(one["loss"][0], without["loss"][0] + 0.3)
        for run in (one, three):
            self.assertEqual(run["peak_bytes"], run["planned_peak_bytes"])
        self.fails(2, "train", model, *self.words(), "--accumulate", 2, "dropout=0.1", says="dropout=0.1 draws anew")
        self.fails(2, "verify", model, *self.words(), says=("sums over each step before it trains", "balance=0 leaves"))
        self.fails(2, "train", MODELS / "llama", *self.words(), "balance=1", says="the model has no experts")
        self.fails(2, "train", model, *self.words(), "balance=x", says="balance=x; wanted: auto, or a number")

    def test_rows_without_a_target_do_not_count(self):
        """With windows padded to the longest, three micro-batches hold what one does, and it is known which rows count."""
        recipe = self.folder / "masked.lua"
        recipe.write_text('''
            local decoder, masked = require "recipes.decoder", {}
            for key, value in pairs(decoder) do masked[key] = value end
            masked.dataset = function(o, run)
              local data = decoder.dataset(o, run)
              local made = {}
              for key, value in pairs(data) do made[key] = value end
              made.batch = function(index)
                local arrays, tokens, which, samples = data.batch(index)
                for i = 0, o.batch * o.seq - 1 do
                  if arrays.tokens[i] % 3 == 0 then arrays.targets[i], arrays.counted[i] = -100, 0 end
                end
                return arrays, tokens, which, samples
              end
              return made
            end
            return masked''')
        model = [f"model={MODELS / 'qwen3_moe/config.json'}", "--init", MODELS / "qwen3_moe"]
        one = self.train(*self.words(), "batch=3", "--steps", 4, *model, recipe=recipe)
        three = self.train(*self.words(), "batch=1", "--accumulate", 3, "--steps", 4, *model, recipe=recipe)
        self.assertLess(max(abs(a / b - 1) for a, b in zip(one["loss"], three["loss"], strict=True)), 1e-6)
        plain = self.train(*self.words(), "batch=3", "--steps", 4, recipe=MODELS / "qwen3_moe")
        self.assertGreater(abs(plain["loss"][0] - one["loss"][0]), 1e-3)

    def test_a_run_that_goes_on(self):
        arguments = [*self.words(), "batch=1", "--accumulate", 3, "--threads", 2, "--quiet"]
        whole = self.train(*arguments, "--steps", 4, recipe=MODELS / "qwen3_moe")
        self.cairn("train", MODELS / "qwen3_moe", *arguments, "--steps", 2, "--out", "run")
        rest = json.loads(self.cairn("train", "--resume", "run", "--steps", 4, "--quiet", "--json").stdout)
        self.assertEqual(rest["parameter_digest"], whole["parameter_digest"])

    def test_a_step_that_is_left_in_its_middle(self):
        self.words()
        done = self.cairn("lua", pathlib.Path(__file__).with_name("inside_a_step.lua"), MODELS / "qwen3_moe", self.text, ROOT)
        whole, rest = done.stdout.split()
        self.assertEqual(whole, rest)

    def test_greedy_tokens_with_caches(self):
        for name in EXPERTS:
            expected = json.loads((MODELS / name / "expected.json").read_text())
            folder = self.copy(name)
            made = json.loads(self.cairn("generate", folder, "--prompt", bytes(expected["tokens"][:9]).decode(), "--max-tokens",
                                         len(expected["greedy"]), "--temperature", 0, "--json").stdout)
            self.assertEqual(made["tokens"][9:], expected["greedy"], name)
            self.assertEqual(made["peak_bytes"], made["planned_peak_bytes"])


if __name__ == "__main__":
    main()
