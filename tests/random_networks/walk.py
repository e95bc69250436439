#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Walks through a quantised file value by value: `quench` against ONNX Runtime (see rounding.py).

  walk.py MODEL NAME=FILE.npy ..."""
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from random_networks import Jobs, run_both, run_plain
from rounding import explain


def main():
    model = onnx.load(sys.argv[1])
    feeds = {name: np.load(path) for name, path in (each.split("=") for each in sys.argv[2:])}
    with tempfile.TemporaryDirectory() as folder:
        wrong, found = explain(model, [each.name for each in model.graph.output], feeds,
                               run_both(Jobs(), Path(folder)), run_plain(Path(folder)))
    if wrong:
        sys.exit(wrong)
    for output, mine, theirs in zip(model.graph.output, *found):
        print(f"{output.name}: largest difference {np.abs(mine - theirs).max():.3g} of "
              f"{np.abs(theirs).max():.3g} after equal integers")


if __name__ == "__main__":
    main()
