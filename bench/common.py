# SPDX-License-Identifier: Apache-2.0
"""What the measurements share: where things are, how a program is run, how a table is printed."""
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
SHARED = pathlib.Path(os.environ.get("QUENCH_SHARED", SOURCE.parent / "shared"))
RESULTS = SOURCE / "build" / "bench"


def run(words, **options):
    """Runs a program; its stdout, or an error that shows what it said."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(str(word) for word in words)} exited with "
                           f"{done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def run_json(words, **options):
    return json.loads(run(words, **options))


def generated(build, name, words):
    """The path of a generated model, which is written when it is not there."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / name
    if not path.exists():
        run([build / "quench_generate", words[0], path, *words[1:]])
    return path


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def write_results(name, results):
    """Adds where and when to the results and writes them to build/bench."""
    commit = subprocess.run(["git", "-C", str(SOURCE), "rev-parse", "--short", "HEAD"],
                            capture_output=True, text=True, check=False).stdout.strip()
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / name
    path.write_text(json.dumps({
        "commit": commit, "machine": f"{cpu_name()}, {os.cpu_count()} cores",
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": " ".join(sys.argv), **results}, indent=2) + "\n")
    print(f"written: {path}")


def print_table(titles, rows):
    """Columns as wide as they must be; the first one on the left, numbers on the right."""
    table = [titles] + rows
    widths = [max(len(row[column]) for row in table) for column in range(len(titles))]
    for number, row in enumerate(table):
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  ".join(cells).rstrip())
        if number == 0:
            print("  ".join("-" * width for width in widths))


def markdown_table(titles, rows):
    lines = [titles, ["---"] * len(titles)] + rows
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def write_section(path, title, text):
    """Puts `text` under the heading `# title` of a file, in place of what was there."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    sections = [part for part in old.split("\n# ") if part]
    made = f"{title}\n\n{text.rstrip()}\n"
    names = [part.removeprefix("# ").split("\n", 1)[0] for part in sections]
    sections = [part.removeprefix("# ").rstrip() + "\n" for part in sections]
    if title in names:
        sections[names.index(title)] = made
    else:
        sections.append(made)
    path.write_text("# " + "\n# ".join(sections), encoding="utf-8")
    print(f"written: {path}")
