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

    def test_files_of_other_kinds(self):
        command = ("train", "gpt2", *TINY, "data=random", "--steps", 1, "--init")
        (self.folder / "notes.txt").write_text("weights are elsewhere")
        self.fails(3, *command, "notes.txt", says=("notes.txt", "no safetensors file but a text"))
        (self.folder / "model.safetensors.index.json").write_text('{"metadata": {}, "weight_map": {}}')
        self.fails(3, *command, "model.safetensors.index.json", says=("JSON", "index", "tensors"))
        (self.folder / "cut.safetensors").write_bytes((MODELS / "llama/model.safetensors").read_bytes()[:3000])
        self.fails(3, *command, "cut.safetensors", says="cut.safetensors")
        self.train("--steps", 1, "--out", "run")
        self.fails(3, *command, "run", says=("is a checkpoint", "cairn export"))
        self.cairn("export", "run", "model.safetensors", "--quiet")
        self.cairn(*command, "model.safetensors", "--quiet")

    def test_positions_longer_than_windows_train_and_generate(self):
        wide = self.train("positions=40", "--steps", 3, "--out", "run")
        self.assertNotEqual(wide["parameter_digest"], self.train("--steps", 3)["parameter_digest"])
        text = self.cairn("generate", "run", "--prompt", "It", "--tokens", 4, "--quiet").stdout
        self.assertTrue(text.startswith("It"))
        self.fails(2, "train", "gpt2", *TINY, "data=random", "positions=4", says=("positions=4", "seq=16"))


main()
