#include "runtime/data/template/template.h"

#include "runtime/data/template/syntax/nodes.h"
#include "runtime/data/tokenizer/unicode/utf8.h"

namespace cairn::data {
namespace {

constexpr size_t kMostSource = size_t{1} << 24;

class Parsed : public Template {
 public:
  Parsed(std::string_view source, std::string_view name) : name_(name) {
    require(source.size() <= kMostSource, Code::kUnsupported, name_, ": the template has more than ",
            kMostSource, " bytes");
    require(tokenizer::is_well_formed(source), Code::kCorruptFile, name_, ": the template is not UTF-8");
    try {
      body_ = templates::parsed(source, names_);
    } catch (const Error& error) {
      fail_as(error.code(), error, name_, ", ");
    }
  }

  std::string render(std::string_view values) const override {
    templates::Run run(names_);
    try {
      const templates::Value given = templates::from_json(&run.meter, values);
      run.give(given.dict());
    } catch (const Error& error) {
      fail_as(error.code(), error, name_, ": ");
    }
    try {
      templates::work(run, body_);
    } catch (const Error& error) {
      fail_as(error.code(), error, name_, ", line ", run.line, ": ");
    }
    return std::move(*run.out);
  }

 private:
  std::string name_;
  std::vector<std::string> names_;
  templates::Body body_;
};

}  // namespace

std::unique_ptr<Template> Template::parse(std::string_view source, std::string_view name) {
  return std::make_unique<Parsed>(source, name.empty() ? "template" : name);
}

}  // namespace cairn::data
