#!/usr/bin/env python3
"""A preprocessor of mdBook. Chapters include documents whose links are right where these stand, in `docs/`: what the book has
too stays within it, and what it does not have leads to the repository."""

import json
import posixpath
import re
import sys

LINK = re.compile(r"\]\(([^()\s]+)\)")
FENCE = re.compile(r"^(```|~~~)")


def rewritten(link, exists, repository):
    """The link as the book has it; `exists` tells whether a file is in the repository."""
    file, mark, anchor = link.partition("#")
    if not file or ":" in file or exists(f"book/src/{file}"):
        return link
    path = posixpath.normpath(posixpath.join("docs", file))
    if path.startswith("book/src/"):
        return path.removeprefix("book/src/") + mark + anchor
    return f"{repository}/blob/main/{path}{mark}{anchor}"


def chapters(value):
    """Every chapter in the book, wherever this version of mdBook keeps them."""
    if isinstance(value, dict):
        if isinstance(value.get("content"), str):
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from chapters(item)


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    context, book = json.load(sys.stdin)
    root = posixpath.dirname(context["root"].rstrip("/"))
    repository = context["config"]["output"]["html"]["git-repository-url"].rstrip("/")

    def exists(path):
        return posixpath.exists(posixpath.join(root, path))

    for chapter in chapters(book):
        in_code, lines = False, []
        for line in chapter["content"].split("\n"):
            in_code ^= bool(FENCE.match(line))
            if not in_code:
                line = LINK.sub(lambda found: f"]({rewritten(found[1], exists, repository)})", line)
            lines.append(line)
        chapter["content"] = "\n".join(lines)
    json.dump(book, sys.stdout)


main()
