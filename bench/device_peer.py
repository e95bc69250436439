#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own runs on a GPU, beside quench_bench_device and quench_bench_training: images a second of
torchvision's networks with random weights, channels last, images in the GPU's memory."""
import argparse
import json
import statistics
import time

import torch
import torchvision


def images_a_second(batch, rounds, run):
    times = []
    for i in range(rounds + 3):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        run()
        torch.cuda.synchronize()
        if i >= 3:
            times.append(time.perf_counter() - begin)
    return round(batch / statistics.median(times))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", choices=["resnet50", "mobilenet_v2"])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--precision", choices=["float", "tf32", "half"], default="tf32")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = options.precision == "tf32"
    model = getattr(torchvision.models, options.network)().cuda().to(memory_format=torch.channels_last)
    x = torch.randn(options.batch, 3, 224, 224, device="cuda").to(memory_format=torch.channels_last)
    labels = torch.randint(1000, (options.batch,), device="cuda")
    result = {}
    if options.precision != "half":
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9)

        def step():
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), labels).backward()
            optimizer.step()
        result["training"] = images_a_second(options.batch, options.rounds, step)
    else:
        model, x = model.half(), x.half()
    model.eval()
    with torch.inference_mode():
        result["plain"] = images_a_second(options.batch, options.rounds, lambda: model(x))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
