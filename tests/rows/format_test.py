#!/usr/bin/env python3
"""A new storage format of frozen parameters is a row and a codec. Adds one that does not exist, of blocks of 32 values
of 4 bits, to a copy of the sources, counts the files that change, compiles what reads the rows and trains with it: on
the reference and the CPU, through a checkpoint and `inspect`; and runs the emulated GPU's kernel. Under CAIRN_TEST=long
builds the copy and runs the conformance tests, which find it by its row, and `cairn ops --formats`.

    format_test.py BUILD_FOLDER LIBRARY...      the libraries that a session needs, as files"""
import pathlib
import sys
import unittest

import edits

sys.path.insert(0, str(edits.ROOT / "tests/support"))
import campaign  # noqa: E402

BUILD = pathlib.Path(sys.argv[1]).resolve()
LIBRARIES = sys.argv[2:]
MOST_FILES = 6  # beside tests

EDITS = [
    edits.Edit("runtime/formats/formats.def", "Iq4Xs, Dequantised, 0)\n",
               'FORMAT(Int4, "int4", 4, 32, 32, 4, F32, Int4, Dequantised, 0)\n'),
    edits.Edit("runtime/formats/codecs.h", '#include "runtime/formats/half.h"\n',
               '#include "runtime/formats/int4.h"\n'),
    edits.Edit("runtime/formats/int4.h", None, '''// Whole numbers from -7 to 7, two in a byte, with a scale.
#pragma once
#include <cstdint>

namespace cairn::formats {

struct Int4 {
  static constexpr int kBlock = 32;
  struct Block {
    uint8_t pairs[kBlock / 2];
    float scale;
  };
  static constexpr bool encode(const float* from, int64_t count, Block& to) {
    float largest = 0;
    for (int64_t i = 0; i < count; ++i) {
      const float magnitude = from[i] < 0 ? -from[i] : from[i];
      if (!(magnitude <= 1e38f)) return false;
      largest = magnitude > largest ? magnitude : largest;
    }
    to = {};
    to.scale = largest / 7.0f;
    for (int64_t i = 0; i < kBlock; ++i) {
      const float code = i < count && to.scale > 0 ? from[i] / to.scale + 8.5f : 8.0f;
      const int whole = code > 15.0f ? 15 : static_cast<int>(code);
      to.pairs[i / 2] = static_cast<uint8_t>(to.pairs[i / 2] | whole << i % 2 * 4);
    }
    return true;
  }
  static constexpr float decode(const Block& from, int i) {
    return static_cast<float>((from.pairs[i / 2] >> i % 2 * 4 & 15) - 8) * from.scale;
  }
};

}  // namespace cairn::formats
'''),
    edits.Edit("capi/docs/ops.md", "4 bits; 256 values are stored together, with 8 bytes of scale. Computed as f32.\n",
               '''
## int4

Ops read what the plan decodes of it. For frozen parameters.

4 bits; 32 values are stored together, with 4 bytes of scale. Computed as f32.
'''),
]
# Compiled as they are after the edits, and linked in the place of the libraries' own into a program that trains.
READERS = ["runtime/formats/codecs.cc", "runtime/base/tensor.cc", "runtime/graph/formats.cc", "runtime/io/envelope.cc",
           "runtime/io/manifest.cc", "kernels/reference/layout.cc", "kernels/reference/common.cc", "kernels/cpu/simd/blocks.cc"]
CUDA_READERS = [("kernels/cuda/dequantise.cu", "emulated/dequantise.cu.cc")]
CHECK = "tests/rows/format_check.cc"


class Format(edits.RowTest):
    EDITS = EDITS

    def test_few_files_change(self):
        self.check_files(MOST_FILES, "a format")

    def test_runs_with_it_work(self):
        edits.apply(EDITS, self.folder)
        compiler = edits.Compiler(BUILD, self.folder)
        steps = [compiler.object(CHECK, like=edits.ROOT / "runtime/io/manifest.cc")]
        steps += [compiler.object(source) for source in READERS]
        steps += [compiler.object(source, like=BUILD / copy) for source, copy in CUDA_READERS]
        compiler.run_all([command for command, _ in steps])
        program = self.folder / "format_check"
        edits.run("c++", "-o", program, *(out for _, out in steps), "-Wl,--start-group", *LIBRARIES, "-Wl,--end-group")
        said = edits.run(program, self.folder / "checkpoint")
        self.assertEqual(said.count("agrees"), 6, said)

    @unittest.skipUnless(campaign.LONG, "builds a copy of the sources: CAIRN_TEST=long")
    def test_a_build_with_it_passes_the_conformance_tests(self):
        sources, build = self.build_copy("test_conformance", "test_runtime_formats")
        self.assertIn("int4", edits.run(build / "bin/cairn", "ops", "--formats"))
        page = edits.run(build / "bin/cairn", "ops", "--markdown")
        self.assertEqual(page, (sources / "capi/docs/ops.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
