// Chapter 1: status codes, error objects, texts.
#include <cstring>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

#include "capi/src/structs.h"
#include "capi/src/text.h"

struct cairn_error : cairn::capi::PlainHandle {
  cairn_status_t status = CAIRN_STATUS_OK;
  bool has_fault = false;
  cairn_memory_fault_t fault = CAIRN_MEMORY_FAULT_INIT;
  char message[1024] = {0};
};

namespace cairn::capi {
namespace {

constexpr const char* kNames[] = {"OK",          "INVALID_ARGUMENT", "WRONG_STATE", "OUT_OF_MEMORY",
                                  "OVER_BUDGET", "UNSUPPORTED",      "NOT_FOUND",   "CORRUPT_FILE",
                                  "IO",          "DEVICE_LOST",      "CANCELLED",   "NON_FINITE",
                                  "INTERNAL"};
constexpr size_t kNameCount = std::size(kNames);
static_assert(kNameCount == static_cast<size_t>(Code::kInternal) + 1);
static_assert(CAIRN_STATUS_INVALID_ARGUMENT == static_cast<int>(Code::kInvalidArgument));
static_assert(CAIRN_STATUS_WRONG_STATE == static_cast<int>(Code::kWrongState));
static_assert(CAIRN_STATUS_OUT_OF_MEMORY == static_cast<int>(Code::kOutOfMemory));
static_assert(CAIRN_STATUS_OVER_BUDGET == static_cast<int>(Code::kOverBudget));
static_assert(CAIRN_STATUS_UNSUPPORTED == static_cast<int>(Code::kUnsupported));
static_assert(CAIRN_STATUS_NOT_FOUND == static_cast<int>(Code::kNotFound));
static_assert(CAIRN_STATUS_CORRUPT_FILE == static_cast<int>(Code::kCorruptFile));
static_assert(CAIRN_STATUS_IO == static_cast<int>(Code::kIo));
static_assert(CAIRN_STATUS_DEVICE_LOST == static_cast<int>(Code::kDeviceLost));
static_assert(CAIRN_STATUS_CANCELLED == static_cast<int>(Code::kCancelled));
static_assert(CAIRN_STATUS_NON_FINITE == static_cast<int>(Code::kNonFinite));
static_assert(CAIRN_STATUS_INTERNAL == static_cast<int>(Code::kInternal));
static_assert(CAIRN_TIER_DISK == static_cast<int>(Tier::kDisk));

cairn_status_t set(cairn_error_t* error, cairn_status_t status, std::string_view message,
                   const MemoryFault* fault) noexcept {
  if (error == nullptr) return status;
  error->status = status;
  copy_text(error->message, message);
  error->has_fault = fault != nullptr;
  error->fault = CAIRN_MEMORY_FAULT_INIT;
  if (fault != nullptr) {
    error->fault.requested_bytes = fault->requested_bytes;
    error->fault.in_use_bytes = fault->in_use_bytes;
    error->fault.budget_bytes = fault->budget_bytes;
    error->fault.smallest_budget_bytes = fault->smallest_budget_bytes;
    error->fault.tier = static_cast<uint32_t>(fault->tier);
    copy_text(error->fault.region, fault->region);
  }
  return status;
}

// A fault without numbers, for memory that the C++ heap did not give.
const MemoryFault& heap_fault() {
  static const MemoryFault fault{0, 0, 0, 0, Tier::kHost, {}};
  return fault;
}

}  // namespace

cairn_status_t report(cairn_error_t* error) noexcept {
  try {
    throw;
  } catch (const Error& e) {
    const MemoryFault* fault = e.fault();
    if (fault == nullptr && e.code() == Code::kOutOfMemory) fault = &heap_fault();
    return set(error, static_cast<cairn_status_t>(e.code()), e.what(), fault);
  } catch (const std::bad_alloc&) {
    return set(error, CAIRN_STATUS_OUT_OF_MEMORY, "the system gave no memory for a bookkeeping object",
               &heap_fault());
  } catch (const std::length_error&) {
    return set(error, CAIRN_STATUS_INVALID_ARGUMENT,
               "a list or text was asked for that is longer than any memory; check the sizes that were given",
               nullptr);
  } catch (const std::system_error& e) {
    if (e.code() == std::errc::resource_unavailable_try_again)
      return set(error, CAIRN_STATUS_OUT_OF_MEMORY, "the system gave no thread", &heap_fault());
    if (e.code() == std::errc::not_enough_memory)
      return set(error, CAIRN_STATUS_OUT_OF_MEMORY, e.what(), &heap_fault());
    const bool file = dynamic_cast<const std::filesystem::filesystem_error*>(&e) != nullptr;
    return set(error, file ? CAIRN_STATUS_IO : CAIRN_STATUS_INTERNAL, e.what(), nullptr);
  } catch (const std::exception& e) {
    return set(error, CAIRN_STATUS_INTERNAL, e.what(), nullptr);
  } catch (...) {
    return set(error, CAIRN_STATUS_INTERNAL, "an exception of unknown type", nullptr);
  }
}

}  // namespace cairn::capi

using namespace cairn::capi;

const char* cairn_status_name(cairn_status_t status) {
  return status >= 0 && static_cast<size_t>(status) < kNameCount ? kNames[status] : "UNKNOWN";
}

cairn_error_t* cairn_error_create(void) { return new (std::nothrow) cairn_error; }
void cairn_error_retain(cairn_error_t* error) { retain(error); }
void cairn_error_release(cairn_error_t* error) { release(error); }
cairn_status_t cairn_error_status(const cairn_error_t* error) {
  return error == nullptr ? CAIRN_STATUS_OK : error->status;
}
const char* cairn_error_message(const cairn_error_t* error) { return error == nullptr ? "" : error->message; }

cairn_status_t cairn_error_memory_fault(const cairn_error_t* error, cairn_memory_fault_t* out_fault) {
  return guard(nullptr, [&] {
    not_null(error, "error");
    const OutStruct out(out_fault, "out_fault");
    cairn::require(error->has_fault, cairn::Code::kNotFound, "the last failure was not about memory");
    out.write(error->fault);
  });
}

void cairn_text_retain(cairn_text_t* text) { retain(text); }
void cairn_text_release(cairn_text_t* text) { release(text); }
const char* cairn_text_data(const cairn_text_t* text) { return text == nullptr ? "" : text->data.c_str(); }
size_t cairn_text_size(const cairn_text_t* text) { return text == nullptr ? 0 : text->data.size(); }
