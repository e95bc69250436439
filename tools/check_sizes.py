#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that files and functions stay short. There is no list of exceptions."""
import ast
import re
import sys

import sources

MAX_FILE = 500
MAX_PUBLIC_HEADER = 150
MAX_FUNCTION = 60
COUNTED = {".h", ".cpp", ".inc", ".py", ".sh", ".cmake", ".proto"}

# Raw strings, comments, strings and character literals, in the order in which they must be tried.
# A quote between digits (1'000) is no literal.
OPAQUE = re.compile(
    r'R"(?P<tag>[^()\s]*)\(.*?\)(?P=tag)"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9a-zA-Z_])'(?:\\.|[^'\\\n])*'", re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
SCOPE = re.compile(r"\b(?:class|struct|union|enum|namespace)\b|^\s*extern\s*$")


def blank(match):
    """Spaces for the text, with its line ends kept so that line numbers hold."""
    return re.sub(r"[^\n]", " ", match[0])


def strip(text):
    return DIRECTIVE.sub(blank, OPAQUE.sub(blank, text))


def opens_function(head):
    """Whether the text before a brace at file or class scope is that of a function."""
    plain = head
    while plain != (shorter := re.sub(r"<[^<>]*>", "", plain)):
        plain = shorter
    before = plain.split("(")[0]
    return "(" in plain and not SCOPE.search(before) and not plain.rstrip().endswith("=")


def is_member_initializer(head):
    """Whether a brace follows a member name in a constructor's list: `: a_{1}, b_{2}`."""
    return bool(re.search(r"\)[^;{}]*:(?!:)", head) and re.search(r"[\w>]$", head))


def matching(text, position):
    """The position of the bracket that closes the one at `position`."""
    depth = 0
    for index in range(position, len(text)):
        if text[index] in "({":
            depth += 1
        elif text[index] in ")}":
            depth -= 1
            if depth == 0:
                return index
    return len(text) - 1


def cpp_functions(text):
    """Pairs (first line, number of lines) of the functions of a C++ file."""
    text = strip(text)
    start = position = 0
    while position < len(text):
        char = text[position]
        head = text[start:position] if char == "{" else ""
        if char == "(":
            position = matching(text, position)
        elif char in ";}":
            start = position + 1
        elif char == "{" and is_member_initializer(head):
            position = matching(text, position)
        elif char == "{" and opens_function(head):
            end = matching(text, position)
            first = text.count("\n", 0, start + len(head) - len(head.lstrip()))
            yield first + 1, text.count("\n", 0, end) - first + 1
            position, start = end, end + 1
        elif char == "{" and SCOPE.search(head):
            start = position + 1
        elif char == "{":
            position = matching(text, position)
        position += 1


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno - node.lineno + 1


def check_file(path, text):
    lines = text.count("\n")
    limit = MAX_PUBLIC_HEADER if path.as_posix().startswith("include/") else MAX_FILE
    if lines > limit:
        yield f"{path}: {lines} lines; the limit is {limit}"
    functions = []
    if path.suffix in sources.CPP_SUFFIXES:
        functions = cpp_functions(text)
    elif path.suffix == ".py":
        functions = python_functions(text)
    for first, length in functions:
        if length > MAX_FUNCTION:
            yield f"{path}:{first}: a function of {length} lines; the limit is {MAX_FUNCTION}"


def main():
    root = sources.arguments_root()
    problems = []
    for path in sources.repository_files(root):
        if path.suffix in COUNTED or path.name == "CMakeLists.txt":
            problems.extend(check_file(path, (root / path).read_text()))
    return sources.report("check_sizes", problems)


if __name__ == "__main__":
    sys.exit(main())
