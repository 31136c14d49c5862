// Stands in for chat templates where CAIRN_TOKENIZERS is off.
#include "runtime/base/error.h"
#include "runtime/data/template/template.h"

namespace cairn::data {

std::unique_ptr<Template> Template::parse(std::string_view, std::string_view name) {
  fail(Code::kUnsupported, name,
       ": no template is read: this libcairn was built with CAIRN_TOKENIZERS=OFF; build it with "
       "-DCAIRN_TOKENIZERS=ON");
}

}  // namespace cairn::data
