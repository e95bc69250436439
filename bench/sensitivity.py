#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times `quench analyze sensitivity` on MobileNetV2: whole runs, partial runs and --quick.

Exact runs must give the ranking of whole runs. A quick look is right about a layer that is among the
ten worst, or less than ALIKE dB from the tenth: nobody would choose otherwise for that."""
import argparse
import sys
import tempfile

import common

WORST = 10
ALIKE = 0.5
IMAGES = ["--resize-shorter", "256", "--center-crop", "224,224", "--mean", "123.675,116.28,103.53",
          "--std", "58.395,57.12,57.375"]
# What is asked of each way: the most of the whole runs' time it may take.
WAYS = {"whole runs": (["--whole-runs"], None), "exact": ([], 0.35), "quick": (["--quick"], 0.1)}


def near_worst(layers):
    """The names of the worst, and of those that are nearly as bad as the last of them."""
    border = layers[WORST - 1]["sqnr"] + ALIKE
    return {layer["layer"] for layer in layers if layer["sqnr"] <= border}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="mobilenet_v2.onnx")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--metric", default="sqnr")
    options = parser.parse_args()
    build = common.SOURCE / "build" / "release"
    found = {}
    for name, (flags, _) in WAYS.items():
        with tempfile.TemporaryDirectory() as folder:
            found[name] = common.run_json(
                [build / "quench", "analyze", "sensitivity", common.SHARED / "models" / options.model,
                 "--data", common.SHARED / "data/imagenet-mini/calib", "--labels",
                 common.SHARED / "data/imagenet-mini/calib_labels.txt", "--limit", options.limit,
                 "--metric", options.metric, "-o", folder, "--quiet", "--json", *IMAGES, *flags])
    plain = found["whole runs"]
    order = [layer["layer"] for layer in plain["layers"]]
    rows, missed, results = [], False, {}
    for name, (_, most) in WAYS.items():
        own = [layer["layer"] for layer in found[name]["layers"]]
        ratio = found[name]["seconds"] / plain["seconds"]
        right = sum(one in near_worst(plain["layers"]) for one in own[:WORST])
        missed = missed or (most is not None and ratio > most) or right < WORST - 1
        missed = missed or (name == "exact" and own != order)
        results[name] = {"seconds": found[name]["seconds"], "ratio": ratio, "right": right,
                         "same": own == order}
        rows.append([name, f"{found[name]['seconds']:.1f}", f"{ratio:.2f}",
                     "-" if most is None else f"{most}", "yes" if own == order else "no",
                     f"{right} of {WORST}"])
    common.print_table(["way", "seconds", "of whole runs", "at most", "same ranking",
                        "right about the worst"], rows)
    common.write_results("sensitivity.json", {"model": options.model, "limit": options.limit,
                                              "metric": options.metric, "layers": len(order),
                                              "ways": results})
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
