#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast weights are quantised, from file to file, and in how much memory: a generated model of
1 GB, 8 bits by channel and 4 bits in groups of 64.

    bench/weight_speed.py [--size-mb 1000] [--rounds 3]
"""
import argparse
import os
import pathlib
import subprocess
import time

import common

BUILD = pathlib.Path(os.environ.get("QUENCH_BINARY", common.SOURCE / "build/release"))
FORMS = {"8 bit": ["--bits", "8"], "4 bit, groups of 64": ["--bits", "4", "--group-size", "64"]}


def measure(words):
    """Seconds and peak megabytes of one process."""
    began = time.perf_counter()
    with subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
    if status:
        raise RuntimeError(f"{words} exited with {status}")
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size-mb", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    model = common.generated(BUILD, f"big_{arguments.size_mb}.onnx",
                             ["big", "--size-mb", arguments.size_mb])
    size = model.stat().st_size
    out = common.RESULTS / "big_quantised.onnx"
    model.read_bytes()  # the file is in the page cache for every round
    rows, results = [], {}
    for form, words in FORMS.items():
        runs = [measure([BUILD / "quench", "quantize", model, "-o", out, "--type", "weight", *words,
                         "--threads", "2", "--quiet"]) for _ in range(arguments.rounds)]
        seconds = min(run[0] for run in runs)
        peak = max(run[1] for run in runs)
        share = out.stat().st_size / size
        rows.append([form, f"{seconds:.2f}", f"{size / 1e6 / seconds:.0f}", f"{peak:.0f}",
                     f"{share:.2%}"])
        results[form] = {"seconds": seconds, "mb_per_second": size / 1e6 / seconds,
                         "peak_mb": peak, "share": share}
        out.unlink()
    common.print_table(["form", "seconds", "MB/s", "peak MB", "of the file"], rows)
    print(f"float model: {size / 1e6:.0f} MB; goals: 400 MB/s and {size / 1e6 + 200:.0f} MB at 8 bit")
    common.write_results("weight_speed.json", results)


if __name__ == "__main__":
    main()
