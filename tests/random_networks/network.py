# SPDX-License-Identifier: Apache-2.0
"""A network under construction: nodes and constants, drawn from one generator of random numbers."""
import numpy as np
import onnx

MAKE = onnx.helper
TYPES = {np.dtype(np.float32): onnx.TensorProto.FLOAT, np.dtype(np.int64): onnx.TensorProto.INT64}


class Network:
    """Values are called by name; whoever adds a node keeps track of its shape, without the batch."""

    def __init__(self, random, opset, batch):
        self.random, self.opset, self.batch = random, opset, batch
        self.nodes, self.constants, self.inputs, self.outputs = [], [], {}, []
        self.count = 0

    def chance(self, share):
        return self.random.random() < share

    def pick(self, *choices):
        return choices[self.random.integers(len(choices))]

    def between(self, low, high):
        return int(self.random.integers(low, high + 1))

    def name(self, stem):
        self.count += 1
        return f"{stem}_{self.count}"

    def constant(self, array, stem="c"):
        name = self.name(stem)
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def ints(self, *numbers):
        return self.constant(np.array(numbers, np.int64), "i")

    def normal(self, shape, spread=1.0, mean=0.0, stem="w"):
        array = self.random.standard_normal(shape) * spread + mean
        return self.constant(array.astype(np.float32), stem)

    def add(self, op, inputs, outputs=1, domain="", **attributes):
        """The name of what the node makes, or the names where it makes several."""
        made = [self.name(op.lower()) for _ in range(outputs)]
        self.nodes.append(MAKE.make_node(op, inputs, made, name=self.name("node"), domain=domain,
                                         **attributes))
        return made[0] if outputs == 1 else made

    def feed(self, shape, draw, dtype=np.float32):
        """An input; `draw(count)` makes arrays of so many samples."""
        name = self.name("input")
        self.inputs[name] = (tuple(shape), draw, np.dtype(dtype))
        return name

    def give(self, value, rank):
        """An output of this rank, the batch included."""
        self.outputs.append((value, rank))

    def samples(self, count):
        return {name: draw(count).astype(dtype)
                for name, (_, draw, dtype) in self.inputs.items()}

    def save(self, path):
        first = self.batch or "N"
        inputs = [MAKE.make_tensor_value_info(name, TYPES[dtype], [first, *shape])
                  for name, (shape, _, dtype) in self.inputs.items()]
        outputs = [MAKE.make_tensor_value_info(name, onnx.TensorProto.FLOAT,
                                               [first] + [None] * (rank - 1))
                   for name, rank in self.outputs]
        graph = MAKE.make_graph(self.nodes, "random", inputs, outputs, self.constants)
        opsets = [MAKE.make_opsetid("", self.opset)]
        onnx.save(MAKE.make_model(graph, ir_version=8, opset_imports=opsets), str(path))


def reduce_mean(net, x, axes, keepdims):
    if net.opset >= 18:
        return net.add("ReduceMean", [x, net.ints(*axes)], keepdims=keepdims)
    return net.add("ReduceMean", [x], axes=axes, keepdims=keepdims)


def gelu(net, x):
    if net.opset >= 20 and net.chance(0.5):
        return net.add("Gelu", [x])
    half = net.add("Div", [x, net.constant(np.float32(np.sqrt(2)))])
    moved = net.add("Add", [net.add("Erf", [half]), net.constant(np.float32(1))])
    return net.add("Mul", [net.add("Mul", [x, moved]), net.constant(np.float32(0.5))])


def hard_swish(net, x):
    if net.opset >= 14 and net.chance(0.5):
        return net.add("HardSwish", [x])
    return net.add("Mul", [x, net.add("HardSigmoid", [x], alpha=1 / 6, beta=0.5)])


def silu(net, x):
    return net.add("Mul", [x, net.add("Sigmoid", [x])])


def hard_sigmoid(net, x):
    alpha, beta = net.pick((0.2, 0.5), (1 / 6, 0.5), (0.25, 0.4))
    return net.add("HardSigmoid", [x], alpha=alpha, beta=beta)


def clip(net, x):
    low, high = net.pick((0.0, 6.0), (-1.0, 1.0), (0.0, 1.0), (-0.5, None))
    ends = [net.constant(np.float32(low)), "" if high is None else net.constant(np.float32(high))]
    return net.add("Clip", [x] + (ends if ends[1] else ends[:1]))


def prelu(net, x, channels, rank):
    slope = net.random.uniform(0, 0.4, (channels,) + (1,) * (rank - 2)).astype(np.float32)
    return net.add("PRelu", [x, net.constant(slope)])


def activation(net, x, channels, rank):
    """One of the functions that networks have behind layers, or none."""
    kinds = {
        "none": lambda: x,
        "relu": lambda: net.add("Relu", [x]),
        "leaky": lambda: net.add("LeakyRelu", [x], alpha=net.pick(0.01, 0.1, 0.3)),
        "prelu": lambda: prelu(net, x, channels, rank),
        "clip": lambda: clip(net, x),
        "hard_sigmoid": lambda: hard_sigmoid(net, x),
        "hard_swish": lambda: hard_swish(net, x),
        "silu": lambda: silu(net, x),
        "gelu": lambda: gelu(net, x),
        "sigmoid": lambda: net.add("Sigmoid", [x]),
        "tanh": lambda: net.add("Tanh", [x]),
        "elu": lambda: net.add("Elu", [x], alpha=net.pick(1.0, 0.5)),
        "softplus": lambda: net.add("Softplus", [x]),
    }
    likely = ["none", "relu", "relu", "clip"]
    kind = net.pick(*likely) if net.chance(0.35) else net.pick(*kinds)
    return kinds[kind]()
