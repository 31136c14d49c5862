"""--init: models as other programs save them give those programs' losses; what does not fit is told whole."""
import json
import pathlib
import shutil
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, TINY, Case, main  # noqa: E402

MODELS = ROOT / "tests/golden/data/transformers"
RECIPE = """local recipe = dofile("%s/scripts/recipes/%s.lua")
recipe.dataset = function()
  return { batches = %d, batch = function(index)
    local batches = { %s }
    local tokens, targets = {}, {}
    for _, window in ipairs(batches[index %% #batches + 1]) do
      for i = 1, #window - 1 do tokens[#tokens + 1], targets[#targets + 1] = window[i], window[i + 1] end
    end
    return { tokens = tokens, targets = targets }, #tokens
  end }
end
return recipe
"""


def as_lua(value):
    return "{" + ", ".join(map(as_lua, value)) + "}" if isinstance(value, list) else str(value)


class Weights(Case):
    def model(self, name):
        """What is expected of a saved model, and its recipe on the same batches."""
        expected = json.loads((MODELS / name / "expected.json").read_text())
        path = self.folder / f"{name}.lua"
        path.write_text(RECIPE % (ROOT, expected["recipe"], expected["steps"],
                                  ", ".join(map(as_lua, expected["batches"]))))
        return expected, path

    def settings(self, expected, **changes):
        return [f"{key}={value}" for key, value in {**expected["options"], **changes}.items() if value is not None]

    def init(self, name, code=0, says=(), folder=None, **changes):
        expected, path = self.model(name)
        file = (folder or MODELS / name) / "model.safetensors"
        command = ["train", path, *self.settings(expected, **changes), "--init", file, "--steps", expected["steps"],
                   "--json", "--quiet"]
        if code:
            return self.fails(code, *command, says=says).stderr
        return json.loads(self.cairn(*command).stdout)["loss"], expected["loss"]

    def test_losses_are_those_of_the_program_that_saved_it(self):
        for name in ("llama", "llama_tied", "gpt2_long"):
            with self.subTest(name):
                found, wanted = self.init(name)
                self.assertEqual(len(found), len(wanted))
                for ours, theirs in zip(found, wanted):
                    self.assertLess(abs(ours - theirs), 2e-6 * theirs)

    def test_a_run_that_began_with_a_file_is_saved(self):
        expected, path = self.model("gpt2_long")
        self.cairn("train", path, *self.settings(expected), "--init", MODELS / "gpt2_long/model.safetensors", "--steps", 1,
                   "--out", "run", "--quiet")
        self.assertIn("step-00000001", [folder.name for folder in (self.folder / "run").iterdir()])

    def test_another_eps_would_show(self):
        bare = self.folder / "bare"  # without the config.json that says so
        bare.mkdir()
        shutil.copy(MODELS / "llama/model.safetensors", bare)
        found, wanted = self.init("llama", folder=bare, eps="1e-5")
        self.assertGreater(abs(found[0] - wanted[0]), 1e-5)

    def test_the_config_beside_it(self):
        self.init("llama", 3, says=("rms_norm_eps", "1e-06 there", "1e-05 here", "eps=1e-06"), eps=None)
        self.init("llama", 3, says=("rope_parameters.rope_theta", "rope_base=500000"), rope_base=None)
        self.init("llama", 3, says=("num_attention_heads", "heads=4"), heads=2, kv_heads=1)
        self.init("gpt2_long", 3, says=("n_head", "heads=2"), heads=4)
        self.init("gpt2_long", 3, says=("layer_norm_epsilon", "eps=1e-06"), eps="1e-5")

    def test_what_does_not_fit_is_told_whole(self):
        self.init("llama", 3, says=("9 that the model has not", "model.layers.1.mlp.up_proj.weight [24, 16]",
                                    "options that match the file: layers=2\n"), layers=1)
        self.init("llama", 3, says=("9 missing in the file", "model.layers.2.input_layernorm.weight [16]", "layers=2"),
                  layers=3)
        both = self.init("llama", 3, says=("of another shape", "model.embed_tokens.weight is [32, 16], the model needs "
                                           "[64, 16]", "missing", "vocab=32", "layers=2"), vocab=64, layers=3)
        self.assertNotIn("width=", both)
        self.init("llama", 3, says=("'lm_head.weight' is not 'model.embed_tokens.weight'", "tied=false"), tied="true")
        self.init("llama_tied", 3, says=("1 missing in the file: lm_head.weight [32, 16]", "tied=true"), tied="false")
        self.init("llama", 3, says=("hidden=24",), hidden=0)
        self.init("llama", 3, says=("k_proj.weight is [8, 16], the model needs [16, 16]", "kv_heads=2"), kv_heads=4)
        self.init("gpt2_long", 3, says=("transformer.wpe.weight is [24, 16], the model needs [8, 16]", "positions=24"),
                  positions=0)
        self.init("gpt2_long", 3, says="seq=24", positions=0, seq=32)

    def rewrite(self, source, change):
        """A copy of a safetensors file with a changed dictionary of tensors: name -> (dtype, shape, bytes)."""
        blob = source.read_bytes()
        size = struct.unpack("<Q", blob[:8])[0]
        header, data = json.loads(blob[8:8 + size]), blob[8 + size:]
        tensors = {name: (row["dtype"], row["shape"], data[slice(*row["data_offsets"])])
                   for name, row in header.items() if name != "__metadata__"}
        change(tensors)
        header, at = {}, 0
        for name, (dtype, shape, bytes_) in tensors.items():
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(bytes_)]}
            at += len(bytes_)
        text = json.dumps(header).encode()
        folder = self.folder / "changed"
        folder.mkdir(exist_ok=True)
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text +
                                                   b"".join(bytes_ for _, _, bytes_ in tensors.values()))
        return folder

    def test_tensors_that_are_not_needed(self):
        def more(tensors):
            tensors["transformer.h.0.attn.bias"] = ("F32", [1, 1, 4, 4], bytes(64))
            tensors["lm_head.weight"] = tensors["transformer.wte.weight"]

        source = MODELS / "gpt2_long/model.safetensors"
        found, wanted = self.init("gpt2_long", folder=self.rewrite(source, more))
        self.assertLess(abs(found[0] - wanted[0]), 1e-5)

        def untied(tensors):
            tensors["lm_head.weight"] = ("F32", [32, 16], bytes(2048))

        self.init("gpt2_long", 3, says=("lm_head.weight", "ties the head"), folder=self.rewrite(source, untied))

        def body(tensors):
            for name in [*tensors]:
                tensors[name.replace("transformer.", "")] = tensors.pop(name)

        found, wanted = self.init("gpt2_long", folder=self.rewrite(source, body))
        self.assertLess(abs(found[0] - wanted[0]), 1e-5)

        def tied_with_head(tensors):
            tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"]

        source = MODELS / "llama_tied/model.safetensors"
        found, wanted = self.init("llama_tied", folder=self.rewrite(source, tied_with_head))
        self.assertLess(abs(found[0] - wanted[0]), 1e-5)

        def integers(tensors):
            _, shape, bytes_ = tensors["model.norm.weight"]
            tensors["model.norm.weight"] = ("I32", shape, bytes_)

        self.init("llama_tied", 3, says=("model.norm.weight", "float"), folder=self.rewrite(source, integers))

        def masks(tensors):
            tensors["mask"] = ("BOOL", [4], bytes(4))
            tensors["nothing"] = ("F32", [0, 3], b"")
            tensors["scale"] = ("F8_E4M3", [2], bytes(2))

        found, wanted = self.init("llama_tied", folder=self.rewrite(source, masks))
        self.assertLess(abs(found[0] - wanted[0]), 1e-5)

        def halves(tensors):
            tensors["model.norm.weight"] = ("F8_E4M3", [16], bytes(16))

        self.init("llama_tied", 3, says=("model.norm.weight is F8_E4M3 [16]", "a float type"),
                  folder=self.rewrite(source, halves))

    def test_parameters_that_the_file_may_lack(self):
        def without(tensors):
            del tensors["model.norm.weight"]
            del tensors["model.layers.1.mlp.up_proj.weight"]

        folder = self.rewrite(MODELS / "llama_tied/model.safetensors", without)
        self.init("llama_tied", 3, says=("2 missing in the file", "--init-missing"), folder=folder)
        expected, path = self.model("llama_tied")
        command = ("train", path, *self.settings(expected), "--steps", 1, "--init", folder / "model.safetensors")
        self.fails(3, *command, "--init-missing", "*.norm.weight",
                   says="1 missing in the file: model.layers.1.mlp.up_proj")
        self.fails(2, *command, "--init-missing", "head.*", says="--init-missing head.*: no parameter")
        self.fails(2, *command[:-2], "--init-missing", "head.*", says="goes with --init")
        done = self.cairn(*command, "--init-missing", "model.norm.*,*.up_proj.weight", "--json")
        self.assertIn("begins fresh: ", done.stderr)
        self.assertIn("model.layers.1.mlp.up_proj.weight", done.stderr)
        self.assertNotIn("model.layers.0.mlp", done.stderr)

    CONFIGS = [  # changes of a config.json, and what is said; nothing: it is taken
        (dict(model_type="granite", embedding_multiplier=12.0), ("model_type is granite", "llama, or mistral")),
        (dict(model_type="qwen2"), "model_type is qwen2"), (dict(model_type="helium"), "model_type is helium"),
        (dict(residual_multiplier=0.22), "residual_multiplier (0.22)"), (dict(no_rope_layers=[1, 0]), "no_rope_layers"),
        (dict(model_type="mistral", sliding_window=8), None), (dict(model_type="mistral", sliding_window=None), None),
        (dict(model_type="mistral", sliding_window=4), "sliding_window is 4"),
        (dict(rope_scaling={"rope_type": "llama3", "factor": 8.0}), ("rope_scaling.rope_type is llama3", "factor")),
        (dict(rope_scaling={"type": "linear", "factor": 2.0}), "rope_scaling.type is linear"),
        (dict(rope_scaling=None), None), (dict(attention_bias=True), "attention_bias is true"),
        (dict(mlp_bias=True), "mlp_bias"), (dict(hidden_act="gelu"), "hidden_act is gelu"),
        (dict(head_dim=8), "head_dim"),
        (dict(rope_parameters={"rope_theta": 1e4, "rope_type": "yarn"}), "rope_parameters.rope_type is yarn"),
        (dict(rope_parameters={"rope_theta": 1e4, "partial_rotary_factor": 0.5}), "partial_rotary_factor"),
        (dict(rope_parameters={"rope_theta": 1e4, "llama_4_scaling_beta": 0.1}), "llama_4_scaling_beta"),
        (dict(rope_parameters=None, rope_theta=1e4), None), (dict(rope_parameters=None, rope_theta=5e5), "rope_base="),
        (dict(rope_parameters=None), None), (dict(rms_norm_eps=None), ("rms_norm_eps is 1e-06", "by default", "eps=")),
        (dict(quantization_config={"quant_method": "aqlm"}), "quant_method is aqlm"),
        (dict(torch_dtype="bfloat16", use_cache=False, id2label={"0": "A"}, _name_or_path="x", unk_token_id=0), None),
        (dict(query_pre_attn_scalar=3), "may be taken out"), (dict(is_encoder_decoder=True), "is_encoder_decoder"),
    ]

    def test_a_config_of_another_model_is_refused(self):
        source = MODELS / "llama_tied"
        folder = self.folder / "configured"
        folder.mkdir()
        shutil.copy(source / "model.safetensors", folder)
        plain = json.loads((source / "config.json").read_text())
        for change, says in self.CONFIGS:
            with self.subTest(change):
                merged = {key: value for key, value in {**plain, **change}.items() if value is not None}
                (folder / "config.json").write_text(json.dumps(merged))
                self.init("llama_tied", 3 if says else 0, says=says or (), folder=folder)
        (folder / "config.json").write_text("[1")
        self.init("llama_tied", 3, says="is no JSON object", folder=folder)

    def test_files_of_other_kinds(self):
        command = ("train", "gpt2", *TINY, "data=random", "--steps", 1, "--init")
        (self.folder / "notes.txt").write_text("weights are elsewhere")
        self.fails(3, *command, "notes.txt", says=("notes.txt", "no safetensors file but a text"))
        (self.folder / "model.safetensors.index.json").write_text('{"metadata": {}, "weight_map": {}}')
        self.fails(3, *command, "model.safetensors.index.json", says=("JSON", "index", "give its directory"))
        for name, head, says in (("pytorch_model.bin", b"PK\3\4\0\0\0\0", "a zip archive"),
                                 ("old.pt", b"\x80\x02\x8a\nl\xfc\x9cF", "a pickle"),
                                 ("one.npy", b"\x93NUMPY\1\0", "a NumPy array"),
                                 ("two.npz", b"PK\3\4\x14\0\0\0", "a zip archive"),
                                 ("model.h5", b"\x89HDF\r\n\x1a\n", "an HDF5 file")):
            (self.folder / name).write_bytes(head + bytes(100))
            self.fails(3, *command, name, says=(name, says, "safetensors"))
            self.fails(3, "inspect", name, says=(name, says))
        (self.folder / "parts").mkdir()
        self.fails(3, *command, "parts", says=("parts is a directory without", "there is none in it"))
        (self.folder / "parts/a.safetensors").write_bytes(b"")
        self.fails(3, *command, "parts", says="as parts/a.safetensors")
        (self.folder / "parts/model.safetensors.index.json").write_text("{}")
        self.fails(3, *command, "parts", says=("model.safetensors.index.json", "weight_map"))
        (self.folder / "cut.safetensors").write_bytes((MODELS / "llama/model.safetensors").read_bytes()[:3000])
        self.fails(3, *command, "cut.safetensors", says="cut.safetensors")
        self.train("--steps", 1, "--out", "run")
        self.fails(3, *command, "run", says=("is a checkpoint", "cairn export"))
        for name in ("model.gguf", "pytorch_model.bin", "a.PT", "weights.npz"):
            self.fails(2, "export", "run", name, says=(name, ".safetensors"))
            self.assertFalse((self.folder / name).exists() and name in ("a.PT", "weights.npz"))
        self.cairn("export", "run", "model.safetensors", "--quiet")
        self.cairn(*command, "model.safetensors", "--quiet")

    def shards(self):
        """A copy of the model in several files."""
        folder = self.folder / "shards"
        shutil.copytree(MODELS / "llama_sharded", folder)
        return folder, json.loads((folder / "model.safetensors.index.json").read_text())

    def train_from(self, folder, *more, code=0, says=()):
        expected, path = self.model("llama")
        command = ["train", path, *self.settings(expected), "--init", folder, "--steps", 2, "--threads", 1, "--quiet", *more]
        if code:
            return self.fails(code, *command, says=says)
        return json.loads(self.cairn(*command, "--json").stdout)

    def test_a_directory_of_several_files(self):
        expected, _ = self.model("llama")
        folder, index = self.shards()
        self.assertGreater(len(set(index["weight_map"].values())), 2)
        for ours, theirs in zip(self.train_from(folder)["loss"], expected["loss"]):
            self.assertLess(abs(ours - theirs), 2e-6 * theirs)
        shown = json.loads(self.cairn("inspect", folder, "--json").stdout)
        self.assertEqual({name: row["file"] for name, row in shown["tensors"].items()}, index["weight_map"])
        self.assertEqual(set(shown["files"]), set(index["weight_map"].values()))
        self.assertEqual(shown["parameter_count"] * 4, sum(row["bytes"] for row in shown["tensors"].values()))
        self.assertIn("21 tensors", self.cairn("inspect", folder).stdout)

    def test_what_is_wrong_with_a_directory(self):
        folder, index = self.shards()
        name, shard = "model.norm.weight", index["weight_map"]["model.norm.weight"]

        def change(tensor, file):
            changed = {**index, "weight_map": {**index["weight_map"], tensor: file}}
            (folder / "model.safetensors.index.json").write_text(json.dumps(changed))

        other = next(file for file in index["weight_map"].values() if file != shard)
        change(name, other)
        self.train_from(folder, code=3, says=(name, other, "no such tensor"))
        change(name, "model-00009-of-00009.safetensors")
        self.train_from(folder, code=3, says=("there is no file", "model-00009-of-00009.safetensors", name))
        change("model.more.weight", shard)
        self.train_from(folder, code=3, says=("model.more.weight", shard))
        change(name, shard)
        shutil.copy(folder / shard, folder / "model-00009-of-00009.safetensors")
        change("model.more.weight", "model-00009-of-00009.safetensors")
        self.train_from(folder, code=3, says=("is in both", shard, "model-00009-of-00009.safetensors"))
        change(name, shard)
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "rms_norm_eps": 1e-5}))
        self.train_from(folder, code=3, says=("rms_norm_eps", "eps=1e-05"))

    def test_names_inside_a_model_with_other_parts(self):
        source = MODELS / "llama/model.safetensors"
        found, _ = self.init("llama")
        for change in (lambda name: "language_model." + name,
                       lambda name: name.replace("model.", "model.language_model.", 1)):
            def rename(tensors):
                for name in [*tensors]:
                    tensors[change(name)] = tensors.pop(name)
                tensors[change("model.layers.0.self_attn.rotary_emb.inv_freq")] = ("F32", [2], bytes(8))
            self.assertEqual(self.init("llama", folder=self.rewrite(source, rename))[0], found)

    # Frozen weights that live on the disk tier are read from the model's own files, which must then stay as they are.
    def test_frozen_weights_on_the_disk_tier_are_read_from_their_file(self):
        shape = ("layers=8", "heads=4", "kv_heads=2", "width=64", "hidden=96", "vocab=64", "seq=8", "batch=1", "data=random")
        self.cairn("train", "llama", *shape, "--steps", 1, "--out", "run", "--quiet", "--threads", 1)
        self.cairn("export", "run", "model", "--to", "hf", "--dtype", "bf16", "--shard-size", "200KB", "--quiet")
        recipe = self.folder / "touching.lua"
        recipe.write_text("""local recipe = dofile("%s/scripts/recipes/llama.lua")
recipe.options[#recipe.options + 1] = { "touched", "", "file that is changed after the first step" }
local o
local model = recipe.model
recipe.model = function(options, ...) o = options return model(options, ...) end
recipe.on_step = function()
  if o.touched == "" then return end
  local file = io.open(o.touched, "r+b")
  file:seek("end", -1)
  file:write("x")
  file:close()
end
return recipe
""" % ROOT)
        command = ("train", recipe, *shape, "--init", "model", "--steps", 2, "--threads", 1, "--quiet",
                   "--amp", "bf16", "parameters=bf16", "optimizer=sgd", "frozen=h.*")
        kept = json.loads(self.cairn(*command, "--json").stdout)
        disk = json.loads(self.cairn(*command, "--json", "--tiers", "disk", "--budget", "20%").stdout)
        self.assertEqual(disk["parameter_digest"], kept["parameter_digest"])
        self.assertEqual(disk["peak_bytes"], disk["planned_peak_bytes"])
        self.assertGreater(disk["tier_bytes"]["disk"]["parameters"], 0)
        for path in sorted((self.folder / "model").glob("model-*"))[1:2]:  # of blocks alone
            self.fails(5, *command, "--tiers", "disk", "--budget", "20%", f"touched={path}",
                       says=(path.name, "was written to while it was open"))

    def test_positions_longer_than_windows_train_and_generate(self):
        wide = self.train("positions=40", "--steps", 3, "--out", "run")
        self.assertNotEqual(wide["parameter_digest"], self.train("--steps", 3)["parameter_digest"])
        text = self.cairn("generate", "run", "--prompt", "It", "--tokens", 4, "--quiet").stdout
        self.assertTrue(text.startswith("It"))
        self.fails(2, "train", "gpt2", *TINY, "data=random", "positions=4", says=("positions=4", "seq=16"))


main()
