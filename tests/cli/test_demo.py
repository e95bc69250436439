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
        names = ["model", "model_int8", "model_4bit", "model_mixed", "model_dynamic",
                 "model_2bit_trained"]
        lines = self.run_quench(*words).stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines[1:7]], names)
        rows = self.run_json(*words)["models"]
        for name, row in zip(names[1:], rows[1:]):
            self.assertTrue((self.dir / "made" / f"{name}.onnx").is_file())
            self.assertGreater(row["timing"]["median_ms"], 0)
            self.assertIn("top1", row)

    def test_report_is_the_last_thing(self):
        text = self.run_quench(*self.WORDS, "--report", "pages/report.html").stdout
        self.assertTrue(text.endswith("report, for a browser: pages/report.html\n"), text)
        page = (self.dir / "pages/report.html").read_text(encoding="utf-8")
        for name in ("conv_node", "gemm_node", '"sensitivity":{'):
            self.assertIn(name, page)


if __name__ == "__main__":
    unittest.main()
