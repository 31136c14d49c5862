// The same as finetune.c in C++: an adapter for a model file, trained in this process within a budget, on texts of this program.
//   c++ -std=c++17 finetune.cpp $(pkg-config --cflags --libs cairn) -o finetune && ./finetune FOLDER MODEL [BUDGET in MiB]
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "cairn/cairn.hpp"

namespace {

// Questions and the answers that the model is to give.
const std::pair<const char*, const char*> kRows[] = {
    {"what marks the way?", "a cairn"},
    {"what is a cairn?", "a pile of stones"},
    {"who goes back?", "whoever finds the stones"},
};
constexpr unsigned kSteps = 60;

void run(const std::string& folder, const char* path, uint64_t budget) {
  const auto instance = cairn::Instance::create();
  cairn::ModelOptions options;  // the same words that `cairn train MODEL` takes
  options.setting("lora", "8").setting("lora_targets", "*_proj").setting("seq", "64").setting("batch", "2");
  options.setting("rate", "1e-2").budget_bytes(budget).seed(7);
  auto model = cairn::Model::open(instance, path, options);
  const cairn_model_info_t info = model.info();
  std::printf("%llu of %llu parameters learn; planned: %llu bytes of %llu\n",
              static_cast<unsigned long long>(info.trainable_parameters),
              static_cast<unsigned long long>(info.parameters),
              static_cast<unsigned long long>(info.planned_bytes[CAIRN_TIER_DEVICE]),
              static_cast<unsigned long long>(budget));

  for (const auto& [prompt, answer] : kRows) model.add(prompt, answer);
  const double first = model.train(1).loss;
  const cairn_model_report_t last = model.train(kSteps - 1);
  std::printf("loss %.3f, then %.3f at step %llu\n", first, last.loss,
              static_cast<unsigned long long>(last.step));
  if (!(last.loss < first)) std::exit(1);

  cairn::Sampling likeliest;
  likeliest.temperature = 0;
  std::printf("%s -> %s\n", kRows[0].first, model.generate(kRows[0].first, 16, likeliest).c_str());
  model.save(folder + "/example-finetune-cpp");
  model.export_as(folder + "/example-adapter-cpp", "adapter");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: finetune FOLDER MODEL [BUDGET in MiB]\n");
    return 2;
  }
  try {
    run(argv[1], argv[2], static_cast<uint64_t>(argc > 3 ? std::atoi(argv[3]) : 64) << 20);
  } catch (const cairn::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
