// Templates that mean harm: each must end soon with an error that says what and where.
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/interpreter.h"

namespace octavo {
namespace {

std::string Repeat(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

// A sixteenth of the usual bounds, so that the whole table is quick with sanitizers, too.
constexpr jinja::Limits kSmall = {
    .max_steps = 625'000, .max_bytes = int64_t{32} << 20, .max_output_bytes = int64_t{4} << 20};

Status RunTemplate(const std::string& source, const jinja::Limits& limits = {}) {
  auto compiled = jinja::Template::Compile(source);
  if (!compiled.ok()) return compiled.status();
  auto rendered = compiled->Render(Value::MakeObject(), std::tm{}, limits);
  return rendered.ok() ? OkStatus() : rendered.status();
}

struct Case {
  std::string source;
  std::string expected;  // in the message
};

std::vector<Case> Cases() {
  const std::string many = "{% for i in range(100000) %}";
  return {
      // Tags that are not closed.
      {"{{", "expected an expression"},
      {"{%", "without a name"},
      {"{#", "comment is not closed"},
      {"{% raw %}x", "raw block is not closed"},
      {"{{ 'abc", "string is not closed"},
      {"{{ 'abc\\", "string is not closed"},
      {"{{ (1, 2", "line 1"},
      {"{{ [1}}", "expected ']'"},
      {"{% for x in y %}", "{% endfor %} is missing"},
      {"{% if x %}{% else %}", "{% endif %} is missing"},
      {"{% macro m() %}", "{% endmacro %} is missing"},
      {"{% set x %}", "{% endset %} is missing"},
      {"{% include", "end of statement block"},
      {"\n\n{{ 'a' | }}", "line 3"},
      {"{{ '\\ud800' }}", "surrogate"},
      {"{{ '\\x4' }}", "truncated escape"},
      {std::string("{{ 'a\xff' }}"), "UTF-8"},
      {std::string("{{ \0 }}", 7), "unexpected character"},
      // Nesting.
      {Repeat("{{ ", 1) + Repeat("(", 100000) + "1", "nested deeper"},
      {"{{ " + Repeat("[", 100000), "nested deeper"},
      {"{{ " + Repeat("{1:", 100000), "nested deeper"},
      {"{{ " + Repeat("-", 100000) + "1 }}", "nested deeper"},
      {"{{ " + Repeat("not ", 100000) + "1 }}", "nested deeper"},
      {"{{ " + Repeat("1 if 1 else ", 100000) + "1 }}", "nested deeper"},
      {"{{ 1" + Repeat(" + 1", 100000) + " }}", "levels"},
      {"{{ x" + Repeat(".x", 100000) + " }}", "levels"},
      {"{{ x" + Repeat("|string", 100000) + " }}", "levels"},
      {"{{ x" + Repeat(" and x", 100000) + " }}", "levels"},
      {"{{ f" + Repeat("()", 100000) + " }}", "levels"},
      {Repeat("{% if 1 %}", 100000), "nested deeper"},
      {Repeat("{% for x in [1] %}", 100000), "nested deeper"},
      {"{% for " + Repeat("(", 100000), "nested deeper"},
      {"{% set ns = namespace(x=1) %}" + many + "{% set ns.x = [ns.x] %}{% endfor %}",
       "nested deeper"},
      {"{% set ns = namespace(x=1) %}" + many + "{% set ns.x = {'a': ns.x} %}{% endfor %}",
       "nested deeper"},
      {"{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}", "inside itself"},
      {"{% set ns = namespace(f=none) %}{% macro wrap(f) %}{% macro g() %}{{ f() }}{% endmacro %}"
       "{% set ns.f = g %}{% endmacro %}{% for i in range(2000) %}{{ wrap(ns.f) }}{% endfor %}"
       "{{ ns.f() }}",
       "deeper"},
      // Recursion.
      {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "calls itself"},
      {"{% macro a(n) %}{{ b(n + 1) }}{% endmacro %}{% macro b(n) %}{{ a(n) }}{% endmacro %}"
       "{{ a(1) }}",
       "calls itself"},
      {"{% macro m(x=m()) %}{% endmacro %}{{ m() }}", "calls itself"},
      {"{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "deeper"},
      {"{% block b %}{{ self.b() }}{% endblock %}", "deeper"},
      {"{% macro m() %}{{ caller() }}{% endmacro %}{% macro n() %}{% call m() %}{{ n() }}"
       "{% endcall %}{% endmacro %}{{ n() }}",
       "deeper"},
      // Size.
      {"{{ 'a' * 10 ** 9 }}", "bytes"},
      {"{{ 10 ** 9 * 'a' }}", "bytes"},
      {"{{ 'a' * 9223372036854775807 }}", "bytes"},
      {"{{ 'abc' * 9223372036854775807 }}", "bytes"},
      {"{{ [0] * 10 ** 9 }}", "bytes"},
      {"{{ [0] * 9223372036854775807 }}", "bytes"},
      {"{% set ns = namespace(s='aaaaaaaa') %}" + many + "{% set ns.s = ns.s + ns.s %}{% endfor %}",
       "bytes"},
      {"{% set ns = namespace(s='aaaaaaaa') %}" + many + "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
       "bytes"},
      {"{% set ns = namespace(s=[1]) %}" + many + "{% set ns.s = ns.s + ns.s %}{% endfor %}",
       "more than"},
      {"{% set ns = namespace(s=[1]) %}" + many + "{% set ns.s = [ns.s, ns.s] %}{% endfor %}",
       "nested deeper"},
      {"{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = [ns.s, ns.s] %}"
       "{% endfor %}{{ ns.s }}",
       "more than"},
      {"{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = [ns.s, ns.s] %}"
       "{% endfor %}{{ ns.s | tojson }}",
       "more than"},
      {"{% set s = 'a' * 1000000 %}{{ s.replace('', s) }}", "bytes"},
      {"{% set s = 'a' * 1000000 %}{{ s | replace('a', s) }}", "bytes"},
      {"{% set s = 'a' * 1000000 %}{{ s.join(s) }}", "more than"},
      {"{% set s = 'a' * 100000 %}{{ s | list | join(s) }}", "more than"},
      {"{{ range(10 ** 9) }}", "range"},
      {"{{ range(0, 9223372036854775807, 1) }}", "range"},
      {"{{ range(-9223372036854775807, 9223372036854775807) | length }}", "range"},
      {"{{ '%999999999d' % 1 }}", "wider"},
      {"{{ '%99999999999999999999999d' % 1 }}", "wider"},
      {"{{ '%.999999999f' % 1.5 }}", "wider"},
      {"{{ '{:>999999999}'.format('a') }}", "wider"},
      {"{{ '{:.999999999f}'.format(1.5) }}", "wider"},
      {"{{ '{:{}}'.format('a', 999999999) }}", "wider"},
      {"{{ '{:{:{:{}}}}'.format(1, 2, 3, 4) }}", "nested too deep"},
      {"{{ '" + Repeat("{:>99999}", 20000) + "'.format('a') }}", "argument"},
      {"{{ ('" + Repeat("{0:>99999}", 20000) + "').format('a') }}", "bytes"},
      {"{{ '" + Repeat("%99999d", 20000) + "' % (" + Repeat("1,", 20000) + ") }}", "bytes"},
      {"{{ 'a'.center(10 ** 9) }}", "wider"},
      {"{{ 'a'.zfill(10 ** 9) }}", "wider"},
      {"{{ 'a' | center(10 ** 9) }}", "wider"},
      {"{{ 'a\\nb' | indent(10 ** 9) }}", "too wide"},
      {"{{ '\\t'.expandtabs(10 ** 9) }}", "expandtabs"},
      {"{{ [1] | batch(10 ** 9, 0) | list }}", "batch"},
      {"{{ [1] | slice(10 ** 9) | list }}", "slice"},
      {"{{ [1] | tojson(indent=10 ** 9) }}", "tojson"},
      {"{{ 1 | round(10 ** 9) }}{{ 1.5 | round(10 ** 9) }}{{ 7 | round(-10 ** 9) }}{{ x.y }}",
       "undefined"},
      {many + "{{ 'aaaaaaaaaaaaaaaa' * 1000 }}{% endfor %}", "more than"},
      // Time.
      {many + many + many + "{% endfor %}{% endfor %}{% endfor %}", "steps"},
      {many + "{% set x %}{{ range(100000) }}{% endset %}{{ range(100000) | sum }}{% endfor %}",
       "more than"},
      {"{% set s = 'a' * 10000000 %}" + many + "{{ s | length }}{% endfor %}", "bytes"},
      {"{% set s = 'a' * 10000000 %}" + many + "{% if s == s ~ '' %}{% endif %}{% endfor %}",
       "bytes"},
      {"{% set s = 'a' * 10000000 %}" + many + "{{ 'b' in s }}{% endfor %}", "bytes"},
      {"{% set s = 'a' * 10000000 %}" + many + "{{ s[5] }}{% endfor %}", "bytes"},
      {"{% set s = 'a' * 10000000 %}" + many + "{{ s is upper }}{% endfor %}", "bytes"},
      {"{% set s = 'a' * 10000000 %}{{ s.find('a' * 5000000 + 'b') }}", "bytes"},
      {"{% set s = 'a ' * 3000000 %}{{ s.rsplit() | length }}", "more than"},
      {"{% set r = range(100000) | list %}" + many + "{{ 'x' in r }}{% endfor %}", "more than"},
      {"{% set r = range(100000) | list %}" + many + "{{ r == r + [] }}{% endfor %}", "more than"},
      {"{% set r = range(100000) | list %}" + many + "{{ r.index(99999) }}{% endfor %}", "steps"},
      {many + "{% macro m() %}{% endmacro %}{% set n = namespace(a=m) %}{% endfor %}", "more than"},
      // Arithmetic.
      {"{{ 9223372036854775807 + 1 }}", "64 bits"},
      {"{{ -9223372036854775807 - 2 }}", "64 bits"},
      {"{{ 9223372036854775807 * 2 }}", "64 bits"},
      {"{{ (-9223372036854775807 - 1) // -1 }}", "64 bits"},
      {"{{ -(-9223372036854775807 - 1) }}", "64 bits"},
      {"{{ (-9223372036854775807 - 1) | abs }}", "64 bits"},
      {"{{ 9223372036854775808 }}", "64 bits"},
      {"{{ 3 ** 9223372036854775807 }}", "64 bits"},
      {"{{ 1e308 ** 2 }}", "too large"},
      {"{{ 1e300 | int }}", "64 bits"},
      {"{{ '1e300' | int }}", "64 bits"},
      {"{{ 1 % 0 }}", "zero"},
      {"{{ 1.0 % 0 }}", "zero"},
      {"{{ 'a'[9223372036854775807:-9223372036854775807:9223372036854775807] }}{{ x.y }}",
       "undefined"},
      {"{{ [1, 2][::-9223372036854775807] }}{{ x.y }}", "undefined"},
      {"{{ strftime_now('%Q') }}", "%Q"},
      {"{{ strftime_now() }}", "misses"},
  };
}

TEST(JinjaHostile, EachEndsSoonWithAnError) {
  for (const Case& test : Cases()) {
    SCOPED_TRACE(test.source.substr(0, 200));
    const auto start = std::chrono::steady_clock::now();
    const Status status = RunTemplate(test.source, kSmall);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find(test.expected), std::string::npos) << status.message();
    EXPECT_LT(seconds.count(), 20);  // with sanitizers, on a busy machine
  }
}

TEST(JinjaHostile, TheUsualBoundsHold) {
  EXPECT_FALSE(RunTemplate("{{ 'a' * 10 ** 9 }}").ok());
  EXPECT_FALSE(RunTemplate("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}").ok());
  EXPECT_FALSE(RunTemplate("{% for i in range(9) %}{{ 'a' * 10 ** 7 }}{% endfor %}").ok());
}

// Links in a circle are no leak: the address sanitizer looks.
TEST(JinjaHostile, CirclesAreFreed) {
  EXPECT_TRUE(
      RunTemplate("{% set a = namespace() %}{% set b = namespace(a=a) %}{% set a.b = b %}"
                  "{% macro m() %}{% endmacro %}{% set a.m = m %}"
                  "{% for x in [1] %}{% set a.loop = loop %}{{ loop.changed(loop) }}"
                  "{% macro inner() %}{{ x }}{% endmacro %}{% set a.inner = inner %}{% endfor %}")
          .ok());
}

TEST(JinjaHostile, LongButHonestTemplatesPass) {
  EXPECT_TRUE(RunTemplate("{{ 'a'" + Repeat(" + 'a'", 250) + " }}").ok());
  EXPECT_TRUE(RunTemplate("{{ 'a'" + Repeat(" ~ 'a'", 5000) + " }}").ok());
  EXPECT_TRUE(RunTemplate(Repeat("{% if x %}{% elif y %}", 40) + Repeat("{% endif %}", 40)).ok());
  EXPECT_TRUE(RunTemplate("{% if x %}" + Repeat("{% elif y %}", 5000) + "{% endif %}").ok());
  EXPECT_TRUE(
      RunTemplate(
          "{% macro m(n) %}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(40) }}")
          .ok());
}

}  // namespace
}  // namespace octavo
