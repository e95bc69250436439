# SPDX-License-Identifier: Apache-2.0
"""The files of the repository, and what the checks have in common."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CPP_SUFFIXES = {".h", ".cpp", ".inc"}


def repository_files(root=ROOT):
    """Paths relative to root: what git tracks or would track, or everything in a plain copy."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        paths = [pathlib.Path(line) for line in listed.splitlines()]
    except (OSError, subprocess.CalledProcessError):
        paths = list(walk(root))
    return sorted(path for path in paths if (root / path).is_file())


def walk(root):
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in ("build", ".git", ".venv")]
        for name in names:
            yield (pathlib.Path(folder) / name).relative_to(root)


def cpp_files(root=ROOT):
    return [path for path in repository_files(root) if path.suffix in CPP_SUFFIXES]


def report(check, problems):
    """Prints the problems and gives the exit status."""
    for problem in problems:
        print(problem)
    print(f"{check}: {len(problems)} problem(s)" if problems else f"{check}: ok")
    return 1 if problems else 0


def arguments_root():
    """The folder named on the command line, or the repository."""
    return pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
