// After a failed call a session either goes on as before, or answers every later call with what was lost and the
// remedy.
#include "runtime/exec/fallback.h"
#include "runtime/exec/loaded.h"

namespace cairn::engine {
namespace {

constexpr char kUpdatedInPart[] =
    "the session is lost: memory was refused while parameters were updated, of which some are new and some "
    "are not; "
    "make the session again and restore a checkpoint";

// Some values were changed and some were not. This call says that memory was refused, later ones what was lost.
[[noreturn]] void refuse_from_now_on(Store& store, const char* consequence = kUpdatedInPart) {
  store.poison = Error::of_literal(Code::kWrongState, consequence);
  throw Error::of_literal(Code::kOutOfMemory, consequence);
}

}  // namespace

Error refused_batch(const Error* told) noexcept {
  if (told != nullptr) try {
      return Error(Code::kOutOfMemory, cat(told->what(), "; ", kBatchIsLost));
    } catch (const std::exception&) {  // there is no memory for the longer message
    }
  return Error::of_literal(Code::kOutOfMemory, kBatchIsLost);
}

void Session::raise() const {
  if (store_->poison) throw *store_->poison;
}

void Session::ready() const {
  raise();
  if (store_->must_start) store_->start();
}

bool Session::poisoned() const { return store_->poison.has_value() || store_->device->poisoned(); }

void Session::keep_poison() const {
  try {
    throw;
  } catch (const Error& error) {
    store_->poison = error;
    if (error.code() == Code::kOutOfMemory) refuse_from_now_on(*store_);
  } catch (const std::bad_alloc&) {
    refuse_from_now_on(*store_);
  } catch (const std::exception& error) {
    store_->poison.emplace(Code::kInternal, cat("the run failed: ", error.what()));
  }
  raise();
}

void Session::poison(const char* consequence) {
  try {
    throw;
  } catch (const Error& error) {
    if (error.code() == Code::kOutOfMemory) refuse_from_now_on(*store_, consequence);
    store_->poison = error;  // copying an error needs no memory
    store_->poison.emplace(error.code(), cat(error.what(), "; ", consequence));
  } catch (const std::bad_alloc&) {
    refuse_from_now_on(*store_, consequence);
  } catch (const std::exception&) {
    keep_poison();
  }
  throw *store_->poison;
}

void Session::survive_refusal(bool updated, const char* consequence) const {
  std::optional<Error> told;  // copying an error needs no memory
  try {
    throw;
  } catch (const Error& error) {
    if (error.code() != Code::kOutOfMemory) return;
    told = error;
  } catch (const std::bad_alloc&) {
  } catch (const std::exception&) {
    return;
  }
  if (updated || store_->device->poisoned()) return;
  // The queues repeat the refusal. The next call that finds memory makes new ones.
  store_->must_start = true;
  const Error alone = Error::of_literal(Code::kOutOfMemory, consequence);
  if (!told) throw alone;
  try {
    told.emplace(Code::kOutOfMemory, cat(told->what(), "; ", consequence));
  } catch (const std::bad_alloc&) {
    told = alone;
  }
  throw *told;
}

void Session::lose_disk(std::string_view what) const {
  Store& l = *store_;
  const std::optional<Error> lost = disk_failure(plan());
  if (!lost) keep_poison();
  l.stopped.emplace(
      Code::kIo,
      cat(lost->what(),
          "; what lived on the disk tier (weights, gradients, optimizer state) is lost since the "
          "last checkpoint, and ",
          what),
      *lost->fault());
  l.start();
  throw *l.stopped;
}

}  // namespace cairn::engine
