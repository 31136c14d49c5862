// Chat templates: Jinja as Transformers runs it (an immutable sandbox, trim_blocks, lstrip_blocks, loop controls).
#pragma once
#include <memory>
#include <string>
#include <string_view>

namespace cairn::data {

// Immutable, and of all threads.
class Template {
 public:
  // `name` stands in errors, in front of the line. kCorruptFile: it is no template; kUnsupported: a tag, a filter or a test that is
  // not known, or more than the limits allow.
  static std::unique_ptr<Template> parse(std::string_view source, std::string_view name);
  virtual ~Template() = default;
  // values: JSON, an object whose members are the template's variables, in their order. kInvalidArgument: no JSON, or what the
  // template raises, as by raise_exception; kUnsupported: it needs more steps, bytes or depth than the limits allow.
  virtual std::string render(std::string_view values) const = 0;
};

}  // namespace cairn::data
