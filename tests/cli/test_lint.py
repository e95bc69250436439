# SPDX-License-Identifier: Apache-2.0
"""quench lint: what will run on integers, node by node."""
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
