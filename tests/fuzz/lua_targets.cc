// Readers that are written in Lua, run by LuaJIT as the command does.
#include <lua.hpp>

#include "tests/fuzz/families.h"
#include "tests/fuzz/tools.h"

// libFuzzer takes changes of these as new coverage: the lines of Lua that ran.
__attribute__((section("__libfuzzer_extra_counters"))) uint8_t cairn_fuzz_lua_lines[4096];

namespace cairn::fuzz {
namespace {

void count_line(lua_State* lua, lua_Debug* record) {
  lua_getinfo(lua, "Sl", record);
  size_t place = static_cast<size_t>(record->currentline);
  for (const char* c = record->short_src; *c != 0; ++c) place = place * 31 + static_cast<uint8_t>(*c);
  ++cairn_fuzz_lua_lines[place % sizeof cairn_fuzz_lua_lines];
}

[[noreturn]] void stop(lua_State* lua) {
  const char* const text = lua_tostring(lua, -1);
  const std::string message = text == nullptr ? "an error without a text" : text;
  lua_pop(lua, 1);
  throw std::logic_error(message);
}

// The functions of readers.lua.
lua_State* readers() {
  static lua_State* const state = [] {
    lua_State* lua = luaL_newstate();
    if (lua == nullptr) throw std::logic_error("no Lua");
    luaL_openlibs(lua);
    luaJIT_setmode(lua, 0, LUAJIT_MODE_ENGINE | LUAJIT_MODE_OFF);  // compiled code has no lines
    lua_pushstring(lua, CAIRN_SOURCE_DIR);
    lua_setglobal(lua, "ROOT");
    if (luaL_dofile(lua, CAIRN_SOURCE_DIR "/tests/fuzz/readers.lua") != 0) stop(lua);
    lua_sethook(lua, count_line, LUA_MASKLINE, 0);
    return lua;
  }();
  return state;
}

void call(const char* reader, std::span<const std::byte> input) {
  lua_State* const lua = readers();
  lua_getfield(lua, -1, reader);
  lua_pushlstring(lua, reinterpret_cast<const char*>(input.data()), input.size());
  if (lua_pcall(lua, 1, 0, 0) != 0) stop(lua);
}

}  // namespace

void lua_json(std::span<const std::byte> input) { call("json", input); }
void recipe_options(std::span<const std::byte> input) { call("options", input); }
void run_config(std::span<const std::byte> input) { call("run_config", input); }
void instruction_row(std::span<const std::byte> input) { call("row", input); }

std::vector<std::string> lua_json_seeds() {
  return {
      R"({"format":"cairn.plan/1","values":[{"name":"x","bytes":64,"kept":true,"reason":null}],"gap":-1.5e-3})",
      R"( [ "a\n\u00e9\u20AC\"", [], {}, false, 0, 1e300, [[[1]]] ] )", std::string(30000, '[')};
}

std::vector<std::string> recipe_options_seeds() {
  return {
      "sample\nlayers=3\n--budget\n50%\n--steps=10\nshape=wide\nrate=1e-3\n--json",
      "--budget=1.5GiB\nlayers=4\nfast=true\ndata=a file\n--tiers\nhost,disk\n--\n--x",
      "batch=8\nglobal_batch=16\nclip=0\nschedule=cosine\n--link=4e9\n--amp=bf16\n--policy\nauto\n--seed="
      "7\n--help",
      "schedule=linear:100:start_factor=0.1,multistep:milestones=3/5\nmilestones=300,600\nwarmup_samples=64\n"
      "rate_scaling=sqrt\nbase_batch=8\ndecay_shape=sqrt\nthree_phase=true"};
}

std::vector<std::string> run_config_seeds() {
  return {
      R"({"form":"cairn.run/1","cairn":"1.0.0","recipe":"sample","options":{"layers":3,"shape":"wide","fast":true},)"
      R"("arguments":{"steps":10,"budget":"50%","seed":7,"json":false}})",
      R"({"recipe":"sample","options":{"data":"a file","rate":1e-3},"arguments":{"tiers":"host,disk"}})",
      R"({"options":{"layers":[2]},"arguments":{"fuse-update":true},"more":null})"};
}

std::vector<std::string> instruction_row_seeds() {
  return {
      R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b","weight":0}],"tools":"[{}]"})",
      R"({"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"\u00e9"}],"tools":[{"name":"f"}]})",
      R"({"prompt":[{"role":"user","content":[{"type":"text","text":"a"}]}],"completion":"b","system":null})",
      R"({"prompt":"a","chosen":[{"role":"assistant","content":"b"}],"rejected":[{"role":"assistant","content":"c"}]})",
      R"({"instruction":"a","input":"b","output":"c"})",
      R"({"text":"a"})"};
}

}  // namespace cairn::fuzz
