#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that clang-format would change nothing; `make format` mends what it finds."""
import shutil
import subprocess
import sys

import sources

SKIPPED = 77


def main():
    root = sources.arguments_root()
    if shutil.which("clang-format") is None:
        print("check_format: clang-format is not installed (scripts/install_deps.sh test)")
        return SKIPPED
    files = [str(path) for path in sources.cpp_files(root) if path.suffix != ".inc"]
    if not files:
        return 0
    command = ["clang-format", "--dry-run", "--Werror", "--ferror-limit=1", *files]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    problems = [line for line in run.stderr.splitlines() if ": error:" in line]
    if run.returncode and not problems:
        problems = [run.stderr.strip()]
    return sources.report("check_format", problems)


if __name__ == "__main__":
    sys.exit(main())
