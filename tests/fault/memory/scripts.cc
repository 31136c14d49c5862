// The runs whose allocations fail.
#include <array>
#include <cmath>
#include <fstream>
#include <utility>

#include "tests/fault/memory/script.h"
#include "tests/support/campaign.h"

namespace fault {
namespace {

std::vector<float> wave(size_t count, double pace) {
  std::vector<float> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(std::sin(pace * static_cast<double>(i)));
  return numbers;
}
std::vector<int32_t> cycle(size_t count, int32_t length) {
  std::vector<int32_t> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = static_cast<int32_t>(i * 7) % length;
  return numbers;
}
cairn_attr_t word(const char* name, const char* value) {
  return {.name = name,
          .integer = 0,
          .real = 0,
          .word = value,
          .list = nullptr,
          .list_count = 0,
          .kind = CAIRN_ATTR_WORD};
}
cairn_attr_t integer(const char* name, int64_t value) {
  return {.name = name,
          .integer = value,
          .real = 0,
          .word = nullptr,
          .list = nullptr,
          .list_count = 0,
          .kind = CAIRN_ATTR_INTEGER};
}

}  // namespace

Perceptron::Perceptron(const std::filesystem::path& folder) : Script(folder) {
  constexpr int64_t kRows = 8, kWidth = 16;
  constexpr uint32_t kPolicies[] = {CAIRN_REGION_KEEP, CAIRN_REGION_RECOMPUTE};
  open(1);
  begin_graph();
  const Value first = input("x", {kRows, kWidth}, CAIRN_F32);
  Value x = first;
  for (size_t i = 0; i < 2; ++i) {
    const std::string layer = "layer" + std::to_string(i);
    const Value w = parameter(layer + ".weight", {kWidth, kWidth}, 0.3);
    const Value b = parameter(layer + ".bias", {kWidth}, 0);
    begin(layer, kPolicies[i]);
    x = op("linear", {x, w, b}, {word("activation", "gelu_tanh")}, 2);
    end();
  }
  name(x, "prediction");
  const Value target = input("target", {kRows, kWidth}, CAIRN_F32);
  freeze(op("mse", {x, target}, {}, 2), {x});
  save_graph();

  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.micro_steps = 2;
  const auto made = plan(options);
  const auto run = session(made);
  const auto steps = stepper(run, 2);
  const auto feed = [&](const Slot<cairn_session_t>& to) {
    write(to, "x", wave(kRows * kWidth, 0.3));
    write(to, "target", wave(kRows * kWidth, 0.7));
  };
  feed(run);
  for (const char* which : {"one", "two", "three"}) micro_batch(made, run, steps, 2, which);
  digest(run, "after three micro-batches");
  const auto save = [&](const Slot<cairn_stepper_t>& of, const std::string& to) {
    call(
        "save " + to,
        [=, at = path(to)](cairn_error_t* error) {
          static constexpr cairn_metadata_t kNote = {"recipe", "mlp"};
          return cairn_stepper_save(*of, at.c_str(), &kNote, 1, nullptr, 0, error);
        },
        [=, this] {
          result_of_file(to + "/manifest", path(to) + "/manifest.cairn");
          result_of_file(to + "/tensors", path(to) + "/tensors.bin");
        });
  };
  save(steps, "step-1");
  save(steps, "step-1");
  text("inspect", [=, instance = instance_, of = path("graph")](cairn_text_t** to, cairn_error_t* error) {
    return cairn_inspect(*instance, of.c_str(), to, error);
  });
  const auto loaded = slot(cairn_graph_release);
  call("graph load", [=, instance = instance_, from = path("graph")](cairn_error_t* error) {
    return cairn_graph_load(*instance, from.c_str(), loaded.get(), error);
  });
  const auto checkpoint = slot(cairn_checkpoint_release);
  call("checkpoint open", [=, instance = instance_, from = path("")](cairn_error_t* error) {
    return cairn_checkpoint_open(*instance, from.c_str(), checkpoint.get(), error);
  });
  const auto stored = slot(cairn_graph_release);
  call("checkpoint graph",
       [=](cairn_error_t* error) { return cairn_checkpoint_graph(*checkpoint, stored.get(), error); });
  const auto other = session(made);
  const auto resumed = stepper(other, 2);
  call(
      "restore", [=](cairn_error_t* error) { return cairn_stepper_restore(*resumed, *checkpoint, error); },
      {}, renew(made, other, resumed, 2));
  feed(other);
  micro_batch(made, other, resumed, 2, "four, resumed");
  micro_batch(made, run, steps, 2, "four");
  digest(run, "after four micro-batches");
  digest(other, "resumed");
  call(
      "export",
      [=, to = path("weights.safetensors")](cairn_error_t* error) {
        static constexpr cairn_name_t kNames[] = {{"layer0.weight", "theirs.0", 1, 0}};
        return cairn_session_export(*run, to.c_str(), kNames, 1, error);
      },
      [this] { result_of_file("weights.safetensors", path("weights.safetensors")); });
  const auto third = session(made);
  call(
      "load", [=](cairn_error_t* error) { return cairn_session_load(*third, *checkpoint, error); }, {},
      renew(made, third));
  digest(third, "loaded");
  call(
      "import",
      [=, from = path("weights.safetensors")](cairn_error_t* error) {
        static constexpr cairn_name_t kNames[] = {{"layer0.weight", "theirs.0", 1, 0}};
        return cairn_session_import(*third, from.c_str(), kNames, 1, error);
      },
      {}, renew(made, third));
  digest(third, "imported");
}

Transformer::Transformer(const std::filesystem::path& folder) : Script(folder) {
  constexpr int64_t kBatch = 2, kLength = 4, kWidth = 8, kVocabulary = 16;
  open(1, 1e9);
  begin_graph();
  const Value tokens = input("tokens", {kBatch, kLength}, CAIRN_I32);
  const Value targets = input("targets", {kBatch, kLength}, CAIRN_I32);
  const Value table = parameter("table", {kVocabulary, kWidth}, 0.1);
  const Value places = parameter("places", {kLength, kWidth}, 0.1);
  Value x = op("add", {op("embedding", {table, tokens}), places});
  {
    const std::string block = "h0";
    const auto weight = [&](const std::string& of, int64_t rows, int64_t columns) {
      return parameter(block + of, {rows, columns}, 0.1);
    };
    begin(block);
    begin("attention", CAIRN_REGION_OFFLOAD);
    Value y = op("rmsnorm", {x, parameter(block + ".norm1", {kWidth}, 1)}, {}, 2);
    y = op("linear", {y, weight(".qkv", 3 * kWidth, kWidth)});
    y = op("attention", {y}, {integer("heads", 2)}, 2);
    x = op("add", {x, op("linear", {y, weight(".out", kWidth, kWidth)})});
    end();
    begin("mlp", CAIRN_REGION_RECOMPUTE);
    y = op("rmsnorm", {x, parameter(block + ".norm2", {kWidth}, 1)}, {}, 2);
    y = op("linear", {y, weight(".up", 2 * kWidth, kWidth)});
    y = op("gelu", {y});
    x = op("add", {x, op("linear", {y, weight(".down", kWidth, 2 * kWidth)})});
    end();
    end();
  }
  freeze(op("linear_cross_entropy", {x, table, targets}, {}, 2), {});
  save_graph();

  cairn_plan_options_t options = CAIRN_PLAN_OPTIONS_INIT;
  options.tier_count = 2;
  options.tiers[0] = CAIRN_TIER_HOST;
  options.tiers[1] = CAIRN_TIER_DISK;
  const auto made = plan(options);
  render(made, CAIRN_RENDER_PLAN_JSON, "plan");
  const auto run = session(made);
  const auto steps = stepper(run, 1);
  write(run, "tokens", cycle(kBatch * kLength, kVocabulary));
  write(run, "targets", cycle(kBatch * kLength, kVocabulary));
  for (const char* which : {"one", "two", "three"}) micro_batch(made, run, steps, 1, which);
  digest(run, "trained");
}

Readings::Readings(const std::filesystem::path& folder) : Script(folder) {
  open(1);
  begin_graph();
  call("custom op", [graph = graph_](cairn_error_t* error) {
    cairn_custom_op_t square = CAIRN_CUSTOM_OP_INIT;
    square.name = "square";
    square.inputs = square.outputs = 1;
    square.recomputable = 1;
    square.shape = [](void*, const cairn_tensor_t* in, cairn_tensor_t* out) -> int32_t {
      out[0] = in[0];
      return 0;
    };
    square.forward = [](void*, const cairn_tensor_t* in, const cairn_tensor_t* out, void*) -> int32_t {
      for (int i = 0; i < 16; ++i)
        static_cast<float*>(out[0].data)[i] =
            static_cast<const float*>(in[0].data)[i] * static_cast<const float*>(in[0].data)[i];
      return 0;
    };
    return cairn_graph_custom_op(*graph, &square, error);
  });
  const Value x = input("x", {4, 4}, CAIRN_F32);
  const Value w = parameter("w", {4, 4}, 0.5);
  const Value y = op("linear", {op("square", {x}), w});
  name(y, "y");
  call("value info", [graph = graph_](cairn_error_t* error) {
    cairn_value_info_t info = CAIRN_VALUE_INFO_INIT;
    return cairn_graph_value_info(*graph, 1, &info, error);
  });
  freeze(nullptr, {y});  // no file holds the host's code, so this graph is not saved
  const auto costs = slot(cairn_costs_release);
  call("costs create", [=, device = device_](cairn_error_t* error) {
    return cairn_costs_create(*device, costs.get(), error);
  });
  const auto made = plan(CAIRN_PLAN_OPTIONS_INIT);
  const auto run = session(made);
  const std::vector<float> numbers_in = wave(16, 0.4);
  write(run, "x", numbers_in);
  call("trace", [=](cairn_error_t* error) { return cairn_session_trace(*run, 1, error); });
  const auto mend = [=, device = device_](cairn_error_t* error) {
    cairn_session_release(std::exchange(*run, nullptr));
    cairn_status_t status = cairn_session_create(*made, *device, run.get(), error);
    if (status == 0) status = cairn_session_initialise(*run, 7, error);
    if (status == 0) status = cairn_session_write(*run, "x", numbers_in.data(), 64, error);
    if (status == 0) status = cairn_session_trace(*run, 1, error);
    return status;
  };
  call(
      "run", [=](cairn_error_t* error) { return cairn_session_run(*run, error); }, {}, mend);
  call("costs add run",
       [=](cairn_error_t* error) { return cairn_costs_add_run(*costs, *run, 1e-3, 0, error); });
  const auto out = std::make_shared<std::array<float, 16>>();
  call(
      "read", [=](cairn_error_t* error) { return cairn_session_read(*run, "y", out->data(), 64, error); },
      [=, this] {
        std::string numbers;
        for (const float number : *out) numbers += std::to_string(number) + " ";
        result("y", numbers);
      });
  const auto profile = slot(cairn_text_release);
  call("costs json", [=](cairn_error_t* error) { return cairn_costs_json(*costs, profile.get(), error); });
  const auto again = slot(cairn_costs_release);
  call("costs read", [=, instance = instance_](cairn_error_t* error) {
    return cairn_costs_read(*instance, cairn_text_data(*profile), cairn_text_size(*profile), again.get(),
                            error);
  });

  render(made, CAIRN_RENDER_PROBLEM_JSON, "problem");
  render(made, CAIRN_RENDER_HTML, "html");
  render(made, CAIRN_RENDER_SVG, "svg");
  render(made, CAIRN_RENDER_SWEEP, "sweep");
  render(made, CAIRN_RENDER_REPORT, "report");
  const auto problem = slot(cairn_text_release);
  call("problem text", [=](cairn_error_t* error) {
    return cairn_plan_render(*made, CAIRN_RENDER_PROBLEM_JSON, nullptr, problem.get(), error);
  });
  text("problem solve", [=, instance = instance_](cairn_text_t** to, cairn_error_t* error) {
    return cairn_problem_solve(*instance, cairn_text_data(*problem), cairn_text_size(*problem), 0,
                               CAIRN_RENDER_PLAN_JSON, to, error);
  });
  const std::string words = path("words"), numbers = path("tokens");
  std::ofstream(words) << "one two three four five six seven eight nine ten eleven twelve, and again";
  const auto tokenizer = slot(cairn_tokenizer_release);
  call("tokenizer open", [=, instance = instance_](cairn_error_t* error) {
    return cairn_tokenizer_open(*instance, "bytes", nullptr, tokenizer.get(), error);
  });
  text("encode", [=](cairn_text_t** to, cairn_error_t* error) {
    return cairn_tokenizer_encode(*tokenizer, "a text", 6, to, error);
  });
  text("decode", [=](cairn_text_t** to, cairn_error_t* error) {
    static constexpr int32_t kTokens[] = {97, 98, 99};
    return cairn_tokenizer_decode(*tokenizer, kTokens, 3, to, error);
  });
  call(
      "tokenizer write",
      [=](cairn_error_t* error) {
        return cairn_tokenizer_write(*tokenizer, words.c_str(), numbers.c_str(), error);
      },
      [=, this] { result_of_file("tokens", numbers); });
  const auto dataset = slot(cairn_dataset_release);
  call("dataset open", [=, instance = instance_](cairn_error_t* error) {
    return cairn_dataset_open(*instance, numbers.c_str(), 4, dataset.get(), error);
  });
  const auto batch = std::make_shared<std::array<int32_t, 16>>();
  call(
      "dataset batch",
      [=](cairn_error_t* error) {
        uint32_t rows = 0;
        return cairn_dataset_batch(*dataset, 3, 1, 2, batch->data(), batch->data() + 8, &rows, error);
      },
      [=, this] {
        std::string all;
        for (const int32_t token : *batch) all += std::to_string(token) + " ";
        result("batch", all);
      });
  const std::string model = CAIRN_SOURCE_DIR "/tests/compat/1.0/tokenizer.model";
  const auto bpe = slot(cairn_tokenizer_release);
  call("tokenizer open bpe", [=, instance = instance_](cairn_error_t* error) {
    return cairn_tokenizer_open(*instance, "bpe", model.c_str(), bpe.get(), error);
  });
  text("encode bpe", [=](cairn_text_t** to, cairn_error_t* error) {
    return cairn_tokenizer_encode(*bpe, "a text of words", 15, to, error);
  });
  if (!cairn::support::long_campaign()) return;
  call(
      "tokenizer train",
      [=, instance = instance_, to = path("trained.model")](cairn_error_t* error) {
        return cairn_tokenizer_train(*instance, words.c_str(), 280, to.c_str(), error);
      },
      [this] { result_of_file("trained.model", path("trained.model")); });
}

}  // namespace fault
