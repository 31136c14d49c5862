#include "runtime/io/graph_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tests/runtime/io/reseal.h"
#include "tests/runtime/io/samples.h"
#include "tests/runtime/io/scratch.h"
#include "tests/support/seeds.h"

namespace cairn::io {
namespace {

std::string sample() { return test::text_of(encode_graph(*test::sample_graph())); }

TEST(GraphFile, AdaptersComeBackAsTheOpsThatTheyAre) {
  for (const auto kind : {graph::AdapterKind::kDora, graph::AdapterKind::kPissa}) {
    auto before = std::make_shared<graph::Graph>();
    before->adapt({.kind = kind, .rank = 2, .dropout = 0.1});
    const graph::ValueId x = before->input("x", {DType::kF32, {4, 8}});
    const graph::RegionId region = before->region_begin("h0", Policy::kPlannerDecides);
    const graph::ValueId w = before->parameter("m.weight", {DType::kF32, {8, 8}}, {});
    const graph::ValueId y = before->op("linear", {x, w}, {{"activation", std::string("silu")}})[0];
    before->region_end(region);
    const auto loss = before->op("mse", {y, x});
    before->freeze(loss[0], loss[1], {});
    const auto after = decode_graph(encode_graph(*before));
    EXPECT_EQ(after->digest(), before->digest());
    const auto of = [](const graph::Graph& g, const char* name) {
      return g.values()[g.find(name)].parameter;
    };
    EXPECT_TRUE(of(*after, "m.weight").frozen);
    const char* const started =
        kind == graph::AdapterKind::kDora ? "m.lora_magnitude_vector" : "m.lora_A.weight";
    EXPECT_EQ(of(*after, started).init, of(*before, started).init);
    EXPECT_GT(of(*after, started).init, graph::kLastGivenInit);
  }
}

TEST(GraphFile, GivesBackTheSameModel) {
  const auto before = test::sample_graph();
  const auto after = decode_graph(encode_graph(*before));
  EXPECT_TRUE(after->frozen());
  EXPECT_EQ(after->digest(), before->digest());
  ASSERT_EQ(after->values().size(), before->values().size());
  for (size_t i = 0; i < before->values().size(); ++i) {
    const graph::Value &a = after->values()[i], &b = before->values()[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.desc, b.desc);
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.producer, b.producer);
    EXPECT_EQ(a.region, b.region);
    EXPECT_EQ(a.parameter.frozen, b.parameter.frozen);
    EXPECT_EQ(a.parameter.decay, b.parameter.decay);
    EXPECT_EQ(a.parameter.init, b.parameter.init);
    EXPECT_EQ(a.parameter.init_scale, b.parameter.init_scale);
  }
  ASSERT_EQ(after->ops().size(), before->ops().size());
  for (size_t i = 0; i < before->ops().size(); ++i) {
    const graph::Op &a = after->ops()[i], &b = before->ops()[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.code, b.code);
    EXPECT_EQ(a.attrs, b.attrs);
    EXPECT_EQ(a.in, b.in);
    EXPECT_EQ(a.out, b.out);
    EXPECT_EQ(a.region, b.region);
  }
  ASSERT_EQ(after->regions().size(), before->regions().size());
  for (size_t i = 0; i < before->regions().size(); ++i) {
    const graph::Region &a = after->regions()[i], &b = before->regions()[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.parent, b.parent);
    EXPECT_EQ(a.policy, b.policy);
    EXPECT_EQ(a.offload_tier, b.offload_tier);
    EXPECT_EQ(a.depth, b.depth);
  }
  EXPECT_EQ(after->outputs(), before->outputs());
  EXPECT_EQ(after->loss(), before->loss());
  EXPECT_EQ(after->weight(), before->weight());
  EXPECT_EQ(after->notes(), before->notes());
}

TEST(GraphFile, EncodingIsDeterministicAndStable) {
  EXPECT_TRUE(sample() == sample());
  EXPECT_TRUE(test::text_of(encode_graph(*decode_graph(test::bytes_of(sample())))) == sample());
}

TEST(GraphFile, GraphsWithoutALoss) {
  graph::Graph g;
  const auto x = g.input("x", {DType::kBF16, {3}});
  g.freeze(graph::kNone, graph::kNone, {g.op("gelu", {x})[0]});
  const auto after = decode_graph(encode_graph(g));
  EXPECT_FALSE(after->trains());
  EXPECT_EQ(after->digest(), g.digest());
}

// As bits: a digest, and the compiled kernel, hold on to each.
TEST(GraphFile, ListsOfRealNumbers) {
  const auto model = [](std::vector<double> frequencies) {
    graph::Graph g;
    const auto x = g.input("x", {DType::kF32, {1, 3, 4}});
    g.freeze(graph::kNone, graph::kNone,
             {g.op("rope", {x}, {{"heads", int64_t{1}}, {"frequencies", std::move(frequencies)}})[0]});
    return g;
  };
  const graph::Graph g = model({1.0, 0.1});
  const auto after = decode_graph(encode_graph(g));
  EXPECT_EQ(after->ops()[0].attrs, g.ops()[0].attrs);
  EXPECT_EQ(after->digest(), g.digest());
  EXPECT_NE(model({1.0, std::nextafter(0.1, 1)}).digest(), g.digest());
  // One that is no number.
  std::string file = test::text_of(encode_graph(g));
  const double was = 0.1, wrong = std::numeric_limits<double>::quiet_NaN();
  const size_t at = file.find(std::string(reinterpret_cast<const char*>(&was), 8));
  ASSERT_NE(at, std::string::npos);
  std::memcpy(file.data() + at, &wrong, 8);
  const auto result = test::failure([&] { decode_graph(test::bytes_of(test::reseal(file))); });
  EXPECT_EQ(result.code, Code::kCorruptFile);
  EXPECT_NE(result.message.find("number 1 of attribute 'frequencies' is nan"), std::string::npos)
      << result.message;
}

TEST(GraphFile, UnalignedBytesAreRead) {
  const std::string file = sample();
  for (size_t shift = 1; shift < 16; ++shift) {
    const std::string moved = std::string(shift, 'x') + file;
    EXPECT_EQ(decode_graph(test::bytes_of(moved).subspan(shift))->digest(), test::sample_graph()->digest());
  }
}

TEST(GraphFile, WhatCannotBeStoredIsSaid) {
  graph::Graph open;
  EXPECT_EQ(test::failure([&] { encode_graph(open); }).code, Code::kWrongState);
  graph::Graph g;
  graph::CustomOp twice;
  twice.name = "twice";
  twice.inputs = twice.outputs = 1;
  twice.shape = [](std::span<const TensorDesc> in, std::span<TensorDesc> out) {
    out[0] = in[0];
    return true;
  };
  twice.forward = [](std::span<const Tensor>, std::span<const Tensor>, void*) { return true; };
  g.custom(twice);
  const auto x = g.input("x", {DType::kF32, {3}});
  g.freeze(graph::kNone, graph::kNone, {g.op("twice", {x})[0]});
  const auto after = decode_graph(encode_graph(g));
  EXPECT_EQ(after->digest(), g.digest());
  EXPECT_TRUE(after->waits_for_customs());
  EXPECT_TRUE(test::text_of(encode_graph(*after)) == test::text_of(encode_graph(g)));
  graph::CustomOp thrice = twice;
  thrice.name = "thrice";
  EXPECT_EQ(test::failure([&] { after->bind(thrice); }).code, Code::kNotFound);
  after->bind(twice);
  EXPECT_FALSE(after->waits_for_customs());
}

TEST(GraphFile, EveryTruncationAndEveryFlippedBitIsFound) {
  const std::string good = sample();
  for (size_t size = 0; size < good.size(); ++size)
    ASSERT_EQ(test::failure([&] { decode_graph(test::bytes_of(good).first(size)); }).code,
              Code::kCorruptFile);
  std::string bad = good;
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    bad[bit / 8] ^= static_cast<char>(1u << bit % 8);
    ASSERT_EQ(test::failure([&] { decode_graph(test::bytes_of(bad)); }).code, Code::kCorruptFile) << bit;
    bad[bit / 8] = good[bit / 8];
  }
}

// Behind the digest: a flipped bit is an error, or a model that is well-formed and frozen.
TEST(GraphFile, FlippedBitsUnderARightDigestNeverCrash) {
  const std::string good = sample();
  const int stride = support::stride(9);
  int refused = 0;
  for (size_t bit = 0; bit < (good.size() - 16) * 8; bit += static_cast<size_t>(stride)) {
    std::string bad = good;
    bad[bit / 8] ^= static_cast<char>(1u << bit % 8);
    const auto result =
        test::failure([&] { ASSERT_TRUE(decode_graph(test::bytes_of(test::reseal(bad)))->frozen()); });
    ASSERT_TRUE(result.code == Code::kOk || result.code == Code::kCorruptFile) << result.message;
    refused += result.code != Code::kOk;
  }
  EXPECT_GT(refused * stride, static_cast<int>(good.size()));
}

TEST(GraphFile, RandomDamageNeverCrashes) {
  const std::string good = sample();
  std::mt19937 random(1);
  for (int round = 0; round < 4000; round += support::stride(9)) {
    std::string bad = good;
    for (size_t n = random() % 4 + 1; n > 0; --n) bad = test::mutate(bad, random);
    const auto result = test::failure([&] { decode_graph(test::bytes_of(test::reseal(bad))); });
    ASSERT_TRUE(result.code == Code::kOk || result.code == Code::kCorruptFile) << result.message;
  }
}

}  // namespace
}  // namespace cairn::io
