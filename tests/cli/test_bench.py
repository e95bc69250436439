# SPDX-License-Identifier: Apache-2.0
"""quench bench."""
import json
import os
import unittest

import harness


class BenchTest(harness.CliTest):
    def test_one_model(self):
        result = self.run_json("bench", "model.onnx", "--batch", "4", "--threads", "1", "--runs",
                               "7", "--warmup", "1")
        self.assertEqual((result["batch"], result["threads"], result["runs"]), (4, 1, 7))
        self.assertGreater(result["median_ms"], 0)
        self.assertLessEqual(result["min_ms"], result["median_ms"])
        self.assertLessEqual(result["median_ms"], result["p95_ms"])
        self.assertAlmostEqual(result["samples_per_second"], 4000 / result["median_ms"], places=3)
        self.assertGreater(result["load_ms"], 0)
        # The engine alone takes more than 100 MB; it must not be counted.
        self.assertLess(result["peak_rss_mb"], 60)

    def test_lesser_instruction_sets(self):
        """The cap reaches the loops: an 8-bit model runs in float without products of bytes."""
        self.run_quench("quantize", "model.onnx", "-o", "int8.onnx", "--data", "images.npy")
        for isa in ("portable", "avx2", "avx512", "vnni", "vbmi"):
            result = self.run_quench("bench", "int8.onnx", "--runs", "2", "--max-isa", isa)
            warned = "without VNNI" in result.stderr
            if isa in ("portable", "avx2", "avx512"):
                self.assertTrue(warned, isa)

    def test_several_models(self):
        result = self.run_json("bench", "model.onnx", "reference.onnx", "--runs", "3")
        self.assertEqual([each["model"] for each in result["models"]],
                         ["model.onnx", "reference.onnx"])

    def test_ratios(self):
        text = self.run_quench("bench", "model.onnx", "model.onnx", "--runs", "3").stdout
        self.assertIn("speed", text.splitlines()[0])
        self.assertIn("1.00x", text.splitlines()[-2])

    def test_profile(self):
        text = self.run_quench("bench", "model.onnx", "--runs", "3", "--profile").stdout
        self.assertIn("ms a run", text)
        result = self.run_json("bench", "model.onnx", "--runs", "3", "--trace", "trace.json")
        trace = json.loads((self.dir / "trace.json").read_text())["traceEvents"]
        steps = [event for event in trace if event["ph"] == "X"]
        self.assertEqual([event["name"] for event in steps],
                         [step["node"] for step in result["steps"]])
        self.assertTrue(all(event["dur"] >= 0 for event in steps))

    def test_runtime_that_is_not_there(self):
        error = self.run_quench("bench", "model.onnx", "--runs", "3", "--runtime", "onnxruntime",
                                "--python", "no-such-python", expect=4)
        self.assertIn("--python", error.stderr)

    def test_fixed_batch_is_told(self):
        result = self.run_quench("bench", "fixed.onnx", "--batch", "8", "--runs", "3")
        self.assertIn("fixed at 4", result.stderr)
        self.assertEqual(self.run_json("bench", "fixed.onnx", "--runs", "3")["batch"], 4)
        self.assertEqual(self.run_quench("bench", "fixed.onnx", "--batch", "8", "--runs",
                                         "3", "--quiet").stderr, "")

    def test_open_dimensions(self):
        error = self.run_quench("bench", "odd.onnx", "--runs", "3", expect=3)
        self.assertIn("--shape in:0=1,3,D2,D3", error.stderr)
        result = self.run_json("bench", "odd.onnx", "--runs", "3", "--shape", "in:0=2,3,16,16")
        self.assertEqual((result["runs"], result["batch"]), (3, 2))

    def test_fewer_threads_than_asked_for(self):
        self.run_quench("quantize", "model.onnx", "-o", "int8.onnx", "--data", "images.npy")
        for limit in ({"OMP_THREAD_LIMIT": "1"}, {"OMP_DYNAMIC": "true"}):
            self.run_quench("bench", "int8.onnx", "--batch", "2048", "--threads", "3", "--runs",
                            "5", env={**os.environ, **limit})

    def test_time_limit(self):
        result = self.run_json("bench", "model.onnx", "--runs", "1000000", "--max-seconds", "0.2")
        self.assertLess(result["runs"], 1000000)
        self.assertGreaterEqual(result["runs"], 3)


if __name__ == "__main__":
    unittest.main()
