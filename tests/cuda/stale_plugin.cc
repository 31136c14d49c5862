// A plugin that was built with another version of the library: nothing of it may be called.
#include <cstdint>
#include <cstdlib>

#define EXPORTED extern "C" __attribute__((visibility("default")))

#ifdef other_abi
EXPORTED const uint32_t cairn_device_plugin_abi;
const uint32_t cairn_device_plugin_abi = 1;
#endif

EXPORTED void cairn_device_plugin_open() { std::abort(); }
