// The `cairn` command: LuaJIT with the binding and scripts/cli on its path. Everything else is Lua.
//
// Where the Lua files are: $CAIRN_LUA_ROOT, or PREFIX/share/cairn beside PREFIX/bin/cairn, which in a build
// tree is a link to the sources. A root holds bindings/lua and scripts.
//
// Signals, once a command asks for them: the first one sets a flag that the command reads between micro-batches, and
// raises an error in a recipe's code that is running; a second SIGINT or SIGTERM also cancels the run under way; the
// third ends the process. SIGHUP, SIGUSR1, SIGUSR2 and SIGXCPU, by which terminals and batch systems announce the end,
// often several times, ask for no more than the first. Compiled loops of a recipe that neither call nor allocate look
// at no hook: those end the process after some seconds.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <limits.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "cairn/cairn.h"
#include "prefetch.h"

static atomic_int interrupts;
static _Atomic(cairn_session_t*) watched;

// What a signal does to a recipe's code. Everything here is read and written on the main thread alone.
static lua_State* interpreter;
static pthread_t main_thread;
static volatile sig_atomic_t recipe_depth;  // calls of a recipe's functions that are running
static volatile sig_atomic_t recipe_cut;    // one of them was ended by an error of ours
static volatile sig_atomic_t recipe_hooked;
enum { kGraceSeconds = 5, kInstructionsUntilAgain = 100000 };

static void cut_recipe(lua_State* lua, lua_Debug* at) {
  if (recipe_depth == 0) {
    lua_sethook(lua, NULL, 0, 0);
    return;
  }
  // Not between a recipe's function and the lines of the command that called it.
  if (lua_getinfo(lua, "S", at) == 0 || strstr(at->source, "/scripts/cli/") != NULL) return;
  recipe_cut = 1;
  lua_sethook(lua, cut_recipe, LUA_MASKCOUNT, kInstructionsUntilAgain);  // it may have caught the error
  luaL_error(lua, "interrupted");
}

static void on_signal(int number) {
  if (!pthread_equal(pthread_self(), main_thread)) {
    pthread_kill(main_thread, number);
    return;
  }
  if (number != SIGINT && number != SIGTERM && atomic_load(&interrupts) > 0) return;
  const int count = atomic_fetch_add(&interrupts, 1) + 1;
  if (recipe_depth > 0 && count == 1) {
    recipe_hooked = 1;
    lua_sethook(interpreter, cut_recipe, LUA_MASKCOUNT, 1);  // made to be called from handlers
    alarm(kGraceSeconds);
  }
  cairn_session_t* session = atomic_load(&watched);
  if (count == 2 && session != NULL) cairn_session_cancel(session);  // stores one atomic flag
  if (count >= 3) {
    signal(number, SIG_DFL);
    raise(number);
  }
}

static void on_alarm(int number) {
  static const char text[] =
      "cairn: interrupted in the recipe's code, which did not end; nothing was saved since the last "
      "checkpoint\n";
  if (!pthread_equal(pthread_self(), main_thread)) {
    pthread_kill(main_thread, number);
    return;
  }
  if (recipe_depth == 0) return;
  const ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);
  (void)ignored;
  _exit(130);
}

// enter() and leave() around each call of a recipe's function; leave() says whether a signal cut it short.
static int enter(lua_State* lua) {
  (void)lua;
  ++recipe_depth;
  return 0;
}

static int leave(lua_State* lua) {
  --recipe_depth;
  const int cut = recipe_cut;
  if (recipe_depth == 0 && recipe_hooked) {
    alarm(0);
    lua_sethook(lua, NULL, 0, 0);
    recipe_cut = recipe_hooked = 0;
  }
  lua_pushboolean(lua, cut);
  return 1;
}

static int catch_signals(lua_State* lua) {
  (void)lua;
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU};
  for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); ++i) {
    struct sigaction before;
    // nohup's SIGHUP stays ignored.
    if (numbers[i] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler == SIG_IGN)
      continue;
    sigaction(numbers[i], &action, NULL);
  }
  // Who reads what is shown of the run may go; the run does not for that.
  signal(SIGPIPE, SIG_IGN);
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, NULL);
  return 0;
}

static int count_interrupts(lua_State* lua) {
  lua_pushinteger(lua, atomic_load(&interrupts));
  return 1;
}

// watch(address of a session as a number, or nothing): which session the second signal cancels. The caller
// keeps it alive.
static int watch(lua_State* lua) {
  atomic_store(&watched, (cairn_session_t*)(uintptr_t)luaL_optnumber(lua, 1, 0));
  return 0;
}

static int open_native(lua_State* lua) {
  static const luaL_Reg functions[] = {{"catch_signals", catch_signals},
                                       {"interrupts", count_interrupts},
                                       {"watch", watch},
                                       {"enter", enter},
                                       {"leave", leave},
                                       {"prefetch_open", prefetch_open},
                                       {"prefetch_take", prefetch_take},
                                       {"prefetch_close", prefetch_close},
                                       {NULL, NULL}};
  lua_newtable(lua);
  luaL_register(lua, NULL, functions);
  return 1;
}

// The library this program is linked with, so that the binding loads the same one.
static int open_library(lua_State* lua) {
  Dl_info info;
  if (dladdr((void*)(uintptr_t)&cairn_version, &info) == 0 || info.dli_fname == NULL) return 0;
  lua_pushstring(lua, info.dli_fname);
  return 1;
}

static int is_root(const char* root) {
  char path[PATH_MAX];
  if (root == NULL || root[0] == 0) return 0;
  snprintf(path, sizeof(path), "%s/scripts/cli/main.lua", root);
  return access(path, R_OK) == 0;
}

// Where this program lies; where there is no /proc, as in a bare chroot, by the path it was started with.
static int own_path(char* path, size_t size) {
  const ssize_t length = readlink("/proc/self/exe", path, size - 1);
  if (length <= 0) return realpath((const char*)getauxval(AT_EXECFN), path) != NULL;
  path[length] = 0;
  return 1;
}

static const char* find_root(char* buffer, size_t size) {
  const char* given = getenv("CAIRN_LUA_ROOT");
  if (is_root(given)) return given;
  char self[PATH_MAX];
  if (own_path(self, sizeof(self))) {
    for (int up = 0; up < 2; ++up) {
      char* slash = strrchr(self, '/');
      if (slash != NULL) *slash = 0;
    }
    snprintf(buffer, size, "%s/share/cairn", self);
    if (is_root(buffer)) return buffer;
  }
  return NULL;
}

static void preload(lua_State* lua, const char* name, lua_CFunction open) {
  lua_getglobal(lua, "package");
  lua_getfield(lua, -1, "preload");
  lua_pushcfunction(lua, open);
  lua_setfield(lua, -2, name);
  lua_pop(lua, 2);
}

// The absolute entries of a search path. The current directory may be a folder of somebody else's files, such
// as a checkpoint, and nothing there runs because a command was given in it.
static void push_absolute(lua_State* lua, const char* path) {
  luaL_Buffer buffer;
  luaL_buffinit(lua, &buffer);
  for (const char* entry = path; *entry != 0;) {
    const char* end = strchr(entry, ';');
    const size_t length = end != NULL ? (size_t)(end - entry) : strlen(entry);
    if (*entry == '/') {
      luaL_addlstring(&buffer, entry, length);
      luaL_addchar(&buffer, ';');
    }
    entry += length + (end != NULL);
  }
  luaL_pushresult(&buffer);
}

// Modules come from the installation first. `cairn lua` also has the usual paths, as any Lua.
static void set_paths(lua_State* lua, const char* root, int usual) {
  lua_getglobal(lua, "package");
  lua_getfield(lua, -1, "path");
  if (!usual) push_absolute(lua, lua_tostring(lua, -1));
  lua_pushfstring(lua, "%s/bindings/lua/?.lua;%s/scripts/?.lua;%s", root, root, lua_tostring(lua, -1));
  lua_setfield(lua, 1, "path");
  lua_settop(lua, 1);
  lua_getfield(lua, 1, "cpath");
  if (!usual) push_absolute(lua, lua_tostring(lua, -1));
  lua_setfield(lua, 1, "cpath");
  lua_settop(lua, 0);
}

static const char* found_root;

// What another interpreter of this process needs to run the command's modules.
static void prepare(lua_State* lua, lua_CFunction native) {
  preload(lua, "cairn.library", open_library);
  preload(lua, "cli.native", native);
  set_paths(lua, found_root, 0);
}

static int interrupts_so_far(void) { return atomic_load(&interrupts); }

// Whether the library that was loaded is one this command can work with: of the same major version, and no older.
static int check_library(void) {
  enum { kNumber = CAIRN_VERSION_MAJOR * 10000 + CAIRN_VERSION_MINOR * 100 + CAIRN_VERSION_PATCH };
  const uint32_t number = cairn_version_number();
  if (number / 10000 == CAIRN_VERSION_MAJOR && number >= kNumber) return 1;
  Dl_info info;
  const int found = dladdr((void*)(uintptr_t)&cairn_version, &info) != 0 && info.dli_fname != NULL;
  fprintf(
      stderr,
      "cairn: %s is version %s; this command needs libcairn %d.x, %d.%d.%d or later: install the two of the "
      "same version, and see that LD_LIBRARY_PATH leads to no other\n",
      found ? info.dli_fname : "libcairn.so", cairn_version(), CAIRN_VERSION_MAJOR, CAIRN_VERSION_MAJOR,
      CAIRN_VERSION_MINOR, CAIRN_VERSION_PATCH);
  return 0;
}

// A closed descriptor of the first three would be the next file's that is opened, and what is printed would go into
// that file. This one can be neither read, as stdin, nor written to, as stdout and stderr: both fail as before.
static void hold_standard_descriptors(void) {
  for (int fd = 0; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return;
  }
}

// What the library's own tables need is asked for before main(), where nobody could catch that there is no memory: the
// language then aborts. Nothing else is done there that could.
static void on_early_abort(int number) {
  (void)number;
  static const char text[] = "cairn: not enough memory to start\n";
  const ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);
  (void)ignored;
  _exit(4);
}

static void expect_early_abort(int argc, char** argv, char** environment) {
  (void)argc;
  (void)argv;
  (void)environment;
  signal(SIGABRT, on_early_abort);
}
__attribute__((section(".preinit_array"),
               used)) static void (*const before_libraries)(int, char**, char**) = expect_early_abort;

// Where Lua could not even say what is wrong: the code and the message of what lua_pcall and luaL_loadfile return.
static int report(lua_State* lua, int status) {
  const char* message = lua_tostring(lua, -1);
  const int memory = status == LUA_ERRMEM || status == LUA_ERRERR || message == NULL ||
                     strstr(message, "not enough memory") != NULL ||
                     strstr(message, "Cannot allocate memory") != NULL ||
                     strstr(message, "gave no memory") != NULL;
  fprintf(stderr, "cairn: %s\n", message != NULL ? message : "not enough memory");
  return memory ? 4 : 1;
}

typedef struct start {
  const char* root;
  int argc;
  char** argv;
  int code;
} start_t;

// All that needs memory of the interpreter's, protected, so that where there is none the command ends with its own code.
static int run(lua_State* lua) {
  start_t* start = lua_touserdata(lua, 1);
  lua_settop(lua, 0);
  luaL_openlibs(lua);
  preload(lua, "cairn.library", open_library);
  preload(lua, "cli.native", open_native);
  set_paths(lua, start->root, start->argc > 1 && strcmp(start->argv[1], "lua") == 0);
  char entry[PATH_MAX + 64];
  snprintf(entry, sizeof(entry), "%s/scripts/cli/main.lua", start->root);
  if (luaL_loadfile(lua, entry) != 0) return lua_error(lua);
  luaL_checkstack(lua, start->argc + 8, "arguments");
  lua_pushstring(lua, start->root);
  for (int i = 1; i < start->argc; ++i) lua_pushstring(lua, start->argv[i]);
  lua_call(lua, start->argc, 1);
  start->code = (int)lua_tointeger(lua, -1);
  return 0;
}

int main(int argc, char** argv) {
  signal(SIGABRT, SIG_DFL);
  hold_standard_descriptors();
  if (!check_library()) return 1;
  // A write beyond the limit on file sizes fails, and the command says of which file.
  signal(SIGXFSZ, SIG_IGN);
  main_thread = pthread_self();
  char buffer[PATH_MAX + 16], real[PATH_MAX];
  const char* root = find_root(buffer, sizeof(buffer));
  if (root != NULL && realpath(root, real) != NULL) root = real;
  if (root == NULL) {
    fprintf(stderr,
            "cairn: the Lua files were not found; set CAIRN_LUA_ROOT to the folder with scripts/ and "
            "bindings/\n");
    return 1;
  }
  lua_State* lua = luaL_newstate();
  if (lua == NULL) {
    fprintf(stderr, "cairn: out of memory\n");
    return 4;
  }
  interpreter = lua;
  found_root = root;
  prefetch_ready(prepare, interrupts_so_far);
  start_t start = {root, argc, argv, 1};
  const int status = lua_cpcall(lua, run, &start);
  const int code = status == 0 ? start.code : report(lua, status);
  atomic_store(&watched, (cairn_session_t*)NULL);
  prefetch_close(lua);
  lua_close(lua);
  return code;
}
