#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the library and the program, and remembers which files were clean.

A file is checked again when it, a header of ours that it sees, its compile command or a .clang-tidy
above it has changed. The engine is left out: clang 14 cannot read libtorch 1.13's headers as C++20.
"""
import argparse
import concurrent.futures
import hashlib
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
UNREADABLE = ("torch/", "ATen/", "c10/")
LIBRARY = ("src/", "cli/")
# A header that g++ has compiled is of no use to clang-tidy; files include what they need.
PRECOMPILED = re.compile(r" -Winvalid-pch| -include \S*/cmake_pch\.hxx")


def closure(path, seen):
    """Adds to `seen` every file of the repository that `path` includes; gives the foreign ones."""
    foreign = set()
    for _, name in INCLUDE.findall(path.read_text()):
        places = (path.parent / name, ROOT / "include" / name, ROOT / "src" / name, ROOT / name)
        found = next((place.resolve() for place in places if place.is_file()), None)
        if found is None:
            foreign.add(name)
        elif found not in seen:
            seen.add(found)
            foreign |= closure(found, seen)
    return foreign


def key_of(path, files, command):
    digest = hashlib.sha256(command.encode())
    rules = {folder / ".clang-tidy" for folder in path.parents
             if folder.is_relative_to(ROOT) and (folder / ".clang-tidy").is_file()}
    for file in sorted({path} | rules | files):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def read_commands(build, cache):
    """The compile commands without precompiled headers; also written to `cache` for clang-tidy."""
    commands = json.loads((build / "compile_commands.json").read_text())
    for entry in commands:
        entry["command"] = PRECOMPILED.sub("", entry["command"])
    (cache / "compile_commands.json").write_text(json.dumps(commands))
    return commands


def select(commands, build, everything, wanted):
    """Pairs (file, key) of what should be checked."""
    for entry in commands:
        path = pathlib.Path(entry["directory"], entry["file"]).resolve()
        name = str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else ""
        if not name or path.is_relative_to(build) or (wanted and not name.startswith(wanted)):
            continue
        files = set()
        foreign = closure(path, files)
        readable = not any(header.startswith(UNREADABLE) for header in foreign)
        if readable and (everything or name.startswith(LIBRARY)):
            yield path, key_of(path, files, entry["command"])


def check(path, cache):
    command = ["clang-tidy", "-p", str(cache), "--quiet", str(path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    return path, run.returncode == 0, run.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path, help="a configured build tree")
    parser.add_argument("paths", nargs="*", help="check only files whose path begins like this")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--all", action="store_true", help="tests, benchmarks and examples too")
    options = parser.parse_intermixed_args()
    build = options.build.resolve()
    cache = ROOT / "build" / "tidy-cache"
    cache.mkdir(parents=True, exist_ok=True)
    commands = read_commands(build, cache)
    todo = {path: key for path, key in select(commands, build, options.all, tuple(options.paths))
            if not (cache / key).exists()}
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for path, clean, text in pool.map(lambda item: check(item, cache), todo):
            if clean:
                (cache / todo[path]).touch()
            else:
                failed += 1
                print(text, flush=True)
    print(f"tidy: {len(todo)} file(s) checked, {failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
