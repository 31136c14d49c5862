// Schedules as a checkpoint's manifest has them. Private to runtime/io.
#pragma once
#include <vector>

#include "runtime/io/envelope.h"
#include "runtime/io/schema/manifest_generated.h"
#include "runtime/step/schedule.h"

namespace cairn::io {

// What `schedule` says where the list counts. Readers that know no list refuse it.
inline constexpr uint32_t kListedSchedules = 3;

struct SavedSchedules {
  uint32_t number = 0;
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::ManifestSchedule>>> list = {};
};

// A single schedule that its number describes fully is saved in the form of the first versions, which older readers know.
SavedSchedules encode_schedules(flatbuffers::FlatBufferBuilder& to, const step::Schedule& schedule);
// kCorruptFile: an unknown schedule or parameter, or a value out of range.
std::vector<step::Stage> decode_schedules(const fb::ManifestOptions& from, Budget& budget);

}  // namespace cairn::io
