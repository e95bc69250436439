# SPDX-License-Identifier: Apache-2.0
"""quench eval."""
import unittest

import harness


class EvalTest(harness.CliTest):
    def write_labels(self, name, wrong):
        """Labels that the model gets right, but for the first `wrong` of them."""
        labels = self.predictions()
        for i in range(wrong):
            labels[i] = (labels[i] + 1) % 10
        harness.write_npy(self.dir / name, "<i8", (len(labels),), labels)

    def test_accuracy_is_exact(self):
        self.write_labels("five_wrong.npy", 5)
        for model in ("model.onnx", "fixed.onnx"):
            for batch in (1, 3, 8, 64):
                result = self.run_json("eval", model, "--data", "images.npy", "--labels",
                                       "five_wrong.npy", "--metric", "top1,top5", "--batch", batch)
                self.assertEqual(result["top1"], 75.0)
                self.assertGreaterEqual(result["top5"], 75.0)
                self.assertEqual(result["samples"], 20)
                self.assertEqual(result["batch"], 4 if model == "fixed.onnx" else batch)
                self.assertGreater(result["samples_per_second"], 0)

    def test_fixed_batch_fills_up_the_last_one(self):
        self.write_labels("right.npy", 0)
        result = self.run_json("eval", "fixed.onnx", "--data", "images.npy", "--labels",
                               "right.npy", "--metric", "top1", "--limit", "7")
        self.assertEqual((result["samples"], result["top1"]), (7, 100.0))

    def test_text_shows_the_metric(self):
        text = self.run_quench("eval", "model.onnx", "--data", "images.npy", "--labels",
                               "labels.npy", "--metric", "top1", "--limit", "10").stdout
        self.assertRegex(text, r"scores +top1 +\d+\.\d+")
        self.assertIn("10 samples", text)

    def test_against_itself(self):
        result = self.run_json("eval", "model.onnx", "--data", "images.npy", "--reference",
                               "model.onnx")
        self.assertAlmostEqual(result["cosine"], 1, places=9)
        self.assertEqual(result["agreement"], 100)
        self.assertGreater(result["sqnr"], 100)
        self.assertEqual(result["outputs"][0]["name"], "scores")

    def test_against_a_reference(self):
        result = self.run_json("eval", "model.onnx", "--data", "images.npy", "--reference",
                               "reference.onnx", "--labels", "labels.npy", "--metric",
                               "cosine,sqnr,top1")
        self.assertLess(result["cosine"], 1)
        self.assertGreater(result["cosine"], 0.9)
        self.assertGreater(result["sqnr"], 10)
        self.assertIn("top1", result)

    def test_bars(self):
        self.write_labels("five_wrong.npy", 5)
        words = ["eval", "model.onnx", "--data", "images.npy", "--labels", "five_wrong.npy",
                 "--metric", "top1"]
        self.run_quench(*words, "--at-least", "top1=75")
        missed = self.run_quench(*words, "--at-least", "top1=75.5", expect=1)
        self.assertIn("top1", missed.stderr)
        self.assertIn("75", missed.stdout)
        self.run_quench(*words, "--at-most", "top1=50", expect=1)

    def test_bar_on_another_metric_is_wrong_usage(self):
        result = self.run_quench_unclean("eval", "model.onnx", "--data", "images.npy", "--labels",
                                         "labels.npy", "--metric", "top1", "--at-least", "top5=1")
        self.assertEqual(result.returncode, 2)

    def run_quench_unclean(self, *words):
        return harness.subprocess.run([harness.PROGRAM, *words], cwd=self.dir, check=False,
                                      capture_output=True, text=True)

    def test_config_file_and_flags_over_it(self):
        (self.dir / "data.ini").write_text("[data_preprocess_param]\ninput_type=BIN\n",
                                           encoding="utf-8")
        result = self.run_json("eval", "model.onnx", "--data", "images.npy", "--labels",
                               "labels.npy", "--data-config", "data.ini", "--limit", "6")
        self.assertEqual(result["samples"], 6)


if __name__ == "__main__":
    unittest.main()
