// Micro-batches made ahead, on one thread that has an interpreter of its own: what it runs is cli/data/ahead.lua, which
// opens the recipe's data a second time and packs a micro-batch into one block of memory.
//
// The main thread asks for micro-batches by number. Those asked for in order are made before they are asked for, as
// many as there are slots; any other number begins anew there. One lock guards all that both threads see. The worker
// reads nothing of the main interpreter, and no signal is for it.
#include "prefetch.h"

#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kMostSlots = 64, kWaitMilliseconds = 20, kJoinSeconds = 2, kHookInstructions = 1000 };

static prepare_t prepare_interpreter;
static int (*interrupt_count)(void);

typedef struct {
  uint64_t index;
  char*
      header;  // what ahead.lua says of the block; NULL: this micro-batch is for the main interpreter to make
  void* block;  // malloc's
} made_t;

// The worker's and the main thread's, freed by whoever leaves last.
typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  pthread_t thread;
  made_t made[kMostSlots];
  uint64_t first, next;  // number of the oldest one made, and of the next to make
  int count, slots, stop, ended, abandoned;
  char *entry, *settings;
  char* problem;  // why there is no worker
} ahead_t;

static ahead_t* current;  // the main thread's

void prefetch_ready(prepare_t prepare, int (*interrupts)(void)) {
  prepare_interpreter = prepare;
  interrupt_count = interrupts;
}

static void drop(made_t* made) {
  free(made->header);
  free(made->block);
  made->header = NULL;
  made->block = NULL;
}

static void destroy(ahead_t* ahead) {
  for (int i = 0; i < kMostSlots; ++i) drop(&ahead->made[i]);
  pthread_cond_destroy(&ahead->changed);
  pthread_mutex_destroy(&ahead->lock);
  free(ahead->entry);
  free(ahead->settings);
  free(ahead->problem);
  free(ahead);
}

static void end_now(lua_State* lua, lua_Debug* at) {
  (void)at;
  lua_getfield(lua, LUA_REGISTRYINDEX, "cairn.ahead");
  ahead_t* ahead = lua_touserdata(lua, -1);
  lua_pop(lua, 1);
  pthread_mutex_lock(&ahead->lock);
  const int stop = ahead->stop;
  pthread_mutex_unlock(&ahead->lock);
  if (stop) luaL_error(lua, "the run has ended");
}

// A recipe's code takes as long as it likes here: signals and their clock are the main thread's.
static int nothing(lua_State* lua) {
  (void)lua;
  return 0;
}

static int no_interrupts(lua_State* lua) {
  lua_pushinteger(lua, 0);
  return 1;
}

static int open_native(lua_State* lua) {
  static const luaL_Reg functions[] = {{"enter", nothing},
                                       {"leave", nothing},
                                       {"interrupts", no_interrupts},
                                       {"watch", nothing},
                                       {NULL, NULL}};
  lua_newtable(lua);
  luaL_register(lua, NULL, functions);
  return 1;
}

static lua_State* start(ahead_t* ahead) {
  lua_State* lua = luaL_newstate();
  if (lua == NULL) return NULL;
  luaL_openlibs(lua);
  prepare_interpreter(lua, open_native);
  lua_pushlightuserdata(lua, ahead);
  lua_setfield(lua, LUA_REGISTRYINDEX, "cairn.ahead");
  lua_sethook(lua, end_now, LUA_MASKCOUNT, kHookInstructions);
  if (luaL_loadfile(lua, ahead->entry) == 0) {
    lua_pushstring(lua, ahead->settings);
    if (lua_pcall(lua, 1, 1, 0) == 0 && lua_isfunction(lua, -1)) return lua;
  }
  const char* problem = lua_tostring(lua, -1);
  ahead->problem = strdup(problem != NULL ? problem : "an error without a text");
  lua_close(lua);
  return NULL;
}

// One micro-batch by the function on the interpreter's stack: a header and the address of a block, or nothing.
static void make(lua_State* lua, made_t* made) {
  lua_pushvalue(lua, 1);
  lua_pushnumber(lua, (lua_Number)made->index);
  if (lua_pcall(lua, 1, 2, 0) == 0 && lua_isstring(lua, -2) && lua_isnumber(lua, -1)) {
    made->header = strdup(lua_tostring(lua, -2));
    made->block = (void*)(uintptr_t)lua_tonumber(lua, -1);
    if (made->header == NULL) drop(made);
  }
  lua_settop(lua, 1);
}

static void* work(void* argument) {
  ahead_t* ahead = argument;
  lua_State* lua = start(ahead);
  pthread_mutex_lock(&ahead->lock);
  while (lua != NULL && !ahead->stop) {
    if (ahead->count == ahead->slots) {
      pthread_cond_wait(&ahead->changed, &ahead->lock);
      continue;
    }
    made_t made = {ahead->next, NULL, NULL};
    pthread_mutex_unlock(&ahead->lock);
    make(lua, &made);
    pthread_mutex_lock(&ahead->lock);
    if (made.index == ahead->next) {
      ahead->made[made.index % kMostSlots] = made;
      ++ahead->next;
      ++ahead->count;
      pthread_cond_broadcast(&ahead->changed);
    } else {  // another number was asked for meanwhile
      drop(&made);
    }
  }
  ahead->ended = 1;
  pthread_cond_broadcast(&ahead->changed);
  const int abandoned = ahead->abandoned;
  pthread_mutex_unlock(&ahead->lock);
  if (lua != NULL) lua_close(lua);
  if (abandoned) destroy(ahead);
  return NULL;
}

// prefetch_open(file of the worker's code, its settings, slots, first number): true, or nil where no thread can be had.
int prefetch_open(lua_State* lua) {
  const char *entry = luaL_checkstring(lua, 1), *settings = luaL_checkstring(lua, 2);
  const int slots = (int)luaL_checkinteger(lua, 3);
  prefetch_close(lua);
  ahead_t* ahead = calloc(1, sizeof(*ahead));
  if (ahead == NULL) return 0;
  ahead->slots = slots < 1 ? 1 : slots > kMostSlots ? kMostSlots : slots;
  ahead->first = ahead->next = (uint64_t)luaL_checknumber(lua, 4);
  ahead->entry = strdup(entry);
  ahead->settings = strdup(settings);
  pthread_mutex_init(&ahead->lock, NULL);
  pthread_cond_init(&ahead->changed, NULL);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int failed = ahead->entry == NULL || ahead->settings == NULL ||
                     pthread_create(&ahead->thread, NULL, work, ahead) != 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed) {
    destroy(ahead);
    return 0;
  }
  current = ahead;
  lua_pushboolean(lua, 1);
  return 1;
}

static void deadline_in(struct timespec* time, long milliseconds) {
  clock_gettime(CLOCK_REALTIME, time);
  time->tv_nsec += milliseconds % 1000 * 1000000;
  time->tv_sec += milliseconds / 1000 + time->tv_nsec / 1000000000;
  time->tv_nsec %= 1000000000;
}

// prefetch_take(number): its header and the address of its block, which the caller frees; false if a signal came while
// it was waited for; nil: the main interpreter makes this one; nil and why: it makes all of them.
int prefetch_take(lua_State* lua) {
  const uint64_t index = (uint64_t)luaL_checknumber(lua, 1);
  ahead_t* ahead = current;
  if (ahead == NULL) return 0;
  const int interrupts = interrupt_count();
  pthread_mutex_lock(&ahead->lock);
  if (index != ahead->first) {
    for (; ahead->count > 0; --ahead->count) drop(&ahead->made[ahead->first++ % kMostSlots]);
    ahead->first = ahead->next = index;
    pthread_cond_broadcast(&ahead->changed);
  }
  while (ahead->count == 0 && !ahead->ended && interrupt_count() == interrupts) {
    struct timespec until;
    deadline_in(&until, kWaitMilliseconds);
    pthread_cond_timedwait(&ahead->changed, &ahead->lock, &until);
  }
  made_t made = {0, NULL, NULL};
  const int there = ahead->count > 0, ended = ahead->ended;
  if (there) {
    made = ahead->made[index % kMostSlots];
    memset(&ahead->made[index % kMostSlots], 0, sizeof(made));
    ++ahead->first;
    --ahead->count;
    pthread_cond_broadcast(&ahead->changed);
  }
  pthread_mutex_unlock(&ahead->lock);
  if (!there && !ended) {
    lua_pushboolean(lua, 0);
    return 1;
  }
  if (made.header == NULL) {
    lua_pushnil(lua);
    if (there) return 1;
    lua_pushstring(lua, ahead->problem != NULL ? ahead->problem : "out of memory");
    return 2;
  }
  lua_pushstring(lua, made.header);
  lua_pushnumber(lua, (lua_Number)(uintptr_t)made.block);
  free(made.header);
  return 2;
}

// Ends the worker; one that does not end in time is left behind, and cleans up after itself.
int prefetch_close(lua_State* lua) {
  (void)lua;
  ahead_t* ahead = current;
  if (ahead == NULL) return 0;
  current = NULL;
  struct timespec until;
  deadline_in(&until, kJoinSeconds * 1000L);
  pthread_mutex_lock(&ahead->lock);
  ahead->stop = 1;
  pthread_cond_broadcast(&ahead->changed);
  while (!ahead->ended && pthread_cond_timedwait(&ahead->changed, &ahead->lock, &until) != ETIMEDOUT)
    continue;
  const int ended = ahead->ended;
  ahead->abandoned = !ended;
  pthread_mutex_unlock(&ahead->lock);
  if (ended) {
    pthread_join(ahead->thread, NULL);
    destroy(ahead);
  } else {
    pthread_detach(ahead->thread);
  }
  return 0;
}
