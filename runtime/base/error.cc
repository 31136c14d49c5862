#include "runtime/base/error.h"

#include <cerrno>
#include <utility>

namespace cairn {

struct Error::Said {
  std::string message;
  MemoryFault fault;
};

Error::Error(Code code, std::string message) : Error(code, std::move(message), MemoryFault{}) {
  fault_ = nullptr;
}

Error::Error(Code code, std::string message, MemoryFault fault)
    : code_(code), said_(std::make_shared<const Said>(Said{std::move(message), std::move(fault)})) {
  text_ = said_->message.c_str();
  fault_ = &said_->fault;
}

Code code_of_errno(int number) { return number == ENOMEM ? Code::kOutOfMemory : Code::kIo; }

}  // namespace cairn
