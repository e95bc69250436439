#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much memory a generated transformer takes that is larger than the memory it may take.

    bench/memory.py [--size-mb 2000] [--hidden 2048] [--virtual-mb 1500] [--max-memory 1000MB] [--only weight]

Weights are quantised under `ulimit -v`; where the engine runs, under --max-memory.
"""
import argparse
import os
import pathlib
import random
import resource
import struct
import subprocess
import threading
import time

import common

BUILD = pathlib.Path(os.environ.get("QUENCH_BINARY", common.SOURCE / "build/release"))
SAMPLES, LENGTH = 8, 16


def peaks(pid, found):
    """Reads the process's own peaks until it is gone."""
    while True:
        try:
            text = pathlib.Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return
        for line in text.splitlines():
            if line.startswith(("VmPeak:", "VmHWM:")):
                found[line.split(":")[0]] = int(line.split()[1]) * 1024 / 1e6
        if "VmPeak" not in text:
            return
        time.sleep(0.01)


def measure(words, virtual_mb):
    """Seconds, peak resident and peak virtual megabytes of one process."""
    def limit():
        if virtual_mb:
            resource.setrlimit(resource.RLIMIT_AS, (virtual_mb * 1_000_000,) * 2)
    began = time.perf_counter()
    with subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL, preexec_fn=limit) as process:
        found = {}
        watch = threading.Thread(target=peaks, args=(process.pid, found))
        watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        watch.join()
    if process.returncode:
        raise RuntimeError(f"{words} exited with {process.returncode}")
    return time.perf_counter() - began, usage.ru_maxrss * 1024 / 1e6, found.get("VmPeak", 0)


def write_samples(folder):
    """Token numbers and masks, an .npy file each."""
    source = random.Random(1)
    for name, low, high in (("input_ids", 0, 30000), ("attention_mask", 1, 1)):
        values = [source.randint(low, high) for _ in range(SAMPLES * LENGTH)]
        header = repr({"descr": "<i8", "fortran_order": False, "shape": (SAMPLES, LENGTH)}).ljust(117) + "\n"
        (folder / f"{name}.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
                                             + struct.pack(f"<{len(values)}q", *values))


def cases(model, out, data, max_memory):
    ceiling = ["--max-memory", max_memory]
    feed = ["--data", ",".join(f"{name}:{data / name}.npy" for name in ("input_ids", "attention_mask"))]
    stats = data / "memory.stats"
    return [
        ("weight", "inspect", ["inspect", model], True),
        ("weight", "weights, 8 bits", ["quantize", model, "-o", out, "--type", "weight", "--bits", "8"], True),
        ("weight", "weights, 4 bits, groups of 64",
         ["quantize", model, "-o", out, "--type", "weight", "--bits", "4", "--group-size", "64"], True),
        ("full", "calibrate", ["calibrate", model, "-o", stats, *feed, *ceiling], False),
        ("full", "full, from statistics", ["quantize", model, "-o", out, "--stats", stats, *ceiling], False),
        ("full", "full, with data", ["quantize", model, "-o", out, *feed, *ceiling], False),
        ("full", "evaluate it", ["eval", out, *feed, "--reference", model, *ceiling], False)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size-mb", type=int, default=2000)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--virtual-mb", type=int, default=1500)
    parser.add_argument("--max-memory", default="1000MB")
    parser.add_argument("--only", choices=["weight", "full"])
    options = parser.parse_args()
    folder = common.RESULTS / "memory"
    folder.mkdir(parents=True, exist_ok=True)
    model = common.generated(BUILD, f"memory/transformer_{options.size_mb}.onnx",
                             ["transformer", "--size-mb", options.size_mb, "--hidden", options.hidden, "--external"])
    out = folder / "quantised.onnx"
    write_samples(folder)
    rows, results = [], {}
    try:
        for kind, name, words, limited in cases(model, out, folder, options.max_memory):
            if options.only not in (None, kind):
                continue
            virtual_mb = options.virtual_mb if limited else 0
            seconds, resident, virtual = measure([BUILD / "quench", *words, "--quiet"], virtual_mb)
            allowed = f"{virtual_mb} MB virtual" if limited else options.max_memory
            rows.append([name, f"{seconds:.1f}", f"{resident:.0f}", f"{virtual:.0f}", allowed])
            results[name] = {"seconds": seconds, "resident_mb": resident, "virtual_mb": virtual}
            print(rows[-1], flush=True)
    finally:
        for path in folder.iterdir():
            path.unlink()
    common.print_table(["job", "seconds", "resident MB", "virtual MB", "allowed"], rows)
    common.write_results("memory.json", {"size_mb": options.size_mb, "jobs": results})


if __name__ == "__main__":
    main()
