#include "runtime/costs/rate_source.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "rate_samples.h"
#include "runtime/base/error.h"
#include "runtime/costs/model.h"

namespace cairn::costs {
namespace {

namespace fs = std::filesystem;

// A folder of its own, and requests for machines that no other test asks for: a process measures each once.
struct RateSource : testing::Test {
  RateSource() {
    std::string path = (fs::temp_directory_path() / "cairn-rates-XXXXXX").string();
    folder = ::mkdtemp(path.data());
  }
  ~RateSource() override { fs::remove_all(folder); }

  RateRequest request(const std::string& processor, std::string_view how = kRatesCache) {
    RateRequest made;
    made.machine = sample_rates().machine;
    made.machine.processor = processor + folder.string();
    made.how = how;
    made.directory = (folder / "made" / "cairn").string();
    made.measure = [this] {
      ++measured;
      return sample_rates();
    };
    return made;
  }
  static fs::path file_of(const RateRequest& of) {
    return fs::path(of.directory) / rates_file_name(of.machine);
  }
  // As a process that was not there before.
  static std::shared_ptr<const Table> elsewhere(RateRequest of) {
    of.directory += "/.";
    return find_rates(of);
  }
  void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  fs::path folder;
  int measured = 0;
};

TEST_F(RateSource, MeasuredOnceAndKept) {
  const RateRequest wanted = request("a");
  const auto first = find_rates(wanted);
  EXPECT_EQ(first->origin.source, "measured");
  EXPECT_EQ(first->origin.path, file_of(wanted));
  EXPECT_EQ(first->origin.notice, "");
  EXPECT_EQ(first->rates->machine.processor, wanted.machine.processor);
  EXPECT_EQ(find_rates(wanted), first);
  const auto later = elsewhere(wanted);
  EXPECT_EQ(later->origin.source, "cached");
  EXPECT_EQ(to_json(*later->rates), to_json(*first->rates));
  EXPECT_EQ(measured, 1);
  // Nothing else is left in the folder.
  EXPECT_EQ(std::distance(fs::directory_iterator(wanted.directory), {}), 1);
}

TEST_F(RateSource, EachMachineHasAFileOfItsOwn) {
  const RateRequest wanted = request("b");
  std::set<std::string> names = {rates_file_name(wanted.machine)};
  for (auto change : {+[](Machine& m) { m.processor += "+"; }, +[](Machine& m) { m.isa = "sve"; },
                      +[](Machine& m) { m.threads = 3; }, +[](Machine& m) { m.cairn = "9.9.10"; }}) {
    Machine other = wanted.machine;
    change(other);
    EXPECT_TRUE(names.insert(rates_file_name(other)).second);
  }
  Machine larger = wanted.machine;
  larger.memory_bytes += 1;  // says nothing of its rates
  EXPECT_FALSE(names.insert(rates_file_name(larger)).second);
}

TEST_F(RateSource, WhatIsBrokenOrForeignIsMeasuredOver) {
  Rates other = sample_rates();
  other.machine.processor = "another";
  Rates older = sample_rates();
  const struct {
    const char* name;
    std::function<std::string(const Machine&)> text;
    const char* says;
  } rows[] = {{"empty", [](const Machine&) { return std::string(); }, "not JSON"},
              {"cut", [](const Machine&) { return to_json(sample_rates()).substr(0, 99); }, "not JSON"},
              {"foreign", [&](const Machine&) { return to_json(other); }, "another machine"},
              {"older",
               [&](const Machine& m) {
                 older.machine = m;
                 older.machine.cairn = "0.1";
                 return to_json(older);
               },
               "version 0.1, this is 9.9.9"},
              {"large", [](const Machine&) { return std::string(2 << 20, ' '); }, "above the 1048576"}};
  for (const auto& row : rows) {
    const RateRequest wanted = request(row.name);
    write(file_of(wanted), row.text(wanted.machine));
    const auto table = find_rates(wanted);
    EXPECT_EQ(table->origin.source, "measured") << row.name;
    EXPECT_NE(table->origin.notice.find("measured again"), std::string::npos) << table->origin.notice;
    EXPECT_NE(table->origin.notice.find(row.says), std::string::npos) << table->origin.notice;
    EXPECT_EQ(elsewhere(wanted)->origin.source, "cached") << row.name;
  }
}

TEST_F(RateSource, WhereNothingCanBeKept) {
  RateRequest wanted = request("c");
  write(folder / "file", "");
  wanted.directory = (folder / "file" / "cairn").string();  // below a file there is no folder, whoever asks
  const auto table = find_rates(wanted);
  EXPECT_EQ(table->origin.source, "measured");
  EXPECT_EQ(table->origin.path, "");
  EXPECT_NE(table->origin.notice.find("for this process only"), std::string::npos) << table->origin.notice;
  EXPECT_EQ(find_rates(wanted), table);
  EXPECT_EQ(measured, 1);
}

TEST_F(RateSource, WhereTheEnvironmentSays) {
  const auto find = [&](const char* name, const char* cache, const char* home) {
    const char* const names[] = {"XDG_CACHE_HOME", "HOME"};
    const char* const values[] = {cache, home};
    std::optional<std::string> before[2];
    for (int i : {0, 1}) {
      if (const char* old = std::getenv(names[i])) before[i] = old;
      values[i] == nullptr ? ::unsetenv(names[i]) : ::setenv(names[i], values[i], 1);
    }
    RateRequest wanted = request(name);
    wanted.directory = "";
    const RateOrigin origin = find_rates(wanted)->origin;
    for (int i : {0, 1}) before[i] ? ::setenv(names[i], before[i]->c_str(), 1) : ::unsetenv(names[i]);
    return origin;
  };
  const std::string cache = folder / "x", home = folder / "h", missing = folder / "nobody";
  std::filesystem::create_directory(home);
  EXPECT_TRUE(find("xdg", cache.c_str(), home.c_str()).path.starts_with(cache + "/cairn/rates-"));
  EXPECT_TRUE(find("home", nullptr, home.c_str()).path.starts_with(home + "/.cache/cairn/rates-"));
  EXPECT_TRUE(find("relative", "here", home.c_str()).path.starts_with(home + "/.cache/cairn/rates-"));
  for (const auto& [name, none] : {std::pair("none", find("none", nullptr, nullptr)),
                                   std::pair("no home", find("no home", nullptr, missing.c_str()))}) {
    EXPECT_EQ(none.path, "") << name;
    EXPECT_NE(none.notice.find("neither $XDG_CACHE_HOME nor $HOME"), std::string::npos) << none.notice;
  }
  EXPECT_FALSE(std::filesystem::exists(missing));
}

TEST_F(RateSource, ModelMeasureAndFile) {
  EXPECT_EQ(find_rates(request("d", kRatesModel)), nullptr);
  EXPECT_EQ(measured, 0);
  const RateRequest wanted = request("d");
  find_rates(wanted);
  const auto anew = find_rates(request("d", kRatesMeasure));
  EXPECT_EQ(anew->origin.source, "measured");
  EXPECT_EQ(measured, 2);
  const auto file = find_rates(request("d", file_of(wanted).string()));
  EXPECT_EQ(file->origin.source, "file");
  EXPECT_EQ(file->origin.path, file_of(wanted));
  EXPECT_EQ(measured, 2);
}

TEST_F(RateSource, AFileThatIsNamedIsRightOrAnError) {
  const auto failure = [&](const std::string& text) {
    const fs::path path = folder / "named.json";
    if (!text.empty()) write(path, text);
    try {
      find_rates(request("e", path.string()));
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(text.empty() ? "named.json" : ""), std::string::npos);
      return error.code();
    }
    return Code::kOk;
  };
  EXPECT_EQ(failure(""), Code::kNotFound);
  EXPECT_EQ(failure("{"), Code::kCorruptFile);
  EXPECT_EQ(failure(to_json(sample_rates())), Code::kInvalidArgument);  // of another machine
  EXPECT_EQ(measured, 0);
}

TEST_F(RateSource, ABusyMachineHasTheModelsRates) {
  RateRequest wanted = request("f");
  wanted.measure = [&]() -> std::optional<Rates> {
    ++measured;
    return std::nullopt;
  };
  const auto table = find_rates(wanted);
  EXPECT_EQ(table->origin.source, "model");
  EXPECT_FALSE(table->rates.has_value());
  EXPECT_NE(table->origin.notice.find("busy"), std::string::npos);
  EXPECT_FALSE(fs::exists(file_of(wanted)));
  EXPECT_EQ(find_rates(wanted), table);
  EXPECT_EQ(measured, 1);
  device::DeviceInfo info;
  info.f32_flops_per_second = 10;
  info.memory_bytes_per_second = 10;
  const Model busy(info, table), plain(info, nullptr);
  EXPECT_EQ(busy.seconds({.op = "linear", .work = {50, 1}, .signature = {}}).seconds,
            plain.seconds({.op = "linear", .work = {50, 1}, .signature = {}}).seconds);
  EXPECT_EQ(busy.host_link(0), plain.host_link(0));
}

// Both begin before either has measured; the second one waits, and finds what the first one kept.
TEST_F(RateSource, TwoProcessesAtOnceMeasureOnce) {
  RateRequest wanted = request("g");
  const fs::path count = folder / "count";
  wanted.measure = [&] {
    std::ofstream(count, std::ios::app) << 'm';
    ::usleep(200'000);
    return sample_rates();
  };
  pid_t children[2];
  for (pid_t& child : children) {
    child = ::fork();
    if (child == 0) {
      const auto table = find_rates(wanted);
      ::_exit(table != nullptr && table->rates && table->origin.notice.empty() ? 0 : 1);
    }
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(fs::file_size(count), 1u);
  EXPECT_EQ(find_rates(wanted)->origin.source, "cached");
}

}  // namespace
}  // namespace cairn::costs
