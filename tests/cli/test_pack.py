# SPDX-License-Identifier: Apache-2.0
"""quench pack and quench unpack, and packed files in other verbs."""
import os
import unittest

import harness


class PackTest(harness.CliTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls().pack("model.onnx", "model.qnch")

    def pack(self, model, out, *flags):
        return self.run_json("pack", model, "-o", out, *flags)

    def test_pack_and_unpack_lose_nothing(self):
        for name in ("model", "external"):
            with self.subTest(model=name):
                report = self.pack(f"{name}.onnx", f"{name}.qnch")
                self.assertEqual(report["bytes"], (self.dir / f"{name}.qnch").stat().st_size)
                self.assertEqual(report["bytes"],
                                 sum(row["stored"] for row in report["codings"].values()))
                self.run_quench("unpack", f"{name}.qnch", "-o", f"{name}_again.onnx")
                dump = self.run_quench("inspect", "--dump", f"{name}.onnx").stdout
                for other in (f"{name}.qnch", f"{name}_again.onnx"):
                    self.assertEqual(self.run_quench("inspect", "--dump", other).stdout, dump)

    def test_plain_storage(self):
        report = self.pack("model.onnx", "plain.qnch", "--no-encode")
        self.assertLessEqual(set(report["codings"]), {"plain", "head"})

    def test_unpack_with_data_beside(self):
        self.run_quench("unpack", "model.qnch", "-o", "beside.onnx", "--external")
        self.assertEqual(self.run_quench("inspect", "--dump", "beside.onnx").stdout,
                         self.run_quench("inspect", "--dump", "model.onnx").stdout)

    def test_table(self):
        self.assertIn("head", self.run_quench("pack", "model.onnx", "-o", "t.qnch").stdout)

    def test_inspect_tells_what_is_inside(self):
        packed = self.run_json("inspect", "model.qnch")
        plain = self.run_json("inspect", "model.onnx")
        for key in ("nodes", "operators", "parameters", "inputs"):
            self.assertEqual(packed[key], plain[key])
        self.assertEqual(packed["bytes_on_disk"], (self.dir / "model.qnch").stat().st_size)

    def test_damaged_files(self):
        whole = (self.dir / "model.qnch").read_bytes()
        version = bytearray(whole)
        version[8] = 9
        cases = {"cut": (whole[:-1], 3, "bytes"), "stub": (whole[:20], 3, "damaged"),
                 "longer": (whole + b"x", 3, "bytes"), "version": (bytes(version), 4, "version 9")}
        for at in range(12, len(whole), max(1, len(whole) // 25)):
            flipped = bytearray(whole)
            flipped[at] ^= 0x10
            cases[f"flip{at}"] = (bytes(flipped), 3, "damaged")
        for name, (data, code, mention) in cases.items():
            with self.subTest(case=name):
                (self.dir / "bad.qnch").write_bytes(data)
                for verb in (["inspect", "bad.qnch"], ["unpack", "bad.qnch", "-o", "bad.onnx"]):
                    error = self.run_quench(*verb, expect=code).stderr
                    self.assertIn("bad.qnch", error)
                    self.assertIn(mention, error)
        self.assertFalse((self.dir / "bad.onnx").exists())

    def test_mistakes(self):
        self.assertIn(".qnch", self.run_quench("pack", "model.onnx", "-o", "m.onnx", expect=2).stderr)
        self.assertIn(".onnx", self.run_quench("unpack", "model.qnch", "-o", "m.qnch",
                                               expect=2).stderr)
        self.assertIn("no packed file", self.run_quench("unpack", "model.onnx", "-o", "m.onnx",
                                                        expect=3).stderr)
        self.assertIn("nowhere", self.run_quench("pack", "nowhere.onnx", "-o", "m.qnch",
                                                 expect=3).stderr)
        self.assertIn("nowhere", self.run_quench("pack", "model.onnx", "-o", "nowhere/m.qnch",
                                                 expect=3).stderr)

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_folder_that_cannot_be_written(self):
        (self.dir / "locked").mkdir(mode=0o500)
        self.assertIn("locked", self.run_quench("pack", "model.onnx", "-o", "locked/m.qnch",
                                                expect=3).stderr)


if __name__ == "__main__":
    unittest.main()
