#!/usr/bin/env python3
"""Pages: each link within the tree leads somewhere, also to a heading, and what a page quotes stands in the file it names.

  links_test.py SOURCE

A fenced block behind <!-- quoted from PATH --> must stand in that file as it is, but for the file's indentation.
"""
import pathlib
import re
import subprocess
import sys
import textwrap
import xml.etree.ElementTree

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|<img [^>]*src=\"([^\"]+)\"|srcset=\"([^\"]+)\"")
QUOTE = re.compile(r"^<!-- quoted from (\S+) -->\n```\w*\n(.*?)^```", re.S | re.M)


def without_code(text):
    return re.sub(r"^```.*?^```|`[^`\n]*`", lambda code: "\n" * code[0].count("\n"), text, flags=re.S | re.M)


def anchors(path):
    """Of headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    found = {}
    for heading in re.findall(r"^#+ (.*)$", text, re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("\\", "").replace("`", "").strip().lower()
        words = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found[words] = found.get(words, -1) + 1
    return {words + (f"-{n}" if n else "") for words, most in found.items() for n in range(most + 1)}


def problems_of(page):
    text = page.read_text(encoding="utf-8")
    for match in LINK.finditer(without_code(text)):
        target = next(group for group in match.groups() if group)
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists():
            yield f"{target}: there is no such file"
        elif anchor and there.suffix == ".md" and anchor not in anchors(there):
            yield f"{target}: that page has no such heading"


def quotes_of(page, source):
    """(path, whether it is right) of what a page quotes."""
    for path, body in QUOTE.findall(page.read_text(encoding="utf-8")):
        lines = [line.rstrip() for line in (source / path).read_text(encoding="utf-8").split("\n")]
        wanted = textwrap.dedent(body).rstrip("\n").split("\n")
        parts = (lines[at:at + len(wanted)] for at in range(len(lines) - len(wanted) + 1))
        yield path, any(textwrap.dedent("\n".join(part)).split("\n") == wanted for part in parts)


def main():
    source = pathlib.Path(sys.argv[1]).resolve()
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=source, capture_output=True, text=True,
                            check=False)
    names = listed.stdout.split() if listed.returncode == 0 else ["README.md", *(
        path.relative_to(source) for folder in ("capi", "runtime", "kernels", "bindings", "scripts", "tests", "bench")
        for path in (source / folder).rglob("*.md"))]
    wrong, quotes = [], 0
    for name in names:
        page = source / name
        wrong += [f"{name}: {problem}" for problem in problems_of(page)]
        for path, right in quotes_of(page, source):
            quotes += 1
            if not right:
                wrong.append(f"{name}: what it quotes does not stand in {path}: copy it anew")
    for picture in (source / "capi/docs/pictures").glob("*.svg"):
        xml.etree.ElementTree.parse(picture)
        if picture.stat().st_size > 40000 or "prefers-color-scheme:dark" not in picture.read_text(encoding="utf-8"):
            wrong.append(f"{picture.name}: larger than 40,000 bytes, or for one ground alone")
    if wrong:
        sys.exit("\n".join(wrong))
    assert len(names) > 20 and quotes >= 5, (len(names), quotes)
    print(f"{len(names)} pages: all links lead somewhere, {quotes} quotes are right")


main()
