// Stands in for the tokenizers of byte pairs where CAIRN_TOKENIZERS is off.
#include "runtime/data/data.h"

namespace cairn::data {
namespace {

[[noreturn]] void left_out(std::string_view what, const std::filesystem::path& path) {
  fail(Code::kUnsupported, path.string(), ": ", what,
       ": this libcairn was built with CAIRN_TOKENIZERS=OFF and has the tokenizer 'bytes' alone; build it "
       "with -DCAIRN_TOKENIZERS=ON");
}

}  // namespace

std::unique_ptr<Tokenizer> train_bpe(const std::filesystem::path& text, int32_t) {
  left_out("no tokenizer is trained on it", text);
}

std::unique_ptr<Tokenizer> load_bpe(const std::filesystem::path& model) {
  left_out("no tokenizer is made of it", model);
}

}  // namespace cairn::data
