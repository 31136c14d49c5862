#!/usr/bin/env python3
"""Unnamed namespaces of one layer share no names: trees with sanitizers compile a layer's sources together (CMakeLists.txt,
cairn_together), in groups that change with every new file, so two of one name might meet on any day. Functions may share a name
where their parameters differ, as overloads do."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LAYER = re.compile(r"^\s*cairn_layer\((\w+) (\S+)", re.MULTILINE)
NO_UNITY = {"cairn_cpu", "cairn_tokenizer", "cairn_template"}
HIDDEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:\\\n|[^\n])*',
                    re.DOTALL | re.MULTILINE)
TYPE = re.compile(r"^(?:template\s*<.*?>\s*)?(?:struct|class|union|enum(?:\s+class|\s+struct)?)\s+(?:\[\[.*?\]\]\s*)?(\w+)", re.DOTALL)
ALIAS = re.compile(r"^using\s+(\w+)\s*=")
FUNCTION = re.compile(r"(\w+)\s*\(")


def folders_of(pattern):
    braces = re.fullmatch(r"(.*)\{(.*)\}(.*)", pattern)
    return [braces[1] + word + braces[3] for word in braces[2].split(",")] if braces else [pattern]


def split_top(text):
    """The parts between commas that no bracket encloses."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "(<[{") - (c in ")>]}")
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    return [part for part in parts + [text[start:]] if part.strip()]


def parameter_type(parameter):
    words = re.sub(r"\s+", " ", parameter.split("=")[0]).strip()
    return re.sub(r"(?<=[\s&*>])\w+$", "", words).replace(" ", "") or words


def name_of(declaration):
    """(name, types of parameters or None) of what a declaration before its brace or semicolon names."""
    declaration = declaration.strip()
    for rule in (TYPE, ALIAS):
        if match := rule.match(declaration):
            return match[1], None
    if declaration.startswith(("catch", "using ", "template <> ", "static_assert", "friend ")) or "operator" in declaration:
        return None
    head = re.sub(r"\[\[.*?\]\]", "", declaration.split(" = ")[0])
    bare = head
    while (fewer := re.sub(r"<[^<>]*>", lambda m: "_" * len(m[0]), bare)) != bare:
        bare = fewer
    if match := FUNCTION.search(bare):
        depth, end = 1, match.end()
        while end < len(head) and depth:
            depth += (head[end] == "(") - (head[end] == ")")
            end += 1
        return match[1], tuple(parameter_type(part) for part in split_top(head[match.end():end - 1]))
    words = re.findall(r"\w+", re.sub(r"\[.*", "", bare))
    return (words[-1], None) if len(words) > 1 else None


def unnamed_names(text):
    """What the unnamed namespaces of a source define, each with its line. Declarations alone, which end in ')', are not counted."""
    text = HIDDEN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    for opening in re.finditer(r"\bnamespace\s*\{", text):
        depth, start = 1, opening.end()
        for i in range(opening.end(), len(text)):
            if text[i] == "{":
                if depth == 1 and text[start:i].strip() and (named := name_of(text[start:i])):
                    yield *named, text.count("\n", 0, i) + 1
                depth += 1
            elif text[i] == "}":
                depth -= 1
                if depth == 0:
                    break
                if depth == 1:
                    rest = text[i + 1:i + 40].lstrip()
                    start = i + 1 + (text[i + 1:].index(";") + 1 if rest.startswith(";") else 0)
            elif text[i] == ";" and depth == 1:
                declaration = text[start:i]
                if declaration.strip() and not declaration.rstrip().endswith((")", "const")) and (named := name_of(declaration)):
                    yield *named, text.count("\n", 0, i) + 1
                start = i + 1


def clashes(sources):
    """Lines about what two of `sources`, path -> text, define alike."""
    seen = {}
    for path, text in sources.items():
        for name, types, line in unnamed_names(text):
            for other_types, other in seen.get(name, ()):
                if other[0] != path and (types is None or other_types is None or types == other_types):
                    yield f"{path}:{line}: '{name}' is defined in {other[0]}:{other[1]}, too, a source of the same layer"
            seen.setdefault(name, []).append((types, (path, line)))


def test_finds_what_clashes():
    def clash(a, b):
        return len(list(clashes({"a.cc": "namespace {\n" + a + "\n}", "b.cc": "namespace {\n" + b + "\n}"})))

    assert clash("int f(int a) { return a; }", "int f(int b) {\n return b; }") == 1
    assert clash("int f(int a) { return a; }", "int f(const Shape& a) { return 1; }") == 0
    assert clash("std::atomic<bool> f{false};", "int f(int a, int b) { return 1; }") == 1
    assert clash("constexpr int kMost = 3;", "constexpr int64_t kMost = 1 << 3;") == 1
    assert clash("struct Part { int f; };", "enum class Part { kF };") == 1
    assert clash("struct Part { int f() { return 1; } };", "int f() { return 2; }") == 0
    assert clash("std::map<int, std::vector<int>> f(std::pair<int, int> p = {1, 2}) { return {}; }",
                 "std::vector<int> f(std::pair<int, int> q) { return {}; }") == 1
    assert clash("int f(int a);", "int f(int a);") == 0
    assert clash("// int f() {}\nint g() { return '{'; }", "int f() { return 0; }") == 0


def main():
    test_finds_what_clashes()
    wrong, layers = [], LAYER.findall((ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    plan = re.search(r"set\(plan_folders (\S+)\)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    count = 0
    for name, pattern in layers:
        if name in NO_UNITY:
            continue
        pattern = plan[1] if pattern == "${plan_folders}" else pattern
        files = [file for folder in folders_of(pattern) for file in sorted((ROOT / folder).glob("*.cc"))]
        count += len(files)
        wrong += clashes({file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in files})
    assert count > 300, f"only {count} sources found"
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
