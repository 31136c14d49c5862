// Small tokenizers to test with.
#pragma once
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace cairn::data {

inline const std::filesystem::path kGolden =
    std::filesystem::path(CAIRN_SOURCE_DIR) / "tests/runtime/data/tokenizer/golden";

}  // namespace cairn::data
