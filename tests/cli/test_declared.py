# SPDX-License-Identifier: Apache-2.0
"""Models whose file declares shapes that are not so: a warning, and the shapes that are."""
import unittest

from harness import IMAGES, CliTest, read_npy, write_npy

OUTPUT = "the file declares value 'scores' as float32[1], but it is float32["
INSIDE = "the file declares value 'relu' as float32[1,seqlen], but it is float32["


class Declared(CliTest):
    def check_warnings(self, result):
        for text in (OUTPUT, INSIDE):
            self.assertEqual(result.stderr.count(text), 1, result.stderr)

    def test_the_model_runs(self):
        for model in ("misdeclared", "model"):
            result = self.run_quench("run", f"{model}.onnx", "--input", "x=images.npy", "-o", model)
            if model == "misdeclared":
                self.check_warnings(result)
        self.assertEqual(read_npy(self.dir / "misdeclared/scores.npy"),
                         read_npy(self.dir / "model/scores.npy"))

    def test_quantised_files_do_not_carry_it_on(self):
        for kind in ("full", "weight", "dynamic"):
            result = self.run_quench("quantize", "misdeclared.onnx", "-o", f"{kind}.onnx", "--type",
                                     kind, "--data", "images.npy")
            self.check_warnings(result)
            self.assertEqual(self.run_quench("run", f"{kind}.onnx", "--input", "x=images.npy",
                                             "-o", "again").stderr, "")
            self.assertEqual(read_npy(self.dir / "again/scores.npy")[0], (IMAGES, 10))
            text = self.run_quench("inspect", f"{kind}.onnx", "--dump").stdout
            self.assertIn("value %scores: float32[batch,10]", text)
            self.assertNotIn("seqlen", text)

    def test_other_verbs(self):
        self.check_warnings(self.run_quench("analyze", "sensitivity", "misdeclared.onnx", "-o",
                                            "an", "--data", "images.npy"))
        self.check_warnings(self.run_quench("eval", "misdeclared.onnx", "--data", "images.npy",
                                            "--labels", "labels.npy"))

    def test_lint(self):
        self.check_warnings(self.run_quench("lint", "misdeclared.onnx"))

    def test_a_loop_counts_in_the_shape_its_body_declares(self):
        write_npy(self.dir / "one.npy", "<f4", (1,), [0.5])
        result = self.run_quench("run", "counting.onnx", "--input", "x=one.npy", "-o", "counts")
        self.assertEqual(result.stderr, "")
        self.assertEqual(read_npy(self.dir / "counts/y.npy"), ((3, 1), (0.5, 1.5, 2.5)))


if __name__ == "__main__":
    unittest.main()
