# SPDX-License-Identifier: Apache-2.0
"""Random settings for `quench quantize`, as its --settings takes them."""
TARGETS = ("onnxruntime", "openvino", "generic", "tensorrt", "dsp", "ascend")
ACTIVATIONS = ("abs_max", "min_max", "avg", "moving_average_abs_max", "removal_outlier", "hist",
               "kl", "mse", "emd", "best", "auto")
WEIGHTS = ("abs_max", "channel_wise_abs_max", "mse", "channel_wise_mse", "min_max")


class Draw:
    def __init__(self, random):
        self.random = random

    def chance(self, share):
        return self.random.random() < share

    def pick(self, *choices):
        return choices[self.random.integers(len(choices))]


def rule(draw):
    found = {}
    if draw.chance(0.5):
        found["activation_observer"] = draw.pick(*ACTIVATIONS)
    if draw.chance(0.3):
        found["weight_observer"] = draw.pick(*WEIGHTS)
    if draw.chance(0.12):
        found["activation_bits"] = draw.pick(4, 5, 6, 7, 9, 12, 16)
    if draw.chance(0.15):
        found["weight_bits"] = draw.pick(3, 4, 5, 6, 7)
    if draw.chance(0.4):
        found["per_channel"] = draw.chance(0.5)
    return found


def full(draw, types):
    config = {"target": draw.pick("onnxruntime", *TARGETS), "global": rule(draw)}
    if draw.chance(0.1):
        config["isa"] = draw.pick("avx2", "avx512", "vnni")
    if draw.chance(0.1):
        named = [each for each in ("Conv", "Gemm", "MatMul") if each in types]
        config["by_type"] = {draw.pick(*named): {"skip": True}}
    wide = config["global"].get("activation_bits", 8) > 8  # there are no operators for that
    return {"type": "full", "config": config, "qoperator": draw.chance(0.3) and not wide,
            "equalization": draw.pick("never", "always", "auto", "auto"),
            "bias_correction": draw.chance(0.8), "correction": draw.pick("fast", "full", "auto"),
            "batch": draw.pick(1, 2, 4)}


def weight(draw):
    found = {"bits": draw.pick(8, 8, 8, 4, 4, 1, 2, 3, 5, 6, 7, 10, 16),
             "per_channel": draw.chance(0.7), "symmetric": draw.chance(0.5),
             "group_size": draw.pick(0, 0, 0, 16, 32), "bias_correction": draw.chance(0.5),
             "gptq": draw.chance(0.2)}
    return {"type": "weight", "weight": found}


def dynamic(draw):
    return {"type": "dynamic", "dynamic": {"quant_strategy": draw.pick("ALWC", "ACWL")}}


def settings(random, data, types):
    """`data` is what --data takes; `types` are the operators of the network."""
    draw = Draw(random)
    kind = random.random()
    found = full(draw, types) if kind < 0.7 else weight(draw) if kind < 0.85 else dynamic(draw)
    if found["type"] == "full" or draw.chance(0.6) or found.get("weight", {}).get("gptq"):
        found["data"] = {"path": data}
    return found
