# SPDX-License-Identifier: Apache-2.0
"""quench list."""
import unittest

import harness


class ListTest(harness.CliTest):
    def test_each_kind(self):
        expected = {"operators": {"Conv", "Gemm", "Relu"}, "metrics": {"top1", "top5", "cosine"},
                    "formats": {"onnx"}, "techniques": {"equalization", "bias_correction"}, "dtypes": {"float32", "int4", "bfloat16"}}
        for kind, names in expected.items():
            listed = {item["name"] for item in self.run_json("list", kind)[kind]}
            self.assertLessEqual(names, listed)
            text = self.run_quench("list", kind).stdout
            for name in names:
                self.assertRegex(text, rf"(?m)^{name}\b")


if __name__ == "__main__":
    unittest.main()
