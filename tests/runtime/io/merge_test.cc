#include "runtime/io/safetensors/merge.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/io/safetensors/safetensors.h"
#include "tests/runtime/io/rig.h"
#include "tests/runtime/io/scratch.h"

namespace cairn::io {
namespace {

// A matrix, a table and a stack of matrices, each with an adapter; they need not be used by a layer for that.
struct Model {
  static std::shared_ptr<graph::Graph> graph() {
    auto g = std::make_shared<graph::Graph>();
    const auto ids = g->input("ids", {DType::kI32, {2}}), targets = g->input("targets", {DType::kI32, {2}});
    const auto parameter = [&](const char* name, Shape shape, bool frozen) {
      return g->parameter(name, {DType::kF32, shape},
                          {.frozen = frozen, .init = graph::Init::kNormal, .init_scale = 0.5});
    };
    const auto table = parameter("table", {11, 6}, true);
    for (const char* name : {"table.A", "experts.A"})
      parameter(name, name[0] == 't' ? Shape{11, 2} : Shape{3, 2, 6}, false);
    parameter("table.B", {6, 2}, false);
    parameter("experts", {3, 4, 6}, true);
    parameter("experts.B", {3, 4, 2}, false);
    const auto w = parameter("w", {5, 6}, true);
    const auto a = parameter("w.A", {2, 6}, false), b = parameter("w.B", {5, 2}, false);
    parameter("w.m", {5}, false);
    const auto x = g->op("embedding", {table, ids})[0];
    const auto low = g->op("linear", {g->op("linear", {x, a})[0], b})[0];
    const auto high = g->op("add", {g->op("linear", {x, w})[0], low})[0];
    const auto loss = g->op("linear_cross_entropy", {high, parameter("head", {4, 5}, false), targets});
    g->freeze(loss[0], loss[1], {});
    return g;
  }
};

struct Merge : testing::Test {
  test::Rig rig{Model::graph(), 7};
  test::Scratch scratch;

  std::vector<float> of(const std::string& name) const {
    const int32_t id = rig.session->plan().joint->find(name);
    std::vector<float> values(static_cast<size_t>(rig.session->declared(id).shape.elements()));
    rig.session->read_declared(id, values.data());
    return values;
  }
  static std::vector<float> read(const SafeTensors& file, const char* name) {
    const SafeTensor* tensor = file.find(name);
    EXPECT_NE(tensor, nullptr) << name;
    std::vector<float> values(static_cast<size_t>(tensor->desc.shape.elements()));
    file.read(*tensor, 0, values.data(), values.size() * 4);
    return values;
  }
  static double at(const std::vector<float>& v, int64_t i) {
    return static_cast<double>(v[static_cast<size_t>(i)]);
  }
};

TEST_F(Merge, AddsToMatricesTablesAndStacks) {
  ExportOptions options;
  options.merges = {{"w", "w.A", "w.B", "", 2, false, {}},
                    {"table", "table.A", "table.B", "", 0.5, true, {}},
                    {"experts", "experts.A", "experts.B", "", 3, false, {}}};
  const std::vector<NameRow> names = {{"w", "w", true},
                                      {.ours = "experts", .theirs = "e.0", .stacked = true},
                                      {.ours = "experts", .theirs = "e.1", .stacked = true},
                                      {.ours = "experts", .theirs = "e.2", .stacked = true},
                                      {.ours = "w.A", .theirs = "", .kept = true}};
  export_safetensors(*rig.session, names, scratch / "file", options);
  const SafeTensors file(scratch / "file");
  EXPECT_EQ(file.find("w.A"), nullptr);
  const std::vector<float> w = of("w"), a = of("w.A"), b = of("w.B"), made = read(file, "w");
  for (int64_t o = 0; o < 5; ++o)
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_NEAR(at(made, i * 5 + o),
                  at(w, o * 6 + i) + 2 * (at(b, o * 2) * at(a, i) + at(b, o * 2 + 1) * at(a, 6 + i)), 1e-6);
  const std::vector<float> table = of("table"), ta = of("table.A"), tb = of("table.B"),
                           rows = read(file, "table");
  for (int64_t v = 0; v < 11; ++v)
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_NEAR(at(rows, v * 6 + i),
                  at(table, v * 6 + i) +
                      0.5 * (at(ta, v * 2) * at(tb, i * 2) + at(ta, v * 2 + 1) * at(tb, i * 2 + 1)),
                  1e-6);
  const std::vector<float> stack = of("experts"), ea = of("experts.A"), eb = of("experts.B"),
                           last = read(file, "e.2");
  for (int64_t o = 0; o < 4; ++o)
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_NEAR(at(last, o * 6 + i),
                  at(stack, 48 + o * 6 + i) +
                      3 * (at(eb, 16 + o * 2) * at(ea, 24 + i) + at(eb, 16 + o * 2 + 1) * at(ea, 30 + i)),
                  1e-6);
}

TEST_F(Merge, GivesEachRowItsMagnitude) {
  ExportOptions options;
  options.merges = {{"w", "w.A", "w.B", "w.m", 1, false, {}}};
  export_safetensors(*rig.session, {}, scratch / "file", options);
  const std::vector<float> made = read(SafeTensors(scratch / "file"), "w"), magnitude = of("w.m");
  for (int64_t o = 0; o < 5; ++o) {
    double length = 0;
    for (int64_t i = 0; i < 6; ++i) length += at(made, o * 6 + i) * at(made, o * 6 + i);
    EXPECT_NEAR(std::sqrt(length), std::abs(at(magnitude, o)), 1e-6);
  }
}

// The same adapter, added to the weight in full and to what a format makes of it; their difference is told.
TEST_F(Merge, TellsWhatAFormatCosts) {
  double difference[2] = {-1, -1};
  ExportOptions options;
  options.difference = difference;
  options.merges = {{"w", "w.A", "w.B", "", 1, false, DType::kInt8},
                    {"table", "", "", "", 1, true, DType::kInt8}};
  export_safetensors(*rig.session, {}, scratch / "full", options);
  double largest = 0, sum = 0, told[2] = {difference[0], difference[1]};
  options.dequantise = true;
  export_safetensors(*rig.session, {}, scratch / "rounded", options);
  const SafeTensors full(scratch / "full"), rounded(scratch / "rounded");
  for (const char* name : {"w", "table"}) {
    const std::vector<float> a = read(full, name), b = read(rounded, name);
    for (size_t i = 0; i < a.size(); ++i) {
      const double d = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
      largest = std::max(largest, d);
      sum += d;
    }
  }
  EXPECT_EQ(read(full, "table"), of("table"));
  EXPECT_GT(largest, 0);
  EXPECT_NEAR(told[0], largest, 1e-6);
  EXPECT_NEAR(told[1], sum / 96, 1e-6);
}

TEST_F(Merge, RefusesWhatDoesNotFit) {
  const auto refused = [&](MergeRow row) {
    ExportOptions options;
    options.merges = {std::move(row)};
    return test::failure([&] { export_safetensors(*rig.session, {}, scratch / "file", options); }).message;
  };
  EXPECT_NE(refused({"w", "w.B", "w.A", "", 1, false, {}}).find("do not go with 'w' [5, 6]"),
            std::string::npos);
  EXPECT_NE(refused({"w", "none", "w.B", "", 1, false, {}}).find("'none' is no parameter"),
            std::string::npos);
  EXPECT_NE(refused({"none", "", "", "", 1, false, {}}).find("'none' is no parameter"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(scratch / "file"));
}

}  // namespace
}  // namespace cairn::io
