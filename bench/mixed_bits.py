#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packed mixed bits at init_scale=0.02 beside packed 7 bits: the file must not be larger, and its
outputs must be nearer to those of the float model. Bits are chosen with eight calibration samples,
or with random inputs where there is no set of their own; with --random always. --write puts the
table into docs/results-weights.md."""
import argparse
import pathlib
import sys
import tempfile

import accuracy_ort
import common

DATA = common.SHARED / "data"
STSB = DATA / "stsb"


def photos(folder, limit):
    return [DATA / "imagenet-mini" / folder, *accuracy_ort.PHOTO, "--limit", limit]


def sentences(part, limit):
    words = ",".join(f"{name}:{STSB}/{part}_{name}.npy" for name in ("input_ids", "attention_mask"))
    return [words, "--limit", limit]


# What bits are chosen with, if there is anything, what random inputs need to be told, and what the
# outputs are compared on.
CASES = {
    "mobilenet_v2": (photos("calib", 8), [], photos("eval", 60)),
    "squeezenet1.1": (photos("calib", 8), [], photos("eval", 60)),
    "mobilenet_v2_bn_features": (photos("calib", 8), [], photos("eval", 60)),
    "resnet8_cifar10_bn": ([DATA / "cifar10/data_batch_1.bin", "--limit", 8], [],
                           [DATA / "cifar10/test_batch.bin", "--limit", 400]),
    "dscnn_kws_bn": ([DATA / "kws/calib_x.npy", "--limit", 8], [], [DATA / "kws/eval_x.npy"]),
    "ppocr_v2_cls": (None, ["--shape", "x=4,3,48,192"],
                     [DATA / "textlines/eval", *accuracy_ort.OCR_CLS]),
    "pplcnet_x0_25_textline_ori": (None, [], [DATA / "textlines/eval", *accuracy_ort.OCR_ORI]),
    "use_lite": (sentences("calib", 8), ["--shape", "input_ids=4,64", "--shape", "attention_mask=4,64"],
                 sentences("dev", 400)),
}


TITLES = ["network", "mixed, bytes", "7 bits, bytes", "mixed to 7 bits", "mixed, 1 - cosine",
          "7 bits, 1 - cosine", "good"]
HEAD = """Made by `bench/mixed_bits.py --write`: packed files of `--bits 0 --init-scale 0.02` beside
packed files of `--bits 7`, and how far the outputs are from the float model's. Bits are chosen with
eight calibration samples, for the two text-line networks with random inputs; the outputs are
compared on other data.

"""


def choosing(case, random):
    data, shapes, _ = case
    return shapes if random or data is None else ["--batch", 8, "--data", *data]


def measure(quench, model, flags, scoring, folder):
    """Bytes of the packed file and how far its outputs are from float: 1 - cosine."""
    plain, packed = folder / "plain.onnx", folder / "packed.qnch"
    common.run([quench, "quantize", model, "-o", plain, "--type", "weight", *flags, "--quiet"])
    size = common.run_json([quench, "pack", plain, "-o", packed, "--json"])["bytes"]
    near = common.run_json([quench, "eval", packed, "--reference", model, "--metric", "cosine",
                            "--json", "--data", *scoring])
    return size, 1 - near["cosine"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=common.SOURCE / "build/release")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--random", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    rows, results, missed = [], {}, False
    with tempfile.TemporaryDirectory() as place:
        for name, case in CASES.items():
            model = common.SHARED / "models" / f"{name}.onnx"
            if not model.exists() or (options.only and name not in options.only):
                continue
            found = {form: measure(options.build / "quench", model, flags, case[2],
                                   pathlib.Path(place))
                     for form, flags in {"mixed": ["--bits", "0", "--init-scale", "0.02",
                                                   *choosing(case, options.random)],
                                         "7 bit": ["--bits", "7"]}.items()}
            mixed, fixed = found["mixed"], found["7 bit"]
            good = mixed[0] <= fixed[0] and mixed[1] < fixed[1]
            missed = missed or not good
            results[name] = found
            rows.append([name, f"{mixed[0]:,}", f"{fixed[0]:,}", f"{mixed[0] / fixed[0]:.3f}",
                         f"{mixed[1]:.2e}", f"{fixed[1]:.2e}", "yes" if good else "NO"])
            print("  ".join(rows[-1]), flush=True)
    common.print_table(TITLES, rows)
    if options.write:
        table = common.markdown_table(TITLES[:-1], [row[:-1] for row in rows])
        common.write_section(common.SOURCE / "docs/results-weights.md",
                             "Mixed bits beside 7 fixed bits", HEAD + table)
    common.write_results("mixed_bits.json", results)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
