# SPDX-License-Identifier: Apache-2.0
"""Data, labels and files that do not fit: one sentence that names them, and exit code 3."""
import os
import unittest

import harness


class BadInputTest(harness.CliTest):
    def check(self, mention, *words):
        error = self.run_quench("eval", "model.onnx", *words, expect=3).stderr
        self.assertIn(mention, error)
        self.assertEqual(len(error.splitlines()), 1, error)

    def test_missing_data(self):
        self.check("nowhere", "--data", "nowhere", "--labels", "labels.npy")

    def test_missing_labels(self):
        self.check("nowhere.txt", "--data", "images.npy", "--labels", "nowhere.txt")

    def test_no_labels(self):
        self.check("--labels", "--data", "images.npy")

    def test_too_few_labels(self):
        harness.write_npy(self.dir / "few.npy", "<i8", (19,), [0] * 19)
        self.check("few.npy", "--data", "images.npy", "--labels", "few.npy")

    def test_label_beyond_the_classes(self):
        harness.write_npy(self.dir / "far.npy", "<i8", (20,), [10] * 20)
        self.check("10", "--data", "images.npy", "--labels", "far.npy")

    def test_wrongly_sized_data(self):
        harness.write_npy(self.dir / "wide.npy", "<f4", (2, 3, 8, 9), [0] * 432)
        self.check("wide.npy", "--data", "wide.npy", "--labels", "labels.npy")

    def test_truncated_data(self):
        whole = (self.dir / "images.npy").read_bytes()
        (self.dir / "cut.npy").write_bytes(whole[:-1])
        self.check("cut.npy", "--data", "cut.npy", "--labels", "labels.npy")

    def test_unknown_output(self):
        self.check("did you mean 'scores'?", "--data", "images.npy", "--labels", "labels.npy",
                   "--output", "score")

    def test_missing_config(self):
        self.check("nowhere.ini", "--data", "images.npy", "--data-config", "nowhere.ini")

    def test_missing_reference(self):
        self.check("nowhere.onnx", "--data", "images.npy", "--reference", "nowhere.onnx")

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_unwritable_output(self):
        (self.dir / "locked").mkdir()
        (self.dir / "locked").chmod(0o500)
        error = self.run_quench("run", "model.onnx", "--input", "x=x.npy", "-o", "locked/out",
                                expect=3)
        self.assertIn("locked/out", error.stderr)


if __name__ == "__main__":
    unittest.main()
