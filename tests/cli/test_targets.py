# SPDX-License-Identifier: Apache-2.0
"""quench quantize for targets: forms of the result and instruction sets."""
import unittest

import harness


class TargetsTest(harness.CliTest):
    def quantize(self, out, *words, **options):
        return self.run_json("quantize", "model.onnx", "-o", out, "--data", "images.npy", *words,
                             **options)

    def integer_types(self, model):
        nodes = self.run_json("lint", model)["nodes"]
        return {node["op_type"] for node in nodes if node["integer"]}

    def test_qoperator(self):
        self.quantize("q.onnx", "--format", "qoperator")
        types = self.integer_types("q.onnx")
        self.assertLessEqual({"QLinearConv", "QGemm", "QLinearGlobalAveragePool"}, types)

    def test_qdq_is_the_default(self):
        self.quantize("qdq.onnx")
        self.assertLessEqual({"Conv", "Gemm"}, self.integer_types("qdq.onnx"))

    def test_avx2_names_the_layers_it_changed(self):
        plain = self.quantize("plain.onnx")
        self.assertEqual(plain["coarser_layers"], [])
        vnni = self.quantize("vnni.onnx", "--isa", "vnni")
        self.assertEqual(vnni["coarser_layers"], [])
        safe = self.quantize("avx2.onnx", "--isa", "avx2")
        self.assertIn("conv_node", [layer["node"] for layer in safe["coarser_layers"]])
        for layer in safe["coarser_layers"]:
            self.assertGreater(layer["factor"], 1)
            self.assertLessEqual(layer["changed"], layer["channels"])
        self.assertGreater(safe["outputs"][0]["cosine"], 0.999)

    def test_avx2_in_the_table(self):
        text = self.run_quench("quantize", "model.onnx", "-o", "t.onnx", "--data", "images.npy",
                               "--isa", "avx2").stdout
        self.assertRegex(text, r"conv_node +\d+ of 16 +1\.\d\d")

    def test_tflite_has_integers_to_the_end(self):
        self.quantize("end.tflite")
        nodes = self.run_json("lint", "end.tflite")["nodes"]
        self.assertEqual([node for node in nodes if not node["integer"]], [])

    def test_integers_come_in_and_go_out(self):
        for name, word in (("io.tflite", "int8"), ("io.onnx", "uint8")):
            plain = "plain_" + name
            scores = [self.quantize(plain), self.quantize(name, "--integer-io")]
            self.assertEqual(scores[0]["outputs"], scores[1]["outputs"])
            shown = self.run_json("inspect", name)
            self.assertEqual(shown["inputs"][0]["type"], word)
            # ONNX Runtime's last product makes floats.
            last = word if name.endswith("tflite") else "float32"
            self.assertEqual(shown["outputs"][0]["type"], last)
            told = [line for line in scores[1]["warnings"] if "stay float" in line]
            self.assertEqual(len(told), 0 if last == word else 1)
            # Floats are rounded to the scale that the input has.
            found = [self.run_json("eval", each, "images.npy", "--labels", "labels.npy")["outputs"]
                     for each in (plain, name)]
            self.assertEqual(found[0], found[1])
        told = self.run_quench("quantize", "model.onnx", "-o", "w.onnx", "--type", "weight",
                               "--integer-io", expect=2).stderr
        self.assertIn("would change nothing", told)

    def test_unknown_instruction_set(self):
        error = self.run_quench("quantize", "model.onnx", "-o", "t.onnx", "--data", "images.npy",
                                "--isa", "neon", expect=2).stderr
        self.assertIn("avx2", error)


if __name__ == "__main__":
    unittest.main()
