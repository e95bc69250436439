# SPDX-License-Identifier: Apache-2.0
"""quench inspect."""
import unittest

import harness


class InspectTest(harness.CliTest):
    def test_json_facts(self):
        facts = self.run_json("inspect", "model.onnx")
        self.assertEqual(facts["inputs"],
                         [{"name": "x", "type": "float32", "shape": ["batch", 3, 8, 8]}])
        self.assertEqual(facts["outputs"],
                         [{"name": "scores", "type": "float32", "shape": ["batch", 10]}])
        self.assertEqual(facts["operators"], {"Conv": 1, "Flatten": 1, "Gemm": 1,
                                              "GlobalAveragePool": 1, "Relu": 1})
        self.assertEqual(facts["nodes"], 5)
        self.assertEqual(facts["parameters"], 16 * 27 + 160 + 10)
        self.assertEqual(facts["weights"]["float32"],
                         {"tensors": 3, "elements": 602, "bytes": 2408})
        self.assertEqual(facts["opsets"], {"ai.onnx": 13})
        self.assertEqual(facts["ir_version"], 8)
        self.assertEqual(facts["producer"], "quench tests")
        self.assertEqual(facts["unsupported"], [])
        self.assertEqual(facts["bytes_on_disk"], (self.dir / "model.onnx").stat().st_size)

    def test_external_data_counts_as_size(self):
        facts = self.run_json("inspect", "external.onnx")
        self.assertGreaterEqual(facts["bytes_on_disk"],
                                (self.dir / "external.onnx").stat().st_size)
        self.assertGreater(facts["bytes_on_disk"], 2408)

    def test_text(self):
        text = self.run_quench("inspect", "model.onnx").stdout
        for part in ("float32[batch,3,8,8]", "GlobalAveragePool", "602", "ai.onnx 13"):
            self.assertIn(part, text)

    def test_unsupported_nodes_are_named(self):
        facts = self.run_json("inspect", "unsupported.onnx")
        self.assertEqual(len(facts["unsupported"]), 1)
        self.assertIn("strange_node", facts["unsupported"][0]["node"])
        self.assertEqual(facts["operators"], {"example.org.Frobnicate": 1})
        self.assertIn("strange_node", self.run_quench("inspect", "unsupported.onnx").stdout)

    def test_dump_shows_values_and_nodes(self):
        text = self.run_quench("inspect", "model.onnx", "--dump").stdout
        for name in ("Conv", "relu", "scores"):
            self.assertIn(name, text)
        self.assertEqual(self.run_json("inspect", "model.onnx", "--dump")["dump"], text)

    def test_names_cannot_steer_the_terminal(self):
        for words in (["inspect", "odd.onnx"], ["inspect", "odd.onnx", "--dump"]):
            self.assertNotIn("\x1b", self.run_quench(*words).stdout)


if __name__ == "__main__":
    unittest.main()
