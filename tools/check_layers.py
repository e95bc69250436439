#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the #include lines: a room sees only rooms before it, and few see third-party code."""
import re
import sys

import sources

# A room may include itself and the rooms before it.
ROOMS = [
    "base", "tensor", "quant", "ir", "ops", "formats", "passes", "data", "exec", "observe",
    "metrics", "plan", "options", "calibrate", "lower", "evaluate", "retarget", "qat", "tune", "analyze",
    "report", "job", "compat",
]
# The room that each public header belongs to.
PUBLIC_HEADERS = {
    "error": "base", "byte_source": "base", "cpu": "base", "context": "base", "nearest": "base", "files": "base", "ranks": "base",
    "jobs": "job", "dtype": "tensor", "tensor": "tensor", "node": "ir",
    "graph": "ir", "model": "ir", "data": "data", "given_samples": "data", "truth": "data", "presets": "data", "doctor": "evaluate", "engine_value": "exec", "launched": "exec", "session": "exec", "metrics": "metrics",
    "quant": "quant", "weight_quant": "quant", "plan": "plan", "quant_config": "plan", "observers": "compat", "statistics": "observe", "summary": "quant", "lower": "lower", "retarget": "retarget",
    "evaluate": "evaluate", "observer_trial": "evaluate", "quantize": "evaluate", "ptq": "job",
    "run": "evaluate", "formats": "formats", "pack": "formats",
    "analysis": "analyze", "analyze": "analyze", "report": "report",
    "options": "options", "training": "options", "training_defaults": "options", "training_report": "evaluate", "quanter": "qat", "quanted_layer": "qat", "quanters": "qat", "preprocess": "qat", "trainable": "qat", "qat": "job", "option_table": "options", "converter_lite": "compat", "quench": "compat", "paddleslim": "compat", "paddleslim_analysis": "compat", "legacy_ptq": "compat", "predictor": "compat",
}
# Third-party headers by how their name begins, and the places that may include them.
THIRD_PARTY = {
    "torch/": ["src/exec/", "src/qat/", "examples/"],
    "ATen/": ["src/exec/", "src/qat/", "include/quench/quanter.h"],
    "c10/": ["src/exec/", "src/qat/"],
    "gloo/": ["src/exec/"],
    "dnnl": ["src/exec/"],
    "oneapi/dnnl/": ["src/exec/"],
    "google/protobuf/": ["src/formats/"],
    "flatbuffers/": ["src/formats/tflite/", "src/formats/ms/"],
    "opencv2/": ["src/data/images"],
    "nlohmann/": ["cli/", "src/report/", "src/options/", "src/calibrate/", "src/tune/", "src/analyze/", "src/job/", "src/evaluate/", "src/base/json", "src/data/coco", "src/formats/paddle/"],
    "CLI/": ["cli/"],
    "fmt/": ["src/", "cli/", "python/"],
    "pybind11/": ["python/"],
    "zip.h": ["src/data/"],
    "cairo/": ["src/report/plots"],
    "zlib.h": ["src/data/", "src/formats/packed/"],
    "zstd.h": ["src/formats/packed/"],
}
# Calls that one place makes for all: how many threads there are is the Context's to say.
CALLS = {"hardware_concurrency": ["src/base/context.cpp"]}
# Folders of the C library and the kernel.
SYSTEM_FOLDERS = {"sys", "linux", "arpa", "netinet"}
# Tests, benchmarks and fuzzing may look anywhere.
CHECKED = ("include/quench/", "src/", "cli/", "python/", "examples/")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def room_of(path):
    """The room of a file under src/ or include/quench/, or None."""
    parts = path.split("/")
    if path.startswith("include/quench/"):
        return PUBLIC_HEADERS.get(parts[-1].removesuffix(".h").removesuffix(".inc"))
    return parts[1] if path.startswith("src/") and len(parts) > 2 else None


def judge_third_party(path, header):
    for prefix, places in THIRD_PARTY.items():
        if header.startswith(prefix):
            if any(path.startswith(place) for place in places):
                return None
            return f"<{header}> may be included only by {', '.join(places)}"
    folder = header.split("/")[0] if "/" in header else None
    if folder and folder not in SYSTEM_FOLDERS:
        return f"<{header}> is not in the table of third-party headers (tools/check_layers.py)"
    return None


def judge_quench(path, header, root):
    """What is wrong with a quoted include, or None."""
    if header.startswith("quench/"):
        target = PUBLIC_HEADERS.get(header.removeprefix("quench/").removesuffix(".h").removesuffix(".inc"))
        if target is None:
            return f'"{header}" is not in the table of public headers (tools/check_layers.py)'
    elif header.split("/")[0] in ROOMS:
        target = header.split("/")[0]
        if not path.startswith("src/"):
            return f'"{header}" is private to the library; only "quench/*.h" may be included here'
    else:
        beside = root / path.rsplit("/", 1)[0] / header
        own = root / header
        if header.endswith(".pb.h") and path.startswith("src/formats/"):
            return None
        inside = own.exists() and header.split("/")[0] == path.split("/")[0]
        return None if beside.exists() or inside else f'"{header}" is found nowhere'
    room = room_of(path)
    if room in ROOMS and ROOMS.index(target) > ROOMS.index(room):
        return f'"{header}" belongs to room {target}, which comes after {room}'
    return None


def check_file(path, root):
    if path.startswith(("include/quench/", "src/")) and path.count("/") > 1:
        if room_of(path) not in ROOMS:
            yield f"{path}: belongs to no room; add it to tools/check_layers.py"
            return
    for number, line in enumerate((root / path).read_text().splitlines(), 1):
        for call, places in CALLS.items():
            if call in line and path not in places:
                yield f"{path}:{number}: {call} may be called only by {', '.join(places)}"
        match = INCLUDE.match(line)
        if not match:
            continue
        if match[1] == "<":
            problem = judge_third_party(path, match[2])
        elif path.startswith("include/") and not match[2].startswith("quench/"):
            problem = f'a public header may not include "{match[2]}"'
        else:
            problem = judge_quench(path, match[2], root)
        if problem:
            yield f"{path}:{number}: {problem}"


def main():
    root = sources.arguments_root()
    problems = []
    for path in sources.cpp_files(root):
        if path.as_posix().startswith(CHECKED):
            problems.extend(check_file(path.as_posix(), root))
    return sources.report("check_layers", problems)


if __name__ == "__main__":
    sys.exit(main())
