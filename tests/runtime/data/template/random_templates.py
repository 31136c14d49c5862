"""Random small templates: expressions and statements of every kind, over values of every kind."""

VALUES = {
    "s": "Hello, wörld  ", "e": "", "t": "a-b_c d\nE\tf", "u": "ÀÉß ǆ Σς 你 🎉", "q": "it's \"q\" <b>&", "n": 7, "z": 0, "m": -3,
    "f": 2.5, "g": 1e16, "h": -0.1, "b": True, "c": False, "o": None, "l": [3, 1, 2, 1], "w": ["b", "A", "c", "a"], "x": [], "y": {},
    "d": {"k": 1, "items": 2, "Z": [1, {"q": None}], "a b": "v"}, "r": [{"name": "Bo", "n": 2}, {"name": "al", "n": 1}, {"name": "Cy"}],
    "p": [[1, 2], [3, 4]],
}
TEXTS = ["'a'", "'l'", "' '", "', '", "'b-'", "''", "'ö'", "'%s!'", "'%5.2f|%-4d|%x'", "'{}-{:>4}'", "'x' 'y'", "\"'\"", "'\\n\\u00e9'"]
NUMBERS = ["0", "1", "2", "-1", "3", "10", "0.5", "1e3", "7.0", "1_000", "0x1f"]
FILTERS = ["trim", "upper", "lower", "title", "capitalize", "length", "list", "string", "int", "float", "abs", "first", "last", "reverse",
           "sort", "unique|list", "join", "join(',')", "tojson", "tojson(indent=2)", "default('D')", "default('D', true)", "items|list",
           "dictsort", "sum", "min", "max", "round", "round(1)", "round(2, 'floor')", "replace('l', 'L')", "indent", "indent(2, true)",
           "wordcount", "escape", "safe", "batch(2)|list", "slice(2)|list", "map('string')|list", "select|list", "reject|list",
           "select('string')|list", "map(attribute='n')|list", "selectattr('n')|list", "rejectattr('n', 'gt', 1)|list", "sort(reverse=true)",
           "groupby('name')|list", "truncate(5)", "center(11)", "urlencode", "format(1, 2)", "count", "d(1)", "attr('name')",
           "tojson(separators=(',', ':'), sort_keys=true)", "join('-', attribute='name')", "sort(attribute='name')", "string|length",
           "forceescape", "map('upper')|join", "tojson(ensure_ascii=true)"]
METHODS = ["strip()", "lstrip()", "rstrip('d ')", "split()", "split('l')", "split(' ', 1)", "rsplit('l', 1)", "upper()", "lower()", "title()",
           "capitalize()", "swapcase()", "startswith('H')", "endswith(('d', ' '))", "replace('l', '')", "find('l')", "rfind('l')", "count('l')",
           "join(w)", "splitlines()", "partition('l')", "rpartition('l')", "zfill(9)", "center(9, '*')", "ljust(9)", "rjust(9, 'é')",
           "isdigit()", "isalpha()", "isspace()", "isupper()", "istitle()", "islower()", "isalnum()", "keys()|list", "values()|list",
           "items()|list", "items()", "get('k')", "get('zz', 4)", "format(1, 22)", "removeprefix('He')", "index(1)", "index('l')",
           "expandtabs(4)", "casefold()", "isascii()", "append(1)", "pop()", "copy()"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "iterable", "sequence", "true", "false",
         "odd", "even", "lower", "upper", "callable", "divisibleby 2", "eq 1", "gt(1)", "in l", "sameas none", "in 'abc'", "not defined",
         "lt 3", "escaped", "not none"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]


class Maker:
    def __init__(self, random):
        self.random = random

    def atom(self):
        pick = self.random.random()
        if pick < 0.55:
            return self.random.choice(list(VALUES))
        if pick < 0.7:
            return self.random.choice(TEXTS)
        if pick < 0.85:
            return self.random.choice(NUMBERS)
        return self.random.choice(["true", "none", "nothing", "[]", "{}", "()", "(1,)", "[1, 'a', none, 2.0]", "{'a': 1, 2: [3]}", "range(4)",
                                   "d['items']", "d.k", "d['a b']", "r[0].name", "loop", "namespace(a=1).a", "dict(a=2)", "d.nope"])

    def expression(self, depth=3):
        choice, random = self.random.random(), self.random
        if depth == 0 or choice < 0.2:
            return self.atom()
        inner = lambda: self.expression(depth - 1)  # noqa: E731
        if choice < 0.4:
            return f"{inner()} {random.choice(OPERATORS)} {inner()}"
        if choice < 0.55:
            return f"({inner()})|{random.choice(FILTERS)}"
        if choice < 0.67:
            return f"({inner()}).{random.choice(METHODS)}"
        if choice < 0.75:
            return f"({inner()} is {random.choice(TESTS)})"
        if choice < 0.81:
            bounds = [random.choice(["", "0", "1", "-1", "2", "-3", "9"]) for _ in range(3)]
            sliced = random.choice(["s", "t", "u", "l", "w", "p", "x", "e", "'abc'", "range(4)", f"(({inner()})|string)", "d.keys()|list"])
            return f"({sliced})[{':'.join(bounds[:random.choice([2, 3])])}]"
        if choice < 0.86:
            return f"({inner()})[{inner()}]"
        if choice < 0.9:
            return f"({inner()} if {inner()} else {inner()})"
        if choice < 0.93:
            return f"not {inner()}"
        if choice < 0.96:
            return f"-{inner()}"
        return f"({inner()} < {inner()} <= {inner()})"

    def tag(self, text):
        begin, end = self.random.choice(["", "", "-", "+"]), self.random.choice(["", "", "-", "+"])
        return "{%" + begin + f" {text} " + end + "%}"

    def text(self):
        return self.random.choice(["", " ", "\n", "  \n", "x", "é\n  ", "\t", "{# c #}", "{#- c -#}\n", "{% raw %}{{ x }}{% endraw %}\n", "a\r\nb"])

    def body(self, depth):
        return "".join(self.text() + self.statement(depth) + self.text() for _ in range(self.random.randint(1, 3)))

    def statement(self, depth=3):
        random, choice, body = self.random, self.random.random(), self.body
        name = random.choice(["v", "s", "n"])
        if depth == 0 or choice < 0.35:
            return random.choice(["{{ %s }}", "{{- %s }}", "{{ %s -}}"]) % self.expression(2)
        if choice < 0.5:
            return self.tag(f"if {self.expression(1)}") + body(depth - 1) + (
                self.tag("else") + body(depth - 1) if random.random() < 0.5 else "") + self.tag("endif")
        if choice < 0.68:
            over = random.choice(["l", "w", "r", "d", "d.items()", "s", "p", "range(3)", self.expression(1)])
            target = random.choice(["i", "i, j", "n"])
            test = random.choice(["", "", f" if {self.expression(1)}"])
            inside = random.choice(["", "{{ loop.index }}{{ loop.last }}", "{{ loop.revindex }}/{{ loop.length }}", "{{ loop.previtem }}",
                                    "{{ loop.nextitem }}", "{{ loop.cycle('a', 'b') }}{{ loop.changed(i) }}", "{% break %}",
                                    "{% if loop.first %}{% continue %}{% endif %}", "{{ i }}"])
            return self.tag(f"for {target} in {over}{test}") + inside + body(depth - 1) + (
                self.tag("else") + "none" if random.random() < 0.3 else "") + self.tag("endfor")
        if choice < 0.78:
            return self.tag(f"set {name} = {self.expression(2)}")
        if choice < 0.82:
            return self.tag(f"set {name}{random.choice(['', ' | upper', ' | trim | length'])}") + body(depth - 1) + self.tag("endset")
        if choice < 0.88:
            return (self.tag(f"macro f(a, b={self.expression(1)})") + "{{ a }}" + random.choice(["", "{{ caller() }}", "{{ kwargs }}{{ varargs }}"])
                    + body(depth - 1) + self.tag("endmacro") + "{{ f(%s) }}" % random.choice(["", "1", "1, 2", "b=3", "1, c=4", "1, 2, 3"]))
        if choice < 0.91:
            return "{% macro g(a) %}<{{ caller(a) }}>{% endmacro %}{% call(q) g(2) %}{{ q }}" + body(depth - 1) + "{% endcall %}"
        if choice < 0.94:
            return self.tag(f"with {name} = {self.expression(1)}") + body(depth - 1) + self.tag("endwith")
        if choice < 0.97:
            return "{% filter upper %}" + body(depth - 1) + "{% endfilter %}"
        return "{% generation %}" + body(depth - 1) + "{% endgeneration %}{% set ns = namespace(a=1) %}{% set ns.a = n %}{{ ns.a }}"

    def template(self):
        return self.body(2) if self.random.random() < 0.5 else "{{ " + self.expression(3) + " }}"
