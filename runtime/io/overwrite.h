// Writing values of a session from a file. Private to runtime/io.
#pragma once
#include <exception>

#include "runtime/exec/session.h"

namespace cairn::io {

// Does `work`, which writes values. If it fails, some are overwritten and some are not: the session is
// poisoned.
template <class Work>
void overwrite(engine::Session& session, const Work& work) {
  try {
    work();
  } catch (const std::exception&) {
    session.poison("only a part of its values was replaced: make a new session and load again");
  }
  session.parameters_changed();
}

}  // namespace cairn::io
