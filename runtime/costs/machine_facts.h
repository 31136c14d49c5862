// What a plan has to know of the machine around the device, asked before it is made: making one opens no file and measures
// nothing.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/costs/table.h"
#include "runtime/device/device.h"
#include "runtime/plan/problem.h"

namespace cairn::costs {

struct MachineFacts {
  // Free bytes where the disk tier's file will lie. Unless the machine was asked: more than any plan needs.
  int64_t disk_room_bytes = int64_t{1} << 50;
  std::string disk_refusal;        // why no file can be made there; "": one can
  std::optional<plan::Link> disk;  // its measured rates; nothing: the cost model's guess
  // What the host's processors stream through their memory while nothing else uses it, beside a device with its own; 0: not
  // known, and no update runs there.
  double host_memory_bytes_per_second = 0;
};

// table: the costs that the plan will be made with. A device model answers for the machine around it, which is then not
// asked. how: as RateRequest::how. Measures what no earlier process kept. Any thread.
MachineFacts find_machine_facts(const device::DeviceInfo& info, const Table* table, bool with_disk,
                                const std::string& how);

}  // namespace cairn::costs
