"""Libraries without the parts that one can leave out (cmake/parts.cmake): every symbol is there, training works, and a call that
needs a part that is not there says UNSUPPORTED, with the option that would build it.

    parts_test.py BUILD_FOLDER CMAKE C_COMPILER

The smallest library is linked from the objects of BUILD_FOLDER; under CAIRN_TEST=long it is compiled from the sources, too."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from outside import EXAMPLES, ROOT, check_trains, run

BUILD, CMAKE, CC = sys.argv[1:4]
sys.path.insert(0, str(ROOT / "tests"))
from support.campaign import LONG  # noqa: E402

PARTS = ("tokenizers", "reports", "device_plugins", "png", "jpeg", "webp", "zlib")
LEFT_OUT = [f"-DCAIRN_{part.upper()}=OFF" for part in PARTS]
SMALLEST = ["-DCAIRN_TESTS=OFF", "-DCAIRN_BENCH=OFF", "-DCAIRN_BUILD_COMMAND=OFF", "-DCAIRN_BUILD_STATIC=OFF", *LEFT_OUT]
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(outside C)
find_package(cairn REQUIRED COMPONENTS ${WANTED})
"""
# Prints "STATUS message" of each call that needs a part.
CALLS = r"""
#include <cairn/cairn.h>
#include <stdio.h>

static void say(cairn_error_t* error, cairn_status_t status) {
  printf("%s %s\n", cairn_status_name(status), cairn_error_message(error));
}

static void say_picture(cairn_instance_t* instance, cairn_error_t* error, const char* data) {
  cairn_pictures_options_t options = CAIRN_PICTURES_OPTIONS_INIT;
  options.data = data;
  options.width = options.height = 8;
  cairn_pictures_t* pictures;
  cairn_status_t status = cairn_pictures_open(instance, &options, &pictures, error);
  if (status != 0) {
    say(error, status);
    return;
  }
  cairn_pictures_batch_t to = CAIRN_PICTURES_BATCH_INIT;
  uint32_t rows;
  say(error, cairn_pictures_read(pictures, 0, 1, &to, &rows, error));
  cairn_pictures_release(pictures);
}

int main(int argc, char** argv) {
  cairn_error_t* error = cairn_error_create();
  cairn_instance_t* instance;
  if (argc != 3 || cairn_instance_create(NULL, &instance, error) != 0) return 1;
  cairn_tokenizer_t* tokenizer;
  if (cairn_tokenizer_open(instance, "bytes", NULL, &tokenizer, error) != 0) return 2;
  cairn_tokenizer_release(tokenizer);
  say(error, cairn_tokenizer_open(instance, "bpe", argv[1], &tokenizer, error));
  say(error, cairn_tokenizer_train(instance, argv[2], 300, "never.model", error));
  cairn_text_t* text;
  say(error, cairn_inspect(instance, argv[1], &text, error));
  cairn_device_t* device;
  say(error, cairn_device_open(instance, "cuda:0", NULL, &device, error));
  cairn_graph_t* graph;
  cairn_value_t x, w, y;
  cairn_plan_t* plan;
  if (cairn_device_open(instance, "cpu", NULL, &device, error) != 0) return 3;
  if (cairn_graph_create(instance, &graph, error) != 0) return 4;
  if (cairn_graph_input(graph, &(cairn_tensor_desc_t){"x", (int64_t[]){4, 2}, 2, CAIRN_F32}, &x, error) != 0) return 5;
  if (cairn_graph_parameter(graph, &(cairn_tensor_desc_t){"w", (int64_t[]){3, 2}, 2, CAIRN_F32}, NULL, &w, error) != 0) return 6;
  if (cairn_graph_op(graph, "linear", (cairn_value_t[]){x, w}, 2, NULL, 0, &y, 1, error) != 0) return 7;
  cairn_freeze_options_t freeze = CAIRN_FREEZE_OPTIONS_INIT;
  freeze.outputs = &y;
  freeze.output_count = 1;
  if (cairn_graph_freeze(graph, &freeze, error) != 0 || cairn_plan_create(graph, device, NULL, &plan, error) != 0) return 8;
  say(error, cairn_plan_render(plan, CAIRN_RENDER_HTML, NULL, &text, error));
  say(error, cairn_plan_render(plan, CAIRN_RENDER_SVG, NULL, &text, error));
  say(error, cairn_plan_render(plan, CAIRN_RENDER_REPORT, NULL, &text, error));
  if (cairn_plan_render(plan, CAIRN_RENDER_PLAN_JSON, NULL, &text, error) != 0) return 9;
  say_picture(instance, error, "pairs:png.jsonl");
  say_picture(instance, error, "pairs:jpeg.jsonl");
  say_picture(instance, error, "pairs:webp.jsonl");
  say_picture(instance, error, "mnist:.");
  return 0;
}
"""


class Parts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="cairn-parts-")
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = pathlib.Path(scratch.name)

    def configure(self, name, *options, fails=False):
        return run(CMAKE, "-S", ROOT, "-B", self.folder / name, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                   f"-DCMAKE_C_COMPILER={CC}", *options, fails=fails)

    def check_smallest(self, name, *options):
        self.configure(name, *SMALLEST, *options)
        run(CMAKE, "--build", self.folder / name)
        prefix = self.folder / f"{name} prefix"
        run(CMAKE, "--install", self.folder / name, "--prefix", prefix)
        library = next(prefix.rglob("libcairn.so")).parent
        self.assertFalse(list(prefix.rglob("libcairn.a")) + list(prefix.rglob("bin/*")) + list(prefix.rglob("*.lua")))
        run(sys.executable, ROOT / "capi/abi/abi.py", "--library", library / "libcairn.so", "--compiler", CC)
        environment = dict(os.environ, PKG_CONFIG_PATH=str(library / "pkgconfig"))
        self.assertEqual("", run("pkg-config", "--variable=parts", "cairn", env=environment).strip())

        flags = ["-I", prefix / "include", "-L", library, f"-Wl,-rpath,{library}", "-lcairn"]
        trainer, caller = self.folder / f"{name}-train", self.folder / f"{name}-calls"
        run(CC, EXAMPLES / "train.c", "-o", trainer, *flags)
        check_trains(trainer, self.folder, needs_library=True)
        (self.folder / "calls.c").write_text(CALLS)
        run(CC, self.folder / "calls.c", "-o", caller, *flags)
        begins = {"png": b"\x89PNG\r\n\x1a\n", "jpeg": b"\xFF\xD8\xFF", "webp": b"RIFF    WEBP"}
        for kind, bytes_ in begins.items():
            (self.folder / kind).write_bytes(bytes_)
            (self.folder / f"{kind}.jsonl").write_text(f'{{"image": "{kind}"}}')
        (self.folder / "train-images-idx3-ubyte.gz").write_bytes(b"packed")
        said = run(caller, ROOT / "tests/compat/1.0/tokenizer.model", ROOT / "README.md", cwd=self.folder).splitlines()
        for line, option in zip(said, ["TOKENIZERS"] * 3 + ["DEVICE_PLUGINS"] + ["REPORTS"] * 3 + ["PNG", "JPEG", "WEBP", "ZLIB"],
                                strict=True):
            self.assertRegex(line, rf"^UNSUPPORTED .*CAIRN_{option}=OFF.*-DCAIRN_{option}=ON$")
        self.assertFalse((self.folder / "never.model").exists())
        return prefix

    def test_the_smallest_library(self):
        prefix = self.check_smallest("smallest", f"-DCAIRN_OBJECTS_OF={BUILD}")
        whole = pathlib.Path(BUILD) / "lib/libcairn.so"
        self.assertLess(next(prefix.rglob("libcairn.so.1.*")).stat().st_size, whole.stat().st_size)
        # CMake's package says which parts there are.
        (self.folder / "outside").mkdir()
        (self.folder / "outside/CMakeLists.txt").write_text(PROJECT)
        for wanted in ("static", *PARTS):
            said = run(CMAKE, "-S", self.folder / "outside", "-B", self.folder / "outside/out", f"-DWANTED={wanted}",
                       f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={CC}", fails=True)
            self.assertIn(wanted, said)

    def test_the_command_without_parts(self):
        """It trains, saves and goes on, and says what it leaves out."""
        self.configure("command", "-DCAIRN_TESTS=OFF", "-DCAIRN_BENCH=OFF", *LEFT_OUT, f"-DCAIRN_OBJECTS_OF={BUILD}")
        run(CMAKE, "--build", self.folder / "command", "--target", "cairn_cli")
        cairn, environment = self.folder / "command/bin/cairn", dict(os.environ, CAIRN_RATES="model")
        environment.pop("LD_LIBRARY_PATH", None)
        words = ("mlp", "width=4", "--steps", 2, "--out", "run")
        done = subprocess.run([cairn, "train", *map(str, words)], capture_output=True, text=True, check=True,
                              cwd=self.folder, env=environment)
        self.assertIn("note: plan.html: the plan as an HTML page: this libcairn was built with CAIRN_REPORTS=OFF", done.stderr)
        names = {path.name for path in (self.folder / "run").iterdir()}
        self.assertLessEqual({"run.json", "report.html", "step-00000002"}, names)
        self.assertNotIn("plan.html", names)
        run(cairn, "train", "--resume", "run", "--steps", 3, cwd=self.folder, env=environment)
        said = run(cairn, "plan", "mlp", "--html", "plan.html", fails=True, cwd=self.folder, env=environment)
        self.assertIn("CAIRN_REPORTS=ON", said)

    def test_tests_need_every_part(self):
        for option in ("CAIRN_TOKENIZERS", "CAIRN_BUILD_COMMAND"):
            said = self.configure("refused", f"-D{option}=OFF", fails=True)
            self.assertRegex(said, rf"{option}=OFF: the tests need every part;\s+add\s+-DCAIRN_TESTS=OFF")

    @unittest.skipUnless(LONG, "compiles the library again; ./dev test long does")
    def test_the_smallest_library_from_the_sources(self):
        self.check_smallest("compiled")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
