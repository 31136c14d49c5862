// A text made by the library.
#pragma once
#include <string>

#include "cairn/cairn.h"
#include "capi/src/handle.h"

struct cairn_text : cairn::capi::PlainHandle {
  explicit cairn_text(std::string text) : data(std::move(text)) {}
  std::string data;
};
