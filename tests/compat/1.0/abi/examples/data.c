/* Chapter 8: a text becomes tokens, tokens become batches in an order that depends on the seed alone.
 * usage: data [FOLDER to write into] */
#include <string.h>

#include "example.h"

enum { LENGTH = 16, ROWS = 4 };

int main(int argc, char** argv) {
  char text_path[512], token_path[512];
  snprintf(text_path, sizeof text_path, "%s/example-data.txt", argc > 1 ? argv[1] : ".");
  snprintf(token_path, sizeof token_path, "%s/example-data.tokens", argc > 1 ? argv[1] : ".");
  FILE* text = fopen(text_path, "w");
  EXPECT(text != NULL);
  for (int i = 0; i < 40; ++i) fprintf(text, "stone %d marks the way back.\n", i);
  EXPECT(fclose(text) == 0);

  error = cairn_error_create();
  cairn_instance_t* instance = NULL;
  cairn_tokenizer_t* tokenizer = NULL;
  cairn_dataset_t* dataset = NULL;
  CHECK(cairn_instance_create(NULL, &instance, error));
  CHECK(cairn_tokenizer_open(instance, "bytes", NULL, &tokenizer, error));
  CHECK(cairn_tokenizer_write(tokenizer, text_path, token_path, error));
  CHECK(cairn_dataset_open(instance, token_path, LENGTH, &dataset, error));

  cairn_dataset_info_t info = CAIRN_DATASET_INFO_INIT;
  CHECK(cairn_dataset_info(dataset, &info, error));
  printf("%llu tokens, %llu windows of %u\n", (unsigned long long)info.tokens,
         (unsigned long long)info.windows, info.length);

  int32_t inputs[ROWS * LENGTH], targets[ROWS * LENGTH], again[ROWS * LENGTH];
  uint32_t rows = 0;
  CHECK(cairn_dataset_batch(dataset, 7, 3, ROWS, inputs, targets, &rows, error));
  CHECK(cairn_dataset_batch(dataset, 7, 0, ROWS, again, targets, &rows, error));
  CHECK(cairn_dataset_batch(dataset, 7, 3, ROWS, again, targets, &rows, error));
  EXPECT(rows == ROWS && memcmp(inputs, again, sizeof inputs) == 0);
  for (int i = 0; i + 1 < LENGTH; ++i) EXPECT(targets[i] == inputs[i + 1]);

  cairn_text_t* words = NULL;
  CHECK(cairn_tokenizer_decode(tokenizer, inputs, LENGTH, &words, error));
  printf("a window: '%s'\n", cairn_text_data(words));

  cairn_text_release(words);
  cairn_dataset_release(dataset);
  cairn_tokenizer_release(tokenizer);
  cairn_instance_release(instance);
  cairn_error_release(error);
  return 0;
}
