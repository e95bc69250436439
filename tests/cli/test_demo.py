# SPDX-License-Identifier: Apache-2.0
"""quench demo."""
import unittest

import harness


class DemoTest(harness.CliTest):
    WORDS = ["demo", "--model", "model.onnx", "--model", "reference.onnx", "--data", "images.npy",
             "--labels", "labels.npy", "--runs", "3"]

    def test_table(self):
        lines = self.run_quench(*self.WORDS).stdout.splitlines()
        self.assertEqual(lines[0].split(), ["model", "size", "top-1", "latency", "images/s"])
        self.assertEqual([line.split()[0] for line in lines[1:3]], ["model", "reference"])
        self.assertRegex(lines[1], r"\d+\.\d\d %")

    def test_json(self):
        rows = self.run_json(*self.WORDS)["models"]
        self.assertEqual([row["model"] for row in rows], ["model.onnx", "reference.onnx"])
        for row in rows:
            self.assertEqual(row["samples"], 20)
            self.assertGreater(row["timing"]["median_ms"], 0)
            self.assertLessEqual(0, row["top1"])

    def test_int8(self):
        words = ["demo", "--model", "model.onnx", "--data", "images.npy", "--labels", "labels.npy",
                 "--runs", "3", "--int8", "made"]
        lines = self.run_quench(*words).stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines[1:3]], ["model", "model_int8"])
        self.assertEqual(lines[2].split()[-2:], ["-", "-"])
        self.assertRegex(lines[-1], "simulated; run .*model_int8.onnx in ONNX Runtime")
        rows = self.run_json(*words)["models"]
        self.assertTrue((self.dir / "made" / "model_int8.onnx").is_file())
        self.assertEqual([row["simulated"] for row in rows], [False, True])
        self.assertNotIn("timing", rows[1])
        self.assertIn("top1", rows[1])


if __name__ == "__main__":
    unittest.main()
