// Frozen parameters that a checkpoint does not hold, against those of a session.
#include <algorithm>

#include "runtime/formats/codecs.h"
#include "runtime/io/digest.h"
#include "runtime/io/manifest.h"

namespace cairn::io {
namespace {

using Part = engine::BaseDigest::Part;

[[noreturn]] void refuse(std::string_view directory, const engine::BaseDigest& base, const Part& part,
                         const std::string& how) {
  fail(Code::kInvalidArgument, "the checkpoint '", directory,
       "' holds no frozen parameters, and those of the session are not the ones that it was trained on (base "
       "digest ",
       base.hex(), "): '", part.name, "' ", how,
       "; load the base that it was trained on into the session before the checkpoint");
}

// Digest of a value encoded as what the checkpoint's run stored. False: it cannot be known.
bool digest_as(const engine::Session& session, int32_t value, const TensorDesc& wanted, Digest& digest) {
  const TensorDesc have = session.saved(value);
  const Piece piece = make_piece();
  if (have == wanted) {
    for (int64_t at = 0; at < have.bytes(); at += kPieceBytes) {
      const int64_t count = std::min(kPieceBytes, have.bytes() - at);
      session.read_saved(value, at, piece.get(), count);
      digest.add({piece.get(), static_cast<size_t>(count)});
    }
    return true;
  }
  const formats::Codec codec = formats::codec(wanted.dtype);
  if (have.shape != wanted.shape || format(have.dtype).read == Read::kDequantised || !codec) return false;
  const Format& row = format(wanted.dtype);
  const int64_t most = kPieceBytes / 4 / row.block * row.block, elements = have.shape.elements();
  const Piece encoded = make_piece();
  for (int64_t at = 0; at < elements; at += most) {
    const int64_t count = std::min(most, elements - at);
    auto* const wide = reinterpret_cast<float*>(piece.get());
    session.read_floats(value, at, {wide, static_cast<size_t>(count)});
    if (!codec.encode(wide, count, encoded.get())) return false;
    digest.add({encoded.get(), static_cast<size_t>(row.bytes(count))});
  }
  return true;
}

}  // namespace

void require_base(const engine::Session& session, const engine::BaseDigest& base,
                  std::string_view directory) {
  const engine::BaseDigest& ours = session.base_digest();
  for (size_t i = 0; i < base.parts.size(); ++i) {
    const Part& wanted = base.parts[i];
    if (i >= ours.parts.size() || ours.parts[i].name != wanted.name)
      refuse(directory, base, wanted, "is not frozen in the session");
    const Part& have = ours.parts[i];
    if (have.desc != wanted.desc)
      refuse(directory, base, wanted, cat("is ", to_string(have.desc), ", and was ", to_string(wanted.desc)));
    if (have.low != wanted.low || have.high != wanted.high)
      refuse(directory, base, wanted, "has other values");
  }
  if (ours.parts.size() > base.parts.size())
    refuse(directory, base, ours.parts[base.parts.size()], "was not frozen");
}

bool require_part(const engine::Session& session, int32_t value, const engine::BaseDigest& base,
                  std::string_view directory) {
  const std::string& name = session.plan().joint->values[static_cast<size_t>(value)].name;
  const auto part =
      std::ranges::find_if(base.parts, [&](const Part& candidate) { return candidate.name == name; });
  if (part == base.parts.end()) return false;
  const TensorDesc declared = session.declared(value);
  if (declared.shape != part->desc.shape)
    refuse(directory, base, *part, cat("is ", to_string(declared), ", and was ", to_string(part->desc)));
  Digest digest;
  if (digest_as(session, value, part->desc, digest) && !digest.is(part->low, part->high))
    refuse(directory, base, *part, "has other values");
  return true;
}

}  // namespace cairn::io
