# SPDX-License-Identifier: Apache-2.0
"""Files that are no models: one sentence and exit code 3."""
import os
import unittest

import harness


class BadModelTest(harness.CliTest):
    def check(self, name, *mentions):
        result = self.run_quench("inspect", name, expect=3)
        for mention in (name, *mentions):
            self.assertIn(mention, result.stderr)
        self.assertEqual(len(result.stderr.splitlines()), 1, result.stderr)

    def test_missing_file(self):
        self.check("nowhere.onnx", "No such file")

    def test_empty_file(self):
        (self.dir / "empty.onnx").write_bytes(b"")
        self.check("empty.onnx")

    def test_garbage(self):
        (self.dir / "garbage.onnx").write_bytes(bytes(range(256)) * 8)
        self.check("garbage.onnx")

    def test_folder(self):
        (self.dir / "folder.onnx").mkdir()
        self.check("folder.onnx")

    def test_every_truncation_is_noticed_or_harmless(self):
        whole = (self.dir / "model.onnx").read_bytes()
        for size in range(1, len(whole), max(1, len(whole) // 60)):
            (self.dir / "cut.onnx").write_bytes(whole[:size])
            result = self.run_quench("inspect", "cut.onnx", expect=3)
            self.assertIn("cut.onnx", result.stderr)

    @unittest.skipIf(os.geteuid() == 0, "root may read everything")
    def test_file_without_permission(self):
        (self.dir / "secret.onnx").write_bytes(b"x")
        (self.dir / "secret.onnx").chmod(0)
        self.check("secret.onnx", "ermission")

    def test_missing_external_data(self):
        for path in self.dir.glob("external.onnx*"):
            if path.name != "external.onnx":
                path.rename(path.with_name("elsewhere"))
                self.addCleanup((self.dir / "elsewhere").rename, path)
        self.check("external.onnx")


if __name__ == "__main__":
    unittest.main()
