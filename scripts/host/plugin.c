// libcairn_models.so: models by the command's modules, for programs in any language. libcairn opens it when the first
// model is (capi/src/models/model.cc). A model is an interpreter; nothing here is shared between two, printed, or of the process.
#define _GNU_SOURCE  // dladdr
#include "capi/src/models/plugin.h"

#include <dlfcn.h>
#include <lauxlib.h>
#include <limits.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void tell(cairn_models_take_t take, void* to, const char* message) {
  const cairn_models_value_t value = {"message", message, strlen(message), 0};
  take(to, &value);
}

static int has_scripts(const char* root) {
  char path[PATH_MAX + 64];
  if (root == NULL || root[0] == 0) return 0;
  snprintf(path, sizeof(path), "%s/scripts/host/model.lua", root);
  return access(path, R_OK) == 0;
}

// The folder with scripts/ and bindings/: beside lib/ of this library's prefix, or what CAIRN_LUA_ROOT says.
static const char* find_root(char* buffer, size_t size) {
  const char* given = getenv("CAIRN_LUA_ROOT");
  if (has_scripts(given)) return given;
  Dl_info info;
  char self[PATH_MAX];
  if (dladdr((void*)(uintptr_t)&find_root, &info) == 0 || realpath(info.dli_fname, self) == NULL) return NULL;
  for (char* slash = strrchr(self, '/'); slash != NULL; slash = strrchr(self, '/')) {
    *slash = 0;
    snprintf(buffer, size, "%s/share/cairn", self);
    if (has_scripts(buffer)) return buffer;
  }
  return NULL;
}

static int nothing(lua_State* lua) {
  (void)lua;
  return 0;
}
static int zero(lua_State* lua) {
  lua_pushinteger(lua, 0);
  return 1;
}
static int no(lua_State* lua) {
  lua_pushboolean(lua, 0);
  return 1;
}

// What the command's own program gives its modules: signals are the host's.
static int open_native(lua_State* lua) {
  static const luaL_Reg functions[] = {{"catch_signals", nothing},
                                       {"interrupts", zero},
                                       {"watch", nothing},
                                       {"enter", nothing},
                                       {"leave", no},
                                       {"prefetch_close", nothing},
                                       {NULL, NULL}};
  lua_newtable(lua);
  luaL_register(lua, NULL, functions);
  return 1;
}

static int open_library(lua_State* lua) {
  lua_getfield(lua, LUA_REGISTRYINDEX, "cairn.library");
  return 1;
}

static void preload(lua_State* lua, const char* name, lua_CFunction open) {
  lua_getglobal(lua, "package");
  lua_getfield(lua, -1, "preload");
  lua_pushcfunction(lua, open);
  lua_setfield(lua, -2, name);
  lua_pop(lua, 2);
}

typedef struct start {
  const char *root, *library;
} start_t;

static int begin(lua_State* lua) {
  const start_t* start = lua_touserdata(lua, 1);
  luaL_openlibs(lua);
  lua_pushstring(lua, start->library);
  lua_setfield(lua, LUA_REGISTRYINDEX, "cairn.library");
  preload(lua, "cairn.library", open_library);
  preload(lua, "cli.native", open_native);
  lua_getglobal(lua, "package");
  lua_pushfstring(lua, "%s/bindings/lua/?.lua;%s/scripts/?.lua", start->root, start->root);
  lua_setfield(lua, -2, "path");
  lua_pushliteral(lua, "");
  lua_setfield(lua, -2, "cpath");
  lua_getglobal(lua, "require");
  lua_pushliteral(lua, "host.calls");
  lua_call(lua, 1, 1);
  lua_pushstring(lua, start->root);
  lua_call(lua, 1, 1);  // function(name, arguments) -> status, results or message
  lua_setfield(lua, LUA_REGISTRYINDEX, "cairn.call");
  return 0;
}

static void* create(const char* library, cairn_models_take_t take, void* to) {
  char buffer[PATH_MAX + 16];
  const char* root = find_root(buffer, sizeof(buffer));
  if (root == NULL) {
    tell(take, to,
         "the Lua files of models were not found; set CAIRN_LUA_ROOT to the folder with scripts/ and "
         "bindings/");
    return NULL;
  }
  lua_State* lua = luaL_newstate();
  if (lua == NULL) {
    tell(take, to, "the system gave no memory for an interpreter");
    return NULL;
  }
  start_t start = {root, library};
  if (lua_cpcall(lua, begin, &start) != 0) {
    const char* message = lua_tostring(lua, -1);
    tell(take, to, message != NULL ? message : "not enough memory");
    lua_close(lua);
    return NULL;
  }
  return lua;
}

typedef struct request {
  const char* function;
  const cairn_models_value_t* arguments;
  size_t count;
  cairn_models_take_t take;
  void* to;
  int status;
} request_t;

static void push_value(lua_State* lua, const cairn_models_value_t* value) {
  if (value->text != NULL)
    lua_pushlstring(lua, value->text, value->size);
  else
    lua_pushnumber(lua, value->number);
}

static void push_arguments(lua_State* lua, const request_t* request) {
  lua_newtable(lua);
  for (size_t i = 0; i < request->count; ++i) {
    const cairn_models_value_t* value = &request->arguments[i];
    const size_t length = strlen(value->name);
    if (length > 2 && strcmp(value->name + length - 2, "[]") == 0) {
      lua_pushlstring(lua, value->name, length - 2);
      lua_gettable(lua, -2);
      if (lua_isnil(lua, -1)) {
        lua_pop(lua, 1);
        lua_newtable(lua);
        lua_pushlstring(lua, value->name, length - 2);
        lua_pushvalue(lua, -2);
        lua_settable(lua, -4);
      }
      push_value(lua, value);
      lua_rawseti(lua, -2, (int)lua_objlen(lua, -2) + 1);
      lua_pop(lua, 1);
    } else {
      push_value(lua, value);
      lua_setfield(lua, -2, value->name);
    }
  }
}

static int run(lua_State* lua) {
  request_t* request = lua_touserdata(lua, 1);
  lua_getfield(lua, LUA_REGISTRYINDEX, "cairn.call");
  lua_pushstring(lua, request->function);
  push_arguments(lua, request);
  lua_call(lua, 2, 2);
  request->status = (int)lua_tointeger(lua, -2);
  if (!lua_istable(lua, -1)) {
    tell(request->take, request->to, lua_tostring(lua, -1));
    return 0;
  }
  for (lua_pushnil(lua); lua_next(lua, -2) != 0; lua_pop(lua, 1)) {
    cairn_models_value_t value = {lua_tostring(lua, -2), NULL, 0, 0};
    if (lua_type(lua, -1) == LUA_TSTRING)
      value.text = lua_tolstring(lua, -1, &value.size);
    else
      value.number = lua_tonumber(lua, -1);
    request->take(request->to, &value);
  }
  return 0;
}

static int call(void* model, const char* function, const cairn_models_value_t* arguments, size_t count,
                cairn_models_take_t take, void* to) {
  lua_State* lua = model;
  request_t request = {function, arguments, count, take, to, 0};
  if (lua_cpcall(lua, run, &request) == 0) return request.status;
  enum { kOutOfMemory = 3 };  // CAIRN_STATUS_OUT_OF_MEMORY: nothing else is raised there
  const char* message = lua_tostring(lua, -1);
  tell(take, to, message != NULL ? message : "not enough memory");
  lua_settop(lua, 0);
  return kOutOfMemory;
}

static void destroy(void* model) { lua_close(model); }

__attribute__((visibility("default")))
const cairn_models_plugin_t cairn_models_plugin = {CAIRN_MODELS_ABI, create, call, destroy};
