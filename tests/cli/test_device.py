# SPDX-License-Identifier: Apache-2.0
"""--device and --precision where there is no GPU: one sentence each, and the CPU as before."""
import unittest

import harness


class DeviceTest(harness.CliTest):
    def run_on(self, *words, expect=0):
        return self.run_quench("run", "model.onnx", "--input", "x=images.npy", "-o", "outputs", *words,
                               expect=expect).stderr

    def test_cpu_is_what_it_is_without(self):
        self.run_on()
        plain = (self.dir / "outputs" / "scores.npy").read_bytes()
        self.run_on("--device", "cpu", "--precision", "float")
        self.assertEqual((self.dir / "outputs" / "scores.npy").read_bytes(), plain)

    def test_wrong_names(self):
        for name in ("gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1000", ""):
            self.assertIn("expected cpu, cuda or cuda:1",
                          self.run_on("--device", name, expect=2))
        self.assertIn("half", self.run_on("--precision", "double", expect=2))

    def test_precision_is_for_a_gpu(self):
        for name in ("tf32", "half"):
            self.assertIn("is for a GPU", self.run_on("--precision", name, expect=2))

    def test_libtorch_without_cuda(self):
        error = self.run_on("--device", "cuda", expect=4)
        if "has no CUDA" not in error:
            self.skipTest("this libtorch has CUDA: " + error)


if __name__ == "__main__":
    unittest.main()
