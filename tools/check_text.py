#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the text of files: licence line, opening sentence, ASCII, blanks, no paths of one machine."""
import re
import sys

import sources

LICENCE = "SPDX-License-Identifier: Apache-2.0"
LICENSED = {".h", ".cpp", ".inc", ".py", ".sh", ".cmake", ".proto"}
LICENSED_NAMES = {"CMakeLists.txt", "Makefile", "packages.txt"}
TEXT = LICENSED | {".md", ".json", ".txt", ".ini", ".svg", ".map", ".yml"}
TEXT_NAMES = LICENSED_NAMES | {".clang-format", ".clang-tidy", ".gitignore", "LICENSE", "run"}
# Written in two parts so that this file passes its own check.
BANNED = {
    "/" + r"(?:work|home|root|tmp)/": "a path of one machine",
    "py" + r"pi\.|python" + "hosted": "the host name of a registry",
}


# Words that a quantisation engineer would need a dictionary for: docs/glossary.md. Names hold them
# between underscores.
OUR_OWN_WORDS = re.compile(r"(?<![a-zA-Z])(?i:grids?|settle[ds]?|judge[ds]?|jury|teams?|kept apart|held apart)"
                           r"(?![a-zA-Z])")
# Operators and inputs that ONNX and Paddle call so.
OF_OTHERS = re.compile(r'(?i:grid_sampler?|affine_grid)|"(?:X )?Grid"')


# Pages in other languages, which no ASCII can hold.
NOT_ENGLISH = {"README.zh-CN.md"}


def to_check(path, line):
    """What must be in the field's words: guides and code."""
    if str(path).startswith("docs/guide/") or path.name == "README.md" and len(path.parts) == 1:
        return line
    if path.suffix not in sources.CPP_SUFFIXES or path.parts[0] not in ("src", "cli", "include"):
        return ""
    return line


def check_text(path, text):
    lines = text.split("\n")
    if path.suffix in LICENSED or path.name in LICENSED_NAMES:
        if not any(LICENCE in line for line in lines[:2]):
            yield f"{path}:1: the line '{LICENCE}' is missing"
        elif path.suffix in sources.CPP_SUFFIXES and not lines[1].startswith("// "):
            yield f"{path}:2: a sentence that says what the file is should stand here"
    if text and not text.endswith("\n"):
        yield f"{path}:{len(lines)}: no line end at the end of the file"
    for number, line in enumerate(lines, 1):
        if not line.isascii() and path.name not in NOT_ENGLISH:
            yield f"{path}:{number}: a character that is not ASCII"
        if line != line.rstrip():
            yield f"{path}:{number}: blanks or a carriage return at the end of the line"
        if "\t" in line and path.name != "Makefile":
            yield f"{path}:{number}: a tab"
        if found := OUR_OWN_WORDS.search(OF_OTHERS.sub("", to_check(path, line))):
            yield f"{path}:{number}: '{found.group()}' is not the field's word: docs/glossary.md"
        for pattern, what in BANNED.items():
            if re.search(pattern, line):
                yield f"{path}:{number}: {what}"


def main():
    root = sources.arguments_root()
    problems = []
    for path in sources.repository_files(root):
        if path.suffix not in TEXT and path.name not in TEXT_NAMES:
            continue
        try:
            problems.extend(check_text(path, (root / path).read_bytes().decode("utf-8")))
        except UnicodeDecodeError:
            problems.append(f"{path}: not a text in UTF-8")
    return sources.report("check_text", problems)


if __name__ == "__main__":
    sys.exit(main())
