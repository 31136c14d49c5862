/*
 * cairn.h - train neural networks inside a memory budget, from any language.
 *
 * This header is all that the library promises. Its chapters:
 *   1. Status, errors, texts      what every call returns
 *   2. Instance and devices       where work runs
 *   3. Graph                      values, ops, parameters, regions
 *   4. Plan                       every byte decided before anything runs
 *   5. Session                    memory taken, values written and read, runs
 *   6. Stepper                    micro-batches, accumulation, the optimizer's update
 *   7. Files                      checkpoints, models, safetensors
 *   8. Data                       text, tokens, batches
 *
 * Rules that hold for every function
 *   Errors     Fallible calls return a cairn_status_t and take a cairn_error_t* last, which may be NULL. Out params are
 *              untouched unless the status is CAIRN_STATUS_OK. After a failed call every object is as it was before, or
 *              is poisoned and says so in each later call; releasing is always legal. No call aborts, exits, throws,
 *              prints, or changes global state. INVALID_ARGUMENT: the caller must change the arguments;
 *              OUT_OF_MEMORY: free something and call again; INTERNAL: a bug of ours, please report.
 *              The errors: line of a function names those it adds to INVALID_ARGUMENT, OUT_OF_MEMORY and INTERNAL.
 *   Ownership  create, open, load and functions with out_* handles give one reference, to be released by the caller. A
 *              call that stores a handle retains it itself, so the order of releases never matters. release(NULL) is
 *              nothing. Pointers returned by accessors are borrowed from the handle they were asked of, and live as
 *              long as it does. Data passed in is copied before the call returns, unless its comment says otherwise.
 *   Threads    const in a handle's type means: may be called from several threads at once. Calls with a handle that is
 *              not const need that no other call with it runs at the same time (external order). retain and release
 *              may be called from any thread. cairn_session_cancel may be called at any time from any thread.
 *   Blocking   Calls do not wait for queued work unless their blocks: line says so.
 *   Growth     Structs with struct_size are set up by their _INIT macro. A smaller struct_size than the library's
 *              leaves the missing fields zero, and zero means the default; a larger one is accepted if all bytes the
 *              library does not know are zero, and is UNSUPPORTED otherwise. Enums and status codes only grow.
 *   Units      Sizes are bytes, times are seconds, unless the name says otherwise. Strings are UTF-8, ended by NUL.
 * In full: ownership.md, errors.md, threading.md, memory.md, versioning.md in capi/docs.
 */
#ifndef CAIRN_H_
#define CAIRN_H_

#include <stddef.h>
#include <stdint.h>

#include "cairn_config.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CAIRN_VERSION_MAJOR 1
#define CAIRN_VERSION_MINOR 0
#define CAIRN_VERSION_PATCH 0

/* 1. Status, errors, texts ---------------------------------------------------------------------------------------- */

typedef int32_t cairn_status_t;
enum {
  CAIRN_STATUS_OK = 0,
  CAIRN_STATUS_INVALID_ARGUMENT = 1,
  CAIRN_STATUS_WRONG_STATE = 2,   /* not now: the message names the state and the one that is needed */
  CAIRN_STATUS_OUT_OF_MEMORY = 3, /* the system gave no memory; see cairn_error_memory_fault */
  CAIRN_STATUS_OVER_BUDGET = 4,   /* no plan fits the budget; the fault names the smallest that does */
  CAIRN_STATUS_UNSUPPORTED = 5,   /* valid, but this build, device or version cannot */
  CAIRN_STATUS_NOT_FOUND = 6,
  CAIRN_STATUS_CORRUPT_FILE = 7,  /* truncated, changed or foreign bytes; use another file */
  CAIRN_STATUS_IO = 8,            /* the system refused reading or writing; the message names path and cause */
  CAIRN_STATUS_DEVICE_LOST = 9,   /* the device is gone until the process ends */
  CAIRN_STATUS_CANCELLED = 10,    /* cairn_session_cancel was called */
  CAIRN_STATUS_NON_FINITE = 11,   /* a number that must be finite is not */
  CAIRN_STATUS_INTERNAL = 12
};

/* Name of a code, "OVER_BUDGET"; "UNKNOWN" for others. threads: any. Static. since: 1.0 */
CAIRN_API const char* cairn_status_name(cairn_status_t status);

/* Tiers: where bytes live. */
enum { CAIRN_TIER_DEVICE = 0, CAIRN_TIER_HOST = 1, CAIRN_TIER_DISK = 2 };

/* An error object is made once and reused: each failing call overwrites it, a succeeding call leaves it alone. Its text
 * is preallocated (1 KiB; longer messages are cut), so reporting OUT_OF_MEMORY allocates nothing. */
typedef struct cairn_error cairn_error_t;

/* A new, empty error object; NULL without memory. owns: caller. threads: any. since: 1.0 */
CAIRN_API cairn_error_t* cairn_error_create(void);
CAIRN_API void cairn_error_retain(cairn_error_t* error);
CAIRN_API void cairn_error_release(cairn_error_t* error);
/* Code and message of the last failure; OK and "" before any. borrows: until the object is used again. since: 1.0 */
CAIRN_API cairn_status_t cairn_error_status(const cairn_error_t* error);
CAIRN_API const char* cairn_error_message(const cairn_error_t* error);

/* What was asked of memory, with OUT_OF_MEMORY and OVER_BUDGET. All in bytes. */
typedef struct cairn_memory_fault {
  size_t struct_size;
  uint64_t requested_bytes;
  uint64_t in_use_bytes;
  uint64_t budget_bytes;
  uint64_t smallest_budget_bytes; /* OVER_BUDGET: the smallest budget that succeeds; 0: unknown */
  uint32_t tier;                  /* CAIRN_TIER_* */
  uint32_t reserved;
  char region[128];               /* what forms the peak: region or op; may be empty */
} cairn_memory_fault_t;
#define CAIRN_MEMORY_FAULT_INIT {sizeof(cairn_memory_fault_t), 0, 0, 0, 0, 0, 0, {0}}
/* Fills out_fault; NOT_FOUND if the last failure was not about memory. since: 1.0 */
CAIRN_API cairn_status_t cairn_error_memory_fault(const cairn_error_t* error, cairn_memory_fault_t* out_fault);

/* A text or bytes made by the library. data is ended by NUL, which size does not count. */
typedef struct cairn_text cairn_text_t;
CAIRN_API void cairn_text_retain(cairn_text_t* text);
CAIRN_API void cairn_text_release(cairn_text_t* text);
/* borrows: as long as the text lives. threads: const. since: 1.0 */
CAIRN_API const char* cairn_text_data(const cairn_text_t* text);
CAIRN_API size_t cairn_text_size(const cairn_text_t* text);

/* 2. Instance and devices ------------------------------------------------------------------------------------------ */

/* Version of the library in use, "1.0.0"; and major * 10000 + minor * 100 + patch. threads: any. since: 1.0 */
CAIRN_API const char* cairn_version(void);
CAIRN_API uint32_t cairn_version_number(void);

/* Memory for tensors: arenas, host tier, staging. allocate returns bytes aligned to alignment (a power of two) or NULL;
 * release gets the same sizes. A block that is not aligned is released at once, and the call that needed it fails with
 * INVALID_ARGUMENT. Both are called from any thread and must not call cairn. Must outlive the instance and everything
 * made from it. Small bookkeeping objects use the C++ heap. */
typedef struct cairn_allocator {
  size_t struct_size;
  void* user;
  void* (*allocate)(void* user, size_t bytes, size_t alignment);
  void (*release)(void* user, void* block, size_t bytes, size_t alignment);
} cairn_allocator_t;
#define CAIRN_ALLOCATOR_INIT {sizeof(cairn_allocator_t), NULL, NULL, NULL}

enum { CAIRN_LOG_INFO = 0, CAIRN_LOG_WARNING = 1 };
/* An instance holds the host's hooks. Two instances do not see each other. log gets notes and warnings; NULL: they are
 * dropped. It is called on the thread of the call that has a message, by several threads at once if several call; message is
 * borrowed for the call. It must not throw; an exception is dropped. log_user must outlive the instance and
 * everything made from it. */
typedef struct cairn_instance_options {
  size_t struct_size;
  const cairn_allocator_t* allocator; /* NULL: the system's; copied */
  void (*log)(void* user, int32_t level, const char* message);
  void* log_user;
} cairn_instance_options_t;
#define CAIRN_INSTANCE_OPTIONS_INIT {sizeof(cairn_instance_options_t), NULL, NULL, NULL}

typedef struct cairn_instance cairn_instance_t;
/* Makes an instance; options may be NULL. owns: caller. threads: any. errors: UNSUPPORTED (unknown options). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_instance_create(const cairn_instance_options_t* options,
                                                               cairn_instance_t** out_instance, cairn_error_t* error);
CAIRN_API void cairn_instance_retain(cairn_instance_t* instance);
CAIRN_API void cairn_instance_release(cairn_instance_t* instance);

typedef struct cairn_device_info {
  size_t struct_size;
  char name[64];         /* as for cairn_device_open */
  char description[192]; /* processor, instruction sets */
  uint64_t memory_bytes; /* that this process may use: where control groups (containers) or limits of the process
                            (RLIMIT_AS, RLIMIT_DATA) allow the host less than the machine has, the least of them */
  uint32_t threads;
  uint32_t fast_bf16;    /* 1: bf16 products are faster than float32 */
  char isa[32];          /* instruction set in use: "amx", "avx512_bf16", "avx512", "avx2", "portable"; on AArch64
                            "sve_bf16", "sve", "neon_bf16", "neon", "portable"; of a GPU its architecture, "sm_90" */
  char disk_access[16];  /* how a disk tier in $TMPDIR or /tmp would move its bytes, found out by trying: "direct", past the
                            system's page cache; "buffered", through it, where the file system cannot; "memory": it lies
                            on tmpfs or ramfs, whose bytes are memory themselves; "none": no file can be made there */
} cairn_device_info_t;
#define CAIRN_DEVICE_INFO_INIT {sizeof(cairn_device_info_t), {0}, {0}, 0, 0, 0, {0}, {0}}
/* Device number index of this machine, from 0. The environment variable CAIRN_ISA, read once, makes the CPU's kernels use
 * a lower instruction set than the best; other instruction sets make other bits. errors: NOT_FOUND past the last,
 * INVALID_ARGUMENT (CAIRN_ISA is no instruction set, or none of this processor). threads: const. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_instance_device(const cairn_instance_t* instance, size_t index,
                                                               cairn_device_info_t* out_info, cairn_error_t* error);

typedef struct cairn_device_options {
  size_t struct_size;
  uint32_t threads;              /* 0: all processors; the bits of a run depend on it */
  uint32_t verify;               /* 1: check ordering, lifetimes and races of all work (slow; for debugging) */
  double link_bytes_per_second;  /* CPU: throttles host-tier copies, to stand in for a link; 0: none */
  const char* disk_directory;    /* for the disk tier; NULL: $TMPDIR or /tmp */
  const char* rates;             /* what plans without costs take the device's rates from. "cache": measured by the first
                                    plan that wants them, in less than a second (a GPU: some three), and kept in
                                    $XDG_CACHE_HOME/cairn or $HOME/.cache/cairn for this processor or GPU, instruction
                                    set, number of threads and version; "measure": measured again, and kept; "model":
                                    nothing is measured and no file read, so that predicted seconds, and plans, depend on
                                    nothing but the model; else the path of a file that was kept. NULL: as the environment
                                    variable CAIRN_RATES says, without it "cache" */
} cairn_device_options_t;
#define CAIRN_DEVICE_OPTIONS_INIT {sizeof(cairn_device_options_t), 0, 0, 0.0, NULL, NULL}

typedef struct cairn_device cairn_device_t;
/* Opens "cpu", "reference" (slow, obvious kernels: the oracle) or "cuda:N". options may be NULL.
 * errors: NOT_FOUND (no such device; lists those known), UNSUPPORTED (there is none here, with the reason), OUT_OF_MEMORY (the
 * system does not give options.threads threads), INVALID_ARGUMENT (CAIRN_ISA, see cairn_instance_device). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_device_open(cairn_instance_t* instance, const char* name,
                                                           const cairn_device_options_t* options,
                                                           cairn_device_t** out_device, cairn_error_t* error);
CAIRN_API void cairn_device_retain(cairn_device_t* device);
CAIRN_API void cairn_device_release(cairn_device_t* device);

/* 3. Graph ---------------------------------------------------------------------------------------------------------- */

/* Element types. CAIRN_DYNAMIC8 and CAIRN_UDYNAMIC8 are of optimizer states alone ("w/m", "w/v" of adamw8): each 256 values
 * in row-major order are a block of 260 bytes, 256 codes and their float32 scale; a code is one of 256 numbers of [-1, 1] or
 * [0, 1], the dynamic map of Dettmers et al. (2022). The last block is padded to 256. CAIRN_SPLIT: see parameters of
 * cairn_plan_options_t. */
enum { CAIRN_F32 = 0, CAIRN_BF16 = 1, CAIRN_F16 = 2, CAIRN_F64 = 3, CAIRN_I32 = 4, CAIRN_I64 = 5, CAIRN_U8 = 6,
       CAIRN_DYNAMIC8 = 8, CAIRN_UDYNAMIC8 = 9, CAIRN_SPLIT = 10 };

typedef uint32_t cairn_value_t;  /* a value of one graph; 0 is none */
typedef uint32_t cairn_region_t; /* a region of one graph; 0 is none */

/* A tensor's type: dims are row-major, slowest first. Frozen layout. */
typedef struct cairn_tensor_desc {
  const char* name;
  const int64_t* dims;
  uint32_t rank; /* at most 8 */
  uint32_t dtype;
} cairn_tensor_desc_t;

/* A named attribute of an op. Frozen layout. kind says which field is read. */
enum {
  CAIRN_ATTR_INTEGER = 0,
  CAIRN_ATTR_REAL = 1,
  CAIRN_ATTR_WORD = 2,
  CAIRN_ATTR_LIST = 3, /* of integers */
  CAIRN_ATTR_REALS = 4
};
typedef struct cairn_attr {
  const char* name;
  int64_t integer;
  double real;
  const char* word;
  const int64_t* list;
  uint32_t list_count; /* of list, or of reals */
  uint32_t kind;
  const double* reals;
} cairn_attr_t;

typedef struct cairn_graph cairn_graph_t;
/* An empty graph, to be built node by node, frozen once, and then immutable. owns: caller. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_graph_create(cairn_instance_t* instance, cairn_graph_t** out_graph,
                                                            cairn_error_t* error);
CAIRN_API void cairn_graph_retain(cairn_graph_t* graph);
CAIRN_API void cairn_graph_release(cairn_graph_t* graph);

/* A value the host writes before each run. errors: WRONG_STATE (frozen). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_graph_input(cairn_graph_t* graph, const cairn_tensor_desc_t* desc,
                                                           cairn_value_t* out_value, cairn_error_t* error);

/* TRUNCATED_NORMAL: a normal distribution cut off at two deviations; init_scale is the one before that. ORTHOGONAL: the
 * tensor as a matrix [first dimension, all others], whose rows, or columns where these are fewer, are orthonormal times
 * init_scale; it has two dimensions or more. */
enum {
  CAIRN_INIT_CONSTANT = 0,
  CAIRN_INIT_NORMAL = 1,
  CAIRN_INIT_UNIFORM = 2,
  CAIRN_INIT_TRUNCATED_NORMAL = 3,
  CAIRN_INIT_ORTHOGONAL = 4
};
typedef struct cairn_parameter_options {
  size_t struct_size;
  double init_scale;  /* the constant, the standard deviation, the bound, or the factor */
  uint32_t init;      /* CAIRN_INIT_* */
  uint32_t frozen;    /* 1: no gradient, no optimizer state */
  uint32_t no_decay;  /* 1: weight decay does not apply (biases, norms) */
  uint32_t reserved;
} cairn_parameter_options_t;
#define CAIRN_PARAMETER_OPTIONS_INIT {sizeof(cairn_parameter_options_t), 0.0, 0, 0, 0, 0}
/* A trainable tensor (float32 or float64). Using it in several ops ties them. options may be NULL: zeros.
 * errors: WRONG_STATE (frozen graph). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_graph_parameter(cairn_graph_t* graph, const cairn_tensor_desc_t* desc,
                                                               const cairn_parameter_options_t* options,
                                                               cairn_value_t* out_value, cairn_error_t* error);

enum { CAIRN_RESIDENT_STATISTIC = 3, CAIRN_RESIDENT_CACHE = 4 };
/* A value that keeps its numbers from run to run and gets no gradient. kind: CAIRN_RESIDENT_*. An applied step moves a
 * STATISTIC (op running_mean), float32 or float64; evaluation and skipped steps do not. Checkpoints hold it. A run changes a
 * CACHE (op append), of any real dtype; no checkpoint holds it. cairn_session_initialise makes it `fill` everywhere; hosts read
 * and write it as they do parameters. errors: WRONG_STATE (frozen graph). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_graph_resident(cairn_graph_t* graph, const cairn_tensor_desc_t* desc,
                                                              uint32_t kind, double fill, cairn_value_t* out_value,
                                                              cairn_error_t* error);

/* Adapters: small matrices that learn in place of frozen weights. RSLORA: scaled by alpha / sqrt(rank), not alpha / rank. DORA: the
 * rows of the adapted weight have learnt norms. PISSA: begins with the weight's largest singular values, which the weight then
 * has no more. */
enum { CAIRN_ADAPTER_LORA = 0, CAIRN_ADAPTER_RSLORA = 1, CAIRN_ADAPTER_DORA = 2, CAIRN_ADAPTER_PISSA = 3 };
/* Patterns name modules: the weights' names without ".weight". * stands for any text, ? for one character, and what a name ends with
 * after a dot will do; a comma is between patterns. NULL is "". */
typedef struct cairn_adapter {
  size_t struct_size;
  double alpha;        /* 0: rank */
  double dropout;      /* of the adapter's input, [0, 1): 0 where nothing is trained */
  const char* targets; /* "": every linear and grouped_linear; tables only by name, nothing inside of a loss */
  const char* except;  /* patterns of what gets none */
  const char* saved;   /* patterns of modules, or of what they are in, that train as they are */
  const char* ranks;   /* "PATTERN=8,...": ranks of some; the last that matches counts */
  const char* alphas;  /* "PATTERN=16,..." */
  uint32_t rank;       /* at least 1 */
  uint32_t kind;       /* CAIRN_ADAPTER_* */
} cairn_adapter_t;
#define CAIRN_ADAPTER_INIT {sizeof(cairn_adapter_t), 0.0, 0.0, NULL, NULL, NULL, NULL, NULL, 8, 0}
/* From here on ops whose weights the rule names get an adapter, and cairn_graph_freeze freezes every parameter but those of
 * adapters and those of modules that are saved. New parameters of module M: "M.lora_A.weight" [rank, in],
 * "M.lora_B.weight" [out, rank], with "M.lora_magnitude_vector" [out] for DORA; of a table "M.lora_embedding_A" [rows, rank],
 * "M.lora_embedding_B" [width, rank]; of experts [E, rank, in] and [E, out, rank]. A rule is for parameters that are used by one op.
 * cairn_session_initialise and cairn_session_import start what is made of the weights (DORA, PISSA).
 * errors: INVALID_ARGUMENT (a number out of range; at the op: a module named twice, a weight used twice; at the freezing of a graph
 * that trains: a pattern that matches nothing), WRONG_STATE (frozen graph). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_graph_adapt(cairn_graph_t* graph, const cairn_adapter_t* rule,
                                                           cairn_error_t* error);

/* Adds an op by name. inputs: in the order of the op's row; 0 for an optional one left out; trailing ones may be missing.
 * out_values has room for out_count values; missing outputs are 0; fewer than the op makes may be asked for. Shapes,
 * dtypes and attributes are checked now: INVALID_ARGUMENT names op, operand and both shapes, NOT_FOUND an unknown op.
 * errors: NOT_FOUND, WRONG_STATE (frozen). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_graph_op(cairn_graph_t* graph, const char* op, const cairn_value_t* inputs,
                                                        size_t input_count, const cairn_attr_t* attrs, size_t attr_count,
                                                        cairn_value_t* out_values, size_t out_count,
                                                        cairn_error_t* error);

/* An op that cairn_graph_op knows. The texts live as long as the library; words in them are separated by blanks. */
typedef struct cairn_op_info {
  size_t struct_size;
  const char* name;
  const char* inputs;      /* operands in order; "?" after a name: may be left out */
  const char* outputs;     /* "?" after a name: made only where the description says so */
  const char* attributes;  /* "name:type", type i integer, f real, s word, l list of integers, r list
                              of reals; "!" after it: required */
  const char* description; /* what it computes, shapes, defaults. x[.., C]: any leading dimensions */
  const char* amp_class;   /* what mixed precision makes of it where no rule says otherwise: cairn_amp_class_describe */
} cairn_op_info_t;
#define CAIRN_OP_INFO_INIT {sizeof(cairn_op_info_t), NULL, NULL, NULL, NULL, NULL, NULL}
/* Op number index, from 0. errors: NOT_FOUND past the last. threads: any. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_op_describe(size_t index, cairn_op_info_t* out_info, cairn_error_t* error);

/* Gives a value a name of its own (unique in the graph). errors: WRONG_STATE. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_graph_name(cairn_graph_t* graph, cairn_value_t value, const char* name,
                                                          cairn_error_t* error);

/* A tensor as a custom op's callback sees it. data: NULL in shape(), and for operands left out. Frozen layout. */
typedef struct cairn_tensor {
  void* data;
  int64_t dims[8];
  uint32_t rank;
  uint32_t dtype;
} cairn_tensor_t;

/* The host's own op, which this graph knows by its name. A callback returns 0, or another number if it failed: the call
 * during which it ran then returns that number, or INVALID_ARGUMENT if it is no cairn_status_t. workspace_bytes returns less
 * than 0 if it failed (INVALID_ARGUMENT). shape fills rank, dims and dtype of the outputs and is called when the op is added.
 * forward and backward run on a thread of cairn's; they must not call cairn, and with recomputable = 1 must be deterministic
 * and free of side effects. backward gets in = inputs, outputs, output gradients (data NULL: zero) and fills out = input gradients
 * (data NULL: not wanted); NULL: no gradient. user must live as long as the graph and every plan and session made from it:
 * release_user says when they are gone. A failing run poisons its session. */
typedef struct cairn_custom_op {
  size_t struct_size;
  const char* name;
  uint32_t inputs;  /* 1..4 */
  uint32_t outputs; /* 1..4 */
  uint32_t recomputable;
  uint32_t reserved;
  void* user;
  int32_t (*shape)(void* user, const cairn_tensor_t* in, cairn_tensor_t* out);
  int64_t (*workspace_bytes)(void* user, const cairn_tensor_t* in); /* NULL: none */
  int32_t (*forward)(void* user, const cairn_tensor_t* in, const cairn_tensor_t* out, void* workspace);
  int32_t (*backward)(void* user, const cairn_tensor_t* in, const cairn_tensor_t* out, void* workspace);
  /* Says why a callback failed, for the message of the failing call. It is called on the thread of the callback, right
   * after it, and its text is copied at once. It may return NULL. NULL: the message has the callback's status alone. */
  const char* (*failure_words)(void* user);
  /* Called once, from any thread, when the graph and all that was made from it are gone; not where cairn_graph_custom_op
   * failed: then user is the caller's as before. NULL: nothing is called. */
  void (*release_user)(void* user);
} cairn_custom_op_t;
#define CAIRN_CUSTOM_OP_INIT \
  {sizeof(cairn_custom_op_t), NULL, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL}
/* Makes an op known to a graph; op is copied, user is not. A graph that was loaded (cairn_graph_load,
 * cairn_checkpoint_graph) knows its custom ops by their names alone: this gives the one of that name its callbacks, before a
 * plan is made of the graph; a plan of one that lacks them is NOT_FOUND and names it. errors: WRONG_STATE (frozen),
 * NOT_FOUND (a loaded graph: no op of that name waits), INVALID_ARGUMENT (it takes or makes something else). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_graph_custom_op(cairn_graph_t* graph, const cairn_custom_op_t* op,
                                                               cairn_error_t* error);

/* What happens to the activations of a region between forward and backward. */
enum {
  CAIRN_REGION_PLANNER_DECIDES = 0,
  CAIRN_REGION_KEEP = 1,
  CAIRN_REGION_RECOMPUTE = 2,
  CAIRN_REGION_OFFLOAD = 3
};
typedef struct cairn_region_options {
  size_t struct_size;
  const char* name;  /* unique among its siblings; the full path joins names by '/' */
  uint32_t policy;   /* CAIRN_REGION_* */
  uint32_t tier;     /* with OFFLOAD: CAIRN_TIER_HOST or CAIRN_TIER_DISK; 0: the plan's first tier */
} cairn_region_options_t;
#define CAIRN_REGION_OPTIONS_INIT {sizeof(cairn_region_options_t), NULL, 0, 0}
/* Ops added until the matching end belong to the region. Regions nest, to depth 8. The innermost policy that is not
 * PLANNER_DECIDES holds; where there is none, the policy of the plan's options does. errors: WRONG_STATE (frozen; end: not
 * the innermost open region). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_graph_region_begin(cairn_graph_t* graph,
                                                                  const cairn_region_options_t* options,
                                                                  cairn_region_t* out_region, cairn_error_t* error);
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_graph_region_end(cairn_graph_t* graph, cairn_region_t region,
                                                                cairn_error_t* error);

typedef struct cairn_freeze_options {
  size_t struct_size;
  cairn_value_t loss;            /* 0: the graph only runs forward. A loss op's sum, or any scalar */
  cairn_value_t weight;          /* its denominator; 0: the loss op's own weight, or 1 per micro-batch. A loss that is made of
                                  * sums of loss ops needs one, which all of them are divided by */
  const cairn_value_t* outputs;  /* values the host reads after a run */
  size_t output_count;
} cairn_freeze_options_t;
#define CAIRN_FREEZE_OPTIONS_INIT {sizeof(cairn_freeze_options_t), 0, 0, NULL, 0}
/* Ends building. The instance's log names regions without a gradient path and parameters without a gradient.
 * errors: WRONG_STATE (frozen already, a region is open). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_graph_freeze(cairn_graph_t* graph, const cairn_freeze_options_t* options,
                                                            cairn_error_t* error);

typedef struct cairn_value_info {
  size_t struct_size;
  const char* name;  /* borrowed from the graph */
  int64_t dims[8];
  uint32_t rank;
  uint32_t dtype;
  uint32_t kind;     /* 0 input, 1 parameter, 2 activation, 3 statistic, 4 cache */
  cairn_region_t region;
  uint64_t bytes;
  uint32_t frozen;   /* 1: a parameter that is not trained */
  uint32_t reserved; /* 0 */
} cairn_value_info_t;
#define CAIRN_VALUE_INFO_INIT {sizeof(cairn_value_info_t), NULL, {0}, 0, 0, 0, 0, 0, 0, 0}
/* Values are numbered 1..count in order of creation. errors: NOT_FOUND. threads: const. since: 1.0 */
CAIRN_API size_t cairn_graph_value_count(const cairn_graph_t* graph);
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_graph_value_info(const cairn_graph_t* graph, cairn_value_t value,
                                                                cairn_value_info_t* out_info, cairn_error_t* error);
/* Value of that name; 0: there is none. threads: const. since: 1.0 */
CAIRN_API cairn_value_t cairn_graph_find(const cairn_graph_t* graph, const char* name);

/* 4. Plan ----------------------------------------------------------------------------------------------------------- */

/* Seconds of ops and links that plans are made with: a profile, measured on a machine, or the model of a device that is
 * not there. Without one, plans use rough rates of the device. */
typedef struct cairn_costs cairn_costs_t;
/* An empty profile of a device, filled by cairn_costs_measure_link and cairn_costs_add_run. owns: caller. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_costs_create(cairn_device_t* device, cairn_costs_t** out_costs,
                                                            cairn_error_t* error);
/* Reads JSON, "cairn.profile/1" or "cairn.device-model/1". owns: caller. errors: CORRUPT_FILE (not JSON, another format);
 * INVALID_ARGUMENT names the place. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_costs_read(cairn_instance_t* instance, const char* json, size_t size,
                                                          cairn_costs_t** out_costs, cairn_error_t* error);
CAIRN_API void cairn_costs_retain(cairn_costs_t* costs);
CAIRN_API void cairn_costs_release(cairn_costs_t* costs);
/* Measures copies to and from a tier, each direction alone and both at once, and puts the result into the profile. Takes
 * 256 MiB on the device and as much on the tier for the time of the call. INVALID_ARGUMENT also means: the profile is
 * another machine's, or the host tier is throttled to less than 1 MiB a second. errors: WRONG_STATE (the costs are a device
 * model), IO (disk tier). blocks: for about a second, of a slow link half a minute; nothing else should run. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_costs_measure_link(cairn_costs_t* costs, cairn_device_t* device,
                                                                  uint32_t tier, cairn_error_t* error);
/* The profile as JSON. owns: caller. errors: WRONG_STATE (the costs are a device model). threads: const. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_costs_json(const cairn_costs_t* costs, cairn_text_t** out_json,
                                                          cairn_error_t* error);

enum { CAIRN_AMP_OFF = 0, CAIRN_AMP_BF16 = 1, CAIRN_AMP_FP16 = 2 };
/* A class that ops have under mixed precision. The texts live as long as the library. */
typedef struct cairn_amp_class_info {
  size_t struct_size;
  const char* name;        /* "half", "follow", "full", "mixed", "as_is" */
  const char* description;
  uint32_t by_rule;        /* 1: a cairn_amp_rule_t may give it */
  uint32_t reserved;
} cairn_amp_class_info_t;
#define CAIRN_AMP_CLASS_INFO_INIT {sizeof(cairn_amp_class_info_t), NULL, NULL, 0, 0}
/* Class number index, from 0. errors: NOT_FOUND past the last. threads: any. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_amp_class_describe(size_t index, cairn_amp_class_info_t* out_info,
                                                                  cairn_error_t* error);
/* Gives ops another AMP class: all ops whose name and region match. * stands for any text, ? for one character; op, region
 * or both must be given. Of the rules that match an op, the last one counts. Ops of the class "as_is" keep it. Frozen
 * layout. */
typedef struct cairn_amp_rule {
  const char* op;        /* as cairn_graph_op takes it, "softmax"; NULL: any */
  const char* region;    /* full path, "h3/attn"; ops of the regions inside are meant, too. NULL: anywhere */
  const char* amp_class; /* "half", "full", "follow"; "default": the op's own again */
} cairn_amp_rule_t;
/* How the values of tensors are stored. The texts live as long as the library. */
typedef struct cairn_format_info {
  size_t struct_size;
  const char* name;        /* "f32", "bf16", "int8", ... */
  const char* computed_as; /* the format that kernels compute with */
  const char* read;        /* how ops read a parameter that is stored so: "as stored"; "dequantised", the plan decodes it
                              before they do; "by updates": only optimizers read it */
  uint32_t bits;           /* of one value */
  uint32_t block;          /* values that are stored together */
  uint32_t scale_bytes;    /* what a block has besides its values */
  uint32_t trains;         /* 1: a parameter that is trained may be stored so. One that is "dequantised" is for frozen
                              parameters */
  uint32_t row;            /* what the length of a parameter's rows must be a multiple of */
  uint32_t reserved;
} cairn_format_info_t;
#define CAIRN_FORMAT_INFO_INIT {sizeof(cairn_format_info_t), NULL, NULL, NULL, 0, 0, 0, 0, 0, 0}
/* Format number index, from 0. errors: NOT_FOUND past the last. threads: any. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_format_describe(size_t index, cairn_format_info_t* out_info,
                                                               cairn_error_t* error);
/* What the float32 parameters of two or more dimensions whose names match `pattern` are stored as, where * stands for
 * any text and ? for one character. Hosts and safetensors files see float32 of those that are "dequantised". Frozen layout. */
typedef struct cairn_parameter_format {
  const char* pattern;
  const char* format; /* of cairn_format_describe: one that trains, or "dequantised" */
} cairn_parameter_format_t;
/* One hyper-parameter by name. Optimizers and theirs: cairn_optimizer_describe. Frozen layout. */
typedef struct cairn_hyper {
  const char* group; /* the pattern of a parameter group; "": the parameters that no group names. Both include what the
                        group's optimizer leaves to another one (cairn_optimizer_info_t, otherwise); "PATTERN/OTHERWISE"
                        is that part alone. NULL: all groups whose optimizer has a hyper-parameter of this name */
  const char* name;  /* "momentum", "weight_decay", ...; "rate_scale" multiplies the schedule's rate */
  double value;
} cairn_hyper_t;
/* Parameters with an optimizer or hyper-parameters of their own: those whose full names match `pattern`, where * stands
 * for any text and ? for one character. A parameter may match one group only. Frozen layout. */
typedef struct cairn_parameter_group {
  const char* pattern;
  const char* optimizer; /* NULL: as all others. One that takes none of the group's parameters is an error */
} cairn_parameter_group_t;
/* A policy for the regions whose full paths match `pattern`, instead of their own. Within a name of the path * stands
 * for any text, ? for one character, [0-3] for one of these and [!0-3] for one of all others: "h[0-3]/attn". A name that is
 * two * stands for any number of names, also for none. If no full path of any program matches a pattern,
 * it is compared with the ends of paths: "h0/attn" of "segment/h0/attn". Frozen layout. */
typedef struct cairn_region_policy {
  const char* pattern; /* UTF-8 */
  uint32_t policy;     /* CAIRN_REGION_KEEP, CAIRN_REGION_RECOMPUTE or CAIRN_REGION_OFFLOAD */
  uint32_t tier;       /* with OFFLOAD: CAIRN_TIER_HOST or CAIRN_TIER_DISK; 0: the plan's first tier. It must be one of
                          the plan's `tiers`; where tier_count is 0, it is opened */
} cairn_region_policy_t;
/* An optimizer that plans know. The texts live as long as the library. */
typedef struct cairn_optimizer_info {
  size_t struct_size;
  const char* name;
  const char* states;      /* names of the states of each parameter, which have its shape or one that the description
                              gives; "?name" after one: only where that hyper-parameter is not 0 */
  const char* hypers;      /* "name=default", separated by blanks; the range of each: cairn_setting_describe */
  const char* description;
  const char* otherwise;   /* the optimizer of the parameters that this one does not take. They are a group of their own,
                              "PATTERN/OTHERWISE"; "/OTHERWISE" for parameters that no group names. "": it takes all */
} cairn_optimizer_info_t;
#define CAIRN_OPTIMIZER_INFO_INIT {sizeof(cairn_optimizer_info_t), NULL, NULL, NULL, NULL, NULL}
/* Optimizer number index, from 0. errors: NOT_FOUND past the last. threads: any. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_optimizer_describe(size_t index, cairn_optimizer_info_t* out_info,
                                                                  cairn_error_t* error);
typedef struct cairn_plan_options {
  size_t struct_size;
  uint64_t budget_bytes;         /* device tier: parameters, gradients, moments, activations, workspace; 0: no limit */
  double budget_share;           /* > 0, at most 1: instead, this share of what keeping everything takes */
  double link_bytes_per_second;  /* cost model of the host link; 0: the device's own */
  uint32_t amp;                  /* CAIRN_AMP_* */
  uint32_t no_optimizer;         /* 1: gradients only, no optimizer state */
  uint32_t policy;               /* CAIRN_REGION_*: for ops in no region that has a policy of its own or by
                                    region_policies */
  uint32_t tier_count;
  uint32_t tiers[4];             /* where offloading may go, first choice first. tier_count 0: to the host, where a region
                                    or the policy asks for it or the link has a stated rate; a CPU, whose host tier is the
                                    same memory, otherwise keeps and recomputes only */
  const cairn_costs_t* costs;    /* read during the call; NULL: the device's rates (see cairn_device_options_t). A plan
                                    with a device model is for that device: no session runs it. Without a budget, the
                                    device model's memory is the budget */
  uint32_t force_costs;          /* 1: take a profile that was measured on another machine */
  uint32_t reserved;             /* 0 */
  uint32_t micro_steps;          /* micro-batches per update that the plan is for. They share the cost of an update where
                                    optimizer state is offloaded. 1: a second one is WRONG_STATE, and gradients need
                                    memory from backward to the update only. 0: any number, at the cost of 1 */
  uint32_t fuse_update;          /* 1: parameters are updated inside backward, and their gradients end there. For
                                    steppers with micro_steps 1 and clip_norm 0. A gradient that is not finite is then
                                    found after other parameters were updated: NON_FINITE from cairn_stepper_micro */
  const char* optimizer;         /* of cairn_optimizer_describe: "adamw", "sgd", ...; NULL: adamw. */
  const cairn_parameter_group_t* groups;
  const cairn_hyper_t* hypers;   /* instead of the optimizers' defaults. What an optimizer keeps may follow from them:
                                    sgd has a momentum of each parameter only where momentum is not 0 */
  uint32_t group_count, hyper_count;
  const cairn_amp_rule_t* amp_rules; /* in their order; without effect where amp is CAIRN_AMP_OFF, but checked */
  uint32_t amp_rule_count;
  uint32_t parameters;           /* what float32 parameters of two or more dimensions are stored as: CAIRN_F32, or with
                                    amp CAIRN_AMP_BF16 one of two others. CAIRN_BF16: half the bytes and no float32
                                    masters; gradients and optimizer states are float32, and updates round
                                    stochastically, by random bits that follow from the stepper's seed, the step and the
                                    element. CAIRN_SPLIT: float32, as the bfloat16 number nearest to it (ties away from
                                    zero), which is what ops read, and the 16 bits below, which only updates read and
                                    which may live in a tier: no op keeps another bfloat16 copy. A parameter that
                                    some op reads in float32 is not split. Hosts and files see float32 */
  const cairn_region_policy_t* region_policies; /* in their order: of those that match a region, the last counts */
  uint32_t region_policy_count;
  uint32_t smallest_budget;      /* 1: plan for the smallest budget for which there is a plan; the summary names it.
                                    budget_bytes and budget_share are ignored. OVER_BUDGET: it is above the device's
                                    memory */
  const cairn_parameter_format_t* formats; /* instead of `parameters`; of those that match a parameter, the last
                                              counts. INVALID_ARGUMENT: a pattern that matches none, a format that cannot
                                              be trained for a parameter that is, a row that is not full blocks */
  uint32_t format_count;
  uint32_t reserved2;        /* 0 */
  double ema;                /* > 0 and < 1: of every trained parameter a float32 average is kept, which begins as the parameter
                                and after every applied update moves by 1 - ema towards it. It is saved, read as
                                "PARAMETER/ema", and loaded by cairn_session_load_ema. 0: none */
} cairn_plan_options_t;
#define CAIRN_PLAN_OPTIONS_INIT                                                                              \
  {sizeof(cairn_plan_options_t), 0, 0.0, 0.0, 0, 0, 0, 0, {0, 0, 0, 0}, NULL, 0, 0, 0, 0, NULL, NULL, NULL, \
   0, 0, NULL, 0, 0, NULL, 0, 0, NULL, 0, 0, 0.0}

typedef struct cairn_plan cairn_plan_t;
/* Decides every byte of a frozen graph on a device. Nothing runs, nothing is allocated there. Under a budget, and where
 * there is a tier to offload to, moments and master weights may be offloaded to it: the update streams them through the
 * device. options may be NULL. The plan is immutable. INVALID_ARGUMENT also means: a budget above the device's memory, a
 * profile of another machine, fuse_update with more micro-batches than one, an unknown optimizer or hyper-parameter, a
 * group that matches no parameter, two groups that match the same one, an AMP rule with an unknown class or that
 * matches no op whose class can be changed, an unknown region policy or one that offloads to a tier that is not open.
 * NOT_FOUND also means: a region policy's pattern matches no region; the message names the nearest.
 * errors: OVER_BUDGET (fault: the smallest budget that does; message: the op at the peak and the
 * five largest values alive there), UNSUPPORTED (an op without a gradient, by name; fp16 without an optimizer or with
 * fuse_update; an op that the device cannot run in the precision that an AMP rule asks for), WRONG_STATE (not frozen).
 * since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_plan_create(cairn_graph_t* graph, cairn_device_t* device,
                                                           const cairn_plan_options_t* options, cairn_plan_t** out_plan,
                                                           cairn_error_t* error);
/* One of several graphs on the same parameters. Frozen layout. */
typedef struct cairn_program {
  const char* name; /* for messages; unique */
  cairn_graph_t* graph;
} cairn_program_t;
/* Plans several graphs for one store (cairn_session_create_set): training at other lengths or batch sizes, evaluation,
 * generation. The first has all parameters; the others have some of them, and those that train have the same gradients.
 * A graph with a loss is run by a stepper only; a graph for evaluation has outputs and no loss.
 * The budget holds for each plan; together they take what the largest takes. Which state is offloaded is chosen once.
 * out_plans: room for `count`, in the order of the programs. INVALID_ARGUMENT also means: parameters or gradients differ (named), a
 * later graph trains and the first does not. errors: as cairn_plan_create. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_plan_create_set(const cairn_program_t* programs, size_t count,
                                                               cairn_device_t* device,
                                                               const cairn_plan_options_t* options,
                                                               cairn_plan_t** out_plans, cairn_error_t* error);
CAIRN_API void cairn_plan_retain(cairn_plan_t* plan);
CAIRN_API void cairn_plan_release(cairn_plan_t* plan);

typedef struct cairn_plan_summary_t {
  size_t struct_size;
  uint64_t peak_bytes[3];         /* per tier: what a session takes, and the highest byte a run uses */
  uint64_t budget_bytes;          /* 0: none */
  uint64_t live_peak_bytes;       /* device: most bytes alive at once; peak_bytes also has the gaps of the layout */
  uint64_t persistent_bytes;      /* device: parameters, gradients, moments, packed weights, inputs */
  uint64_t parameters_bytes, gradients_bytes, optimizer_bytes, activations_bytes, workspace_bytes; /* at the peak */
  uint64_t activation_peak_bytes; /* most bytes of activations at once */
  uint64_t keep_bytes, recompute_bytes, offload_host_bytes, offload_disk_bytes; /* of values that backward needs */
  double predicted_seconds, keep_all_seconds, bound_seconds, gap, solve_seconds; /* of one micro-batch */
  uint64_t value_count, op_count, instruction_count, region_count;
  double update_seconds;          /* predicted, once per step: packed weights, gradient norm, optimizer */
  double host_seconds;            /* predicted, per micro-batch: inputs written, work submitted, loss read */
  uint64_t optimizer_host_bytes, optimizer_disk_bytes; /* of optimizer state and master weights that live there, not on
                                                          the device; part of peak_bytes */
} cairn_plan_summary_t;
#define CAIRN_PLAN_SUMMARY_INIT                                                                            \
  {sizeof(cairn_plan_summary_t), {0, 0, 0}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, \
   0, 0, 0, 0, 0.0, 0.0, 0, 0}
/* threads: const. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_plan_summary(const cairn_plan_t* plan, cairn_plan_summary_t* out_summary,
                                                            cairn_error_t* error);

/* A number that a plan counts of how it does things; the summary has none of these. The texts live as long as the library. */
typedef struct cairn_plan_counter_info {
  size_t struct_size;
  const char* name;        /* "packed_bytes" */
  const char* unit;        /* "count", "bytes", "seconds", or "tier": a number of CAIRN_TIER_* */
  const char* description; /* what it counts */
} cairn_plan_counter_info_t;
#define CAIRN_PLAN_COUNTER_INFO_INIT {sizeof(cairn_plan_counter_info_t), NULL, NULL, NULL}
/* Counter number index, from 0. Later versions may have more counters, and may no longer have one of today's.
 * errors: NOT_FOUND past the last. threads: any. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_plan_counter_describe(size_t index, cairn_plan_counter_info_t* out_info,
                                                                     cairn_error_t* error);
/* The value of a counter, by its name. errors: NOT_FOUND (no such counter; the message lists those known).
 * threads: const. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_plan_counter(const cairn_plan_t* plan, const char* name, double* out_value,
                                                            cairn_error_t* error);

/* Bytes of a tier by what they are for, at the tier's peak: together, peak_bytes of the summary. On the device inputs,
 * outputs and scratch count as activations, packed weights as parameters, gaps of the layout as workspace. In a lower tier
 * lie offloaded weights, gradients and optimizer state, at all times; copies of offloaded activations count as activations. */
typedef struct cairn_plan_memory_t {
  size_t struct_size;
  uint64_t parameters_bytes, gradients_bytes, optimizer_bytes, activations_bytes, workspace_bytes;
  const char* peak_at; /* the op that runs at the peak, or next after it; "": only persistent bytes; borrowed from the plan */
} cairn_plan_memory_t;
#define CAIRN_PLAN_MEMORY_INIT {sizeof(cairn_plan_memory_t), 0, 0, 0, 0, 0, NULL}
/* What the bytes of a tier (CAIRN_TIER_*) are for. threads: const. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_plan_memory(const cairn_plan_t* plan, uint32_t tier,
                                                           cairn_plan_memory_t* out_memory, cairn_error_t* error);

typedef struct cairn_plan_rates_t {
  size_t struct_size;
  const char* source; /* where the plan's seconds come from: "measured" by this process, "cached" from an earlier one, "file",
                         "model", "profile" or "device-model". Borrowed from the plan, as all texts here */
  const char* path;   /* of the file that holds the rates; "": none */
  const char* notice; /* a warning: why rates were not kept, or why a file with rates is not used; "": none */
  double f32_flops_per_second, bf16_flops_per_second; /* of long products */
  double memory_bytes_per_second;                     /* of streams that no cache holds */
  double measuring_seconds;                           /* how long measuring took, in this process or an earlier one */
} cairn_plan_rates_t;
#define CAIRN_PLAN_RATES_INIT {sizeof(cairn_plan_rates_t), NULL, NULL, NULL, 0.0, 0.0, 0.0, 0.0}
/* What the plan's predicted seconds rest on. threads: const. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_plan_rates(const cairn_plan_t* plan, cairn_plan_rates_t* out_rates,
                                                          cairn_error_t* error);

enum { CAIRN_DECISION_KEEP = 0, CAIRN_DECISION_RECOMPUTE = 1, CAIRN_DECISION_OFFLOAD = 2, CAIRN_DECISION_PERSISTENT = 3 };
typedef struct cairn_plan_value_t {
  size_t struct_size;
  const char* name;     /* borrowed from the plan, as all texts here */
  const char* region;   /* "" outside */
  const char* reason;
  const char* category; /* parameter, optimizer, low, packed, gradient, statistic, sum, cache, scratch, input, output, activation, backward */
  uint64_t bytes;
  int64_t offset_bytes; /* in the device arena, of its first residency; -1: it lives in a tier */
  uint32_t decision;    /* CAIRN_DECISION_* */
  uint32_t tier;        /* with OFFLOAD; with PERSISTENT: where it lives (optimizer state may be in a tier) */
  int32_t first_step, last_step; /* of the plan */
} cairn_plan_value_t;
#define CAIRN_PLAN_VALUE_INIT {sizeof(cairn_plan_value_t), NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0}
/* Row index of the table of values, from 0. errors: NOT_FOUND past the last. threads: const. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_plan_value(const cairn_plan_t* plan, size_t index,
                                                          cairn_plan_value_t* out_value, cairn_error_t* error);

/* An op of the graph that was planned, and its precision. */
typedef struct cairn_plan_op_t {
  size_t struct_size;
  const char* name;      /* borrowed from the plan, as all texts here */
  const char* op;        /* as cairn_graph_op took it */
  const char* region;    /* "" outside */
  const char* amp_class; /* the class that holds for it; with CAIRN_AMP_OFF: that would hold */
  int32_t amp_rule;      /* number of the plan's rule that says so, from 0; -1: the class is the op's own */
  uint32_t reserved;
} cairn_plan_op_t;
#define CAIRN_PLAN_OP_INIT {sizeof(cairn_plan_op_t), NULL, NULL, NULL, NULL, -1, 0}
/* Op number index of the graph, from 0, in the order in which they were added. errors: NOT_FOUND past the last.
 * threads: const. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_plan_op(const cairn_plan_t* plan, size_t index, cairn_plan_op_t* out_op,
                                                       cairn_error_t* error);

enum { CAIRN_RENDER_PLAN_JSON = 0, CAIRN_RENDER_PROBLEM_JSON = 1, CAIRN_RENDER_HTML = 2, CAIRN_RENDER_SVG = 3,
       CAIRN_RENDER_FILE = 4, CAIRN_RENDER_SWEEP = 5, CAIRN_RENDER_REPORT = 6 };
/* Renderings: the plan as JSON ("cairn.plan/1"), its problem as JSON ("cairn.problem/1"), one HTML page, one SVG
 * picture of memory over time, a plan file (binary, see cairn_inspect), the trade-off curve as JSON ("cairn.sweep/1":
 * plans of the same problem from keeping everything down to the smallest budget, and checkpointing by hand), the HTML
 * page with that curve. title: its first line is the page's title; further lines, "word: text", are printed below it.
 * blocks: SWEEP and REPORT for the time of solving the problem under some 20 budgets. owns: caller. threads: const.
 * since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_plan_render(const cairn_plan_t* plan, uint32_t kind, const char* title,
                                                           cairn_text_t** out_text, cairn_error_t* error);

/* Solves a problem given as JSON ("cairn.problem/1") and renders the plan; budget_bytes 0: the problem's own.
 * errors: OVER_BUDGET, CORRUPT_FILE (not JSON). threads: any. blocks: for the time of solving. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_problem_solve(cairn_instance_t* instance, const char* json, size_t size,
                                                             uint64_t budget_bytes, uint32_t kind, cairn_text_t** out_text,
                                                             cairn_error_t* error);

/* 5. Session -------------------------------------------------------------------------------------------------------- */

typedef struct cairn_session cairn_session_t;
/* Takes all memory that the plan names, and none later. errors: IO (disk tier). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_session_create(cairn_plan_t* plan, cairn_device_t* device,
                                                              cairn_session_t** out_session, cairn_error_t* error);
/* Sessions of all plans of one cairn_plan_create_set, in its order, on one store: they take memory once, and parameters,
 * gradients and optimizer state are the same values in all of them. Inputs and outputs are each session's own. A run of
 * one must not overlap a call of another. out_sessions: room for `count`. INVALID_ARGUMENT also means: not all plans of
 * one set, or in another order. errors: OUT_OF_MEMORY, IO (disk tier). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_session_create_set(cairn_plan_t* const* plans, size_t count,
                                                                  cairn_device_t* device,
                                                                  cairn_session_t** out_sessions,
                                                                  cairn_error_t* error);
CAIRN_API void cairn_session_retain(cairn_session_t* session);
CAIRN_API void cairn_session_release(cairn_session_t* session);

/* Fills all parameters from their init options; the same numbers on every device. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_session_initialise(cairn_session_t* session, uint64_t seed,
                                                                  cairn_error_t* error);
/* Copies an input or parameter in, or any value that persists out (inputs, parameters, "NAME/gradient", outputs, the
 * loss), by name. size_bytes must be the value's. A parameter is float32 here even where the plan stores it as
 * bfloat16: it is rounded to nearest. Integer inputs of embeddings and losses are checked against the
 * vocabulary: INVALID_ARGUMENT names position and number.
 * errors: NOT_FOUND. blocks: until queued work is done. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_session_write(cairn_session_t* session, const char* name, const void* data,
                                                             size_t size_bytes, cairn_error_t* error);
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_session_read(cairn_session_t* session, const char* name, void* data,
                                                            size_t size_bytes, cairn_error_t* error);
/* Type, shape and bytes of a value, as cairn_session_write takes it and cairn_session_read gives it. kind is 2 also of
 * gradients and optimizer state; region is 0 outside of all. name is borrowed from the session's plan. errors: NOT_FOUND.
 * threads: const. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_session_value_info(const cairn_session_t* session, const char* name,
                                                                  cairn_value_info_t* out_info, cairn_error_t* error);
/* One run on the inputs written: forward of a graph without a loss; forward and backward of a plan with no_optimizer, which
 * overwrites the gradients. Inputs keep their values: writing them once is enough. blocks: until it is done. errors:
 * CANCELLED, WRONG_STATE (the plan has an optimizer: use a stepper; parameters were never initialised, loaded, imported or
 * written, or inputs were never written: the message names them), OUT_OF_MEMORY, DEVICE_LOST. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_session_run(cairn_session_t* session, cairn_error_t* error);
/* Makes the run under way, or else the next one, end with CANCELLED at the next op. threads: any, also during calls.
 * since: 1.0 */
CAIRN_API void cairn_session_cancel(cairn_session_t* session);

/* 1: later runs record when each op and copy ran; 0: no longer. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_session_trace(cairn_session_t* session, uint32_t on, cairn_error_t* error);
enum { CAIRN_LANE_COMPUTE = 0, CAIRN_LANE_COPY_OUT = 1, CAIRN_LANE_COPY_IN = 2, CAIRN_LANE_HOST = 3 /* updates there */,
       CAIRN_LANE_HOST_IN = 4, CAIRN_LANE_HOST_OUT = 5 /* what those read from the disk and write there */ };
typedef struct cairn_span {
  size_t struct_size;
  const char* name;          /* of the op, or of the value that is copied; borrowed from the session's plan */
  double begin_seconds;      /* since the run began */
  double end_seconds;
  uint64_t live_bytes;       /* device bytes in use at that place of the program */
  uint32_t lane;             /* CAIRN_LANE_* */
  uint32_t tier;             /* of a copy: the other end; of an op: where it ran */
} cairn_span_t;
#define CAIRN_SPAN_INIT {sizeof(cairn_span_t), NULL, 0.0, 0.0, 0, 0, 0}
/* Span number index of the last traced run, from 0: lane by lane, each in order.
 * errors: NOT_FOUND past the last. threads: const. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_session_span(const cairn_session_t* session, size_t index,
                                                            cairn_span_t* out_span, cairn_error_t* error);
/* Adds the session's last traced run to a profile: the seconds of each op. The run was part of a step of one micro-batch:
 * step_seconds is that step as the caller measured it, optimizer_seconds is what its report says; 0: not known.
 * errors: WRONG_STATE (no run was traced; the costs are a device model). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_costs_add_run(cairn_costs_t* costs, const cairn_session_t* session,
                                                             double step_seconds, double optimizer_seconds,
                                                             cairn_error_t* error);

/* Times the alternatives that kernels of a plan's ops have on the device: on GPUs algorithms of matrix products, which
 * library computes attention, which kernel sums the gradients of biases. What is clearly faster than the device's own
 * choice goes into the profile, and plans that are made with the profile use it. So the bits of a run follow from the
 * profile. *out_count: ops timed, 0 where there are no alternatives; may be NULL. Takes the memory of one op's operands for
 * the time of the call. errors: INVALID_ARGUMENT (the profile is another machine's), WRONG_STATE
 * (the costs are a device model). blocks: for seconds; nothing else should run. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_costs_measure_kernels(cairn_costs_t* costs, const cairn_plan_t* plan,
                                                                     cairn_device_t* device, uint64_t* out_count,
                                                                     cairn_error_t* error);

typedef struct cairn_tier_usage {
  size_t struct_size;
  uint64_t reserved_bytes; /* taken from the system for this session's device, now */
  uint64_t peak_bytes;     /* highest end of any byte used since the session was made */
  uint64_t live_peak_bytes;
  uint64_t pinned_bytes;   /* of those reserved, locked in memory */
  uint64_t staging_bytes;  /* more host memory, through which copies to and from this tier go */
  /* Of the device tier: bytes of the device that all programs together use, as its driver counts them: before the session
   * took its own, and now. 0: the driver does not say. */
  uint64_t driver_before_bytes, driver_bytes;
} cairn_tier_usage_t;
#define CAIRN_TIER_USAGE_INIT {sizeof(cairn_tier_usage_t), 0, 0, 0, 0, 0, 0, 0}
/* Measured bytes of a tier, from the one ledger under everything. threads: const. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_session_usage(const cairn_session_t* session, uint32_t tier,
                                                             cairn_tier_usage_t* out_usage, cairn_error_t* error);
/* XXH3-128 over all parameters in graph order, as 32 hex digits and NUL. blocks: until queued work is done. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_session_digest(cairn_session_t* session, char out_hex[33],
                                                              cairn_error_t* error);
/* The same over the frozen parameters alone, as they are stored: training never changes it. They are read in pieces, wherever
 * they live, and again only after the host has written one of them or has its address. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_session_base_digest(cairn_session_t* session, char out_hex[33],
                                                                   cairn_error_t* error);

/* 6. Stepper -------------------------------------------------------------------------------------------------------- */

enum { CAIRN_SCHEDULE_CONSTANT = 0, CAIRN_SCHEDULE_COSINE = 1, CAIRN_SCHEDULE_LINEAR = 2 };
/* A schedule of the learning rate: a pure function of the number of optimizer steps that were applied. The texts live as
 * long as the library. */
typedef struct cairn_schedule_info {
  size_t struct_size;
  const char* name;
  const char* parameters;  /* "name=default", separated by blanks; "name=word|word": one of these, the first by default;
                              "name=" takes a list */
  const char* description;
  uint32_t ends;           /* 1: it depends on its last step, and so needs total_steps */
  uint32_t reserved;
} cairn_schedule_info_t;
#define CAIRN_SCHEDULE_INFO_INIT {sizeof(cairn_schedule_info_t), NULL, NULL, NULL, 0, 0}
/* Schedule number index, from 0. errors: NOT_FOUND past the last. threads: any. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_schedule_describe(size_t index, cairn_schedule_info_t* out_info,
                                                                 cairn_error_t* error);
/* A parameter of a schedule, by name (cairn_schedule_describe). A list has one of these for each element, ascending. Frozen
 * layout. */
typedef struct cairn_schedule_value {
  const char* name;
  const char* word;  /* of a parameter that is one of a few words; NULL: `value` counts */
  double value;
} cairn_schedule_value_t;
/* One of the schedules that follow each other. Frozen layout. */
typedef struct cairn_schedule {
  const char* name;
  uint64_t steps;    /* how many it lasts, before the next one begins; 0, of the last one alone: up to total_steps */
  const cairn_schedule_value_t* values; /* instead of its parameters' defaults */
  uint64_t value_count;
} cairn_schedule_t;
typedef struct cairn_stepper_options {
  size_t struct_size;
  uint64_t seed;           /* of dropout */
  uint64_t warmup_steps;   /* linear, from rate / warmup_steps, before the schedule, whose own steps count from its end */
  uint64_t total_steps;    /* where the schedule ends, the warm-up included; needed by those that have an end */
  double rate, minimum_rate; /* the highest and, where the schedule ends, the lowest; rate must be above 0 */
  double beta1, beta2, eps, weight_decay; /* of groups that AdamW updates, where neither the plan's options nor `hypers`
                                             name them */
  double clip_norm;        /* global norm; 0: none */
  uint32_t schedule;       /* CAIRN_SCHEDULE_* */
  uint32_t micro_steps;    /* micro-batches of an effective batch; 0: 1 */
  const cairn_hyper_t* hypers; /* of any optimizer, instead of the plan's */
  uint64_t hyper_count;
  const cairn_schedule_t* schedules; /* one after the other, instead of `schedule`, which must then be 0. Momenta of
                                        a schedule take the place of the groups' own momentum, or beta1 */
  uint64_t schedule_count;
  uint64_t warmup_units;   /* the warm-up as a count of samples, tokens ..., instead of warmup_steps: */
  uint64_t step_units;     /* how many of them a step takes. The last step of warm-up reaches warmup_units */
  /* Of plans with CAIRN_AMP_FP16, by the rule of torch.amp.GradScaler: gradients are multiplied by a scale on their way.
   * A step whose gradients are not finite is skipped and multiplies it by the backoff; `interval` steps in a row that are
   * not multiply it by the growth. */
  double loss_scale;          /* the initial one; 0: 2^16 over the rows of an effective batch (losses are sums) */
  double loss_scale_growth;   /* 0: 2 */
  double loss_scale_backoff;  /* 0: 0.5 */
  uint32_t loss_scale_interval; /* 0: 2000 */
  uint32_t reserved;
} cairn_stepper_options_t;
#define CAIRN_STEPPER_OPTIONS_INIT \
  {sizeof(cairn_stepper_options_t), 0, 0, 0, 3e-4, 0.0, 0.9, 0.95, 1e-8, 0.1, 1.0, 0, 1, NULL, 0, NULL, 0, 0, 0, \
   0.0, 0.0, 0.0, 0, 0}

enum { CAIRN_SETTINGS_OF_OPTIMIZER = 0, CAIRN_SETTINGS_OF_SCHEDULE = 1, CAIRN_SETTINGS_OF_STEPPER = 2 };
enum {
  CAIRN_SETTING_ABOVE = 1,   /* `least` itself is out of range */
  CAIRN_SETTING_BELOW = 2,   /* `most` itself is out of range */
  CAIRN_SETTING_INTEGER = 4, /* integers alone */
  CAIRN_SETTING_OR_ZERO = 8, /* 0 is in range, too, and stands for a default */
  CAIRN_SETTING_LIST = 16,   /* several such numbers, ascending */
  CAIRN_SETTING_SWITCH = 32  /* 0 or 1: no or yes */
};
/* A number or word that an optimizer, a schedule or a stepper takes, and what it may be. The texts live as long as the
 * library. */
typedef struct cairn_setting_info {
  size_t struct_size;
  const char* name;        /* of a stepper: the field of cairn_stepper_options_t */
  const char* description; /* what it is; of a schedule's "": the schedule's own description says it */
  const char* allowed;     /* what it may be, in words: "at least 0 and below 1"; "" where `words` says it */
  const char* words;       /* it is one of these, separated by blanks, the first by default; "": it is a number */
  double default_value;    /* out of range where a schedule needs to be given one */
  double least, most;      /* the bounds of a number */
  uint32_t traits;         /* sum of CAIRN_SETTING_* */
  uint32_t reserved;
} cairn_setting_info_t;
#define CAIRN_SETTING_INFO_INIT {sizeof(cairn_setting_info_t), NULL, NULL, NULL, NULL, 0.0, 0.0, 0.0, 0, 0}
/* Setting number index, from 0, of what has settings: kind is CAIRN_SETTINGS_OF_*, owner the name of the optimizer or
 * schedule, NULL for steppers. INVALID_ARGUMENT also means: an unknown owner. errors: NOT_FOUND past the last.
 * threads: any. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_setting_describe(uint32_t kind, const char* owner, size_t index,
                                                                cairn_setting_info_t* out_info, cairn_error_t* error);
/* The rates that a stepper with these options gives to the updates of steps first to first + count - 1, counted from 0, and
 * their momenta if out_momenta is not NULL (NaN where the schedule has none). Only rates, warm-up and schedule of the
 * options count; count may be 0, to check them. INVALID_ARGUMENT also means: an unknown schedule or parameter,
 * a value out of range, a schedule shorter than its warm-up. threads: any. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_schedule_rates(const cairn_stepper_options_t* options, uint64_t first,
                                                              size_t count, double* out_rates, double* out_momenta,
                                                              cairn_error_t* error);

enum {
  CAIRN_STEP_ACCUMULATED = 0,
  CAIRN_STEP_APPLIED = 1,
  CAIRN_STEP_SKIPPED_NONFINITE = 2,
  CAIRN_STEP_SKIPPED_EMPTY = 3,
  CAIRN_STEP_GATHERED = 4 /* the first of two passes over a micro-batch: cairn_stepper_micro() */
};
typedef struct cairn_step_report {
  size_t struct_size;
  uint64_t step;            /* effective batches completed (applied or skipped) after this call */
  uint64_t skipped_steps;
  double loss, weight;            /* of this micro-batch: sum / weight, and weight; with values of the effective batch, of
                                     that, in the report of its last GATHERED, else 0 */
  double step_loss, step_weight;  /* of the effective batch so far; the loss is 0 where the weight is */
  double gradient_norm;           /* before clipping; with APPLIED and SKIPPED_NONFINITE */
  double rate, loss_scale;        /* used by this micro-batch; loss_scale is 1 but with CAIRN_AMP_FP16 */
  double seconds, stall_seconds, optimizer_seconds;
  uint32_t outcome;         /* CAIRN_STEP_* */
  uint32_t micro;           /* micro-batches accumulated after this call; GATHERED: gathered */
  uint64_t copied_out_bytes[3], copied_in_bytes[3];     /* of this micro-batch, by tier: from the device, and back */
  double copying_out_seconds[3], copying_in_seconds[3]; /* how long these copies took. On a GPU one run of 32 is timed, as
                                                            timing costs time; the others report its seconds and stalls */
  uint32_t fell_back;       /* 1: the disk tier failed; this micro-batch ran again, from a plan without it */
  uint32_t reserved;
  double submit_seconds;    /* of this micro-batch: what the host took to submit its work to the device */
} cairn_step_report_t;
#define CAIRN_STEP_REPORT_INIT                                                                                       \
  {sizeof(cairn_step_report_t), 0, 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, {0}, {0}, {0}, {0}, 0, 0, 0.0}

typedef struct cairn_stepper cairn_stepper_t;
/* A controller over a session whose graph trains. Gradients are sums over the effective batch, divided once by its total
 * weight. options may be NULL. errors: WRONG_STATE (graph has no loss; plan has no optimizer). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_stepper_create(cairn_session_t* session,
                                                              const cairn_stepper_options_t* options,
                                                              cairn_stepper_t** out_stepper, cairn_error_t* error);
CAIRN_API void cairn_stepper_retain(cairn_stepper_t* stepper);
CAIRN_API void cairn_stepper_release(cairn_stepper_t* stepper);
/* One micro-batch on the inputs written to the session; the last of an effective batch updates the parameters. Of a graph with
 * values of the effective batch (op `effective`), of which every step takes two passes, every micro-batch is written and run
 * twice, in the same order: the first micro_steps calls give GATHERED and run forward parts, the last of them the loss, whose
 * inputs of the effective batch must be there from the first call on; the next micro_steps are as ever, without a loss of their
 * own. INVALID_ARGUMENT also means: other inputs in the second pass than in the first; nothing ran. A batch
 * whose loss or gradients are not finite is skipped: parameters, moments and schedule do not change. So is one whose weights
 * add up to 0, as none of its targets counts (SKIPPED_EMPTY). out_report may be NULL.
 * blocks: until it is done. errors: CANCELLED (the effective batch is discarded), WRONG_STATE (parameters or inputs have no
 * values, as in cairn_session_run; a session that is lost), DEVICE_LOST, IO (the disk tier failed
 * where a micro-batch cannot run again: the effective batch is discarded, and the session goes on without that tier, if
 * a plan without it fits its memory; or it held optimizer state, which is lost), OUT_OF_MEMORY (the message says whether
 * the effective batch is discarded or the session is lost; it goes on as soon as there is memory), NON_FINITE (plans with
 * fuse_update: a gradient is not finite, and parameters were partly updated: restore a checkpoint). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_stepper_micro(cairn_stepper_t* stepper, cairn_step_report_t* out_report,
                                                             cairn_error_t* error);
/* The same by another session on the stepper's store (cairn_session_create_set): its inputs, its length. INVALID_ARGUMENT
 * also means: a session on another store. errors: as cairn_stepper_micro; WRONG_STATE (its graph has no loss). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_stepper_micro_on(cairn_stepper_t* stepper, cairn_session_t* session,
                                                                cairn_step_report_t* out_report,
                                                                cairn_error_t* error);
/* Ends the effective batch early, with the denominator it has (the remainder of an epoch).
 * errors: WRONG_STATE (nothing accumulated), as cairn_stepper_micro. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_stepper_apply(cairn_stepper_t* stepper, cairn_step_report_t* out_report,
                                                             cairn_error_t* error);
/* Discards what was accumulated. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_stepper_discard(cairn_stepper_t* stepper, cairn_error_t* error);
/* Changes the options of later steps; seed is kept. errors: WRONG_STATE (in the middle of an effective batch). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_stepper_configure(cairn_stepper_t* stepper,
                                                                 const cairn_stepper_options_t* options,
                                                                 cairn_error_t* error);
/* Changes one hyper-parameter of later steps; group as in cairn_hyper_t. INVALID_ARGUMENT also means: no such group or
 * hyper-parameter, a value out of range, or one that needs state which the plan does not have. errors: WRONG_STATE (in the
 * middle of an effective batch). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_stepper_set(cairn_stepper_t* stepper, const char* group, const char* name,
                                                           double value, cairn_error_t* error);
/* A hyper-parameter as it is now. group NULL: of the parameters that no group names. INVALID_ARGUMENT also means: no such
 * group or hyper-parameter. threads: const. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_stepper_get(const cairn_stepper_t* stepper, const char* group,
                                                           const char* name, double* out_value, cairn_error_t* error);
/* Where the stepper is, without running anything: step, micro, skipped_steps, step_loss, step_weight. threads: const.
 * since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_stepper_report(const cairn_stepper_t* stepper,
                                                              cairn_step_report_t* out_report, cairn_error_t* error);

/* 7. Files ---------------------------------------------------------------------------------------------------------- */

/* A word of the host's own, kept in a checkpoint. Frozen layout. */
typedef struct cairn_metadata {
  const char* key;
  const char* value;
} cairn_metadata_t;

/* Saves graph, parameters, moments, run state and, in the middle of an accumulation, gradients into a new directory, with
 * the metadata and copies of the files. Durable when it returns; all or nothing: until then an older checkpoint of that name
 * is complete, and after an error it is there as before. What was written is read back (digests of all tensors and files)
 * before it replaces anything. What others have put into the older checkpoint's directory is kept. errors: IO (disk full is
 * seen before anything is written), CORRUPT_FILE (reads back otherwise than written), INVALID_ARGUMENT (the directory holds
 * other files and is no checkpoint, or a file of that name that no save wrote). blocks: until durable. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_stepper_save(cairn_stepper_t* stepper, const char* directory,
                                                            const cairn_metadata_t* metadata, size_t metadata_count,
                                                            const char* const* files, size_t file_count,
                                                            cairn_error_t* error);
typedef struct cairn_save_options {
  size_t struct_size;
  const cairn_metadata_t* metadata;
  size_t metadata_count;
  const char* const* files;
  size_t file_count;
  uint32_t without_frozen; /* 1: frozen parameters are not stored, only their names, types and digests */
  uint32_t reserved;       /* 0 */
} cairn_save_options_t;
#define CAIRN_SAVE_OPTIONS_INIT {sizeof(cairn_save_options_t), NULL, 0, NULL, 0, 0, 0}
/* As cairn_stepper_save, by options. A checkpoint without its frozen parameters goes with the base that it was trained on:
 * cairn_stepper_restore and cairn_session_load want that base in the session already (cairn_session_import), and compare
 * its digests. Saving reads the base once, as cairn_session_base_digest does, and copies nothing of it. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_stepper_save_as(cairn_stepper_t* stepper, const char* directory,
                                                               const cairn_save_options_t* options,
                                                               cairn_error_t* error);

typedef struct cairn_checkpoint cairn_checkpoint_t;
/* Opens a checkpoint, or the newest complete one below a directory. errors: NOT_FOUND, CORRUPT_FILE, IO. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_checkpoint_open(cairn_instance_t* instance, const char* directory,
                                                               cairn_checkpoint_t** out_checkpoint, cairn_error_t* error);
CAIRN_API void cairn_checkpoint_retain(cairn_checkpoint_t* checkpoint);
CAIRN_API void cairn_checkpoint_release(cairn_checkpoint_t* checkpoint);
/* Deletes the checkpoint in a directory: the files that its manifest lists, and the directory if nothing else is in it; other
 * files in it are kept. Never through a symbolic link, and never what is not known to be a checkpoint's. Opened ones can
 * be read on. errors: NOT_FOUND (no checkpoint), INVALID_ARGUMENT (a link, no directory), CORRUPT_FILE (a damaged manifest:
 * nothing is deleted), IO. blocks: until durable. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_checkpoint_remove(cairn_instance_t* instance, const char* directory,
                                                                 cairn_error_t* error);
/* Directory it was opened from; value of a metadata key (NULL: there is none). borrows. threads: const. since: 1.0 */
CAIRN_API const char* cairn_checkpoint_directory(const cairn_checkpoint_t* checkpoint);
CAIRN_API const char* cairn_checkpoint_metadata(const cairn_checkpoint_t* checkpoint, const char* key);
/* Reads all tensors and compares their digests, as restoring does before it writes anything. errors: CORRUPT_FILE (names the
 * tensor), IO. threads: const. blocks: for the time of reading. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_checkpoint_verify(const cairn_checkpoint_t* checkpoint, cairn_error_t* error);
/* The graph it was trained with, frozen. owns: caller. threads: const. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_checkpoint_graph(const cairn_checkpoint_t* checkpoint,
                                                                cairn_graph_t** out_graph, cairn_error_t* error);
/* Puts a stepper of an equal graph exactly where the saved one was: it continues with the same bits. Graphs are also equal
 * if the first dimensions of all inputs differ by one factor, for micro-batches of another size (then
 * cairn_stepper_configure sets how many a step has). errors: CORRUPT_FILE (a tensor's digest), WRONG_STATE,
 * INVALID_ARGUMENT (another graph; of a checkpoint without its frozen parameters: the session's are others). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_stepper_restore(cairn_stepper_t* stepper,
                                                               const cairn_checkpoint_t* checkpoint, cairn_error_t* error);
/* Parameters alone, by name, into any session. Those that the checkpoint was saved without must be in the session; they are
 * compared, but for those that the session stores in fewer bits. errors: NOT_FOUND (names the first parameter that is not
 * there), CORRUPT_FILE, INVALID_ARGUMENT (a frozen parameter of the session is not the base's). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_session_load(cairn_session_t* session,
                                                            const cairn_checkpoint_t* checkpoint, cairn_error_t* error);
/* The same with the averages of the parameters that have one (ema of cairn_plan_options_t) in their place. errors: NOT_FOUND (the
 * checkpoint has no averages, or not all parameters), as cairn_session_load. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_session_load_ema(cairn_session_t* session,
                                                                const cairn_checkpoint_t* checkpoint,
                                                                cairn_error_t* error);

/* Another name for a parameter in a safetensors file; transposed 1: stored as [in, out], or,
 * of three axes and more, as [out, in, ...] where ours is [out, ..., in]. Frozen layout. stacked 1: `theirs` is
 * one element of the first dimension of `ours`, as one expert's matrix; there is a row for each of them, in their order. */
typedef struct cairn_name {
  const char* ours;
  const char* theirs;
  uint32_t transposed;
  uint32_t stacked;
} cairn_name_t;
/* All parameters to and from safetensors; parameters without a row keep their names. An import reads a file, or the directory
 * of a model: model.safetensors, or model.safetensors.index.json and the files that its weight_map names; or a GGUF file,
 * which it knows by its first bytes. Tensors whose type is that which the parameter is stored in are copied as they are.
 * Others are converted, in pieces: next to the session's own memory it takes a few megabytes, and for a transposed tensor
 * that tensor's bytes. errors: IO (also: the directory to write to is not there; it is not made), CORRUPT_FILE (also: the index
 * and its files contradict each other, a tensor is in two files), NOT_FOUND (no such file, or one that the index names);
 * INVALID_ARGUMENT names a tensor that is missing or has another shape, or a row whose `ours` is no parameter, and nothing
 * is written then; UNSUPPORTED names a tensor that a parameter needs and whose type cairn does not have (BOOL, Q2_K ...). A
 * row whose `theirs` is NULL leaves its parameter out: an import leaves it its value, an export does not write it. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_session_export(cairn_session_t* session, const char* path,
                                                              const cairn_name_t* names, size_t name_count,
                                                              cairn_error_t* error);
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_session_import(cairn_session_t* session, const char* path,
                                                              const cairn_name_t* names, size_t name_count,
                                                              cairn_error_t* error);
/* What is added to a parameter W while it is written. kind CAIRN_MERGE_MATRIX: W + scale B A, of shapes [..., r, in] and
 * [..., out, r]; CAIRN_MERGE_TABLE: W + scale A B transposed, of shapes [rows, r] and [width, r]. magnitude, unless NULL: each
 * row of the sum gets this length (DoRA). a NULL: nothing is added. format, unless NULL: what the run stored W in, where
 * the session has W in full. Frozen layout. */
enum { CAIRN_MERGE_MATRIX = 0, CAIRN_MERGE_TABLE = 1 };
typedef struct cairn_merge {
  const char *weight, *a, *b, *magnitude, *format;
  double scale;
  uint32_t kind;
  uint32_t reserved; /* 0 */
} cairn_merge_t;
/* How a file has the values of a parameter, where it is not as they are. Frozen layout. Its rows (all dimensions but the last)
 * are `groups` groups of units of `unit` rows, in which `ways` runs of units take turns: unit i of run j is number
 * i * ways + j there, where the parameter has one run after the other. 1, 1, 1: rows are in their order. `offset` is what the
 * file's values are above the parameter's. */
typedef struct cairn_layout {
  const char* ours;
  uint32_t groups, ways, unit;
  float offset;
} cairn_layout_t;
typedef struct cairn_import_options {
  size_t struct_size;
  const cairn_layout_t* layouts;
  size_t layout_count;
} cairn_import_options_t;
#define CAIRN_IMPORT_OPTIONS_INIT {sizeof(cairn_import_options_t), NULL, 0}
/* As cairn_session_import, of parameters that a file has in another order. errors: also INVALID_ARGUMENT (rows that are no such
 * groups, a parameter that is transposed or stacked, too). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_session_import_as(cairn_session_t* session, const char* path,
                                                                 const cairn_name_t* names, size_t name_count,
                                                                 const cairn_import_options_t* options,
                                                                 cairn_error_t* error);
typedef struct cairn_export_options {
  size_t struct_size;
  const char* dtype;        /* "f32", "bf16", "f16": what is written; NULL: as each parameter is stored */
  const char* frozen_dtype; /* the same of parameters that are not trained and that no format (int8) has rounded; NULL: as
                               `dtype` says */
  uint32_t directory;       /* 1: `path` is a directory, new or empty: it gets model.safetensors, or several files and
                               model.safetensors.index.json */
  uint32_t reserved;        /* 0 */
  uint64_t shard_bytes;     /* of a directory: the most bytes of tensors in one file, but for a larger tensor; 0: no limit */
  const char* const* files; /* of a directory: copied into it under their own names */
  size_t file_count;
  const char* file_name;    /* of a directory of one file: its name; NULL: model.safetensors */
  const cairn_metadata_t* metadata; /* of the files that are written, besides format: pt */
  size_t metadata_count;
  const cairn_merge_t* merges; /* a row for each parameter that is written with an adapter, or that a format rounded */
  size_t merge_count;
  double* out_difference;   /* two numbers, or NULL: the largest and the mean difference between what is written of rows with
                               a format from W in full, and from what the format makes of W */
  uint32_t dequantise;      /* 1: of rows with a format, W is what the format makes of it */
  uint32_t reserved2;       /* 0 */
  const char* container;    /* NULL or "safetensors"; "gguf": a GGUF file, whose matrices are of `dtype` (also "q8_0", "q4_0"
                               ...), and whose vectors, norms, routers and positions are f32 */
  const char* gguf_metadata; /* of a GGUF file, JSON: {"metadata": {KEY: VALUE}, "tensors": {NAME: [numbers]}}. A value is a
                               text, a bool, a list of texts, or names a type: {"u32": 22}, {"f32": [0.5, 1]}. Tensors there
                               are f32 vectors besides the parameters */
  const cairn_layout_t* layouts; /* of a GGUF file */
  size_t layout_count;
} cairn_export_options_t;
#define CAIRN_EXPORT_OPTIONS_INIT \
  {sizeof(cairn_export_options_t), NULL, NULL, 0, 0, 0, NULL, 0, NULL, NULL, 0, NULL, 0, NULL, 0, 0, NULL, NULL, NULL, 0}
/* As cairn_session_export, in another type, as the directory of a model or as a GGUF file. All or nothing, durable when it
 * returns. A parameter that was imported from 16 bits, and not changed, is written in that type with the bytes it came from.
 * Merging takes the memory of one matrix. errors: also INVALID_ARGUMENT (the directory holds something; no such type), IO (of
 * the files to copy, too). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_session_export_as(cairn_session_t* session, const char* path,
                                                                 const cairn_name_t* names, size_t name_count,
                                                                 const cairn_export_options_t* options,
                                                                 cairn_error_t* error);
/* A graph as a file of its own, and back (frozen as it was). errors: IO (also: the directory to write to is not there),
 * CORRUPT_FILE. Of custom ops a file holds the names: cairn_graph_custom_op. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_graph_save(const cairn_graph_t* graph, const char* path,
                                                          cairn_error_t* error);
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_graph_load(cairn_instance_t* instance, const char* path,
                                                          cairn_graph_t** out_graph, cairn_error_t* error);
/* What a file, a checkpoint's directory or a model's is, as a JSON object; of a GGUF file `metadata` has plain values. errors: IO, NOT_FOUND, CORRUPT_FILE. threads: const. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_inspect(const cairn_instance_t* instance, const char* path,
                                                       cairn_text_t** out_json, cairn_error_t* error);

/* 8. Data ----------------------------------------------------------------------------------------------------------- */

typedef struct cairn_tokenizer cairn_tokenizer_t;
/* kind "bytes": path NULL. "bpe": loads the sentencepiece model (type bpe or unigram, with byte fallback) at path. Text is
   cut as it is, so that nothing is lost: a normaliser or a space in front that the model asks for is not applied.
   "pretrained": the tokenizer of a published model, whose tokens are those of the libraries that made it; path is the
   model's directory, or a file: tokenizer.json, tekken.json, a sentencepiece model, vocab.json next to merges.txt, or a
   GGUF file. "auto" is another name of it.
   errors: NOT_FOUND, CORRUPT_FILE, UNSUPPORTED (models of words or characters; a part that is not known, by its name).
   since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_tokenizer_open(cairn_instance_t* instance, const char* kind,
                                                              const char* path, cairn_tokenizer_t** out_tokenizer,
                                                              cairn_error_t* error);
/* Trains a byte-pair vocabulary on a text file and writes the model. errors: IO. blocks: until done. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_tokenizer_train(cairn_instance_t* instance, const char* text_path,
                                                               uint32_t vocabulary, const char* model_path,
                                                               cairn_error_t* error);
CAIRN_API void cairn_tokenizer_retain(cairn_tokenizer_t* tokenizer);
CAIRN_API void cairn_tokenizer_release(cairn_tokenizer_t* tokenizer);
/* How many different tokens there are: 0..vocabulary-1. threads: const. since: 1.0 */
CAIRN_API uint32_t cairn_tokenizer_vocabulary(const cairn_tokenizer_t* tokenizer);
/* Text to tokens: out_tokens holds int32 numbers (size / 4 of them); and back. threads: const. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_tokenizer_encode(const cairn_tokenizer_t* tokenizer, const char* text,
                                                                size_t size, cairn_text_t** out_tokens,
                                                                cairn_error_t* error);
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_tokenizer_decode(const cairn_tokenizer_t* tokenizer, const int32_t* tokens,
                                                                size_t count, cairn_text_t** out_text,
                                                                cairn_error_t* error);
enum { CAIRN_ENCODE_SPECIAL = 1 };
/* As cairn_tokenizer_encode, by flags: CAIRN_ENCODE_SPECIAL also gives the tokens that the tokenizer puts around a text.
 * Bytes that are no UTF-8 are read as U+FFFD, where the kind is "pretrained". out_offsets, unless NULL: a pair of uint32 for
 * each token, the bytes of the text that it stands for: begin and end. threads: const. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_tokenizer_encode_with(const cairn_tokenizer_t* tokenizer,
                                                                     const char* text, size_t size, uint32_t flags,
                                                                     cairn_text_t** out_tokens,
                                                                     cairn_text_t** out_offsets, cairn_error_t* error);
enum { CAIRN_DECODE_SKIP_SPECIAL = 1, CAIRN_DECODE_BYTES = 2 };
/* As cairn_tokenizer_decode, by flags: CAIRN_DECODE_SKIP_SPECIAL leaves special tokens out; without CAIRN_DECODE_BYTES what is
 * no UTF-8, as of tokens that are parts of a character, becomes U+FFFD. cairn_tokenizer_decode gives the bytes. threads: const.
 * errors: INVALID_ARGUMENT (a token outside the vocabulary). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_tokenizer_decode_with(const cairn_tokenizer_t* tokenizer,
                                                                     const int32_t* tokens, size_t count,
                                                                     uint32_t flags, cairn_text_t** out_text,
                                                                     cairn_error_t* error);
/* A token as the vocabulary spells it, empty where the number is none's; and the number of a token that is spelled so.
 * threads: const. errors: INVALID_ARGUMENT (a token outside the vocabulary), NOT_FOUND. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_tokenizer_token(const cairn_tokenizer_t* tokenizer, int32_t id,
                                                               cairn_text_t** out_token, cairn_error_t* error);
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_tokenizer_find(const cairn_tokenizer_t* tokenizer, const char* token,
                                                              size_t size, int32_t* out_id, cairn_error_t* error);
/* Writes the file that opens the tokenizer again, durably: of a GGUF file the tokenizer.json that says the same. Of the kind
 * "bytes", which has none, it writes nothing. errors: IO. threads: const. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_tokenizer_save(const cairn_tokenizer_t* tokenizer, const char* path,
                                                              cairn_error_t* error);
/* Writes the token file of a text file, durably. errors: IO, NOT_FOUND. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_tokenizer_write(const cairn_tokenizer_t* tokenizer, const char* text_path,
                                                               const char* token_path, cairn_error_t* error);

typedef struct cairn_dataset cairn_dataset_t;
/* Windows of length + 1 tokens from a token file. errors: NOT_FOUND, IO, CORRUPT_FILE. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_dataset_open(cairn_instance_t* instance, const char* token_path,
                                                            uint32_t length, cairn_dataset_t** out_dataset,
                                                            cairn_error_t* error);
/* Tokens drawn from the seed, for benchmarks. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_dataset_random(cairn_instance_t* instance, uint64_t seed,
                                                              uint32_t vocabulary, uint32_t length,
                                                              cairn_dataset_t** out_dataset, cairn_error_t* error);
CAIRN_API void cairn_dataset_retain(cairn_dataset_t* dataset);
CAIRN_API void cairn_dataset_release(cairn_dataset_t* dataset);

typedef struct cairn_dataset_info_t {
  size_t struct_size;
  uint64_t tokens, windows; /* windows of one epoch */
  uint32_t vocabulary, length;
} cairn_dataset_info_t;
#define CAIRN_DATASET_INFO_INIT {sizeof(cairn_dataset_info_t), 0, 0, 0, 0}
/* What a dataset holds. threads: const. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_dataset_info(const cairn_dataset_t* dataset,
                                                            cairn_dataset_info_t* out_info, cairn_error_t* error);
/* Micro-batch number index since the start of training: int32 inputs and targets, [batch, length] each, targets being the
 * next tokens. A pure function of (seed, index): epochs are shuffled by the seed, resuming costs nothing. The last
 * micro-batch of an epoch may have fewer rows (out_rows); the rest has target -100, which losses ignore. threads: const.
 * since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_dataset_batch(const cairn_dataset_t* dataset, uint64_t seed,
                                                             uint64_t index, uint32_t batch, int32_t* inputs,
                                                             int32_t* targets, uint32_t* out_rows, cairn_error_t* error);

/* ---- Pictures: decoded and augmented on threads, some micro-batches ahead */
typedef struct cairn_pictures cairn_pictures_t;
/* What becomes of a picture that cannot be read: an error; a black row with label -100; the next picture in its place. */
enum { CAIRN_PICTURES_ERROR = 0, CAIRN_PICTURES_SKIP = 1, CAIRN_PICTURES_REPLACE = 2 };
/* How a picture becomes `width` x `height`: the shorter side resized and the middle taken; a random part, resized, as torchvision's
 * RandomResizedCrop; as the first, then a random part of it with `padding` black pixels on each side. */
enum { CAIRN_CROP_CENTRE = 0, CAIRN_CROP_RANDOM_RESIZED = 1, CAIRN_CROP_PADDED = 2 };
typedef struct cairn_pictures_options {
  size_t struct_size;
  const char* data;      /* "drawings": labelled shapes, made from the seed; "mnist:DIR" (IDX files, or .gz), "cifar10:DIR",
                            "cifar100:DIR", "folder:DIR" (a folder of PNG, JPEG or WebP files for each class, or train/ and val/
                            with such folders), "tar:FILE,..." (a sample's members share a stem: a picture, .cls, .txt, .json),
                            "pairs:FILE" (lines of JSON: {"image": path, "text": ...}), "file:FILE" (one picture) */
  uint32_t test;         /* 1: the part to evaluate with. NOT_FOUND: the data have none */
  uint32_t width, height;
  uint32_t channels;     /* 3 (0, too), or 1: grey */
  double held_out;       /* a share of the data to train with, drawn by number, is the part to evaluate with */
  uint64_t most;         /* pictures at most; 0: all. Of drawings: how many there are */
  uint64_t seed;
  uint32_t classes;      /* of drawings, 2 to 10; 0: 10 */
  uint32_t shuffle;      /* 1: an order for each epoch, drawn from the seed; 0: all epochs are alike, also their draws */
  uint32_t workers;      /* threads; 0: the caller's alone */
  uint32_t ahead;        /* micro-batches that workers make ahead, at most 16 */
  uint32_t bad;          /* CAIRN_PICTURES_*: of a file that is truncated, foreign or gone */
  uint32_t crop;         /* CAIRN_CROP_* */
  uint32_t bicubic;      /* 1: instead of bilinear; both with antialias */
  uint32_t padding;
  double resize;         /* CAIRN_CROP_CENTRE: the shorter side, of the output's, before the rest is cut off; 0: 1 */
  double scale[2];       /* CAIRN_CROP_RANDOM_RESIZED: least and most share of the pixels; both 0: 0.08 and 1 */
  double ratio[2];       /* and of width to height; both 0: 3/4 and 4/3 */
  double flip;           /* probability of a mirror image */
  double brightness, contrast, saturation, hue; /* torchvision's ColorJitter; 0: as it is */
  uint32_t randaugment;  /* ops of RandAugment; 0: none */
  uint32_t magnitude;    /* of them, 0 to 30 */
  double mixup, cutmix;  /* of Beta(x, x), which mixes each row with the one before it; 0: none; both: either, by half */
  float mean[3];         /* of numbers from 0 to 1; what is given out is (number - mean) / deviation */
  float deviation[3];    /* all 0: 1 */
} cairn_pictures_options_t;
#define CAIRN_PICTURES_OPTIONS_INIT \
  {sizeof(cairn_pictures_options_t), NULL, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0, 0}, {0, 0}, 0, 0, 0, 0, 0, \
   0, 0, 0, 0, {0, 0, 0}, {0, 0, 0}}
/* Reads what there is, no picture yet. Its threads start with the first micro-batch. errors: NOT_FOUND (also: no part to
 * evaluate with), CORRUPT_FILE (also: an empty class folder), UNSUPPORTED (a codec that is left out; a header that claims more
 * than 16,384 pixels a side or 2^28 bytes), IO. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_pictures_open(cairn_instance_t* instance,
                                                             const cairn_pictures_options_t* options,
                                                             cairn_pictures_t** out_pictures, cairn_error_t* error);
CAIRN_API void cairn_pictures_retain(cairn_pictures_t* pictures);
CAIRN_API void cairn_pictures_release(cairn_pictures_t* pictures);

typedef struct cairn_pictures_info_t {
  size_t struct_size;
  uint64_t count;    /* pictures of an epoch */
  uint64_t bad;      /* different pictures that could not be read so far */
  uint32_t classes;  /* 0: the data say none */
  uint32_t texts;    /* 1: each picture has a text */
} cairn_pictures_info_t;
#define CAIRN_PICTURES_INFO_INIT {sizeof(cairn_pictures_info_t), 0, 0, 0, 0}
/* What the pictures are. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_pictures_info(cairn_pictures_t* pictures,
                                                             cairn_pictures_info_t* out_info, cairn_error_t* error);
/* Name of a class by its number. errors: NOT_FOUND (past the last). threads: const. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_pictures_class(const cairn_pictures_t* pictures, uint32_t number,
                                                              cairn_text_t** out_name, cairn_error_t* error);

/* Whether the data have the pictures that they had: XXH3-128, in hexadecimal, over the names, classes and texts of all, but not over
 * their pixels, and "-" with their count. blocks: while it goes through the names. threads: const. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_pictures_content(const cairn_pictures_t* pictures,
                                                                cairn_text_t** out_digest, cairn_error_t* error);

/* Where a micro-batch is written; NULL: not wanted. */
typedef struct cairn_pictures_batch {
  size_t struct_size;
  float* pixels;    /* [batch, height, width, channels] */
  int32_t* labels;  /* [batch]; -100: the row is black, and holds no picture of a known class */
  int32_t* others;  /* [batch]: class of what is mixed in; labels' where nothing is */
  float* shares;    /* [batch]: how much of the row is of class labels: 1 where nothing is mixed in */
  uint64_t* items;  /* [batch]: numbers for cairn_pictures_text */
  int32_t* masks;   /* [batch, height, width]: class + 1 of each pixel, 0: background; of drawings */
} cairn_pictures_batch_t;
#define CAIRN_PICTURES_BATCH_INIT {sizeof(cairn_pictures_batch_t), NULL, NULL, NULL, NULL, NULL, NULL}
/* Micro-batch number index since the start of training. A pure function of the options and the index, whatever the number of
 * workers: resuming costs nothing. The last micro-batch of an epoch may have fewer rows (out_rows). Workers then begin with
 * those that follow. blocks: until the rows are made; what was asked for in order mostly is. errors: as cairn_pictures_open; also
 * UNSUPPORTED (masks of data that have none). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_pictures_read(cairn_pictures_t* pictures, uint64_t index,
                                                              uint32_t batch, const cairn_pictures_batch_t* to,
                                                              uint32_t* out_rows, cairn_error_t* error);
/* The text of a picture; of a drawing its description, "a small red circle on blue". errors: NOT_FOUND (no such picture, or it has
 * no text). threads: const. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_pictures_text(const cairn_pictures_t* pictures, uint64_t item,
                                                             cairn_text_t** out_text, cairn_error_t* error);

/* ---- Chat templates: conversations as the text that a model was trained on */
typedef struct cairn_template cairn_template_t;
/* Reads a template (UTF-8, size bytes): Jinja as Hugging Face's Transformers runs it, an immutable sandbox with trim_blocks and
 * lstrip_blocks. name: what errors call it, in front of the line; NULL: "template". The text is not needed afterwards.
 * errors: CORRUPT_FILE (no template: the message has the line); UNSUPPORTED (a tag, filter or test that is not known; too large or
 * nested too deeply). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_template_create(const char* source, size_t size, const char* name,
                                                               cairn_template_t** out_template, cairn_error_t* error);
CAIRN_API void cairn_template_retain(cairn_template_t* chat_template);
CAIRN_API void cairn_template_release(cairn_template_t* chat_template);
/* The text that the template makes of values: a JSON object (UTF-8, size bytes) whose members are the template's variables, such
 * as messages, tools, add_generation_prompt, bos_token and eos_token; their order is kept. out_text: the caller's. The time that a
 * template asks for is local time. threads: const. blocks: until done, at most some seconds. errors: INVALID_ARGUMENT (no JSON
 * object; what the template raises, with its message and the line); UNSUPPORTED (more steps, bytes or calls within each other than
 * are allowed, as of a template that never ends). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_template_render(const cairn_template_t* chat_template, const char* values,
                                                               size_t size, cairn_text_t** out_text, cairn_error_t* error);

/* 9. Generation ------------------------------------------------------------------------------------------------------ */

typedef struct cairn_generator cairn_generator_t;

/* How the next token is drawn from logits; the steps in this order. The macro's numbers change nothing. */
typedef struct cairn_sampling {
  size_t struct_size;
  double repetition_penalty; /* > 0: logits of tokens that were there are divided by it, or multiplied below 0 */
  double temperature;        /* logits are divided by it; 0: the largest logit, always */
  double top_p;              /* in (0, 1]: among the fewest of the likeliest that have this probability together */
  double min_p;              /* in [0, 1]: none that is less likely than this share of the likeliest */
  uint64_t seed;
  uint32_t top_k; /* among so many of the largest; 0: all */
  uint32_t reserved;
} cairn_sampling_t;
#define CAIRN_SAMPLING_INIT {sizeof(cairn_sampling_t), 1.0, 1.0, 1.0, 0.0, 0, 0, 0}

/* Draws a token from logits[count] that the caller has: as generators do, which is a pure function of the arguments. seen:
 * the tokens of the text so far, to which the penalty applies; the draw's random number is of the seed and seen_count.
 * sampling may be NULL. INVALID_ARGUMENT also means: a token of seen is outside of 0 to count - 1. errors: NON_FINITE (a
 * logit is no number, or all are -infinity). threads: any. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_sampling_draw(const cairn_sampling_t* sampling, const float* logits,
                                                             size_t count, const int32_t* seen, size_t seen_count,
                                                             int32_t* out_token, cairn_error_t* error);

/* Texts, several at once, whose keys and values are kept in caches. sessions: of one store (cairn_session_create_set),
 * which the generator keeps: a program of one token of each sample, and any number of longer ones that read prompts. A
 * program has the input tokens[B, T] and the output logits[B, V] of each sample's last token, and, of these int32
 * inputs, those that it needs: position[B], where the first token stands; positions[B, T]; count[B], tokens that are
 * there; lengths[B] = position + count, keys that a sample sees; last[B], the row of its last token among B * T. The
 * program of one token appends to caches and attends to them; longer ones attend to their own tokens and append.
 * vocabulary: tokens to draw from, where there are more logits; 0: all. A generator counts as its sessions: one call
 * at a time. owns: caller. errors: WRONG_STATE (sessions of several stores). since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_generator_create(cairn_session_t* const* sessions, size_t count,
                                                                uint32_t vocabulary,
                                                                cairn_generator_t** out_generator,
                                                                cairn_error_t* error);
CAIRN_API void cairn_generator_retain(cairn_generator_t* generator);
CAIRN_API void cairn_generator_release(cairn_generator_t* generator);

/* Sample number `sample` begins with this prompt, instead of what it had. What it gets depends on the prompt, the
 * sampling and the parameters alone. sampling may be NULL. INVALID_ARGUMENT also means: a token outside of the
 * vocabulary, a prompt longer than the cache. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_generator_begin(cairn_generator_t* generator, uint32_t sample,
                                                               const int32_t* prompt, size_t count,
                                                               const cairn_sampling_t* sampling, cairn_error_t* error);
/* As cairn_generator_begin, for a text that begins as what the sample has so far: keys and values of the tokens that both begin
 * with are kept, and the rest is read token by token, as a conversation goes on. Sums are then taken in another order than of a
 * prompt that is read at once, so a draw may differ where logits are nearly equal. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_generator_extend(cairn_generator_t* generator, uint32_t sample,
                                                                const int32_t* text, size_t count,
                                                                const cairn_sampling_t* sampling, cairn_error_t* error);
/* The sample makes no more tokens. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_generator_end(cairn_generator_t* generator, uint32_t sample,
                                                             cairn_error_t* error);
/* The next token of each sample that began, -1 of others; count: samples. Prompts that came new are read first. After
 * an error all texts are as before. blocks: for the runs. INVALID_ARGUMENT also means: a sample's cache is full.
 * errors: NON_FINITE (logits), those of cairn_session_run. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_generator_next(cairn_generator_t* generator, int32_t* out_tokens,
                                                              size_t count, cairn_error_t* error);
/* The logits that a sample's last token was drawn from; count: the vocabulary. errors: WRONG_STATE (no token yet).
 * since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_generator_logits(const cairn_generator_t* generator, uint32_t sample,
                                                                float* out_logits, size_t count,
                                                                cairn_error_t* error);
typedef struct cairn_generator_info_t {
  size_t struct_size;
  uint64_t samples, vocabulary;
  uint64_t capacity;                       /* tokens of a sample's cache; 0: it keeps the last ones, and has no end */
  uint64_t cache_bytes;                    /* of all samples */
  uint64_t prefill_tokens, decode_tokens;  /* of prompts; read after that */
  double prefill_seconds, decode_seconds;
} cairn_generator_info_t;
#define CAIRN_GENERATOR_INFO_INIT {sizeof(cairn_generator_info_t), 0, 0, 0, 0, 0, 0, 0.0, 0.0}
/* What a generator has, and has done. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_generator_info(const cairn_generator_t* generator,
                                                              cairn_generator_info_t* out_info, cairn_error_t* error);

/* ------------------------------------------------------------------------------------------------ 10. Models
 * A model from its files in one object: its graph, tokenizer and template, a plan within the budget, a run that trains it,
 * programs that make texts. What `cairn train` does with a model's directory, by the same code, in this process: the
 * library libcairn_models.so, which comes with the command, is opened with the first model; without it UNSUPPORTED. */
typedef struct cairn_model cairn_model_t; /* threads: one call at a time */
typedef struct cairn_model_options {
  size_t struct_size;
  const char* const* settings; /* "key=value", as the command takes them: "seq=512", "batch=2", "lora=8", "rate=2e-4" */
  size_t setting_count;
  const char* device;    /* NULL: "cpu" */
  const char* amp;       /* "off" or NULL, "bf16", "fp16" */
  const char* format;    /* of frozen weights, as --format takes it; NULL: as the files have them */
  uint64_t budget_bytes; /* of the device, for training and texts together; 0: none is named */
  uint64_t seed;         /* 0: the command's */
  uint64_t steps;        /* in all, where a schedule asks for that; 0: the recipe's */
  uint32_t threads;      /* 0: the device's default */
  uint32_t accumulate;   /* micro-batches of a step; 0: 1 */
  uint32_t context;      /* most tokens of a prompt and its answer; 0: seq + 512 */
  uint32_t reserved;
} cairn_model_options_t;
#define CAIRN_MODEL_OPTIONS_INIT {sizeof(cairn_model_options_t), NULL, 0, NULL, NULL, NULL, 0, 0, 0, 0, 0, 0, 0}
/* Opens the model at path, a directory as Transformers writes it, plans, takes all memory and loads the weights.
 * options may be NULL. owns: caller. blocks: while it loads. INVALID_ARGUMENT also means: a setting or the model's
 * config.json is not understood. errors: OVER_BUDGET, NOT_FOUND, CORRUPT_FILE, IO. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_model_open(cairn_instance_t* instance, const char* path,
                                                          const cairn_model_options_t* options, cairn_model_t** out_model,
                                                          cairn_error_t* error);
CAIRN_API void cairn_model_retain(cairn_model_t* model);
CAIRN_API void cairn_model_release(cairn_model_t* model);
typedef struct cairn_model_info {
  size_t struct_size;
  uint64_t parameters, trainable_parameters; /* numbers in them */
  uint64_t planned_bytes[3];                 /* the peak by tier, to the byte */
  uint64_t seq, batch, vocabulary;
} cairn_model_info_t;
#define CAIRN_MODEL_INFO_INIT {sizeof(cairn_model_info_t), 0, 0, {0, 0, 0}, 0, 0, 0}
/* since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_model_describe(cairn_model_t* model, cairn_model_info_t* out_info,
                                                          cairn_error_t* error);
/* Adds a row to train with: a prompt and its answer, which is what is learned; by the model's template where it has one.
 * Rows are read when training goes on. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_model_add(cairn_model_t* model, const char* prompt, const char* answer,
                                                         cairn_error_t* error);
/* The same of any row of instruction data, a JSON object: messages, conversations, text. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_model_add_row(cairn_model_t* model, const char* json, cairn_error_t* error);
typedef struct cairn_model_report {
  size_t struct_size;
  double loss;     /* of the last step */
  double seconds;  /* of these steps */
  uint64_t step;   /* steps so far */
  uint64_t tokens; /* of these steps */
} cairn_model_report_t;
#define CAIRN_MODEL_REPORT_INIT {sizeof(cairn_model_report_t), 0.0, 0.0, 0, 0}
/* Trains so many steps on the rows, in another order for each pass over them. out_report may be NULL. blocks: for
 * the steps. INVALID_ARGUMENT also means: there is no row, or one is refused (the message says which). errors:
 * NON_FINITE, those of cairn_session_run. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_model_train(cairn_model_t* model, uint64_t steps,
                                                           cairn_model_report_t* out_report, cairn_error_t* error);
/* The model's answer to a prompt, by what it has learned so far, up to the token that ends it; tokens: at most so many,
 * 0: 512. sampling may be NULL. owns: caller. errors: NON_FINITE. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_model_generate(cairn_model_t* model, const char* prompt, uint32_t tokens,
                                                              const cairn_sampling_t* sampling, cairn_text_t** out_text,
                                                              cairn_error_t* error);
/* A checkpoint below the directory, which `cairn train --resume` goes on with. errors: IO. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_model_save(cairn_model_t* model, const char* directory,
                                                          cairn_error_t* error);
/* What `cairn export --to FORM` writes: "hf", "safetensors", "adapter", ... errors: IO. since: 1.0 */
CAIRN_API CAIRN_NODISCARD cairn_status_t cairn_model_export(cairn_model_t* model, const char* path, const char* form,
                                                            cairn_error_t* error);

#ifdef __cplusplus
}
#endif
#endif /* CAIRN_H_ */
