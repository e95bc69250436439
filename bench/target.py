#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the evaluations of `quench analyze target` on classification models with 4-bit weights.

A pass is one evaluation of a quantised model on all samples; a choice that is clearly good or bad
takes a part of one. Beside it: the passes that PaddleSlim's way takes, which leaves the worst layer
in float, then the worst two, and so on, until the model is good enough. Ranking the layers, scoring
the float model and the one with every layer quantised come before either and are not counted."""
import argparse
import pathlib
import sys
import tempfile

import common
import labelled

TITLES = ["model", "float", "all quantised", "found", "in float", "passes", "one by one", "at most"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="one model")
    parser.add_argument("--bits", type=int, default=4)
    parser.add_argument("--drop", type=float, default=0.5, help="points of top-1 below float")
    parser.add_argument("--eval-limit", type=int, default=400)
    options = parser.parse_args()
    build = common.SOURCE / "build" / "release"
    rows, results, missed = [], {}, False
    for name, prepare in labelled.NETWORKS.items():
        if options.only not in (None, name):
            continue
        with tempfile.TemporaryDirectory() as place:
            folder, model = pathlib.Path(place), common.SHARED / "models" / name
            calib, data, labels, flags = prepare(model, folder)
            words = [build / "quench", "analyze", "target", model, "--data", calib, "--limit", 100,
                     "--eval-data", data, "--eval-limit", options.eval_limit, "--weight-bits",
                     options.bits, "--metric", "top1", "--quiet", "--json", "-o", folder, *flags]
            if labels:
                words += ["--eval-labels", labels]
            known = common.run_json([*words, "--at-least", 0])
            words += ["--at-least", known["float"] - options.drop]
            found = common.run_json(words)
            plain = common.run_json([*words, "--one-by-one"])
        most = plain["tried"] / 3
        missed = missed or found["evaluations"] > most
        results[name] = {"search": found, "one_by_one": plain}
        rows.append([name, f"{found['float']:.2f}", f"{found['quantized']:.2f}",
                     f"{found['value']:.2f}", f"{len(found['in_float'])} of {found['layers']}",
                     f"{found['evaluations']:.1f}",
                     f"{plain['tried']}, {len(plain['in_float'])} in float", f"{most:.1f}"])
        common.print_table(TITLES, rows[-1:])
    common.print_table(TITLES, rows)
    common.write_results("target.json", {"bits": options.bits, "drop": options.drop,
                                         "models": results})
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
