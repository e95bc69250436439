#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a model in Paddle Inference, in an environment that has `paddlepaddle` (see bench/in_paddle.py).

  paddle_runtime.py PROGRAM PARAMS INPUTS.npz OUTPUTS.npz WAY [RUNS]

WAY: plain (no optimisation), float (oneDNN) or int8 (oneDNN's integer kernels). INPUTS hold all
samples; OUTPUTS get what the model makes of them, by its position, and the milliseconds of the best
of RUNS runs of one sample."""
import sys
import time

import numpy as np
from paddle import inference


def predictor(program, params, way):
    config = inference.Config(program, params)
    config.disable_gpu()
    config.disable_glog_info()
    config.set_cpu_math_library_num_threads(1)
    if way == "plain":
        config.switch_ir_optim(False)
        if hasattr(config, "disable_mkldnn"):
            config.disable_mkldnn()
    else:
        config.enable_mkldnn()
        if way == "int8":
            config.enable_mkldnn_int8()
    return inference.create_predictor(config)


def run(model, feeds):
    for name, array in feeds.items():
        model.get_input_handle(name).copy_from_cpu(np.ascontiguousarray(array))
    model.run()
    return [model.get_output_handle(name).copy_to_cpu() for name in model.get_output_names()]


def main():
    program, params, inputs, outputs, way = sys.argv[1:6]
    runs = int(sys.argv[6]) if len(sys.argv) > 6 else 0
    model = predictor(program, params, way)
    samples = dict(np.load(inputs))
    count = len(next(iter(samples.values())))
    made = [run(model, {name: x[i:i + 1] for name, x in samples.items()}) for i in range(count)]
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        model.run()
        times.append(time.perf_counter() - start)
    np.savez(outputs, milliseconds=1e3 * min(times, default=0),
             **{str(i): np.concatenate(each) for i, each in enumerate(zip(*made))})


if __name__ == "__main__":
    main()
