#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of train.py, a process of its own: milliseconds of a training step of the same
network in float and with torch.ao's eager-mode QAT, in turns, as JSON.

The networks are ours after folding: convolutions with biases, no BatchNormalization, so that neither
side pays for what the other does not do. Each convolution is fused with its ReLU, as torch.ao's guide
says; ReLU6 is a ReLU, which it can fuse, as in torchvision's own quantised MobileNetV2."""
import argparse
import copy
import json
import os
import statistics
import time
import warnings

import torch
from torch import nn
from torch.ao import quantization as ao


class ConvRelu(nn.Sequential):
    def __init__(self, ins, outs, kernel=1, stride=1, groups=1):
        super().__init__(nn.Conv2d(ins, outs, kernel, stride, kernel // 2, groups=groups),
                         nn.ReLU())


class Residual(nn.Module):
    """A block whose result is added to what it reads."""

    def __init__(self, body, shortcut=None, last=None):
        super().__init__()
        self.body, self.shortcut, self.last = body, shortcut, last
        self.add = nn.quantized.FloatFunctional()

    def forward(self, x):
        y = self.add.add(self.body(x), x if self.shortcut is None else self.shortcut(x))
        return y if self.last is None else self.last(y)


def resnet8():
    layers, ins = [ConvRelu(3, 16, 3)], 16
    for outs, stride in ((16, 1), (32, 2), (64, 2)):
        body = nn.Sequential(ConvRelu(ins, outs, 3, stride), nn.Conv2d(outs, outs, 3, 1, 1))
        shortcut = nn.Conv2d(ins, outs, 1, stride) if stride > 1 else None
        layers.append(Residual(body, shortcut, nn.ReLU()))
        ins = outs
    return nn.Sequential(ao.QuantStub(), *layers, nn.AvgPool2d(8), nn.Flatten(), nn.Linear(64, 10),
                         ao.DeQuantStub())


def mobilenet_v2():
    layers, ins = [ConvRelu(3, 32, 3, 2)], 32
    for expand, outs, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                        (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(count):
            step = stride if i == 0 else 1
            wide = ins * expand
            body = ([ConvRelu(ins, wide)] if expand > 1 else []) + [
                ConvRelu(wide, wide, 3, step, wide), nn.Conv2d(wide, outs, 1)]
            body = nn.Sequential(*body)
            layers.append(Residual(body) if step == 1 and ins == outs else body)
            ins = outs
    return nn.Sequential(ao.QuantStub(), *layers, ConvRelu(ins, 1280),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000),
                         ao.DeQuantStub())


def prepared(model):
    """As torch.ao's guide of eager-mode QAT has it."""
    model.train()
    fusable = [name for name, module in model.named_modules()
               if isinstance(module, ConvRelu)]
    ao.fuse_modules_qat(model, [[f"{name}.0", f"{name}.1"] for name in fusable], inplace=True)
    model.qconfig = ao.get_default_qat_qconfig("fbgemm")
    ao.prepare_qat(model, inplace=True)
    return model


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", choices=("resnet8", "mobilenet_v2"))
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    model = {"resnet8": resnet8, "mobilenet_v2": mobilenet_v2}[options.network]()
    x = torch.randn(options.batch, 3, options.size, options.size)
    labels = torch.randint(10, (options.batch,))
    loops = []
    for net in (copy.deepcopy(model), prepared(copy.deepcopy(model))):
        loops.append((net.train(), torch.optim.SGD(net.parameters(), 1e-6, momentum=0.9), []))
    now = time.process_time if "QUENCH_BENCH_CPU" in os.environ else time.perf_counter
    for i in range(options.steps + 2):
        for net, optimizer, times in loops:
            began = now()
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), labels).backward()
            optimizer.step()
            if i >= 2:
                times.append(1000 * (now() - began))
    print(json.dumps({"float_ms": statistics.median(loops[0][2]),
                      "quantized_ms": statistics.median(loops[1][2]), "images": options.batch,
                      "torch": torch.__version__}))


if __name__ == "__main__":
    main()
