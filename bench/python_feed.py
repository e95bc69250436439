#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs to feed a calibration from Python: arrays and a generator beside an .npy file."""
import argparse
import os
import statistics
import sys
import tempfile
import time

import numpy as np


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--package", default="build/release/python", help="folder of the package")
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--most", type=float, help="exit 1 where a ratio is higher")
    given = parser.parse_args()
    sys.path.insert(0, given.package)
    import quench

    value = quench.load(given.model).inputs[0]
    shape = [dim if isinstance(dim, int) else 1 for dim in value.shape[1:]]
    x = np.random.default_rng(0).standard_normal([given.samples, *shape]).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "x.npy")
        np.save(file, x)
        feeds = {
            "npy file": lambda: file,
            "array": lambda: x,
            "generator of dicts": lambda: ({value.name: row[None]} for row in x)}

        def seconds(feed):
            began = time.perf_counter(), time.process_time()
            quench.calibrate(given.model, os.path.join(folder, "s"), data=feed(), progress=False)
            return time.perf_counter() - began[0], time.process_time() - began[1]

        times = {name: [] for name in feeds}
        for _ in range(given.rounds + 1):  # side by side; the first round warms up
            for name, feed in feeds.items():
                times[name].append(seconds(feed))
    base = times["npy file"][1:]
    worst = 0
    for name, found in times.items():
        # Each round beside its own: a neighbour on the machine then slows both. The processor's own
        # time hardly sees neighbours at all.
        wall, cpu = (statistics.median(t[i] / b[i] for t, b in zip(found[1:], base)) for i in (0, 1))
        worst = max(worst, wall)
        print(f"{name:20s} {statistics.median(t[0] for t in found[1:]):8.3f} s   {wall:5.2f} times the "
              f"file; processor time {cpu:5.2f} times")
    return 1 if given.most and worst > given.most else 0


if __name__ == "__main__":
    sys.exit(main())
