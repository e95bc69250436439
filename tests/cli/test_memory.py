# SPDX-License-Identifier: Apache-2.0
"""Models that are larger than the memory they may take: --max-memory and ulimit -v."""
import os
import random
import resource
import subprocess
import unittest

import harness

MB = 1_000_000
SIZE = 300  # MB of weights
CEILING = 270


class MemoryTest(harness.CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run([str(harness.BINARY / "quench_generate"), "transformer", str(cls.dir / "large.onnx"),
                        "--size-mb", str(SIZE), "--hidden", "512", "--external"], check=True)
        source = random.Random(1)
        harness.write_npy(cls.dir / "ids.npy", "<i8", (8, 8), [source.randrange(30000) for _ in range(64)])
        harness.write_npy(cls.dir / "mask.npy", "<i8", (8, 8), [1] * 64)

    DATA = ("--data", "input_ids=ids.npy", "attention_mask=mask.npy")

    def peak_of(self, *words, virtual=None, expect=0):
        """The most resident megabytes of a run of the program, under a limit of address space."""
        def limit():
            if virtual:
                resource.setrlimit(resource.RLIMIT_AS, (virtual * MB, virtual * MB))
        with subprocess.Popen([harness.PROGRAM, *map(str, words)], cwd=self.dir, preexec_fn=limit,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            self.error = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, expect, self.error)
        return usage.ru_maxrss * 1024 / MB

    def test_weights_in_less_address_space_than_they_take(self):
        """The same file, bit for bit, as without a limit."""
        self.assertGreater((self.dir / "large.onnx.data").stat().st_size, 0.95 * SIZE * MB)
        self.peak_of("inspect", "large.onnx", virtual=150)
        for bits in (8, 4):
            words = ("quantize", "large.onnx", "--type", "weight", "--bits", bits, "--quiet", "--threads", "1")
            self.run_quench(*words, "-o", "free.onnx")
            resident = self.peak_of(*words, "-o", "narrow.onnx", virtual=250)
            self.assertLess(resident, 250)
            for end in (".data",):
                self.assertEqual((self.dir / f"free.onnx{end}").read_bytes(),
                                 (self.dir / f"narrow.onnx{end}").read_bytes())


if __name__ == "__main__":
    unittest.main()
