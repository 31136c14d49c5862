// Stands in for the tokenizers of published models where CAIRN_TOKENIZERS is off.
#include "runtime/data/data.h"

namespace cairn::data {

std::unique_ptr<Tokenizer> load_pretrained(const std::filesystem::path& path) {
  return pretrained_tokenizer({}, path.string());
}
std::unique_ptr<Tokenizer> pretrained_tokenizer(std::string, const std::string& where) {
  fail(Code::kUnsupported, where,
       ": no tokenizer is made of it: this libcairn was built with CAIRN_TOKENIZERS=OFF and has the "
       "tokenizer 'bytes' alone; build it with -DCAIRN_TOKENIZERS=ON");
}

}  // namespace cairn::data
