# SPDX-License-Identifier: Apache-2.0
"""Random convolutional networks."""
import numpy as np

from network import activation, hard_sigmoid, reduce_mean


class Images:
    """A value [batch, channels, height, width], and what may come behind it."""

    def __init__(self, net):
        self.net = net
        net_shape = (net.pick(1, 3, 4, 8), net.between(6, 14), net.between(6, 14))
        low, spread = net.pick((-1.0, 2.0), (0.0, 1.0), (-3.0, 9.0))
        noise = net.chance(0.6)

        def draw(count):
            shape = (count, *net_shape)
            if noise:
                return net.random.standard_normal(shape)
            return low + spread * net.random.random(shape)

        self.x = net.feed(net_shape, draw)
        self.channels, self.height, self.width = net_shape

    def state(self):
        return self.x, self.channels, self.height, self.width

    def restore(self, state):
        self.x, self.channels, self.height, self.width = state

    def activate(self):
        self.x = activation(self.net, self.x, self.channels, 4)

    def normalise(self):
        net, c = self.net, self.channels
        parts = [net.normal(c, 0.3, 1.0), net.normal(c, 0.3), net.normal(c, 0.2),
                 net.constant(net.random.uniform(0.3, 2, c).astype(np.float32))]
        self.x = net.add("BatchNormalization", [self.x, *parts], epsilon=1e-5)

    def groups(self, wanted):
        net, c = self.net, self.channels
        kind = net.random.random()
        if kind < 0.6 or c == 1:
            return 1, wanted
        if kind < 0.8:
            return c, c * net.pick(1, 1, 1, 2)  # depthwise
        group = net.pick(*[g for g in (2, 3, 4, 8) if c % g == 0] or [1])
        return group, max(1, wanted // group) * group

    def conv(self, channels=None, kernel=None, stride=None, plain=False):
        """`plain` keeps height and width, and has no groups."""
        net = self.net
        wanted = channels or net.pick(4, 6, 8, 12, 16, 24, 32)
        group, out = (1, wanted) if plain else self.groups(wanted)
        k = kernel or net.pick(1, 1, 3, 3, 3, 5)
        s = stride or (1 if plain else net.pick(1, 1, 1, 2))
        dilation = 2 if k == 3 and not plain and net.chance(0.1) else 1
        reach = dilation * (k - 1)
        sides = [reach // 2] * 4
        if not plain and net.chance(0.2):
            sides = [net.between(0, reach // 2) for _ in range(4)]
        spread = np.sqrt(2 / (self.channels // group * k * k))
        inputs = [self.x, net.normal((out, self.channels // group, k, k), spread)]
        if net.chance(0.7):
            inputs.append(net.normal(out, 0.3, stem="b"))
        height = (self.height + sides[0] + sides[2] - reach - 1) // s + 1
        width = (self.width + sides[1] + sides[3] - reach - 1) // s + 1
        if min(height, width) < 1:
            return
        attributes = {"pads": sides}
        if not plain and dilation == 1 and net.chance(0.1):
            attributes = {"auto_pad": net.pick("SAME_UPPER", "SAME_LOWER")}
            height, width = -(-self.height // s), -(-self.width // s)
        if dilation > 1:
            attributes["dilations"] = [dilation, dilation]
        self.x = net.add("Conv", inputs, group=group, strides=[s, s], kernel_shape=[k, k],
                         **attributes)
        self.channels, self.height, self.width = out, height, width
        if net.chance(0.3):
            self.normalise()

    def layer(self):
        self.conv()
        self.activate()

    def transposed(self):
        net = self.net
        if max(self.height, self.width) > 16:
            return
        group = net.pick(1, 1, 2) if self.channels % 2 == 0 else 1
        out, k = net.pick(4, 8, 12), net.pick(2, 3, 4)
        spread = np.sqrt(2 / (self.channels * k))
        inputs = [self.x, net.normal((self.channels, out // group, k, k), spread)]
        if net.chance(0.6):
            inputs.append(net.normal(out, 0.3, stem="b"))
        s = net.pick(1, 2)
        side, more = (1, s - 1) if k > 2 and net.chance(0.5) else (0, 0)
        self.x = net.add("ConvTranspose", inputs, group=group, strides=[s, s],
                         kernel_shape=[k, k], pads=[side] * 4, output_padding=[more, more])
        self.channels = out
        self.height = (self.height - 1) * s + k - 2 * side + more
        self.width = (self.width - 1) * s + k - 2 * side + more
        self.activate()

    def residual(self):
        net = self.net
        before, channels = self.x, self.channels
        for i in range(net.between(1, 2)):
            self.conv(channels, plain=True)
            if i == 0 or net.chance(0.3):
                self.activate()
        pair = [before, self.x] if net.chance(0.5) else [self.x, before]
        self.x = net.add("Add", pair)
        self.activate()

    def twins(self):
        """Two layers with one weight, and what they make in one expression."""
        net, c = self.net, self.channels
        weight = net.normal((c, c, 3, 3), np.sqrt(2 / (9 * c)))
        first = net.add("Conv", [self.x, weight], pads=[1] * 4, kernel_shape=[3, 3])
        between = activation(net, first, c, 4)
        second = net.add("Conv", [between, weight], pads=[1] * 4, kernel_shape=[3, 3])
        self.x = net.add(net.pick("Add", "Sub", "Mul", "Max", "Min"), [first, second])

    def instance_norm(self):
        net, c = self.net, self.channels
        if self.height * self.width > 3:
            self.x = net.add("InstanceNormalization", [self.x, net.normal(c, 0.2, 1),
                                                       net.normal(c, 0.2)])

    def concat(self):
        net = self.net
        start = self.state()
        parts, channels = [], 0
        for i in range(net.between(2, 3)):
            self.restore(start)
            if i > 0 or net.chance(0.7):
                self.conv(plain=True)
                self.activate()
            parts.append(self.x)
            channels += self.channels
        self.x = net.add("Concat", parts, axis=1)
        self.channels = channels

    def gate(self):
        """Squeeze and excite."""
        net = self.net
        before = self.state()
        kind = net.pick("average", "average", "mean", "most")
        if kind == "average":
            self.x = net.add("GlobalAveragePool", [self.x])
        elif kind == "most":
            self.x = net.add("GlobalMaxPool", [self.x])
        else:
            self.x = reduce_mean(net, self.x, [2, 3], 1)
        self.height = self.width = 1
        self.conv(net.pick(2, 4, 8), 1, plain=True)
        self.x = net.add("Relu", [self.x])
        self.conv(before[1], 1, plain=True)
        self.x = net.add("Sigmoid", [self.x]) if net.chance(0.5) else hard_sigmoid(net, self.x)
        pair = [before[0], self.x] if net.chance(0.5) else [self.x, before[0]]
        self.x = net.add("Mul", pair)
        _, self.channels, self.height, self.width = before

    def pool(self):
        net = self.net
        if net.nodes and net.nodes[-1].op_type == "Pad":
            return  # ONNX Runtime pads with the pool's own padding, which is none of zeros
        k, s = net.pick(2, 3), net.pick(1, 2)
        side = net.between(0, 1) if k == 3 else 0
        if min(self.height, self.width) + 2 * side < k:
            return
        attributes = {"kernel_shape": [k, k], "strides": [s, s], "pads": [side] * 4}
        if net.chance(0.5):
            self.x = net.add("MaxPool", [self.x], **attributes)
        else:
            self.x = net.add("AveragePool", [self.x], count_include_pad=net.between(0, 1),
                             **attributes)
        self.height = (self.height + 2 * side - k) // s + 1
        self.width = (self.width + 2 * side - k) // s + 1

    def resize(self):
        net = self.net
        if max(self.height, self.width) > 16:
            return
        mode = net.pick(("nearest", "asymmetric"), ("nearest", "half_pixel"),
                        ("linear", "half_pixel"), ("linear", "asymmetric"))
        attributes = {"mode": mode[0], "coordinate_transformation_mode": mode[1]}
        if mode[0] == "nearest":
            attributes["nearest_mode"] = net.pick("floor", "round_prefer_floor")
        scales = net.constant(np.array([1, 1, 2, 2], np.float32))
        roi = net.constant(np.zeros(0, np.float32)) if net.opset < 13 else ""
        self.x = net.add("Resize", [self.x, roi, scales], **attributes)
        self.height, self.width = 2 * self.height, 2 * self.width

    def shuffle(self):
        """Channels in another order, as ShuffleNet has it."""
        net, c = self.net, self.channels
        if c % 2:
            return
        shape = net.ints(0, 2, c // 2, self.height, self.width)
        split = net.add("Reshape", [self.x, shape])
        turned = net.add("Transpose", [split], perm=[0, 2, 1, 3, 4])
        self.x = net.add("Reshape", [turned, net.ints(0, c, self.height, self.width)])

    def halves(self):
        """Split, one half through a layer, and together again."""
        net, c = self.net, self.channels
        if c % 2 or c < 4:
            return
        if net.opset < 13:
            a, b = net.add("Split", [self.x], 2, axis=1, split=[c // 2, c // 2])
        else:
            a, b = net.add("Split", [self.x, net.ints(c // 2, c // 2)], 2, axis=1)
        self.x, self.channels = b, c // 2
        self.conv(c // 2, plain=True)
        self.activate()
        self.x, self.channels = net.add("Concat", [a, self.x], axis=1), c

    def move(self):
        net = self.net
        kind = net.pick("slice", "pad", "depth", "add", "mul", "sub")
        shape = (1, self.channels, 1, 1)
        if kind == "slice" and self.height > 3:
            self.x = net.add("Slice", [self.x, net.ints(1), net.ints(self.height), net.ints(2)])
            self.height -= 1
        elif kind == "pad":
            self.x = net.add("Pad", [self.x, net.ints(0, 0, 1, 0, 0, 0, 0, 1)])
            self.height, self.width = self.height + 1, self.width + 1
        elif kind == "depth" and self.channels % 4 == 0 and self.height < 14:
            self.x = net.add("DepthToSpace", [self.x], blocksize=2, mode=net.pick("DCR", "CRD"))
            self.channels //= 4
            self.height, self.width = 2 * self.height, 2 * self.width
        elif kind in ("add", "mul", "sub"):
            self.x = net.add(kind.capitalize(), [self.x, net.normal(shape, 0.5, 0.7)])


BLOCKS = (["layer"] * 5 + ["residual"] * 3 + ["concat", "concat", "gate", "gate", "pool", "pool",
          "transposed", "resize", "shuffle", "halves", "move", "move", "twins",
          "instance_norm"])


def head(images):
    net = images.net
    kind = net.pick("gemm", "gemm", "matmul", "map", "flat")
    if kind == "map":
        if net.chance(0.5):
            images.conv(net.pick(1, 3, 6), 1, plain=True)
        return net.give(images.x, 4)
    if kind == "flat" and images.channels * images.height * images.width < 2000:
        features = images.channels * images.height * images.width
        x = net.add("Flatten", [images.x]) if net.chance(0.5) else net.add(
            "Reshape", [images.x, net.ints(0, features)])
    else:
        features = images.channels
        pooled = net.add("GlobalAveragePool", [images.x])
        x = net.add("Flatten", [pooled]) if net.chance(0.6) else net.add(
            "Reshape", [pooled, net.ints(0, -1)])
    classes = net.pick(2, 5, 10)
    spread = 1 / np.sqrt(features)
    if kind == "matmul":
        x = net.add("MatMul", [x, net.normal((features, classes), spread)])
        if net.chance(0.7):
            x = net.add("Add", [x, net.normal(classes, 0.2)])
    else:
        turned = net.chance(0.6)
        shape = (classes, features) if turned else (features, classes)
        inputs = [x, net.normal(shape, spread)] + ([net.normal(classes, 0.2)]
                                                   if net.chance(0.8) else [])
        factors = {"alpha": net.pick(1.0, 0.5), "beta": net.pick(1.0, 2.0)}
        x = net.add("Gemm", inputs, transB=int(turned), **(factors if net.chance(0.2) else {}))
    if net.chance(0.3):
        x = net.add(net.pick("Softmax", "Sigmoid", "LogSoftmax"), [x])
    net.give(x, 2)


def image_network(net):
    images = Images(net)
    if net.chance(0.1):
        images.normalise()
    for _ in range(net.between(1, 5)):
        getattr(images, net.pick(*BLOCKS))()
        if net.chance(0.08):
            net.give(images.x, 4)
            images.layer()
    if not any(node.op_type == "Conv" for node in net.nodes):
        images.layer()
    head(images)
