#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sizes of packed files beside the same models compressed by `zstd -19`, at every bit width."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import common


def zstd_size(path):
    return len(subprocess.run(["zstd", "-19", "-q", "-c", str(path)], capture_output=True,
                              check=True).stdout)


def measure(quench, model, bits, folder):
    """Bytes of the plain, the zstd and the packed file; nothing where no weight is quantised."""
    plain = model
    if bits is not None:
        plain = folder / "plain.onnx"
        done = subprocess.run([str(quench), "quantize", str(model), "--type", "weight", "--bits",
                               str(bits), "-o", str(plain), "--quiet", "--json"],
                              capture_output=True, text=True, check=False)
        if done.returncode in (2, 4):  # not possible for this model: told, not counted
            print(f"{model.name} at {bits} bits: {done.stderr.strip()}")
            return None
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
    packed = common.run_json([quench, "pack", plain, "-o", folder / "packed.qnch", "--json"])
    return plain.stat().st_size, zstd_size(plain), packed["bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, default=common.SOURCE / "build/release")
    parser.add_argument("--only", nargs="*", default=[], help="names of models")
    parser.add_argument("--bits", nargs="*", default=["float", *map(str, range(1, 9)), "mixed"])
    options = parser.parse_args()
    models = sorted(path for path in (common.SHARED / "models").glob("*.onnx")
                    if not options.only or path.stem in options.only)
    if not models:
        print(f"no models in {common.SHARED}: nothing to measure")
        return 0
    rows, results, worse = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        for model in models:
            original = model.stat().st_size
            for word in options.bits:
                bits = {"float": None, "mixed": 0}.get(word, word)
                sizes = measure(options.build / "quench", model, bits, pathlib.Path(folder))
                if sizes is None:
                    continue
                plain, compressed, packed = sizes
                worse += packed > compressed
                rows.append([f"{model.stem} {word}", f"{plain:,}", f"{compressed:,}",
                             f"{packed:,}", f"{packed / compressed:.3f}",
                             f"{packed / original:.3f}"])
                print("  ".join(rows[-1]), flush=True)
                results.append({"model": model.stem, "bits": word, "float": original,
                                "plain": plain, "zstd": compressed, "packed": packed})
    common.print_table(["model, bits", "plain", "zstd -19", "packed", "to zstd", "to float"], rows)
    common.write_results("packed_size.json", {"rows": results})
    print(f"{worse} of {len(rows)} packed files are larger than what zstd -19 makes")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
