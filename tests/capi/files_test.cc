// Chapter 7: what comes back from files, and what files that are not right say.
#include <fstream>

#include "tests/capi/rig.h"

namespace cairn_test {
namespace {

void spoil(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::trunc) << text; }

TEST(Files, ResumeInTheMiddleOfAnAccumulation) {
  const Folder folder;
  const Devices devices;
  const auto graph = perceptron(devices.instance);
  std::string whole;
  {
    Trainer trainer(devices, graph, CAIRN_PLAN_OPTIONS_INIT, 2);
    for (int i = 0; i < 3; ++i) {
      trainer.write(0.1f * static_cast<float>(i));
      trainer.stepper.micro();
    }
    const std::string note = folder / "note.txt";
    std::ofstream(note) << "hello";
    trainer.stepper.save(folder / "run/step-3", {{"recipe", "mlp"}}, {note.c_str()});
    trainer.write(0.3f);
    trainer.stepper.micro();
    whole = trainer.session.digest();
  }
  EXPECT_TRUE(std::filesystem::exists(folder / "run/step-3/note.txt"));
  const auto checkpoint = cairn::Checkpoint::open(devices.instance, folder / "run");
  EXPECT_NE(checkpoint.directory().find("step-3"), std::string::npos);
  EXPECT_EQ(checkpoint.metadata("recipe"), "mlp");
  EXPECT_EQ(checkpoint.metadata("nothing"), std::nullopt);
  // The graph comes from the checkpoint.
  Trainer trainer(devices, checkpoint.graph(), CAIRN_PLAN_OPTIONS_INIT, 2);
  trainer.stepper.restore(checkpoint);
  EXPECT_EQ(trainer.stepper.report().micro, 1u);
  trainer.write(0.3f);
  EXPECT_EQ(trainer.stepper.micro().outcome, static_cast<uint32_t>(CAIRN_STEP_APPLIED));
  EXPECT_EQ(trainer.session.digest(), whole);
}

// x -> frozen linear -> linear, with a target.
cairn::Graph half_frozen(const cairn::Instance& instance) {
  auto graph = cairn::Graph::create(instance);
  cairn_parameter_options_t frozen = cairn::init_normal(0.2);
  frozen.frozen = 1;
  const cairn::Value x = graph.input("x", {kBatch, kWidth}), target = graph.input("target", {kBatch, kWidth});
  const cairn::Value low = graph.op("linear", {x, graph.parameter("base.weight", {kWidth, kWidth}, frozen)});
  const cairn::Value w = graph.parameter("head.weight", {kWidth, kWidth}, cairn::init_normal(0.2));
  graph.freeze(graph.op("mse", {graph.op("linear", {low, w}), target}));
  return graph;
}

TEST(Files, CheckpointsWithoutTheirFrozenParameters) {
  const Folder folder;
  const Devices devices;
  const auto graph = half_frozen(devices.instance);
  cairn_value_info_t info = CAIRN_VALUE_INFO_INIT;
  for (const char* name : {"base.weight", "head.weight"}) {
    ASSERT_EQ(cairn_graph_value_info(graph.get(), cairn_graph_find(graph.get(), name), &info, nullptr),
              CAIRN_STATUS_OK);
    EXPECT_EQ(info.frozen, name[0] == 'b' ? 1u : 0u);
  }
  Trainer trainer(devices, graph);
  const std::string base = trainer.session.base_digest();
  cairn_save_options_t options = CAIRN_SAVE_OPTIONS_INIT;
  options.without_frozen = 1;
  trainer.write(0.1f);
  trainer.stepper.micro();
  trainer.stepper.save(folder / "c", options);
  EXPECT_EQ(std::string(trainer.session.base_digest()), base);
  const auto checkpoint = cairn::Checkpoint::open(devices.instance, folder / "c");
  Trainer same(devices, graph), other(devices, graph);
  same.stepper.restore(checkpoint);
  EXPECT_EQ(std::string(same.session.digest()), std::string(trainer.session.digest()));
  other.session.write("base.weight", std::vector<float>(kWidth * kWidth, 0.5f));
  Failure failure;
  for (const cairn_status_t refused : {cairn_stepper_restore(other.stepper.get(), checkpoint.get(), failure),
                                       cairn_session_load(other.session.get(), checkpoint.get(), failure)})
    expect_failure(refused, CAIRN_STATUS_INVALID_ARGUMENT, failure, {"'base.weight' has other values", base});
  options.without_frozen = 2;
  const std::string unwritten = folder / "d";
  expect_failure(cairn_stepper_save_as(trainer.stepper.get(), unwritten.c_str(), &options, failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"options.without_frozen"});
  EXPECT_FALSE(std::filesystem::exists(unwritten));
}

TEST(Files, CheckpointsThatAreNot) {
  const Folder folder;
  const Devices devices;
  Failure failure;
  cairn_checkpoint_t* checkpoint = nullptr;
  const auto open = [&](const std::string& path) {
    return cairn_checkpoint_open(devices.instance.get(), path.c_str(), &checkpoint, failure);
  };
  expect_failure(open(folder / "nothing"), CAIRN_STATUS_NOT_FOUND, failure, {"nothing"});
  expect_failure(open(""), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"directory"});
  EXPECT_EQ(cairn_checkpoint_open(devices.instance.get(), nullptr, &checkpoint, failure),
            CAIRN_STATUS_INVALID_ARGUMENT);
  Trainer trainer(devices, perceptron(devices.instance));
  trainer.stepper.save(folder / "c");
  spoil(folder / "c/manifest.cairn", "no manifest");
  expect_failure(open(folder / "c"), CAIRN_STATUS_CORRUPT_FILE, failure, {"/c"});
  EXPECT_EQ(checkpoint, nullptr);
}

TEST(Files, RemovingACheckpoint) {
  const Folder folder;
  const Devices devices;
  Failure failure;
  Trainer trainer(devices, perceptron(devices.instance));
  trainer.stepper.save(folder / "run/step-1");
  std::filesystem::create_directory_symlink(folder / "run/step-1", folder / "link");
  const auto remove = [&](const std::string& path) {
    return cairn_checkpoint_remove(devices.instance.get(), path.c_str(), failure);
  };
  expect_failure(remove(folder / "link"), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"is a link"});
  expect_failure(remove(folder / "run"), CAIRN_STATUS_NOT_FOUND, failure, {"no checkpoint"});
  expect_failure(remove(""), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"directory"});
  EXPECT_EQ(cairn_checkpoint_remove(nullptr, "x", failure), CAIRN_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(cairn_checkpoint_remove(devices.instance.get(), nullptr, failure), CAIRN_STATUS_INVALID_ARGUMENT);
  const auto opened = cairn::Checkpoint::open(devices.instance, folder / "run");
  cairn::Checkpoint::remove(devices.instance, folder / "run/step-1");
  EXPECT_TRUE(std::filesystem::is_empty(folder / "run"));
  trainer.stepper.restore(opened);  // it was open: it can be read on
}

TEST(Files, AFlippedTensorLeavesTheSessionAsItWas) {
  const Folder folder;
  const Devices devices;
  Trainer trainer(devices, perceptron(devices.instance));
  trainer.stepper.save(folder / "c");
  const std::string tensors = folder / "c/tensors.bin";
  {
    std::fstream file(tensors, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);
    file.put('\x55');
  }
  trainer.session.initialise(9);
  const std::string before = trainer.session.digest();
  const auto checkpoint = cairn::Checkpoint::open(devices.instance, folder / "c");
  Failure failure;
  expect_failure(cairn_session_load(trainer.session.get(), checkpoint.get(), failure),
                 CAIRN_STATUS_CORRUPT_FILE, failure, {"layer0.weight"});
  EXPECT_EQ(trainer.session.digest(), before);
  expect_failure(cairn_checkpoint_verify(checkpoint.get(), failure), CAIRN_STATUS_CORRUPT_FILE, failure,
                 {"layer0.weight", folder / "c"});
  trainer.stepper.save(folder / "whole");
  EXPECT_EQ(
      cairn_checkpoint_verify(cairn::Checkpoint::open(devices.instance, folder / "whole").get(), failure),
      CAIRN_STATUS_OK);
  expect_failure(cairn_stepper_restore(trainer.stepper.get(), checkpoint.get(), failure),
                 CAIRN_STATUS_CORRUPT_FILE, failure);
  EXPECT_EQ(trainer.session.digest(), before);
}

TEST(Files, ParametersByName) {
  const Folder folder;
  const Devices devices, others;
  Trainer trainer(devices, perceptron(devices.instance));
  trainer.stepper.save(folder / "c");
  const auto checkpoint = cairn::Checkpoint::open(devices.instance, folder / "c");
  auto reader = cairn::Session::create(
      cairn::Plan::create(perceptron(others.instance, 0, false), others.device), others.device);
  reader.load(checkpoint);
  EXPECT_EQ(reader.digest(), trainer.session.digest());
  const Devices third;
  Trainer stranger(third, language(third.instance));
  const std::string before = stranger.session.digest();
  Failure failure;
  expect_failure(cairn_session_load(stranger.session.get(), checkpoint.get(), failure),
                 CAIRN_STATUS_NOT_FOUND, failure, {"'table'"});
  expect_failure(cairn_stepper_restore(stranger.stepper.get(), checkpoint.get(), failure),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"another model"});
  EXPECT_EQ(stranger.session.digest(), before);
}

TEST(Files, WrongArgumentsOfSave) {
  const Folder folder;
  const Devices devices;
  Trainer trainer(devices, perceptron(devices.instance));
  Failure failure;
  const auto save = [&](const std::string& path, std::vector<cairn_metadata_t> metadata,
                        std::vector<const char*> files) {
    return cairn_stepper_save(trainer.stepper.get(), path.c_str(), metadata.data(), metadata.size(),
                              files.data(), files.size(), failure);
  };
  expect_failure(save(folder / "c", {{"a", "1"}, {"a", "2"}}, {}), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"'a'", "twice"});
  expect_failure(save(folder / "c", {{"a", nullptr}}, {}), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"metadata[0]"});
  expect_failure(save(folder / "c", {}, {nullptr}), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"files[0]"});
  EXPECT_NE(save(folder / "c", {}, {"/nowhere/at/all"}), CAIRN_STATUS_OK);
  EXPECT_NE(failure.message().find("/nowhere/at/all"), std::string::npos) << failure.message();
  expect_failure(save("/proc/cairn", {}, {}), CAIRN_STATUS_IO, failure, {"/proc"});
  EXPECT_TRUE(std::filesystem::is_empty(folder.path)) << "nothing is left of a save that failed";
}

TEST(Files, Safetensors) {
  const Folder folder;
  const Devices devices;
  Trainer trainer(devices, perceptron(devices.instance));
  const std::vector<cairn_name_t> names = {{"layer0.weight", "h.0.mlp", 1, 0}};
  trainer.session.save_safetensors(folder / "w.safetensors", names);
  const std::string digest = trainer.session.digest();
  trainer.session.initialise(5);
  ASSERT_NE(trainer.session.digest(), digest);
  trainer.session.load_safetensors(folder / "w.safetensors", names);
  EXPECT_EQ(trainer.session.digest(), digest);
  Failure failure;
  const auto load = [&](const std::string& path, std::vector<cairn_name_t> rows) {
    return cairn_session_import(trainer.session.get(), path.c_str(), rows.data(), rows.size(), failure);
  };
  expect_failure(load(folder / "w.safetensors", {}), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"layer0.weight"});
  expect_failure(load(folder / "none.safetensors", names), CAIRN_STATUS_NOT_FOUND, failure,
                 {"none.safetensors"});
  expect_failure(load(folder / "w.safetensors", {{nullptr, "h.0.mlp", 0, 0}}), CAIRN_STATUS_INVALID_ARGUMENT,
                 failure, {"names[0]"});
  expect_failure(load(folder / "w.safetensors", {{"layer0.weight", "h.0.mlp", 2, 0}}),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"transposed"});
  expect_failure(load(folder / "w.safetensors", {{"layer0.weight", "h.0.mlp", 1, 2}}),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"names[0].stacked"});
  expect_failure(load(folder / "w.safetensors", {{"layer0.weight", "h.0.mlp", 0, 1}}),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"layer0.weight", "1 stacked tensors are named"});
  const auto save = [&](const std::string& path, std::vector<cairn_name_t> rows) {
    return cairn_session_export(trainer.session.get(), path.c_str(), rows.data(), rows.size(), failure);
  };
  expect_failure(save(folder / "v.safetensors", {{nullptr, "h.0.mlp", 0, 0}}), CAIRN_STATUS_INVALID_ARGUMENT,
                 failure, {"names[0]"});
  // Left out of the file, which an import that asks for it then misses.
  ASSERT_EQ(save(folder / "less.safetensors", {{"layer0.weight", nullptr, 0, 0}}), CAIRN_STATUS_OK);
  expect_failure(load(folder / "less.safetensors", {}), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"layer0.weight"});
  const std::string copied = folder / "w.safetensors";
  const char* const files[] = {copied.c_str()};
  cairn_export_options_t options = CAIRN_EXPORT_OPTIONS_INIT;
  options.directory = 1, options.shard_bytes = 64, options.files = files, options.file_count = 1;
  const auto save_as = [&](const std::string& path) {
    return cairn_session_export_as(trainer.session.get(), path.c_str(), names.data(), names.size(), &options,
                                   failure);
  };
  ASSERT_EQ(save_as(folder / "model"), CAIRN_STATUS_OK) << failure.message();
  const std::string exported = trainer.session.digest();
  trainer.session.initialise(7);
  EXPECT_EQ(load(folder / "model", names), CAIRN_STATUS_OK) << failure.message();
  EXPECT_EQ(trainer.session.digest(), exported);
  expect_failure(save_as(folder / "model"), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"it holds other files"});
  options.dtype = "int8";
  expect_failure(save_as(folder / "other"), CAIRN_STATUS_INVALID_ARGUMENT, failure,
                 {"options.dtype", "int8"});
  options.dtype = nullptr, options.reserved = 1;
  expect_failure(save_as(folder / "other"), CAIRN_STATUS_UNSUPPORTED, failure, {"options"});
  options.reserved = 0, options.file_count = 1, options.files = nullptr;
  expect_failure(save_as(folder / "other"), CAIRN_STATUS_INVALID_ARGUMENT, failure, {"options.files"});
  // The file is not asked for what a row has no name of theirs for: it keeps its value.
  trainer.session.initialise(5);
  const std::string fresh = trainer.session.digest();
  ASSERT_EQ(load(folder / "w.safetensors", {{"layer0.weight", nullptr, 0, 0}}), CAIRN_STATUS_OK);
  EXPECT_NE(trainer.session.digest(), fresh);
  EXPECT_NE(trainer.session.digest(), digest);
  trainer.session.load_safetensors(folder / "w.safetensors", names);
  EXPECT_EQ(trainer.session.digest(), digest);
  expect_failure(save(folder / "no/where/w.safetensors", names), CAIRN_STATUS_IO, failure,
                 {"no/where'", "make it first"});
  EXPECT_FALSE(std::filesystem::exists(folder / "no")) << "a mistyped directory is not made";
  expect_failure(save(folder / "v.safetensors", {{"layer7.weight", "h.7.mlp", 0, 0}}),
                 CAIRN_STATUS_INVALID_ARGUMENT, failure, {"'layer7.weight'"});
  EXPECT_FALSE(std::filesystem::exists(folder / "v.safetensors"));
  spoil(folder / "w.safetensors", "short");
  expect_failure(load(folder / "w.safetensors", names), CAIRN_STATUS_CORRUPT_FILE, failure,
                 {"w.safetensors"});
  EXPECT_EQ(trainer.session.digest(), digest);
}

TEST(Files, GraphsAndInspect) {
  const Folder folder;
  const Devices devices;
  const auto graph = perceptron(devices.instance);
  const std::string path = folder / "graph.cairn";
  graph.save(path);
  const auto back = cairn::Graph::load(devices.instance, path);
  ASSERT_EQ(back.value_count(), graph.value_count());
  for (cairn::Value v = 1; v <= graph.value_count(); ++v) {
    EXPECT_STREQ(back.info(v).name, graph.info(v).name);
    EXPECT_EQ(back.info(v).bytes, graph.info(v).bytes);
    EXPECT_EQ(back.info(v).region, graph.info(v).region);
  }
  Failure failure;
  const auto loaded = back.get();
  expect_failure(cairn_graph_name(loaded, 1, "late", failure), CAIRN_STATUS_WRONG_STATE, failure, {"frozen"});
  EXPECT_EQ(devices.instance.inspect(path).front(), '{');
  cairn_graph_t* none = nullptr;
  spoil(path, "not a graph at all");
  expect_failure(cairn_graph_load(devices.instance.get(), path.c_str(), &none, failure),
                 CAIRN_STATUS_CORRUPT_FILE, failure, {path});
  expect_failure(cairn_graph_load(devices.instance.get(), (folder / "none").c_str(), &none, failure),
                 CAIRN_STATUS_NOT_FOUND, failure, {"none"});
  cairn_text_t* text = nullptr;
  expect_failure(cairn_inspect(devices.instance.get(), path.c_str(), &text, failure),
                 CAIRN_STATUS_CORRUPT_FILE, failure);
  expect_failure(cairn_graph_save(graph.get(), "/proc/cairn/graph", failure), CAIRN_STATUS_IO, failure,
                 {"/proc"});
  expect_failure(cairn_graph_save(graph.get(), (folder / "no/graph.cairn").c_str(), failure), CAIRN_STATUS_IO,
                 failure, {"/no'", "make it first"});
  EXPECT_FALSE(std::filesystem::exists(folder / "no"));
}

}  // namespace
}  // namespace cairn_test
