// Files whose parts are fine one by one and too much together.
#include "runtime/io/limits.h"

#include <gtest/gtest.h>

#include "runtime/io/envelope.h"
#include "runtime/io/graph_file.h"
#include "runtime/io/schema/graph_generated.h"
#include "tests/runtime/io/samples.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::io {
namespace {

TEST(Limits, ABudgetIsWhatTheFileHas) {
  Budget budget("file", 10);
  budget.take(4);
  budget.take(6);
  EXPECT_EQ(test::failure([&] { budget.take(1); }).code, Code::kCorruptFile);
  Budget whole("file", ~uint64_t{0});
  whole.take(~uint64_t{0});
  EXPECT_EQ(test::failure([&] { whole.take(~uint64_t{0}); }).code, Code::kCorruptFile);
}

// One list named by many ops: a small file that stands for a huge one.
TEST(Limits, SharedPartsDoNotMultiply) {
  flatbuffers::FlatBufferBuilder to;
  const auto list = to.CreateVector(std::vector<int32_t>(100000, 0));
  const auto word = to.CreateString("relu"), name = to.CreateString("relu_0");
  std::vector<flatbuffers::Offset<fb::GraphOp>> ops(20000, fb::CreateGraphOp(to, word, name, 0, list, list));
  const auto all = to.CreateVector(ops);
  to.Finish(fb::CreateGraphFile(to, kFormatVersion, 0, all, 0, -1, -1, 0, word), fb::GraphFileIdentifier());
  const auto file = seal(to);
  const auto result = test::failure([&] { decode_graph(file); });
  EXPECT_EQ(result.code, Code::kCorruptFile);
  EXPECT_NE(result.message.find("larger than the file"), std::string::npos) << result.message;
}

struct Broken {
  const char* reason;
  flatbuffers::Offset<fb::GraphFile> (*make)(flatbuffers::FlatBufferBuilder&);
};
using Builder = flatbuffers::FlatBufferBuilder;

flatbuffers::Offset<fb::GraphValue> value(Builder& to, const char* name, uint8_t kind,
                                          std::vector<int64_t> shape = {4}, uint8_t dtype = 0) {
  return fb::CreateGraphValue(to, to.CreateString(name), dtype, to.CreateVector(shape), kind, false, true, 0,
                              0, kind == 2 ? 0 : -1);
}
flatbuffers::Offset<fb::GraphFile> file(Builder& to, std::vector<flatbuffers::Offset<fb::GraphValue>> values,
                                        std::vector<flatbuffers::Offset<fb::GraphOp>> ops = {},
                                        std::vector<int32_t> outputs = {0},
                                        uint32_t version = kFormatVersion) {
  return fb::CreateGraphFile(to, version, to.CreateVector(values), to.CreateVector(ops), 0, -1, -1,
                             to.CreateVector(outputs), to.CreateString("x"));
}
flatbuffers::Offset<fb::GraphOp> op(Builder& to, const char* row, std::vector<int32_t> in,
                                    int32_t region = -1) {
  return fb::CreateGraphOp(to, to.CreateString(row), to.CreateString(cat(row, "_0")), 0, to.CreateVector(in),
                           to.CreateVector(std::vector<int32_t>{1}), region);
}

const Broken kMustFail[] = {
    {"version 9 is not known", [](Builder& to) { return file(to, {value(to, "x", 0)}, {}, {0}, 9); }},
    {"of an unknown kind", [](Builder& to) { return file(to, {value(to, "x", 5)}); }},
    {"unknown dtype 200", [](Builder& to) { return file(to, {value(to, "x", 0, {4}, 200)}); }},
    {"has no dtype", [](Builder& to) { return file(to, {value(to, "x", 0, {4}, 8)}); }},
    {"rank 9", [](Builder& to) { return file(to, {value(to, "x", 0, std::vector<int64_t>(9, 1))}); }},
    {"overflows",
     [](Builder& to) {
       return file(to, {value(to, "x", 0, {int64_t{1} << 40, int64_t{1} << 40})});
     }},
    {"at least 1", [](Builder& to) { return file(to, {value(to, "x", 0, {0})}); }},
    {"exists already",
     [](Builder& to) {
       return file(to, {value(to, "x", 0), value(to, "x", 0)});
     }},
    {"is made by no op",
     [](Builder& to) {
       return file(to, {value(to, "x", 0), value(to, "y", 2)});
     }},
    {"of unknown kind 'frob'",
     [](Builder& to) {
       return file(to, {value(to, "x", 0), value(to, "y", 2)}, {op(to, "frob", {0})});
     }},
    {"of unknown kind 'custom'",
     [](Builder& to) {
       return file(to, {value(to, "x", 0), value(to, "y", 2)}, {op(to, "custom", {0})});
     }},
    {"is not a value of this graph",
     [](Builder& to) {
       return file(to, {value(to, "x", 0), value(to, "y", 2)}, {op(to, "relu", {5})});
     }},
    {"there is no region 3",
     [](Builder& to) {
       return file(to, {value(to, "x", 0), value(to, "y", 2)}, {op(to, "relu", {0}, 3)});
     }},
    {"is stored as f32[5] but built as",
     [](Builder& to) {
       return file(to, {value(to, "x", 0), value(to, "y", 2, {5})}, {op(to, "relu", {0})}, {1});
     }},
    {"an output is not a value", [](Builder& to) { return file(to, {value(to, "x", 0)}, {}, {7}); }},
    {"needs a loss or outputs", [](Builder& to) { return file(to, {value(to, "x", 0)}, {}, {}); }},
    {"digest differs", [](Builder& to) { return file(to, {value(to, "x", 0)}); }},
};

TEST(Limits, ModelsMustFail) {
  for (const Broken& broken : kMustFail) {
    Builder to;
    to.Finish(broken.make(to), fb::GraphFileIdentifier());
    const auto result = test::failure([&] { decode_graph(seal(to)); });
    EXPECT_EQ(result.code, Code::kCorruptFile) << broken.reason;
    EXPECT_NE(result.message.find(broken.reason), std::string::npos)
        << broken.reason << " / " << result.message;
  }
}

}  // namespace
}  // namespace cairn::io
