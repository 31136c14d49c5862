/* What libcairn and the library of models (libcairn_models.so, scripts/host) know of each other: C, of one build. */
#ifndef CAIRN_MODELS_PLUGIN_H_
#define CAIRN_MODELS_PLUGIN_H_
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CAIRN_MODELS_ABI = 1 };

/* A named argument or result: a text, or where text is NULL a number. A name that ends in "[]" is one of a list. */
typedef struct cairn_models_value {
  const char* name;
  const char* text;
  size_t size; /* of text */
  double number;
} cairn_models_value_t;

typedef void (*cairn_models_take_t)(void* to, const cairn_models_value_t* value);

typedef struct cairn_models_plugin {
  uint32_t abi;
  /* library: the file of the libcairn that asks. NULL: there is no memory, or no scripts: then `take` got "message". */
  void* (*create)(const char* library, cairn_models_take_t take, void* to);
  /* Runs a function of scripts/host/model.lua. Returns a cairn_status_t; gives `take` the results, or "message". */
  int (*call)(void* model, const char* function, const cairn_models_value_t* arguments, size_t count,
              cairn_models_take_t take, void* to);
  void (*destroy)(void* model);
} cairn_models_plugin_t;

/* The symbol that the library exports. */
#define CAIRN_MODELS_PLUGIN_SYMBOL "cairn_models_plugin"

#ifdef __cplusplus
}
#endif
#endif
