// Chapter 2: instance and devices.
#include "capi/src/instance.h"

#include "capi/src/costs.h"
#include "capi/src/structs.h"
#include "runtime/device/host/file.h"

#define CAIRN_TEXT_OF(x) #x
#define CAIRN_TEXT(x) CAIRN_TEXT_OF(x)

using namespace cairn::capi;
using cairn::Code;

const char* cairn_version(void) {
  return CAIRN_TEXT(CAIRN_VERSION_MAJOR) "." CAIRN_TEXT(CAIRN_VERSION_MINOR) "." CAIRN_TEXT(
      CAIRN_VERSION_PATCH);
}
uint32_t cairn_version_number(void) {
  return CAIRN_VERSION_MAJOR * 10000 + CAIRN_VERSION_MINOR * 100 + CAIRN_VERSION_PATCH;
}

namespace {

constexpr uint32_t kMaxThreads = 4096;

cairn::HostAllocator read_allocator(const cairn_allocator_t* given) {
  if (given == nullptr) return {};
  const cairn_allocator_t a = read_struct(given, "options.allocator");
  cairn::require(a.allocate != nullptr && a.release != nullptr, Code::kInvalidArgument,
                 "options.allocator needs both ",
                 "callbacks: ", a.allocate == nullptr ? "allocate" : "release", " is NULL");
  return {a.user, a.allocate, a.release};
}

cairn::device::DeviceOptions convert(const cairn_device_options_t& o, const cairn_instance& instance) {
  cairn::require(o.threads <= kMaxThreads, Code::kInvalidArgument, "options.threads is ", o.threads,
                 "; at most ", kMaxThreads, " are allowed");
  flag(o.verify, "options.verify");
  not_negative(o.link_bytes_per_second, "options.link_bytes_per_second");
  return {.threads = static_cast<int>(o.threads),
          .link_bytes_per_second = o.link_bytes_per_second,
          .disk_directory = o.disk_directory == nullptr ? "" : o.disk_directory,
          .allocator = instance.allocator};
}

}  // namespace

cairn_status_t cairn_instance_create(const cairn_instance_options_t* options, cairn_instance_t** out_instance,
                                     cairn_error_t* error) {
  return guard(error, [&] {
    not_null(out_instance, "out_instance");
    const cairn_instance_options_t o = read_struct(options, CAIRN_INSTANCE_OPTIONS_INIT, "options");
    auto made = std::make_unique<cairn_instance>();
    made->allocator = read_allocator(o.allocator);
    made->log = o.log;
    made->log_user = o.log_user;
    *out_instance = made.release();
  });
}
void cairn_instance_retain(cairn_instance_t* instance) { retain(instance); }
void cairn_instance_release(cairn_instance_t* instance) { release(instance); }

cairn_status_t cairn_instance_device(const cairn_instance_t* instance, size_t index,
                                     cairn_device_info_t* out_info, cairn_error_t* error) {
  return guard(error, [&] {
    not_null(instance, "instance");
    const OutStruct out(out_info, "out_info");
    const auto devices = cairn::device::list();
    cairn::require(index < devices.size(), Code::kNotFound, "there is no device number ", index,
                   "; this machine has ", devices.size());
    const cairn::device::DeviceInfo& device = devices[index];
    cairn_device_info_t info = CAIRN_DEVICE_INFO_INIT;
    copy_text(info.name, device.name);
    copy_text(info.description, device.description);
    info.memory_bytes = static_cast<uint64_t>(device.memory_bytes);
    info.threads = static_cast<uint32_t>(device.threads);
    info.fast_bf16 = device.bf16 ? 1 : 0;
    copy_text(info.isa, device.isa_word);
    namespace host = cairn::device::host;
    static constexpr const char* kAccess[] = {"none", "buffered", "direct", "memory"};
    const auto access = host::disk_access(host::default_disk_directory());
    copy_text(info.disk_access, kAccess[static_cast<size_t>(access)]);
    out.write(info);
  });
}

cairn_status_t cairn_device_open(cairn_instance_t* instance, const char* name,
                                 const cairn_device_options_t* options, cairn_device_t** out_device,
                                 cairn_error_t* error) {
  return guard(error, [&] {
    not_null(instance, "instance");
    not_null(name, "name");
    not_null(out_device, "out_device");
    const cairn_device_options_t o = read_struct(options, CAIRN_DEVICE_OPTIONS_INIT, "options");
    auto made = std::make_unique<cairn_device>();
    made->device = cairn::device::open(name, convert(o, *instance));
    made->rates = wanted_rates(o.rates);
    if (o.verify != 0) made->device = cairn::device::checked(made->device);
    *out_device = made.release();
  });
}
void cairn_device_retain(cairn_device_t* device) { retain(device); }
void cairn_device_release(cairn_device_t* device) { release(device); }
