# SPDX-License-Identifier: Apache-2.0
"""Whether two runs of a quantised file differ by rounding alone.

A value a hair from the middle of two integers goes to either, as float arithmetic decides, and all
that is computed from it follows. So the file is walked through by its integer values, in the order in
which they are made. Each is computed by both sides from equal integers; where they differ, what ONNX
Runtime has is what both go on with, and
  behind a QuantizeLinear  ours must be the nearest integer to what ONNX Runtime, without
                           optimisations, gives that node to round, but for a hair (ONNX Runtime's own
                           need not be: it rounds biases that the file has in float);
  elsewhere                they must differ by one and in few elements."""
import numpy as np
import onnx

MOST_OFF = 0.01  # of the elements of one value, and two at any rate
HAIR = 1e-4  # of a scale: what float sums of some thousand products are off
ULPS = 2.0 ** -21  # of the value itself, which is thousands of scales where activations have 16 bits
FIRST_ONLY = {"DynamicQuantizeLinear"}


def integer_values(model):
    """What integer operators and roundings make, in order."""
    found = []
    for node in model.graph.node:
        bytes_cast = node.op_type == "Cast" and any(
            each.name == "to" and each.i in (2, 3) for each in node.attribute)
        real = node.op_type == "QGemm" and len(node.input) < 8
        if bytes_cast or node.op_type in FIRST_ONLY or (node.op_type[0] == "Q" and not real):
            found.append(node.output[0])
    return found


def until(model, values, feeds):
    """The part of a model that makes `values` from `feeds`, which may be values inside it."""
    part = onnx.ModelProto()
    part.CopyFrom(model)
    needed, nodes = set(values), []
    for node in reversed(model.graph.node):
        if any(name in needed and name not in feeds for name in node.output):
            nodes.insert(0, node)
            needed.update(node.input)
    for field in ("node", "initializer", "value_info", "output", "input"):
        part.graph.ClearField(field)
    for node in nodes:
        copy = part.graph.node.add()
        copy.CopyFrom(node)
        for i, name in enumerate(copy.output):
            if name in feeds:
                copy.output[i] = name + "_before"
    part.graph.initializer.extend(
        each for each in model.graph.initializer if each.name in needed)
    used = {name: array for name, array in feeds.items() if name in needed}
    part.graph.input.extend(onnx.helper.make_tensor_value_info(
        name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in used.items())
    part.graph.output.extend(onnx.ValueInfoProto(name=name) for name in values)
    return part, used


def differs(mine, theirs):
    """Whether anything differs, and what is wrong with that."""
    if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
        return True, f"{mine.dtype}{mine.shape}, not {theirs.dtype}{theirs.shape}"
    off = np.abs(mine.astype(np.int64) - theirs.astype(np.int64))
    count = int((off > 0).sum())
    if off.size == 0 or count == 0:
        return False, None
    few = count <= max(2, MOST_OFF * off.size)
    if off.max() == 1 and few:
        return True, None
    return True, f"{count} of {off.size} bytes differ, by up to {off.max()}"


def rounded_wrongly(model, node, mine, feeds, run_plain):
    """What is wrong with our integers behind a QuantizeLinear, or nothing."""
    part, used = until(model, [node.input[0]], feeds)
    exact = run_plain(part, used)[0].astype(np.float64)
    constants = {each.name: onnx.numpy_helper.to_array(each)
                 for each in model.graph.initializer if each.name in node.input}
    scale = constants[node.input[1]].astype(np.float64)
    zero = constants[node.input[2]].astype(np.float64) if len(node.input) > 2 else 0.0
    ends = np.iinfo(mine.dtype)
    exact = np.clip(exact / scale + zero, ends.min, ends.max)
    off = np.abs(mine.astype(np.float64) - exact)
    count = int((off > 0.5 + HAIR + ULPS * np.abs(exact)).sum())
    return f"{count} of {off.size} are not rounded to the nearest, by {off.max():.6f}" if count else None


def fault(model, name, found, feeds, run_plain):
    """(whether both sides differ in a value, what is wrong with ours)."""
    mine, theirs = found
    parted, wrong = differs(mine, theirs)
    node = next(each for each in model.graph.node if name in each.output)
    if not parted or mine.shape != theirs.shape or node.op_type != "QuantizeLinear":
        return parted, wrong
    return True, rounded_wrongly(model, node, mine, feeds, run_plain)


def explain(model, outputs, feeds, run_both, run_plain):
    """Walks through a model. `run_both(model, feeds)` gives what ours and theirs compute, each as a
    list; `run_plain` what theirs computes without optimisations. Returns what is wrong with a value on
    the way, or nothing and both lists of outputs."""
    feeds = dict(feeds)
    for name in integer_values(model):
        if name in outputs:
            continue
        part, used = until(model, [name], feeds)
        if not used:
            continue  # a constant
        mine, theirs = run_both(part, used)
        parted, wrong = fault(model, name, (mine[0], theirs[0]), feeds, run_plain)
        if wrong:
            return f"{name}: {wrong}", None
        if parted:
            feeds[name] = theirs[0]
    part, used = until(model, outputs, feeds)
    return None, run_both(part, used)
