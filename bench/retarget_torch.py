# SPDX-License-Identifier: Apache-2.0
"""An ONNX network of plain layers as a module of torch, quantised by torchao's PT2E and exported
again: how a quantised model of torch comes to be an ONNX file."""
import onnx
import torch
from onnx import numpy_helper
from torch import nn


def conv(weights, how):
    weight = weights[0]
    top, left, bottom, right = how.get("pads", [0] * 4)
    even = (top, left) == (bottom, right)
    groups = how.get("group", 1)
    layer = nn.Conv2d(weight.shape[1] * groups, weight.shape[0], weight.shape[2:],
                      how.get("strides", 1), (top, left) if even else 0,
                      how.get("dilations", 1), groups, len(weights) > 1)
    layer.weight.data = weight
    if len(weights) > 1:
        layer.bias.data = weights[1]
    return layer if even else nn.Sequential(nn.ZeroPad2d((left, right, top, bottom)), layer)


def norm(weights, how):
    layer = nn.BatchNorm2d(len(weights[0]), how.get("epsilon", 1e-5))
    layer.weight.data, layer.bias.data, layer.running_mean, layer.running_var = weights
    return layer


def linear(weights, how):
    weight = weights[0] if how.get("transB", 0) else weights[0].t().contiguous()
    layer = nn.Linear(weight.shape[1], weight.shape[0])
    layer.weight.data, layer.bias.data = weight, weights[1]
    return layer


LAYERS = {
    "Conv": conv, "BatchNormalization": norm, "Gemm": linear,
    "Relu": lambda weights, how: nn.ReLU(),
    "Clip": lambda weights, how: nn.Hardtanh(*(float(each) for each in weights)),
    "AveragePool": lambda weights, how: nn.AvgPool2d(how["kernel_shape"], how.get("strides")),
    "GlobalAveragePool": lambda weights, how: nn.AdaptiveAvgPool2d(1),
    "Flatten": lambda weights, how: nn.Flatten(),
}


class Network(nn.Module):
    """What torch's quantiser knows layers by is the module that they come from."""

    def __init__(self, path):
        super().__init__()
        graph = onnx.load(path).graph
        known = {tensor.name: torch.from_numpy(numpy_helper.to_array(tensor).copy())
                 for tensor in graph.initializer}
        self.steps = []
        self.layers = nn.ModuleList()
        for node in graph.node:
            how = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
            read = [name for name in node.input if name not in known]
            layer = -1
            if node.op_type != "Add":
                weights = [known[name] for name in node.input if name in known]
                layer = len(self.layers)
                self.layers.append(LAYERS[node.op_type](weights, how))
            self.steps.append((layer, read, node.output[0]))
        self.first, self.last = graph.input[0].name, graph.output[0].name

    def forward(self, x):
        values = {self.first: x}
        for layer, read, made in self.steps:
            inputs = [values[name] for name in read]
            values[made] = inputs[0] + inputs[1] if layer < 0 else self.layers[layer](inputs[0])
        return values[self.last]


def quantize(path, rows, out):
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    name = next(iter(rows[0]))
    samples = [torch.from_numpy(row[name]) for row in rows]
    with torch.no_grad():
        program = torch.export.export(Network(path).eval(), (samples[0],))
        quantizer = x86.X86InductorQuantizer()
        quantizer.set_global(x86.get_default_x86_inductor_quantization_config())
        prepared = prepare_pt2e(program.module(), quantizer)
        for sample in samples:
            prepared(sample)
        converted = convert_pt2e(prepared)
        torch.onnx.export(converted, (samples[0],), out, input_names=[name], dynamo=True,
                          external_data=False)
