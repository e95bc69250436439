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
    def check(self, *words, model="model.onnx", processors=PROCESSORS):
        def made(*before):
            subprocess.run([*before, harness.PROGRAM, "quantize", model, "-o", "made.onnx",
                            *words, "--quiet"], cwd=self.dir, check=True, capture_output=True)
            return (self.dir / "made.onnx").read_bytes()
        native = made()
        for processor in processors:
            with self.subTest(words=words, processor=processor):
                self.assertEqual(made(QEMU, "-cpu", processor), native)

    def test_weights(self):
        model = harness.SOURCE / "examples" / "data" / "fashion.onnx"
        for words in (["--bits", "2"], ["--bits", "4", "--group-size", "32"], ["--bits", "6"],
                      ["--bits", "7", "--per-layer"], ["--bits", "8", "--weight-observer", "mse"],
                      ["--bits", "12", "--symmetric"]):
            self.check("--type", "weight", *words, model=model)

    def test_dynamic(self):
        for strategy in ("ALWC", "ACWL"):
            self.check("--type", "dynamic", "--strategy", strategy)


if __name__ == "__main__":
    unittest.main()
