# SPDX-License-Identifier: Apache-2.0
"""quench lint: what will run on integers, node by node."""
import random
import unittest

import harness


class LintTest(harness.CliTest):
    def test_float_model_runs_in_float(self):
        result = self.run_json("lint", "model.onnx")
        self.assertEqual(result["target"], "onnxruntime")
        self.assertEqual(result["integer_nodes"], 0)
        nodes = {node["node"]: node for node in result["nodes"]}
        self.assertFalse(nodes["conv_node"]["integer"])
        self.assertEqual(nodes["conv_node"]["op_type"], "Conv")
        self.assertNotEqual(nodes["conv_node"]["reason"], "")

    def test_quantised_model_runs_on_integers(self):
        self.run_quench("quantize", "model.onnx", "-o", "int8.onnx", "--data", "images.npy",
                        "--skip-node", "gemm_node")
        nodes = {node["node"]: node["integer"]
                 for node in self.run_json("lint", "int8.onnx")["nodes"]}
        self.assertTrue(nodes["conv_node"])
        self.assertFalse(nodes["gemm_node"])

    def check_agreement(self, model, *flags, target="onnxruntime"):
        """The report of `quantize` says of each node what `lint` says of the written file."""
        report = self.run_json("quantize", model, "-o", "agree.onnx", "--target", target, *flags)
        nodes = self.run_json("lint", "agree.onnx", "--target", target)["nodes"]
        what = f"{model} {target} {flags}"
        self.assertEqual(report["integer_nodes"] + report["pass_through_nodes"],
                         sum(node["integer"] for node in nodes), what)
        in_float = [node for node in nodes if not node["integer"]]
        self.assertEqual(len(report["float_layers"]), len(in_float), what)
        for layer, node in zip(report["float_layers"], in_float):
            self.assertEqual(node["node"], layer["node"], what)
            self.assertEqual(layer["op_type"], node["op_type"], what)
            self.assertNotEqual(layer["reason"], "", what)
        return report

    def test_quantize_says_the_same(self):
        data = ["--data", "images.npy"]
        for target in ("onnxruntime", "openvino", "generic"):
            for model in ("mobile.onnx", "norm.onnx", "residual.onnx"):
                self.check_agreement(model, *data, target=target)
        for target in ("tensorrt", "ascend", "dsp"):
            self.check_agreement("model.onnx", *data, target=target)
        self.check_agreement("model.onnx", *data, "--skip-node", "gemm_node")
        self.check_agreement("model.onnx", *data, "--format", "qoperator")
        self.check_agreement("mobile.onnx", *data, "--activation-bits", "16")

    def test_what_equalisation_adds_has_its_own_reason(self):
        report = self.check_agreement("mobile.onnx", "--data", "images.npy", "--equalize", "always",
                                      "--per-layer")
        reasons = {layer["op_type"]: layer["reason"] for layer in report["float_layers"]}
        self.assertEqual(reasons["Mul"], "it undoes equalisation in front of a gate that reads float")

    def test_quantize_says_the_same_of_trained_networks(self):
        shared = harness.SOURCE.parent / "shared"
        if not (shared / "models/ppocrv4_det.onnx").exists():
            self.skipTest("there is no ../shared")
        source = random.Random(3)
        numbers = [source.gauss(0, 1) for _ in range(6 * 3 * 64 * 64)]
        harness.write_npy(self.dir / "pages.npy", "<f4", (6, 3, 64, 64), numbers)
        for target in ("onnxruntime", "openvino"):
            self.check_agreement(shared / "models/ppocrv4_det.onnx", "--data", "pages.npy",
                                 target=target)
        ids, mask = (shared / f"data/stsb/calib_{name}.npy" for name in ("input_ids",
                                                                         "attention_mask"))
        report = self.check_agreement(shared / "models/use_lite.onnx", "--limit", "8", "--data",
                                      f"input_ids:{ids},attention_mask:{mask}")
        reasons = {layer["reason"] for layer in report["float_layers"]
                   if layer["op_type"] == "Gather"}
        self.assertIn("what it picks from is a constant, kept in float", reasons)

    def test_text(self):
        text = self.run_quench("lint", "model.onnx").stdout
        self.assertRegex(text, r"(?m)^conv_node +float +\S")
        self.assertRegex(text, r"(?m)^0 of 5 nodes run on integers in onnxruntime$")

    def test_refusals(self):
        error = self.run_quench("lint", "model.onnx", "--target", "onnxruntim", expect=2).stderr
        self.assertIn("did you mean 'onnxruntime'?", error)
        self.assertIn("nowhere.onnx", self.run_quench("lint", "nowhere.onnx", expect=3).stderr)


if __name__ == "__main__":
    unittest.main()
