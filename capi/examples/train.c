/* A complete training run: a small transformer learns to count, inside 70 % of the memory that keeping
 * everything takes. It is saved half way, loaded into a new session, and goes on as if nothing had happened.
 *   cc train.c $(pkg-config --cflags --libs cairn) -o train && ./train [FOLDER for the checkpoint] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cairn/cairn.h"

enum { BATCH = 16, LENGTH = 32, WIDTH = 32, HEADS = 4, BLOCKS = 2, VOCABULARY = 32, STEPS = 60 };

static cairn_error_t* error;
#define CHECK(call) check(call, #call)
static void check(cairn_status_t status, const char* call) {
  if (status == CAIRN_STATUS_OK) return;
  fprintf(stderr, "%s: %s\n%s\n", cairn_status_name(status), cairn_error_message(error), call);
  exit(1);
}

/* ---- the model */

static cairn_value_t parameter(cairn_graph_t* graph, const char* block, const char* name, int64_t rows,
                               int64_t columns) {
  char label[64];
  snprintf(label, sizeof label, "%s%s", block, name);
  const int64_t dims[] = {rows, columns};
  cairn_parameter_options_t options = CAIRN_PARAMETER_OPTIONS_INIT;
  options.init = columns > 0 ? CAIRN_INIT_NORMAL : CAIRN_INIT_CONSTANT;
  options.init_scale = columns > 0 ? 0.08 : 1.0; /* weights; the gains of norms */
  options.no_decay = columns == 0;
  const cairn_tensor_desc_t desc = {label, dims, columns > 0 ? 2u : 1u, CAIRN_F32};
  cairn_value_t value = 0;
  CHECK(cairn_graph_parameter(graph, &desc, &options, &value, error));
  return value;
}

static cairn_value_t op(cairn_graph_t* graph, const char* name, cairn_value_t a, cairn_value_t b,
                        const cairn_attr_t* attr) {
  const cairn_value_t inputs[] = {a, b};
  cairn_value_t value = 0;
  CHECK(cairn_graph_op(graph, name, inputs, b != 0 ? 2 : 1, attr, attr != NULL ? 1 : 0, &value, 1, error));
  return value;
}

/* One block is one region: the planner decides what of it to keep and what to compute again. */
static cairn_value_t add_block(cairn_graph_t* graph, const char* block, cairn_value_t x) {
  const cairn_attr_t heads = {.name = "heads", .integer = HEADS, .kind = CAIRN_ATTR_INTEGER};
  const cairn_attr_t gelu = {.name = "activation", .word = "gelu_tanh", .kind = CAIRN_ATTR_WORD};
  cairn_region_options_t options = CAIRN_REGION_OPTIONS_INIT;
  options.name = block;
  cairn_region_t region;
  CHECK(cairn_graph_region_begin(graph, &options, &region, error));
  cairn_value_t h = op(graph, "rmsnorm", x, parameter(graph, block, ".norm1", WIDTH, 0), NULL);
  h = op(graph, "linear", h, parameter(graph, block, ".qkv", 3 * WIDTH, WIDTH), NULL);
  h = op(graph, "attention", h, 0, &heads);
  h = op(graph, "linear", h, parameter(graph, block, ".out", WIDTH, WIDTH), NULL);
  x = op(graph, "add", x, h, NULL);
  h = op(graph, "rmsnorm", x, parameter(graph, block, ".norm2", WIDTH, 0), NULL);
  h = op(graph, "linear", h, parameter(graph, block, ".up", 4 * WIDTH, WIDTH), &gelu);
  h = op(graph, "linear", h, parameter(graph, block, ".down", WIDTH, 4 * WIDTH), NULL);
  x = op(graph, "add", x, h, NULL);
  CHECK(cairn_graph_region_end(graph, region, error));
  return x;
}

static cairn_graph_t* make_graph(cairn_instance_t* instance) {
  const int64_t dims[] = {BATCH, LENGTH};
  cairn_graph_t* graph = NULL;
  cairn_value_t tokens, targets, x;
  CHECK(cairn_graph_create(instance, &graph, error));
  CHECK(cairn_graph_input(graph, &(cairn_tensor_desc_t){"tokens", dims, 2, CAIRN_I32}, &tokens, error));
  CHECK(cairn_graph_input(graph, &(cairn_tensor_desc_t){"targets", dims, 2, CAIRN_I32}, &targets, error));
  const cairn_value_t table = parameter(graph, "", "embedding", VOCABULARY, WIDTH);
  x = op(graph, "embedding", table, tokens, NULL);
  x = op(graph, "add", x, parameter(graph, "", "position", LENGTH, WIDTH), NULL);
  for (int i = 0; i < BLOCKS; ++i) {
    char block[8];
    snprintf(block, sizeof block, "h%d", i);
    x = add_block(graph, block, x);
  }
  /* The table is the last layer, too: tied. Logits are never all in memory. */
  const cairn_value_t inputs[] = {op(graph, "rmsnorm", x, parameter(graph, "", "norm", WIDTH, 0), NULL),
                                  table, targets};
  cairn_freeze_options_t freeze = CAIRN_FREEZE_OPTIONS_INIT;
  CHECK(cairn_graph_op(graph, "linear_cross_entropy", inputs, 3, NULL, 0, &freeze.loss, 1, error));
  CHECK(cairn_graph_freeze(graph, &freeze, error));
  return graph;
}

/* ---- the task: rows that count up by 1, 2 or 3 from anywhere */

static void make_batch(unsigned step, int32_t* tokens, int32_t* targets) {
  unsigned state = 1u + 2654435761u * step;
  for (int row = 0; row < BATCH; ++row) {
    state = state * 1664525u + 1013904223u;
    const int start = (int)(state >> 16) % VOCABULARY, stride = 1 + (int)(state >> 8) % 3;
    for (int i = 0; i < LENGTH; ++i) {
      tokens[row * LENGTH + i] = (start + i * stride) % VOCABULARY;
      targets[row * LENGTH + i] = (start + (i + 1) * stride) % VOCABULARY;
    }
  }
}

static cairn_step_report_t train(cairn_session_t* session, cairn_stepper_t* stepper, unsigned from,
                                 unsigned to) {
  static int32_t tokens[BATCH * LENGTH], targets[BATCH * LENGTH];
  cairn_step_report_t report = CAIRN_STEP_REPORT_INIT;
  for (unsigned step = from; step < to; ++step) {
    make_batch(step, tokens, targets);
    CHECK(cairn_session_write(session, "tokens", tokens, sizeof tokens, error));
    CHECK(cairn_session_write(session, "targets", targets, sizeof targets, error));
    CHECK(cairn_stepper_micro(stepper, &report, error));
    if (step % 10 == 9)
      printf("step %2llu: loss %.4f, gradient norm %.3f, rate %.4f, %.1f ms\n",
             (unsigned long long)report.step, report.loss, report.gradient_norm, report.rate,
             1e3 * (report.seconds + report.optimizer_seconds));
  }
  return report;
}

/* ---- the run */

static void start(cairn_plan_t* plan, cairn_device_t* device, cairn_session_t** session,
                  cairn_stepper_t** stepper) {
  cairn_stepper_options_t options = CAIRN_STEPPER_OPTIONS_INIT;
  options.rate = 1e-2;
  options.schedule = CAIRN_SCHEDULE_COSINE;
  options.warmup_steps = 5;
  options.total_steps = STEPS;
  CHECK(cairn_session_create(plan, device, session, error));
  CHECK(cairn_stepper_create(*session, &options, stepper, error));
}

int main(int argc, char** argv) {
  char directory[512];
  snprintf(directory, sizeof directory, "%s/example-train", argc > 1 ? argv[1] : ".");
  error = cairn_error_create();
  cairn_instance_t* instance = NULL;
  cairn_device_t* device = NULL;
  CHECK(cairn_instance_create(NULL, &instance, error));
  CHECK(cairn_device_open(instance, "cpu", NULL, &device, error));
  cairn_graph_t* graph = make_graph(instance);

  cairn_plan_options_t plan_options = CAIRN_PLAN_OPTIONS_INIT;
  plan_options.budget_share = 0.7;
  cairn_plan_t* plan = NULL;
  CHECK(cairn_plan_create(graph, device, &plan_options, &plan, error));
  cairn_plan_summary_t summary = CAIRN_PLAN_SUMMARY_INIT;
  CHECK(cairn_plan_summary(plan, &summary, error));
  printf("planned: %.2f of %.2f MB, keeping %.2f MB of activations and recomputing %.2f MB\n",
         (double)summary.peak_bytes[CAIRN_TIER_DEVICE] / 1e6, (double)summary.budget_bytes / 1e6,
         (double)summary.keep_bytes / 1e6, (double)summary.recompute_bytes / 1e6);

  cairn_session_t* session = NULL;
  cairn_stepper_t* stepper = NULL;
  start(plan, device, &session, &stepper);
  CHECK(cairn_session_initialise(session, 42, error));
  train(session, stepper, 0, STEPS / 2);
  CHECK(cairn_stepper_save(stepper, directory, NULL, 0, NULL, 0, error));
  const cairn_step_report_t uninterrupted = train(session, stepper, STEPS / 2, STEPS);
  char digest[33];
  CHECK(cairn_session_digest(session, digest, error));
  cairn_tier_usage_t usage = CAIRN_TIER_USAGE_INIT;
  CHECK(cairn_session_usage(session, CAIRN_TIER_DEVICE, &usage, error));
  printf("measured: %.2f MB\n", (double)usage.peak_bytes / 1e6);
  const int as_planned = usage.peak_bytes == summary.peak_bytes[CAIRN_TIER_DEVICE];
  cairn_stepper_release(stepper);
  cairn_session_release(session);

  printf("again, from the checkpoint\n");
  cairn_checkpoint_t* checkpoint = NULL;
  CHECK(cairn_checkpoint_open(instance, directory, &checkpoint, error));
  start(plan, device, &session, &stepper);
  CHECK(cairn_stepper_restore(stepper, checkpoint, error));
  train(session, stepper, STEPS / 2, STEPS);
  char resumed[33];
  CHECK(cairn_session_digest(session, resumed, error));
  const int same = strcmp(digest, resumed) == 0;
  printf("parameters %s, %s; peak %s\n", digest, same ? "the same to the bit" : "NOT the same",
         as_planned ? "as planned" : "NOT as planned");

  cairn_checkpoint_release(checkpoint);
  cairn_stepper_release(stepper);
  cairn_session_release(session);
  cairn_plan_release(plan);
  cairn_graph_release(graph);
  cairn_device_release(device);
  cairn_instance_release(instance);
  cairn_error_release(error);
  return same && as_planned && uninterrupted.loss < 1.0 ? 0 : 1;
}
