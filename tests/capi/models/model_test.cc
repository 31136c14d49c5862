// Chapter 10: models from files. The library of models is the command's, so this is what programs see of it.
#include <filesystem>
#include <thread>

#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

const std::string kModel = std::string(CAIRN_SOURCE_DIR) + "/tests/golden/data/objectives/model";

cairn::ModelOptions tiny() {
  cairn::ModelOptions options;
  options.setting("seq", "64").setting("batch", "2").setting("rate", "1e-2").seed(7);
  return options;
}

// The call fails with this status, and says these words.
template <class Call>
void expect_error(Call&& call, cairn_status_t status, const std::string& words) {
  try {
    call();
    ADD_FAILURE() << "it did not fail; wanted: " << words;
  } catch (const cairn::Error& error) {
    EXPECT_EQ(error.status(), status) << error.what();
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

struct ModelTest : testing::Test {
  Devices devices;
  cairn::Model open(const cairn::ModelOptions& options = tiny()) {
    return cairn::Model::open(devices.instance, kModel, options);
  }
  static void add_rows(cairn::Model& model) {
    model.add("what marks the way?", "a cairn");
    model.add_row(R"({"prompt": "what is a cairn?",
                      "completion": "a pile of stones"})");
  }
};

TEST_F(ModelTest, LearnsItsRowsAndAnswers) {
  auto model = open();
  add_rows(model);
  const double first = model.train(1).loss;
  const cairn_model_report_t last = model.train(29);
  EXPECT_LT(last.loss, 0.2 * first);
  EXPECT_EQ(last.step, 30u);
  cairn::Sampling likeliest;
  likeliest.temperature = 0;
  EXPECT_EQ(model.generate("what marks the way?", 16, likeliest), "a cairn");
  EXPECT_EQ(model.generate("what marks the way?", 3, likeliest), "a c");
}

TEST_F(ModelTest, TheSameBitsWithinABudget) {
  const uint64_t all = open().info().planned_bytes[CAIRN_TIER_DEVICE];
  std::vector<double> losses[2];
  for (const bool within : {false, true}) {
    auto model = open(within ? tiny().budget_bytes(all * 9 / 10) : tiny());
    add_rows(model);
    if (within) EXPECT_LE(model.info().planned_bytes[CAIRN_TIER_DEVICE], all * 9 / 10);
    for (int step = 0; step < 4; ++step) losses[within].push_back(model.train(1).loss);
  }
  EXPECT_EQ(losses[0], losses[1]);
  expect_error([&] { open(tiny().budget_bytes(1000)); }, CAIRN_STATUS_OVER_BUDGET, "smallest budget");
}

TEST_F(ModelTest, RowsMayComeLater) {
  auto model = open();
  expect_error([&] { model.train(1); }, CAIRN_STATUS_INVALID_ARGUMENT, "there is no row");
  add_rows(model);
  model.train(1);
  model.add("who goes back?", "whoever finds the stones");
  EXPECT_EQ(model.train(1).step, 2u);
  model.add_row("{\"prompt\": \"a\"}");
  expect_error([&] { model.train(1); }, CAIRN_STATUS_INVALID_ARGUMENT, "line 4");
}

TEST_F(ModelTest, SaysWhatIsWrong) {
  expect_error([&] { cairn::Model::open(devices.instance, "/nowhere"); }, CAIRN_STATUS_INVALID_ARGUMENT,
               "/nowhere");
  expect_error([&] { open(tiny().setting("sek", "3")); }, CAIRN_STATUS_INVALID_ARGUMENT,
               "unknown option 'sek'; did you mean");
  expect_error([&] { open(tiny().device("abacus")); }, CAIRN_STATUS_INVALID_ARGUMENT, "abacus");
}

TEST_F(ModelTest, TwoAtOnceEachInItsThread) {
  const auto learn = [&](double* loss) {
    auto model = open();
    add_rows(model);
    *loss = model.train(5).loss;
  };
  double one = 0, two = 1;
  std::thread other(learn, &one);
  learn(&two);
  other.join();
  EXPECT_EQ(one, two);
}

TEST_F(ModelTest, SavesWhatTheCommandGoesOnWith) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "cairn-model-test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  auto model = open();
  add_rows(model);
  model.train(2);
  model.save((folder / "run").string());
  EXPECT_TRUE(std::filesystem::exists(folder / "run/step-00000002/manifest.cairn"));
  model.export_as((folder / "hf").string(), "hf");
  EXPECT_TRUE(std::filesystem::exists(folder / "hf/model.safetensors"));
  EXPECT_NO_THROW(cairn::Model::open(devices.instance, (folder / "hf").string(), tiny()));
  std::filesystem::remove_all(folder);
}

TEST_F(ModelTest, LearnsOnAGgufFileAsOnTheDirectory) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "cairn-model-gguf-test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const std::string file = (folder / "model.gguf").string();
  open().export_as(file, "gguf");
  double losses[2];
  for (const bool of_file : {false, true}) {
    auto model = cairn::Model::open(devices.instance, of_file ? file : kModel, tiny().setting("lora", "4"));
    add_rows(model);
    losses[of_file] = model.train(3).loss;
    if (of_file) model.export_as((folder / "adapter.gguf").string(), "gguf-adapter");
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_TRUE(std::filesystem::exists(folder / "adapter.gguf"));
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  expect_error([&] { cairn::Model::open(devices.instance, file, tiny()); }, CAIRN_STATUS_CORRUPT_FILE,
               "the file is cut short");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace cairn_test
