#include "runtime/io/safetensors/quantised/import.h"

#include <algorithm>

#include "runtime/exec/encoded.h"
#include "runtime/io/manifest.h"

namespace cairn::io {
namespace {

std::vector<const Quantised*> parts_of(const Mapped& m, const QuantisedTensors& quantised) {
  std::vector<const Quantised*> parts;
  for (const std::string& theirs : m.theirs) {
    const auto found = quantised.find(theirs);
    parts.push_back(found == quantised.end() ? nullptr : found->second.get());
  }
  return parts;
}

}  // namespace

std::vector<Mapped> take_quantised(std::vector<Mapped>& mapped, const QuantisedTensors& quantised,
                                   const std::filesystem::path& path) {
  std::vector<Mapped> taken;
  std::erase_if(mapped, [&](Mapped& m) {
    const std::vector<const Quantised*> parts = parts_of(m, quantised);
    if (std::ranges::all_of(parts, [](const Quantised* part) { return part == nullptr; })) return false;
    for (size_t i = 0; i < parts.size(); ++i) {
      require(parts[i] != nullptr, Code::kInvalidArgument, "'", path.string(), "': '", m.theirs[i],
              "' is not quantised, and other parts of parameter '", m.ours, "' are");
      require(parts[i]->shape == m.part, Code::kInvalidArgument, "'", path.string(), "': '", m.theirs[i],
              "' is ", to_string(parts[i]->shape), "; parameter '", m.ours, "' needs ", to_string(m.part));
    }
    taken.push_back(std::move(m));
    return true;
  });
  return taken;
}

void import_quantised(engine::Session& session, const Mapped& m, const QuantisedTensors& quantised) {
  const std::vector<const Quantised*> parts = parts_of(m, quantised);
  const TensorDesc stored = session.saved(m.value);
  const Format& row = format(stored.dtype);
  const int64_t elements = stored.shape.elements(), each = m.part.elements(), piece = kPieceBytes / 4;
  const bool as_they_are = std::ranges::all_of(parts, [&](const Quantised* part) {
    return part->format == stored.dtype && (parts.size() == 1 || each % row.block == 0);
  });
  std::vector<float> numbers(as_they_are ? 0 : static_cast<size_t>(std::min(piece, elements)));
  std::vector<std::byte> blocks(as_they_are ? static_cast<size_t>(row.bytes(std::min(piece, each))) : 0);
  for (int64_t at = 0, n = 0; as_they_are && at < elements; at += n) {
    n = std::min(piece, each - at % each);
    const Quantised& part = *parts[static_cast<size_t>(at / each)];
    part.read(at % each, n, blocks.data());
    session.write_saved(m.value, row.bytes(at), blocks.data(), row.bytes(n));
    if ((at + n) % each == 0) part.forget();
  }
  if (as_they_are) return;
  const auto in_pieces = [&](const auto& use) {
    for (int64_t at = 0; at < elements; at += piece) {
      const int64_t end = std::min(at + piece, elements);
      for (int64_t from = at, to = 0; from < end; from = to) {
        const int64_t number = from / each;
        to = std::min(end, (number + 1) * each);
        const Quantised& part = *parts[static_cast<size_t>(number)];
        part.read_floats(from - number * each, std::span(numbers).subspan(static_cast<size_t>(from - at),
                                                                          static_cast<size_t>(to - from)));
        if (to == (number + 1) * each) part.forget();
      }
      use(at, std::span<const float>(numbers).first(static_cast<size_t>(end - at)));
    }
  };
  formats::Encoder encoder = engine::encoder_of(session, m.value);
  if (encoder.measures())
    in_pieces([&](int64_t at, std::span<const float> values) { encoder.measure(at, values); });
  in_pieces([&](int64_t at, std::span<const float> values) {
    engine::write_part(session, m.value, at, values, encoder);
  });
}

}  // namespace cairn::io
