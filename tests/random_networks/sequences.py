# SPDX-License-Identifier: Apache-2.0
"""Random networks of sequences: embeddings, attention, recurrences."""
import numpy as np

from network import gelu, reduce_mean, silu


class Sequence:
    """A value [batch, length, width], and what may come behind it."""

    def __init__(self, net):
        self.net = net
        self.length, self.width = net.between(3, 9), net.pick(8, 16, 24, 32)
        self.table = None
        if net.chance(0.7):
            rows = net.pick(11, 30, 64)
            ids = net.feed((self.length,), lambda n: net.random.integers(
                0, rows, (n, self.length)), np.int64)
            self.table = net.normal((rows, self.width), 0.7)
            self.x = net.add("Gather", [self.table, ids])
            if net.chance(0.6):
                places = net.normal((1, self.length, self.width), 0.3)
                self.x = net.add("Add", [self.x, places])
        else:
            shape = (self.length, self.width)
            self.x = net.feed(shape, lambda n: net.random.standard_normal((n, *shape)))

    def linear(self, x, wide, narrow, bias=True):
        net = self.net
        x = net.add("MatMul", [x, net.normal((wide, narrow), 1 / np.sqrt(wide))])
        if bias:
            b = net.normal(narrow, 0.2, stem="b")
            x = net.add("Add", [x, b] if net.chance(0.5) else [b, x])
        return x

    def norm(self):
        net, width = self.net, self.width
        scale, shift = net.normal(width, 0.2, 1), net.normal(width, 0.2)
        if net.opset >= 17 and net.chance(0.7):
            self.x = net.add("LayerNormalization", [self.x, scale, shift], axis=-1)
            return
        centred = net.add("Sub", [self.x, reduce_mean(net, self.x, [-1], 1)])
        square = net.add("Pow", [centred, net.constant(np.float32(2))])
        variance = net.add("Add", [reduce_mean(net, square, [-1], 1),
                                   net.constant(np.float32(1e-5))])
        unit = net.add("Div", [centred, net.add("Sqrt", [variance])])
        self.x = net.add("Add", [net.add("Mul", [unit, scale]), shift])

    def attention(self):
        net, width = self.net, self.width
        heads = net.pick(*[h for h in (1, 2, 4) if width % h == 0])
        each = width // heads
        before = self.x

        def split(perm):
            x = self.linear(before, width, width, net.chance(0.8))
            x = net.add("Reshape", [x, net.ints(0, self.length, heads, each)])
            return net.add("Transpose", [x], perm=perm)

        q, k, v = split([0, 2, 1, 3]), split([0, 2, 3, 1]), split([0, 2, 1, 3])
        scores = net.add("MatMul", [q, k])
        scores = net.add("Div", [scores, net.constant(np.float32(np.sqrt(each)))])
        mixed = net.add("MatMul", [net.add("Softmax", [scores], axis=-1), v])
        mixed = net.add("Transpose", [mixed], perm=[0, 2, 1, 3])
        joined = net.add("Reshape", [mixed, net.ints(0, self.length, width)])
        self.x = net.add("Add", [self.linear(joined, width, width), before])

    def feed_forward(self):
        net, width = self.net, self.width
        wide = width * net.pick(1, 2, 4)
        x = self.linear(self.x, width, wide)
        kinds = {"gelu": lambda: gelu(net, x), "silu": lambda: silu(net, x),
                 "relu": lambda: net.add("Relu", [x]), "tanh": lambda: net.add("Tanh", [x])}
        x = self.linear(kinds[net.pick(*kinds)](), wide, width)
        self.x = net.add("Add", [x, self.x]) if net.chance(0.8) else x

    def recurrence(self):
        net, width = self.net, self.width
        op, gates = net.pick(("LSTM", 4), ("GRU", 3))
        hidden = net.pick(6, 8, 16)
        inputs = [net.add("Transpose", [self.x], perm=[1, 0, 2]),
                  net.normal((1, gates * hidden, width), 0.3),
                  net.normal((1, gates * hidden, hidden), 0.3)]
        if net.chance(0.7):
            inputs.append(net.normal((1, 2 * gates * hidden), 0.1))
        x = net.add(op, inputs, hidden_size=hidden)
        if net.opset >= 13:
            x = net.add("Squeeze", [x, net.ints(1)])
        else:
            x = net.add("Squeeze", [x], axes=[1])
        self.x, self.width = net.add("Transpose", [x], perm=[1, 0, 2]), hidden

    def lines(self):
        """A convolution along the sequence."""
        net = self.net
        out, k = net.pick(8, 16, 24), net.pick(1, 3)
        x = net.add("Transpose", [self.x], perm=[0, 2, 1])
        x = net.add("Conv", [x, net.normal((out, self.width, k), 0.2), net.normal(out, 0.2)],
                    pads=[k // 2] * 2, kernel_shape=[k])
        x = net.add("Relu", [x]) if net.chance(0.5) else gelu(net, x)
        self.x, self.width = net.add("Transpose", [x], perm=[0, 2, 1]), out


BLOCKS = ["attention"] * 3 + ["feed_forward"] * 3 + ["norm"] * 2 + ["lines", "recurrence"]


def computed_weight(net, rows, columns):
    """A weight [rows, columns] that the model computes from constants."""
    spread = 1 / np.sqrt(rows)
    kind = net.pick("turned", "shaped", "cut", "joined", "scaled")
    if kind == "turned":
        return net.add("Transpose", [net.normal((columns, rows), spread)], perm=[1, 0])
    if kind == "shaped":
        return net.add("Reshape", [net.normal((rows * columns,), spread),
                                   net.ints(rows, columns)])
    if kind == "cut":
        return net.add("Slice", [net.normal((rows + 2, columns), spread), net.ints(1),
                                 net.ints(rows + 1), net.ints(0)])
    if kind == "joined":
        parts = [net.normal((rows, columns - 1), spread), net.normal((rows, 1), spread)]
        return net.add("Concat", parts, axis=1)
    return net.add("Mul", [net.normal((rows, columns), 1.0),
                           net.constant(np.full(columns, spread, np.float32))])


def tied_head(sequence):
    """The table of the embedding is the weight of the last product too."""
    net = sequence.net
    width = net.constants[0].dims[1]
    x = sequence.linear(sequence.x, sequence.width, width)
    net.give(net.add("MatMul", [x, net.add("Transpose", [sequence.table], perm=[1, 0])]), 3)


def sequence_network(net):
    sequence = Sequence(net)
    for _ in range(net.between(1, 4)):
        getattr(sequence, net.pick(*BLOCKS))()
    if sequence.table and net.chance(0.3):
        tied_head(sequence)
        return
    classes = net.pick(2, 7, 12)
    if net.chance(0.5):
        sequence.x = reduce_mean(net, sequence.x, [1], 0)
        rank = 2
    else:
        rank = 3
    kind = net.random.random()
    if kind < 0.3:
        x = net.add("MatMul", [sequence.x, computed_weight(net, sequence.width, classes)])
    elif kind < 0.5 and rank == 2:
        x = net.add("Gemm", [sequence.x, net.normal((classes, sequence.width), 0.3),
                             net.normal(classes, 0.2)], transB=1)
    else:
        x = sequence.linear(sequence.x, sequence.width, classes)
    net.give(x, rank)
