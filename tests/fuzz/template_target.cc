// Chat templates: any source is refused or rendered, of any values.
#include "runtime/data/template/template.h"
#include "tests/fuzz/families.h"
#include "tests/fuzz/tools.h"

namespace cairn::fuzz {
namespace {

constexpr char kBetween = 0;

constexpr std::string_view kValues =
    R"({"messages":[{"role":"user","content":"a\u00e9 <b>"},{"role":"assistant","content":"c","tool_calls":)"
    R"([{"function":{"name":"f","arguments":{"x":[1,-2.5,null,true]}}}]}],"add_generation_prompt":true,)"
    R"("bos_token":"<s>","tools":[{"type":"function"}]})";

std::string seed(std::string_view source) { return cat(kValues, std::string(1, kBetween), source); }

}  // namespace

void chat_template(std::span<const std::byte> input) {
  const std::string all = text(input);
  const size_t at = std::min(all.find(kBetween), all.size());
  const std::string source = all.substr(std::min(at + 1, all.size()));
  expect_declared(
      [&] {
        const auto made = data::Template::parse(source, "input");
        if (made->render(all.substr(0, at)) != made->render(all.substr(0, at)))
          throw std::logic_error("another text the second time");
      },
      {Code::kCorruptFile, Code::kUnsupported, Code::kInvalidArgument});
}

std::vector<std::string> chat_template_seeds() {
  return {
      seed("{{ bos_token }}{% for m in messages %}<{{ m['role'] }}>{{ m.content | trim }}{{ loop.index0 }}"
           "{% if not loop.last %}\n{% endif %}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif "
           "%}"),
      seed("{%- set ns = namespace(found=false) -%}{% for m in messages | reverse %}{% if m.role == 'user' "
           "and not ns.found "
           "%}{% set ns.found = true %}{{ m.content.split(' ')[-1] | upper }}{% elif m.tool_calls is defined "
           "%}"
           "{{ m.tool_calls[0].function.arguments | tojson(indent=2) }}{% else %}{% continue %}{% endif %}{% "
           "endfor %}"),
      seed("{% macro field(name, value='none') %}{{ name ~ '=' ~ value }}{% endmacro %}{{ field('a') }}{{ "
           "field('b', 1.5 // 1) }}"
           "{% if messages | length > 3 %}{{ raise_exception('too many ' + 'turns') }}{% endif %}"
           "{{ (tools | map(attribute='type') | join(', ')) if tools else '' }}{# a comment #}"),
      seed("{{ messages | selectattr('role', 'equalto', 'user') | list | length }}{{ [1, 2, 3][1:] }}{{ "
           "{'a': (1, 2)}.items() | "
           "list }}{% filter upper %}x{{ '%s!' | format('y') }}{% endfilter %}{% call(x) undefined_macro() "
           "%}{% endcall %}"),
  };
}

}  // namespace cairn::fuzz
