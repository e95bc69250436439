#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Post-training quantisation by Paddle's own tool, as PaddleSlim's quant_post_static calls it, in an
environment that has `paddlepaddle` 2.6 (see bench/paddleslim.py).

  paddleslim_peer.py PROGRAM PARAMS SAMPLES.npz ALGO OUT_FOLDER

Its search for KL's threshold takes minutes a network, so that a table of several calibration sets
would take a day; here it goes over whole arrays and finds the same (`--check` asserts it)."""
import pathlib
import sys

import numpy as np
import paddle
from paddle.static.quantization import PostTrainingQuantization, post_training_quantization

SLOW = post_training_quantization.cal_kl_threshold

OPERATORS = ["conv2d", "depthwise_conv2d", "conv2d_transpose", "mul", "matmul", "matmul_v2"]


def kl_threshold(hist, width, bits):
    """What their loops find, bin for bin."""
    hist, levels, found = hist.astype(np.float64), 2 ** (bits - 1) - 1, []
    first = (len(hist) - 1) // 2
    for end in range(first, len(hist)):
        if hist[end - 1] == 0:
            continue
        p = hist[:end].copy()
        p[-1] += hist[end:].sum()
        group = np.minimum(np.arange(end) // (end // levels), levels - 1)
        share = np.bincount(group, hist[:end], levels) / np.maximum(np.bincount(group, p > 0, levels), 1)
        q, used = np.where(p > 0, share[group], 0), p > 0
        divergence = np.sum(p[used] * (np.log(q.sum() * p[used]) - np.log(hist.sum() * q[used])))
        found.append((divergence, end))
    if not found:
        return SLOW(hist, width, bits)
    threshold = (min(found)[1] + 0.5) * width
    if "--check" in sys.argv:
        wanted = SLOW(hist, width, bits)
        assert threshold == wanted, f"{threshold} instead of {wanted}"
    return threshold


class Samples(paddle.io.Dataset):
    def __init__(self, path):
        self.arrays = list(dict(np.load(path)).values())

    def __len__(self):
        return len(self.arrays[0])

    def __getitem__(self, index):
        return [array[index] for array in self.arrays]


def main():
    program, params, samples, algo, out = sys.argv[1:6]
    post_training_quantization.cal_kl_threshold = kl_threshold
    paddle.enable_static()
    place = paddle.CPUPlace()
    executor = paddle.static.Executor(place)
    folder = pathlib.Path(program).parent
    inputs = paddle.static.load_inference_model(
        str(folder), executor, model_filename=pathlib.Path(program).name,
        params_filename=pathlib.Path(params).name)
    feeds = [inputs[0].global_block().var(name) for name in inputs[1]]
    loader = paddle.io.DataLoader(Samples(samples), places=place, feed_list=feeds, batch_size=1,
                                  return_list=False)
    job = PostTrainingQuantization(
        executor=executor, model_dir=str(folder), model_filename=pathlib.Path(program).name,
        params_filename=pathlib.Path(params).name, data_loader=loader, batch_size=1, algo=algo,
        hist_percent=0.9999, quantizable_op_type=OPERATORS, weight_bits=8, activation_bits=8,
        activation_quantize_type="range_abs_max", weight_quantize_type="channel_wise_abs_max",
        onnx_format=True)
    job.quantize()
    job.save_quantized_model(out, model_filename="model.pdmodel", params_filename="model.pdiparams")


if __name__ == "__main__":
    main()
