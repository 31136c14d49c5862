// Neighbours that are a piece together are merged, the piece with the highest score first, the leftmost of several.
#pragma once
#include <string_view>
#include <vector>

#include "runtime/data/model.h"
#include "runtime/data/tokenizer/models/model.h"

namespace cairn::tokenizer {

// `pieces` are those that text is matched against; those of the trie `fixed` are merged with nothing. Appends numbers of pieces, or
// `unknown` for characters that are none.
void cut_by_scored_pairs(std::string_view text, const data::Model& model, const Tokens& pieces,
                         const Trie& fixed, int32_t unknown, std::vector<Piece>& out);

}  // namespace cairn::tokenizer
