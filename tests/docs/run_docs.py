# SPDX-License-Identifier: Apache-2.0
"""Runs the commands of the documentation: lines that start with `$ ` in `console` blocks.

A command must succeed, or fail as its block says (`console exit=3`), with a clone alone: nothing beside
it may be named. Links between pages must lead somewhere. What stands between
`<!-- quench ... -->` and `<!-- end -->` must be what the command prints; `--write` makes it so.
"""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(os.environ["QUENCH_SOURCE"])
BINARY = pathlib.Path(os.environ["QUENCH_BINARY"])
BLOCK = re.compile(r"^```console(?: exit=(\d+))?\n(.*?)^```", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
BESIDE = re.compile(r"(?<![\w./])\.\./\S*")
MADE = re.compile(r"^<!-- (quench [^\n]*) -->\n(.*?)^<!-- end -->", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def commands(text):
    """Pairs (command, expected exit status); a backslash at the end of a line joins the next."""
    for status, body in BLOCK.findall(text):
        for line in body.replace("\\\n", "").splitlines():
            if line.startswith("$ "):
                yield line[2:], int(status or 0)


def run(command):
    environment = dict(os.environ, PATH=f"{BINARY}{os.pathsep}{os.environ['PATH']}")
    return subprocess.run(["/bin/sh", "-c", command], cwd=ROOT, env=environment, capture_output=True,
                          text=True, check=False)


def check_page(page):
    """What is wrong with a page."""
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(ROOT)
    for target in LINK.findall(FENCED.sub("", text)):
        if not (page.parent / target).exists():
            yield f"{name}: the link to {target} leads nowhere"
    for command, shown in MADE.findall(text):
        if run(command).stdout.strip() != shown.strip():
            yield f"{name}: not what `{command}` prints; run_docs.py --write puts it right"
    for command, expected in commands(text):
        beside = BESIDE.search(command)
        if beside:
            yield f"{name}: {beside[0]} is not in a clone: {command}"
            continue
        result = run(command)
        print(f"{name}: {command}")
        if result.returncode != expected:
            yield (f"{name}: {command}\n  exit {result.returncode}, expected {expected}\n"
                   f"{result.stdout}{result.stderr}")


def write_made(page):
    """Puts what commands print between the lines that name them."""
    text = page.read_text(encoding="utf-8")
    page.write_text(MADE.sub(lambda match: f"<!-- {match[1]} -->\n{run(match[1]).stdout}<!-- end -->",
                             text), encoding="utf-8")


def main():
    pages = [ROOT / "README.md", ROOT / "README.zh-CN.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if "--write" in sys.argv:
        for page in pages:
            write_made(page)
        return 0
    problems = [problem for page in pages for problem in check_page(page)]
    for problem in problems:
        print(problem)
    print(f"{len(pages)} pages, {len(problems)} problem(s)")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
