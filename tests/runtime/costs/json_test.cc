#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "samples.h"

namespace cairn::costs {
namespace {

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("the sample has no " + from);
  return text.replace(at, from.size(), to);
}

std::string failure(const std::string& text, Code wanted = Code::kInvalidArgument) {
  try {
    from_json(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), wanted) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(CostsJson, AProfileReadsBackAsWritten) {
  const std::string text = to_json(sample_profile());
  const Table table = from_json(text);
  ASSERT_TRUE(table.profile.has_value());
  EXPECT_FALSE(table.model.has_value());
  EXPECT_EQ(to_json(*table.profile), text);
  EXPECT_EQ(table.profile->machine.processor, "Abacus \"9000\"");
  EXPECT_EQ(table.profile->ops.at("gelu(f32[8]) -> (f32[8])").count, 12);
  ASSERT_NE(table.profile->find_link("host", 0), nullptr);
  EXPECT_EQ(table.profile->find_link("host", 0)->link.in_bytes_per_second, 4e9);
}

TEST(CostsJson, RatesBeyondWholeNumbersReadBack) {
  Profile p = sample_profile();
  p.set_link({{"disk", 2e-5, 0x1p64, 3.7e19, 0.5, 0}, 0x1p70});
  const Table table = from_json(to_json(p));
  const LinkCost* const link = table.profile->find_link("disk", 0x1p70);
  ASSERT_NE(link, nullptr);
  EXPECT_EQ(link->link.out_bytes_per_second, 0x1p64);
  EXPECT_EQ(link->link.in_bytes_per_second, 3.7e19);
}

TEST(CostsJson, AnEmptyProfileIsOne) {
  const Table table = from_json(to_json(Profile{}));
  EXPECT_TRUE(table.profile->ops.empty());
  EXPECT_TRUE(table.profile->links.empty());
}

TEST(CostsJson, ADeviceModel) {
  const Table table = from_json(kModel);
  ASSERT_TRUE(table.model.has_value());
  EXPECT_EQ(table.model->name, "Engine No. 2");
  EXPECT_EQ(table.model->memory_bytes, 1000000);
  EXPECT_TRUE(table.model->separate_memory);
  ASSERT_EQ(table.model->links.size(), 1u);
  EXPECT_EQ(table.model->links[0].in_bytes_per_second, 2e6);
}

// With a disk beside the model's host link, and rates of the host's own.
std::string with_disk(const std::string& more) {
  return changed(kModel, "\"links\": [",
                 "\"links\": [{\"tier\": \"disk\", \"latency_seconds\": 0, \"out_bytes_per_second\": 1e5, "
                 "\"in_bytes_per_second\": 2e5, \"both_ways_factor\": 0.5" +
                     more + "}, ");
}

TEST(CostsJson, TheHostMayHaveRatesOfItsOwnForTheDisk) {
  EXPECT_FALSE(from_json(with_disk("")).model->host_disk);
  const Table both =
      from_json(with_disk(", \"host_in_bytes_per_second\": 8e5, \"host_out_bytes_per_second\": 5e5"));
  ASSERT_TRUE(both.model->host_disk);
  EXPECT_EQ(both.model->host_disk->in_bytes_per_second, 8e5);
  EXPECT_EQ(both.model->host_disk->out_bytes_per_second, 5e5);
  EXPECT_EQ(both.model->host_disk->both_ways_factor, 0.5);
  EXPECT_EQ(both.model->links[0].in_bytes_per_second, 2e5) << "the device's are what they were";
  const Table one = from_json(with_disk(", \"host_in_bytes_per_second\": 8e5"));
  EXPECT_EQ(one.model->host_disk->out_bytes_per_second, 1e5) << "left out: the link's";
  for (const auto& [text, message] : {
           std::pair(", \"host_in_bytes_per_second\": 0",
                     "links[0].host_in_bytes_per_second: must be above 0"),
           std::pair(", \"host_out_bytes_per_second\": -1", "links[0].host_out_bytes_per_second: must be"),
           std::pair(", \"host_out_bytes_per_second\": 9e4",
                     "links[0].host_out_bytes_per_second: must not be below the link's own rate, 100000"),
       })
    EXPECT_NE(failure(with_disk(text)).find(message), std::string::npos) << failure(with_disk(text));
  const std::string host =
      changed(kModel, "\"tier\": \"host\"", "\"tier\": \"host\", \"host_in_bytes_per_second\": 9e9");
  EXPECT_NE(failure(host).find("only the disk has a rate of the host's own"), std::string::npos)
      << failure(host);
}

TEST(CostsJson, BadProfilesNameThePlace) {
  const std::string good = to_json(sample_profile());
  struct Case {
    const char *from, *to, *message;
  };
  const Case cases[] = {
      {"\"threads\": 3", "\"threads\": -3", "machine.threads: must not be negative"},
      {"\"threads\": 3", "\"threads\": 99999999999", "machine.threads: must not be above"},
      {"\"isa\": \"beads\"", "\"isa\": 1", "machine.isa: not a string"},
      {"\"isa\": \"beads\", ", "", "machine.isa is missing"},
      {"\"launch_seconds\": 1e-06", "\"launch_seconds\": -1",
       "launch_seconds: must be finite and not negative"},
      {"\"tier\": \"host\"", "\"tier\": \"attic\"", "links[0].tier: unknown tier 'attic'"},
      {"\"both_ways_factor\": 0.5", "\"both_ways_factor\": 0", "links[0].both_ways_factor: must be above 0"},
      {"\"both_ways_factor\": 0.5", "\"both_ways_factor\": 1.5",
       "links[0].both_ways_factor: must not be above 1"},
      {"\"median_seconds\": 0.003", "\"median_seconds\": \"x\"", "ops[0].median_seconds: not a number"},
      {"\"count\": 12", "\"count\": 1.5", "ops[0].count: not a 64-bit integer"},
      {"\"count\": 12", "\"count\": 12, \"count\": 12", "ops[0]: the key 'count' appears twice"},
      {"linear(f32[8, 8]) -> (f32[8, 8])", "gelu(f32[8]) -> (f32[8])",
       "ops[1].signature: the signature 'gelu"},
  };
  for (const Case& c : cases)
    EXPECT_NE(failure(changed(good, c.from, c.to)).find(c.message), std::string::npos)
        << c.to << ": " << failure(changed(good, c.from, c.to));
}

TEST(CostsJson, BadModelsNameThePlace) {
  struct Case {
    const char *from, *to, *message;
  };
  const Case cases[] = {
      {"\"name\": \"Engine No. 2\"", "\"name\": \"\"", "name: is empty"},
      {"\"memory_bytes\": 1000000", "\"memory_bytes\": 0", "memory_bytes: must be above 0"},
      {"\"f32_flops_per_second\": 1e9", "\"f32_flops_per_second\": 0",
       "f32_flops_per_second: must be above 0"},
      {"\"separate_memory\": true", "\"separate_memory\": 1", "separate_memory: not true or false"},
      {"\"out_bytes_per_second\": 1e6", "\"out_bytes_per_second\": 0",
       "links[0].out_bytes_per_second: must be"},
      {"\"sources\": [\"a drawing of 1849\"]", "\"sources\": [5]", "sources[0]: not a string"},
  };
  for (const Case& c : cases)
    EXPECT_NE(failure(changed(kModel, c.from, c.to)).find(c.message), std::string::npos)
        << c.to << ": " << failure(changed(kModel, c.from, c.to));
}

TEST(CostsJson, OtherTexts) {
  EXPECT_NE(failure("", Code::kCorruptFile).find("not JSON"), std::string::npos);
  EXPECT_NE(failure("[]", Code::kCorruptFile).find("not an object"), std::string::npos);
  EXPECT_NE(failure("{}").find("format is missing"), std::string::npos);
  EXPECT_NE(failure(R"({"format": "cairn.plan/1"})", Code::kCorruptFile).find("cairn.plan/1"),
            std::string::npos);
  std::string deep = "{\"format\": ";
  deep.append(100000, '[');
  EXPECT_NE(failure(deep, Code::kCorruptFile).find("not JSON"), std::string::npos);
}

}  // namespace
}  // namespace cairn::costs
