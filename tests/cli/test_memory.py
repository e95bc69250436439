# SPDX-License-Identifier: Apache-2.0
"""Models that are larger than the memory they may take: --max-memory and ulimit -v."""
import json
import os
import random
import resource
import subprocess
import unittest

import harness

MB = 1_000_000
SIZE = 400  # MB of weights
CEILING = 400  # without one an evaluation takes 660; the engine alone takes about 180
DATA = ("--data", "input_ids:ids.npy,attention_mask:mask.npy")


class MemoryTest(harness.CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        subprocess.run([str(harness.BINARY / "quench_generate"), "transformer", str(cls.dir / "large.onnx"),
                        "--size-mb", str(SIZE), "--hidden", "512", "--external"], check=True)
        source = random.Random(1)
        harness.write_npy(cls.dir / "ids.npy", "<i8", (4, 8), [source.randrange(30000) for _ in range(32)])
        harness.write_npy(cls.dir / "mask.npy", "<i8", (4, 8), [1] * 32)

    def peak_of(self, *words, virtual=None, expect=0):
        """The most resident megabytes of a run of the program, under a limit of address space."""
        def limit():
            if virtual:
                resource.setrlimit(resource.RLIMIT_AS, (virtual * MB, virtual * MB))
        with open(self.dir / "printed", "w", encoding="utf-8") as printed, \
                open(self.dir / "said", "w", encoding="utf-8") as said, \
                subprocess.Popen([harness.PROGRAM, *map(str, words)], cwd=self.dir, preexec_fn=limit,
                                 stdout=printed, stderr=said) as process:
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.printed = (self.dir / "printed").read_text(encoding="utf-8")
        self.said = (self.dir / "said").read_text(encoding="utf-8")
        self.assertEqual(process.returncode, expect, self.said)
        return usage.ru_maxrss * 1024 / MB

    def same(self, one, other):
        return (self.dir / one).read_bytes() == (self.dir / other).read_bytes()

    def test_weights_in_less_address_space_than_they_take(self):
        """The same data, bit for bit, as without a limit."""
        self.assertGreater((self.dir / "large.onnx.data").stat().st_size, 0.95 * SIZE * MB)
        self.peak_of("inspect", "large.onnx", virtual=150)
        for bits in (8, 4):
            words = ("quantize", "large.onnx", "--type", "weight", "--bits", bits, "--quiet", "--threads", "1")
            self.run_quench(*words, "-o", "free.onnx")
            self.assertLess(self.peak_of(*words, "-o", "narrow.onnx", virtual=300), 200)
            self.assertTrue(self.same("free.onnx.data", "narrow.onnx.data"))
        self.assertEqual(list(self.dir.glob(".quench-*")), [])

    def test_full_quantisation_under_a_ceiling(self):
        """Statistics, models and scores are those of a run that may take what it wants."""
        scores = []
        for name, ceiling in (("free", ()), ("low", ("--max-memory", f"{CEILING}MB"))):
            peaks = [
                self.peak_of("calibrate", "large.onnx", "-o", f"{name}.stats", *DATA, "--batch", 1, "--quiet",
                             *ceiling),
                self.peak_of("quantize", "large.onnx", "-o", f"{name}8.onnx", "--stats", f"{name}.stats",
                             "--quiet", *ceiling)]
            peaks.append(self.peak_of("eval", f"{name}8.onnx", *DATA, "--reference", "large.onnx", "--json",
                                      *ceiling))
            scores.append(json.loads(self.printed))
            if ceiling:
                self.assertLess(max(peaks), CEILING)
            else:
                self.assertGreater(max(peaks), 1.2 * CEILING)
        self.assertTrue(self.same("free.stats", "low.stats"))
        self.assertTrue(self.same("free8.onnx.data", "low8.onnx.data"))
        self.assertEqual(scores[0]["cosine"], scores[1]["cosine"])
        self.assertGreater(scores[0]["cosine"], 0.9)

    def test_quantisation_with_data_under_a_ceiling(self):
        """Nor do the choices that samples make, nor what is reported of layers."""
        reports = []
        for name, ceiling in (("free", ()), ("low", ("--max-memory", f"{CEILING}MB"))):
            (self.dir / name).mkdir()
            peak = self.peak_of("quantize", "large.onnx", "-o", f"{name}/int8.onnx", *DATA, "--quiet",
                                "--report-json", f"{name}/report.json", *ceiling)
            if ceiling:
                self.assertLess(peak, CEILING)
            reports.append(json.loads((self.dir / name / "report.json").read_text(encoding="utf-8")))
        self.assertTrue(self.same("free/int8.onnx", "low/int8.onnx"))
        self.assertTrue(self.same("free/int8.onnx.data", "low/int8.onnx.data"))
        for part in ("layers", "outputs", "activation_observer"):
            self.assertEqual(reports[0][part], reports[1][part])

    def test_what_cannot_fit_is_refused(self):
        self.assertLess(self.peak_of("calibrate", "large.onnx", "-o", "no.stats", *DATA, "--max-memory", "100MB",
                                     expect=4), 300)
        self.assertIn("one sample does not fit under the ceiling of 100 MB", self.said)
        self.assertIn("take a higher --max-memory", self.said)
        self.assertFalse((self.dir / "no.stats").exists())
        self.peak_of("calibrate", "large.onnx", "-o", "no.stats", *DATA, "--max-memory", "3MB", expect=2)
        self.assertIn("--max-memory takes 50MB and more", self.said)
        for size in ("1000XB", "many", "-5GB", "1e400GB"):
            self.peak_of("calibrate", "large.onnx", "-o", "no.stats", *DATA, f"--max-memory={size}", expect=2)
            self.assertEqual(self.said, "quench: error: --max-memory: expected a number of MB or GB, as in 900MB or "
                             f"8GB; got '{size}' (see quench calibrate --help)\n")
        self.peak_of("calibrate", "large.onnx", "-o", "no.stats", *DATA, "--max-memory", "1GB", "--device", "cuda",
                     expect=2)
        self.assertIn("leave out --device", self.said)


if __name__ == "__main__":
    unittest.main()
