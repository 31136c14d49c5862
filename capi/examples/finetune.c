/* Chapter 10: an adapter for a model file, trained in this process within a budget, on texts of this program.
 * usage: finetune FOLDER to write into, MODEL (its directory, or a GGUF file) [BUDGET in MiB] */
#include <string.h>

#include "example.h"

/* Questions and the answers that the model is to give. */
static const char* const kRows[][2] = {
    {"what marks the way?", "a cairn"},
    {"what is a cairn?", "a pile of stones"},
    {"who goes back?", "whoever finds the stones"},
};
enum { kCount = sizeof kRows / sizeof kRows[0], kSteps = 60 };

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: finetune FOLDER MODEL [BUDGET in MiB]\n");
    return 2;
  }
  char adapter[1024], checkpoint[1024];
  snprintf(adapter, sizeof adapter, "%s/example-adapter", argv[1]);
  snprintf(checkpoint, sizeof checkpoint, "%s/example-finetune", argv[1]);
  error = cairn_error_create();
  cairn_instance_t* instance = NULL;
  CHECK(cairn_instance_create(NULL, &instance, error));

  /* The same words that `cairn train MODEL` takes. */
  static const char* const settings[] = {"lora=8", "lora_targets=*_proj", "seq=64", "batch=2", "rate=1e-2"};
  cairn_model_options_t options = CAIRN_MODEL_OPTIONS_INIT;
  options.settings = settings;
  options.setting_count = sizeof settings / sizeof settings[0];
  options.budget_bytes = (uint64_t)(argc > 3 ? atoi(argv[3]) : 64) << 20;
  options.seed = 7;
  cairn_model_t* model = NULL;
  CHECK(cairn_model_open(instance, argv[2], &options, &model, error));

  cairn_model_info_t info = CAIRN_MODEL_INFO_INIT;
  CHECK(cairn_model_describe(model, &info, error));
  printf("%llu parameters, of which %llu learn; planned: %llu bytes of %llu\n",
         (unsigned long long)info.parameters, (unsigned long long)info.trainable_parameters,
         (unsigned long long)info.planned_bytes[CAIRN_TIER_DEVICE], (unsigned long long)options.budget_bytes);
  EXPECT(info.trainable_parameters < info.parameters);
  EXPECT(info.planned_bytes[CAIRN_TIER_DEVICE] <= options.budget_bytes);

  for (int i = 0; i < kCount; ++i) CHECK(cairn_model_add(model, kRows[i][0], kRows[i][1], error));
  cairn_model_report_t first = CAIRN_MODEL_REPORT_INIT, last = CAIRN_MODEL_REPORT_INIT;
  CHECK(cairn_model_train(model, 1, &first, error));
  CHECK(cairn_model_train(model, kSteps - 1, &last, error));
  printf("loss %.3f at step %llu, %.3f at step %llu\n", first.loss, (unsigned long long)first.step, last.loss,
         (unsigned long long)last.step);
  EXPECT(last.loss < first.loss && last.step == kSteps);

  cairn_sampling_t likeliest = CAIRN_SAMPLING_INIT;
  likeliest.temperature = 0;
  cairn_text_t* answer = NULL;
  CHECK(cairn_model_generate(model, kRows[0][0], 16, &likeliest, &answer, error));
  printf("%s -> %s\n", kRows[0][0], cairn_text_data(answer));
  cairn_text_release(answer);

  /* A checkpoint, which training goes on from, and the adapter alone, as PEFT has it. */
  CHECK(cairn_model_save(model, checkpoint, error));
  CHECK(cairn_model_export(model, adapter, "adapter", error));
  printf("saved in %s and %s\n", checkpoint, adapter);

  cairn_model_release(model);
  cairn_instance_release(instance);
  cairn_error_release(error);
  return 0;
}
