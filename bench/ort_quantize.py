#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's quantize_static with percentile calibration, in a process of its own.

Its samples come prepared, as an .npy file: reading and preparing images is not counted for it.
"""
import json
import resource
import sys
import time

import numpy
from onnxruntime import quantization


class Reader(quantization.CalibrationDataReader):
    def __init__(self, name, samples):
        self.feeds = iter([{name: sample[None]} for sample in samples])

    def get_next(self):
        return next(self.feeds, None)


def main():
    model, samples, out, name = sys.argv[1:5]
    start = time.perf_counter()
    quantization.quantize_static(
        model, out, Reader(name, numpy.load(samples)), per_channel=True,
        quant_format=quantization.QuantFormat.QDQ,
        calibrate_method=quantization.CalibrationMethod.Percentile)
    print(json.dumps({"seconds": time.perf_counter() - start, "peak_rss_mb":
                      resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
