/* Chapter 7: a checkpoint and a safetensors file; a model that predicts with the parameters of one that
 * trained. usage: files [FOLDER to write into] */
#include <string.h>

#include "model.h"

int main(int argc, char** argv) {
  char checkpoint_path[512], weights_path[512];
  snprintf(checkpoint_path, sizeof checkpoint_path, "%s/example-files", argc > 1 ? argv[1] : ".");
  snprintf(weights_path, sizeof weights_path, "%s/example-files.safetensors", argc > 1 ? argv[1] : ".");
  error = cairn_error_create();
  cairn_instance_t* instance = NULL;
  cairn_device_t* device = NULL;
  cairn_plan_t* plan = NULL;
  cairn_session_t* session = NULL;
  cairn_stepper_t* stepper = NULL;
  CHECK(cairn_instance_create(NULL, &instance, error));
  CHECK(cairn_device_open(instance, "cpu", NULL, &device, error));
  cairn_graph_t* graph = make_model(instance, 1);
  CHECK(cairn_plan_create(graph, device, NULL, &plan, error));
  CHECK(cairn_session_create(plan, device, &session, error));
  CHECK(cairn_session_initialise(session, 1, error));
  CHECK(cairn_stepper_create(session, NULL, &stepper, error));

  static float x[BATCH * IN], target[BATCH * OUT];
  make_batch(0, x, target);
  CHECK(cairn_session_write(session, "x", x, sizeof x, error));
  CHECK(cairn_session_write(session, "target", target, sizeof target, error));
  CHECK(cairn_stepper_micro(stepper, NULL, error));
  char digest[33], loaded_digest[33];
  CHECK(cairn_session_digest(session, digest, error));

  const cairn_metadata_t note = {"task", "sum and difference"};
  CHECK(cairn_stepper_save(stepper, checkpoint_path, &note, 1, NULL, 0, error));
  CHECK(cairn_session_export(session, weights_path, NULL, 0, error));
  cairn_stepper_release(stepper);
  cairn_session_release(session);
  cairn_plan_release(plan);
  cairn_graph_release(graph);

  cairn_checkpoint_t* checkpoint = NULL;
  CHECK(cairn_checkpoint_open(instance, checkpoint_path, &checkpoint, error));
  printf("a checkpoint about: %s\n", cairn_checkpoint_metadata(checkpoint, "task"));
  EXPECT(strcmp(cairn_checkpoint_metadata(checkpoint, "task"), "sum and difference") == 0);
  EXPECT(cairn_checkpoint_metadata(checkpoint, "weather") == NULL);

  graph = make_model(instance, 0);
  CHECK(cairn_plan_create(graph, device, NULL, &plan, error));
  CHECK(cairn_session_create(plan, device, &session, error));
  CHECK(cairn_session_load(session, checkpoint, error));
  CHECK(cairn_session_digest(session, loaded_digest, error));
  EXPECT(strcmp(digest, loaded_digest) == 0);
  CHECK(cairn_session_initialise(session, 2, error));
  CHECK(cairn_session_import(session, weights_path, NULL, 0, error));
  CHECK(cairn_session_digest(session, loaded_digest, error));
  EXPECT(strcmp(digest, loaded_digest) == 0);
  CHECK(cairn_session_write(session, "x", x, sizeof x, error));
  CHECK(cairn_session_run(session, error));
  CHECK(cairn_session_read(session, "prediction", target, sizeof target, error));
  printf("it predicts %.3f for %.3f + %.3f\n", target[0], x[0], x[1]);

  cairn_text_t* json = NULL;
  CHECK(cairn_inspect(instance, checkpoint_path, &json, error));
  printf("%.60s...\n", cairn_text_data(json));

  cairn_text_release(json);
  cairn_session_release(session);
  cairn_plan_release(plan);
  cairn_graph_release(graph);
  cairn_checkpoint_release(checkpoint);
  cairn_device_release(device);
  cairn_instance_release(instance);
  cairn_error_release(error);
  return 0;
}
