#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What quantised weights take, with their scales and zero points, of the float weights' bytes, and
what a packed file takes of the float model's file: 8 bits by channel, and 4 bits in groups of 64.
--write puts the table into docs/results-weights.md."""
import argparse
import pathlib
import tempfile

import common

FORMS = {"8 bits": ["--bits", "8"], "4 bits, groups of 64": ["--bits", "4", "--group-size", "64"]}
TITLES = ["network", *(f"{form}, {kind}" for form in FORMS for kind in ("weights", "packed file"))]
HEAD = """Made by `bench/weight_size.py --write`: integers, scales and zero points in an ONNX file, in
percent of the float weights; and the whole packed file, in percent of the float model's file. A
channel's scale is 4 bytes: where channels have few weights (nine in a depthwise convolution) that
shows. Groups are for matrix products; convolutions have a grid a channel.

"""


def shares(quench, model, flags, folder):
    plain, packed = folder / "plain.onnx", folder / "packed.qnch"
    report = common.run_json([quench, "quantize", model, "-o", plain, "--type", "weight", *flags,
                              "--json"])
    stored = sum(each["bytes"] for each in report["weights"])
    exact = sum(4 * each["elements"] for each in report["weights"])
    size = common.run_json([quench, "pack", plain, "-o", packed, "--json"])["bytes"]
    return stored / exact, size / model.stat().st_size


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=common.SOURCE / "build/release")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows, results = [], {}
    models = [*sorted((common.SHARED / "models").glob("*.onnx")),
              common.generated(options.build, "bert-base.onnx", ["bert-base"])]
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            found = {form: shares(options.build / "quench", model, flags, pathlib.Path(folder))
                     for form, flags in FORMS.items()}
            results[model.stem] = found
            rows.append([model.stem, *(f"{share:.2%}" for pair in found.values() for share in pair)])
            print("  ".join(rows[-1]), flush=True)
    common.print_table(TITLES, rows)
    common.write_results("weight_size.json", results)
    if options.write:
        common.write_section(common.SOURCE / "docs/results-weights.md", "Size of quantised weights",
                             HEAD + common.markdown_table(TITLES, rows))


if __name__ == "__main__":
    main()
