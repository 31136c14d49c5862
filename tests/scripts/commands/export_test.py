"""cairn export --to hf: what it writes, in which types and files, and that it is all there or nothing."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, TINY, Case, main  # noqa: E402

SHARDED = ROOT / "tests/golden/data/transformers/llama_sharded"
LLAMA = ["layers=2", "heads=4", "kv_heads=2", "width=16", "hidden=24", "vocab=32", "seq=8", "batch=2", "eps=1e-6",
         "rope_base=500000", "data=random", "--threads", 1]


# The logits that follow the window of a run's model.
LOGITS = """local cairn = require "cairn"
local checkpoint = assert(cairn.checkpoint(arg[1]))
local graph = assert(cairn.load_graph(checkpoint:directory() .. "/generator.cairn"))
local plan = assert(cairn.plan(graph, assert(cairn.device("cpu", { threads = 1 })), { no_optimizer = true }))
local session, tokens = assert(cairn.session(plan)), {}
assert(session:load(checkpoint))
for i = 1, graph:info("tokens").shape[2] do tokens[i] = i * 7 % 32 end
assert(session:write("tokens", tokens) and session:write("position", { #tokens - 1 }) and session:run())
for _, logit in ipairs(session:read("logits")) do print(("%.9g"):format(logit)) end
"""
# How far those of Transformers are from them, and what it missed in the directory or found in vain.
JUDGE = """import json, sys, torch, transformers
model, info = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], output_loading_info=True)
ours = torch.tensor([float(word) for word in sys.stdin.read().split()])
with torch.no_grad():
    theirs = model(torch.tensor([[i * 7 % 32 for i in range(1, int(sys.argv[2]) + 1)]])).logits[0, -1]
print(json.dumps({"apart": (theirs - ours).abs().max().item(), "wrong": sorted(key for key in info if info[key])}))
"""


def tensors_of(folder):
    """name -> (type, shape, bytes) over all safetensors files of a folder."""
    found = {}
    for path in folder.glob("*.safetensors"):
        blob = path.read_bytes()
        size = struct.unpack("<Q", blob[:8])[0]
        for name, row in json.loads(blob[8:8 + size]).items():
            if name != "__metadata__":
                begin, end = row["data_offsets"]
                found[name] = (row["dtype"], row["shape"], blob[8 + size + begin:8 + size + end])
    return found


class Export(Case):
    def export(self, run, out, *more):
        self.cairn("export", run, out, "--to", "hf", "--quiet", *more)
        config = json.loads((self.folder / out / "config.json").read_text())
        return self.folder / out, config

    def test_a_directory_of_gpt2(self):
        self.train("--steps", 1, "--out", "run", "positions=20")
        folder, config = self.export("run", "model")
        self.assertEqual({path.name for path in folder.iterdir()},
                         {"config.json", "generation_config.json", "model.safetensors"})
        wanted = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_layer": 2, "n_head": 2, "n_embd": 16,
                  "n_positions": 20, "vocab_size": 256, "layer_norm_epsilon": 1e-5, "tie_word_embeddings": True,
                  "activation_function": "gelu_new", "dtype": "float32", "bos_token_id": None}
        self.assertEqual({key: config[key] for key in wanted}, wanted)
        tensors = tensors_of(folder)
        self.assertEqual(tensors["h.0.attn.c_attn.weight"][1], [16, 48])
        self.assertNotIn("lm_head.weight", tensors)
        self.cairn("train", "gpt2", *TINY, "data=random", "positions=20", "--init", "model", "--steps", 1, "--quiet")
        self.fails(3, "export", "run", "model", "--to", "hf", says="it holds other files")
        self.fails(2, "export", "run", "model.bin", says=".safetensors")
        self.fails(2, "export", "run", "more", "--shard-size", "5GB", says="goes with --to hf")
        self.fails(2, "export", "run", "more", "--to", "hf", "--shard-size", "5XB", says="5XB")
        self.fails(5, "export", "run", "none/more", "--to", "hf", says="there is no directory")
        self.assertEqual([path.name for path in self.folder.glob("*more*")], [])
        said = json.loads(self.cairn("export", "run", "other", "--to", "hf", "--json").stdout)
        self.assertEqual((said["directory"], said["tensors"]), ("other", 28))

    def test_shards_have_the_names_and_the_index_of_transformers(self):
        self.train("--steps", 1, "--out", "run")
        whole, _ = self.export("run", "whole")
        folder, _ = self.export("run", "parts", "--shard-size", "20KB")
        index = json.loads((folder / "model.safetensors.index.json").read_text())
        files = sorted(set(index["weight_map"].values()))
        self.assertEqual(files, [f"model-{i + 1:05d}-of-{len(files):05d}.safetensors" for i in range(len(files))])
        self.assertGreater(len(files), 1)
        tensors = tensors_of(folder)
        self.assertEqual(tensors, tensors_of(whole))
        self.assertEqual(index["metadata"]["total_size"], sum(len(row[2]) for row in tensors.values()))
        for file in files:
            names = [name for name, place in index["weight_map"].items() if place == file]
            self.assertTrue(len(names) == 1 or sum(len(tensors[name][2]) for name in names) <= 20000)

    def test_types(self):
        self.train("--steps", 1, "--out", "run")
        for option, file, word in (("bf16", "BF16", "bfloat16"), ("f16", "F16", "float16"), ("f32", "F32", "float32")):
            folder, config = self.export("run", option, "--dtype", option)
            self.assertEqual({row[0] for row in tensors_of(folder).values()}, {file})
            self.assertEqual(config["dtype"], word)
        self.cairn("export", "run", "one.safetensors", "--dtype", "bf16", "--quiet")
        self.assertEqual((self.folder / "one.safetensors").read_bytes(), (self.folder / "bf16/model.safetensors").read_bytes())
        self.fails(2, "export", "run", "one.safetensors", "--dtype", "int8", says="int8")

    def halves(self):
        """The sharded model in bf16, with a tokenizer."""
        self.cairn("train", "llama", *LLAMA, "--init", SHARDED, "--steps", 1, "--out", "first", "--quiet")
        folder, config = self.export("first", "halves", "--dtype", "bf16", "--shard-size", "3KB")
        (folder / "config.json").write_text(json.dumps({**config, "eos_token_id": [2, 3], "pad_token_id": 0,
                                                        "max_position_embeddings": 64}))
        (folder / "tokenizer.json").write_text("{}")
        (folder / "generation_config.json").write_text('{"eos_token_id": [2, 3], "top_k": 7}')
        return folder

    def test_frozen_parameters_have_the_bytes_that_they_came_with(self):
        source = self.halves()
        train = ("train", "llama", *LLAMA, "--init", source, "--quiet", "frozen=h.0.*")
        self.cairn(*train, "--steps", 1, "--out", "run")
        folder, config = self.export("run", "model")
        before, after = tensors_of(source), tensors_of(folder)
        self.assertEqual(set(before), set(after))
        for name, row in before.items():
            frozen = name.startswith("model.layers.0.")
            self.assertEqual(after[name] == row, frozen, name)
            self.assertEqual(after[name][0], "BF16" if frozen else "F32")
        self.assertEqual((config["dtype"], config["eos_token_id"], config["pad_token_id"],
                          config["max_position_embeddings"]), ("float32", [2, 3], 0, 64))
        self.assertEqual((folder / "tokenizer.json").read_text(), "{}")
        self.assertEqual(json.loads((folder / "generation_config.json").read_text())["top_k"], 7)
        self.cairn("train", "--resume", "run", "--steps", 2, "--quiet")  # which goes on with what is known of its source
        self.assertEqual(tensors_of(self.export("run", "later")[0])["model.layers.0.mlp.up_proj.weight"],
                         before["model.layers.0.mlp.up_proj.weight"])
        halves, config = self.export("run", "all", "--dtype", "bf16")
        self.assertEqual({row[0] for row in tensors_of(halves).values()}, {"BF16"})
        shutil.rmtree(source)  # of which nothing is needed
        self.assertFalse((self.export("run", "bare")[0] / "tokenizer.json").exists())

    @unittest.skipUnless(os.environ.get("TRANSFORMERS_PYTHON"), "a Python with transformers: $TRANSFORMERS_PYTHON")
    def test_transformers_goes_on_with_it(self):
        (self.folder / "logits.lua").write_text(LOGITS)
        gpt2 = ["gpt2", *TINY, "data=random", "positions=20", "eps=1e-6"]
        for name, window, model in (("gpt2", 16, gpt2), ("llama", 8, ["llama", *LLAMA]),
                                    ("tied", 8, ["llama", *LLAMA, "tied=true"])):
            self.cairn("train", *model, "--steps", 2, "--out", name, "--quiet")
            folder, _ = self.export(name, name + "-model", "--shard-size", "9KB")
            logits = self.cairn("lua", "logits.lua", name).stdout
            found = subprocess.run([os.environ["TRANSFORMERS_PYTHON"], "-c", JUDGE, folder, str(window)], input=logits,
                                   capture_output=True, text=True, check=True).stdout
            found = json.loads(found.splitlines()[-1])
            self.assertEqual(found["wrong"], [])
            self.assertLess(found["apart"], 1e-5)

    def test_a_recipe_that_has_no_words_for_a_config(self):
        recipe = self.folder / "own.lua"
        recipe.write_text('local recipe = dofile("%s/scripts/recipes/gpt2.lua")\nrecipe.hf_config = nil\nreturn recipe\n' % ROOT)
        self.cairn("train", recipe, *TINY, f"data={self.text}", "--steps", 1, "--out", "run", "--quiet")
        self.fails(3, "export", "run", "model", "--to", "hf", "--recipe", recipe, says="hf_config")
        self.fails(3, "export", "run", "model", "--to", "hf", says="--recipe FILE")
        self.assertEqual([path.name for path in self.folder.glob("*model*")], [])


main()
