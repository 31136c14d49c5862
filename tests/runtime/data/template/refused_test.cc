// What is no template, what a template raises, and what never ends: errors that name the line, and no memory lost.
#include <gtest/gtest.h>

#include "runtime/base/error.h"
#include "runtime/data/template/template.h"

namespace cairn::data {
namespace {

struct Problem {
  Code code = Code::kOk;
  std::string message;
};

Problem of(const std::string& source, const std::string& values = "{}") {
  try {
    Template::parse(source, "chat.jinja")->render(values);
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

void expect(const std::string& source, Code code, const std::string& words,
            const std::string& values = "{}") {
  const Problem found = of(source, values);
  EXPECT_EQ(found.code, code) << source << ": " << found.message;
  EXPECT_NE(found.message.find(words), std::string::npos) << source << ": " << found.message;
}

TEST(RefusedTemplates, NameTheLine) {
  expect("a\n{% if x %}\nb", Code::kCorruptFile, "chat.jinja, line 3");
  expect("\n\n{% endif %}", Code::kCorruptFile, "chat.jinja, line 3: there is no tag 'endif'");
  expect("a\n{{ x", Code::kCorruptFile, "line 2: '{{' has no '}}'");
  expect("{{ 'x }}", Code::kCorruptFile, "a string has no end");
  expect("{# x", Code::kCorruptFile, "a comment has no end");
  expect("{% raw %}x", Code::kCorruptFile, "a raw block has no end");
  expect("{{ x $ }}", Code::kCorruptFile, "unexpected character '$'");
  expect("{{ (x] }}", Code::kCorruptFile, "unexpected ']'");
  expect("{{ x y }}", Code::kCorruptFile, "'}}' is awaited, not 'y'");
  expect("{% break %}", Code::kCorruptFile, "'break' is outside of a loop");
  expect("{% set true = 1 %}", Code::kCorruptFile, "cannot assign to 'true'");
  expect("{{ 99999999999999999999 }}", Code::kCorruptFile, "at most 64 bits");
  expect("\xff", Code::kCorruptFile, "not UTF-8");
  expect("\n{{ x | nope }}", Code::kUnsupported, "line 2: the filter 'nope' is not known");
  expect("{{ x is nope }}", Code::kUnsupported, "the test 'nope' is not known");
  expect("{% include 'x' %}", Code::kUnsupported, "the tag 'include' is not supported");
  expect("{{ cycler(1) }}", Code::kUnsupported, "'cycler' is not supported");
}

TEST(RefusedTemplates, UnknownFiltersBehindConditionsCountWhenReached) {
  EXPECT_EQ(Template::parse("{% if x %}{{ 1 | nope }}{% endif %}a", "t")->render("{}"), "a");
  EXPECT_EQ(Template::parse("{{ (1 | nope) if x else 'b' }}", "t")->render("{}"), "b");
  expect("{% if x %}{{ 1 | nope }}{% endif %}", Code::kUnsupported, "'nope'", R"({"x": 1})");
}

TEST(RefusedValues, AreErrorsOfTheTemplatesLine) {
  expect("a\n\n{{ raise_exception('no ' ~ x) }}", Code::kInvalidArgument, "chat.jinja, line 3: no luck",
         R"({"x": "luck"})");
  expect("{{ x.y }}", Code::kInvalidArgument, "'x' is undefined");
  expect("\n{{ x.y.z }}", Code::kInvalidArgument, "line 2: 'dict object' has no attribute 'y'",
         R"({"x": {}})");
  expect("{{ 1 + 'a' }}", Code::kInvalidArgument, "'+' is not possible");
  expect("{{ 1 // 0 }}", Code::kInvalidArgument, "division by zero");
  expect("{{ x.append(1) }}", Code::kInvalidArgument, "'append'", R"({"x": []})");
  expect("{% for i in 3 %}{% endfor %}", Code::kInvalidArgument, "cannot be gone through");
  expect("{{ x | tojson }}", Code::kInvalidArgument, "has no JSON");
  expect("{% set ns = namespace() %}{% set ns._a = 1 %}", Code::kInvalidArgument, "'_'");
  expect("{% macro f(a) %}{% endmacro %}{{ f(b=1) }}", Code::kInvalidArgument,
         "the macro 'f' takes no argument 'b'");
  expect("x", Code::kInvalidArgument, "no JSON", "{");
  expect("x", Code::kInvalidArgument, "not an object", "[1]");
  expect("x", Code::kInvalidArgument, "above 2^63", R"({"a": 18446744073709551615})");
}

TEST(Limits, EndWhatNeverEnds) {
  const std::string loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
  expect(loops, Code::kUnsupported, "steps");
  expect("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", Code::kUnsupported, "within each other");
  expect("{% set ns = namespace(a='a') %}{% for i in range(99) %}{% set ns.a = ns.a + ns.a %}{% endfor %}",
         Code::kUnsupported, "bytes");
  expect("{% set ns = namespace(a=[]) %}{% for i in range(999) %}{% set ns.a = [ns.a] %}{% endfor %}",
         Code::kUnsupported, "nested");
  expect(
      "{% set ns = namespace(a=[1]) %}{% for i in range(99) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}{{ "
      "ns.a }}",
      Code::kUnsupported, "");
  expect("{{ 'a' * 999999999999 }}", Code::kUnsupported, "repeated");
  expect("{{ range(999999) }}", Code::kInvalidArgument, "range()");
  expect("{{ 9223372036854775807 + 1 }}", Code::kUnsupported, "beyond 64 bits");
  expect("{{ " + std::string(9999, '(') + "1" + std::string(9999, ')') + " }}", Code::kUnsupported,
         "within each other");
  std::string sum = "{{ 1";
  for (int i = 0; i < 9999; ++i) sum += " + 1";
  expect(sum + " }}", Code::kUnsupported, "more than 4000 parts");
}

TEST(Limits, HoldNoMemoryInCircles) {
  const auto text = Template::parse(
      "{% set ns = namespace() %}{% set ns.own = ns %}{% macro f() %}x{% endmacro %}{% set ns.f = f %}{{ "
      "ns.f() }}",
      "t");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(text->render("{}"), "x");
  expect(
      "{% set ns = namespace() %}{% for i in [1] %}{% macro f() %}x{% endmacro %}{% set ns.f = f %}{% endfor "
      "%}{{ ns.f() }}",
      Code::kUnsupported, "after the block that it stands in");
}

}  // namespace
}  // namespace cairn::data
