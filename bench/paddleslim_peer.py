#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Post-training quantisation by Paddle's own tool, as PaddleSlim's quant_post_static calls it, in an
environment that has `paddlepaddle` 2.6 (see bench/paddleslim.py).

  paddleslim_peer.py PROGRAM PARAMS SAMPLES.npz ALGO OUT_FOLDER"""
import pathlib
import sys

import numpy as np
import paddle
from paddle.static.quantization import PostTrainingQuantization

OPERATORS = ["conv2d", "depthwise_conv2d", "conv2d_transpose", "mul", "matmul", "matmul_v2"]


class Samples(paddle.io.Dataset):
    def __init__(self, path):
        self.arrays = list(dict(np.load(path)).values())

    def __len__(self):
        return len(self.arrays[0])

    def __getitem__(self, index):
        return [array[index] for array in self.arrays]


def main():
    program, params, samples, algo, out = sys.argv[1:6]
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
