# SPDX-License-Identifier: Apache-2.0
"""quench calibrate: the file of statistics, and what it refuses."""
import unittest

import harness


class CalibrateTest(harness.CliTest):
    def statistics(self, name, *words, data="images.npy"):
        self.run_quench("calibrate", "model.onnx", "-o", name, "--data", data, *words)
        return (self.dir / name).read_bytes()

    def check_refused(self, mention, *words, expect=3):
        out = self.dir / "kept.stats"
        out.write_bytes(b"what was there before")
        error = self.run_quench("calibrate", "model.onnx", "-o", out.name, *words, expect=expect)
        self.assertIn(mention, error.stderr)
        self.assertEqual(out.read_bytes(), b"what was there before")

    def test_threads_and_batch_do_not_matter(self):
        made = set()
        for words in ([], ["--threads", "1"], ["--threads", "2"], ["--batch", "1"],
                      ["--batch", "7"]):
            self.statistics("x.stats", *words)
            for observer in ("min_max", "mse", "KL", "hist"):
                self.run_quench("quantize", "model.onnx", "-o", f"{observer}.onnx", "--stats",
                                "x.stats", "--activation-observer", observer)
                made.add((observer, (self.dir / f"{observer}.onnx").read_bytes()))
        self.assertEqual(len(made), 4)

    def test_size_does_not_grow_with_samples(self):
        few = len(self.statistics("few.stats", "--limit", "10"))
        self.assertLess(len(self.statistics("all.stats")), 2 * few)

    def test_says_nothing_on_stdout(self):
        text = self.run_quench("calibrate", "model.onnx", "-o", "quiet.stats", "--data",
                               "images.npy").stdout
        self.assertEqual(text, "")

    def test_bad_data(self):
        self.check_refused("--data", expect=2)
        self.check_refused("nowhere", "--data", "nowhere")
        (self.dir / "empty").mkdir()
        self.check_refused("empty holds no samples", "--data", "empty")
        harness.write_npy(self.dir / "wide.npy", "<f4", (2, 3, 8, 9), [0] * 432)
        self.check_refused("wide.npy", "--data", "wide.npy")

    def test_output_that_cannot_be_written(self):
        error = self.run_quench("calibrate", "model.onnx", "-o", "nowhere/out.stats", "--data",
                                "images.npy", expect=3).stderr
        self.assertIn("nowhere/out.stats", error)


if __name__ == "__main__":
    unittest.main()
