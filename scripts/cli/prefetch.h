// Micro-batches made ahead, on a thread with an interpreter of its own: see prefetch.c.
#pragma once

#include <lua.h>

// What gives a new interpreter the paths and modules of the command's; `native` opens its module cli.native.
typedef void (*prepare_t)(lua_State* lua, lua_CFunction native);

// Functions of the main interpreter, for its module cli.native: prefetch_open, prefetch_take, prefetch_close.
int prefetch_open(lua_State* lua);
int prefetch_take(lua_State* lua);
int prefetch_close(lua_State* lua);

// Set once, before any of them is called. interrupts: how many signals asked the command to end.
void prefetch_ready(prepare_t prepare, int (*interrupts)(void));
