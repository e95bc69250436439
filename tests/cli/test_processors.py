# SPDX-License-Identifier: Apache-2.0
"""The same bytes on every processor: quench natively against quench in qemu's older processors."""
import shutil
import subprocess
import unittest

import harness

QEMU = shutil.which("qemu-x86_64")
# With AVX2 and fused products, and with neither.
PROCESSORS = ("Haswell", "Nehalem")


@unittest.skipIf(QEMU is None, "qemu-x86_64 is not there (Debian: qemu-user)")
class ProcessorsTest(harness.CliTest):
    def made(self, *words, processor=None, model="model.onnx"):
        before = [QEMU, "-cpu", processor] if processor else []
        subprocess.run([*before, harness.PROGRAM, "quantize", model, "-o", "made.onnx", *words,
                        "--quiet"], cwd=self.dir, check=True, capture_output=True)
        return (self.dir / "made.onnx").read_bytes()

    def check(self, *words, model="model.onnx"):
        native = self.made(*words, model=model)
        for processor in PROCESSORS:
            with self.subTest(words=words, processor=processor):
                self.assertEqual(self.made(*words, processor=processor, model=model), native)

    def test_weights(self):
        model = harness.SOURCE / "examples" / "data" / "fashion.onnx"
        for words in (["--bits", "2"], ["--bits", "4", "--group-size", "32"], ["--bits", "6"],
                      ["--bits", "7", "--per-layer"], ["--bits", "8", "--weight-observer", "mse"],
                      ["--bits", "12", "--symmetric"]):
            self.check("--type", "weight", *words, model=model)

    def test_dynamic(self):
        for strategy in ("ALWC", "ACWL"):
            self.check("--type", "dynamic", "--strategy", strategy)

    def test_one_file_of_statistics(self):
        self.run_quench("calibrate", "model.onnx", "-o", "a.stats", "--data", "images.npy")
        for words in ([], ["--activation-observer", "KL"]):
            self.check("--stats", "a.stats", *words)

    def test_full_quantisation_is_nearly_the_same(self):
        """Activations differ in their last bits, and so do scales and biases: the guide says so."""
        words = ["--data", "images.npy"]
        (self.dir / "native.onnx").write_bytes(self.made(*words))
        self.made(*words, processor="Haswell")
        near = self.run_json("eval", "made.onnx", "--reference", "native.onnx", *words)
        self.assertGreater(near["sqnr"], 45)


if __name__ == "__main__":
    unittest.main()
