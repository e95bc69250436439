# SPDX-License-Identifier: Apache-2.0
"""python -m quench.onnxruntime.quantization.preprocess --input MODEL --output MODEL"""
import argparse

from quench.onnxruntime.quantization.shape_inference import quant_pre_process


def main():
    parser = argparse.ArgumentParser(description="Writes a model again: Quench prepares models itself.")
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True)
    given, _ = parser.parse_known_args()
    quant_pre_process(given.input, given.output)


if __name__ == "__main__":
    main()
