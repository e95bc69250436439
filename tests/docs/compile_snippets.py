# SPDX-License-Identifier: Apache-2.0
"""Compiles the C++ of README and guides, against quench/quench.h as a reader would."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ["QUENCH_SOURCE"])
BLOCK = re.compile(r"^```cpp\n(.*?)^```", re.MULTILINE | re.DOTALL)


def program(block):
    """Statements stand in a function; a block with its own main is as it is."""
    if "int main" in block:
        return block
    includes = "".join(line + "\n" for line in block.splitlines() if line.startswith("#include"))
    body = "".join(line + "\n" for line in block.splitlines() if not line.startswith("#include"))
    return f'{includes}#include "quench/quench.h"\nvoid snippet() {{\n{body}}}\n'


def main():
    compiler = shutil.which("g++")
    if compiler is None:
        print("there is no g++")
        return 1 if os.environ.get("CI") == "true" else 77
    failed = count = 0
    for page in [ROOT / "README.md", ROOT / "README.zh-CN.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]:
        for block in BLOCK.findall(page.read_text(encoding="utf-8")) if page.exists() else []:
            with tempfile.NamedTemporaryFile("w", suffix=".cpp") as file:
                file.write(program(block))
                file.flush()
                done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-I",
                                       str(ROOT / "include"), file.name], capture_output=True,
                                      text=True, check=False)
            count += 1
            if done.returncode:
                failed += 1
                print(f"{page.relative_to(ROOT)}:\n{block}{done.stderr}")
    print(f"{count} snippets, {failed} do not compile")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
