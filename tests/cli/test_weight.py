# SPDX-License-Identifier: Apache-2.0
"""quench quantize --type weight and dynamic: what they write, what they say, bad input."""
import shutil
import struct
import unittest
import unittest.mock

import harness


class WeightTest(harness.CliTest):
    def weights(self, *words, model="model.onnx"):
        return self.run_json("quantize", model, "-o", "w.onnx", "--type", "weight", *words)

    def near(self, model):
        return self.run_json("eval", model, "--data", "images.npy", "--reference",
                             "model.onnx")["cosine"]

    def check_refused(self, mention, *words, expect=2, model="model.onnx"):
        out = self.dir / "kept.onnx"
        out.write_bytes(b"what was there before")
        error = self.run_quench("quantize", model, "-o", out.name, *words, expect=expect).stderr
        self.assertIn(mention, error)
        self.assertEqual(out.read_bytes(), b"what was there before")
        self.assertEqual(list(self.dir.glob("kept.onnx?*")), [])

    def test_every_width_runs_and_more_bits_are_nearer(self):
        last = 0
        for bits in range(1, 17):
            report = self.weights("--bits", bits)
            self.assertEqual([each["bits"] for each in report["weights"]], [bits, bits])
            self.assertEqual({each["op_type"] for each in report["weights"]}, {"Conv", "Gemm"})
            if bits in (1, 3, 5, 8, 12):
                near = self.near("w.onnx")
                self.assertGreater(near, last)
                last = near
        self.assertGreater(last, 0.99999)

    def test_no_data_no_engine(self):
        """Without data nothing must be run: a folder without the engine does, and mixed bits say that
        they were chosen without it."""
        folder = self.dir / "bare"
        folder.mkdir()
        for name in ("quench", "libquench.so.0"):
            shutil.copy(harness.BINARY / name, folder / name)
        with unittest.mock.patch.object(harness, "PROGRAM", str(folder / "quench")):
            for bits in ("8", "3", "0"):
                report = self.weights("--bits", bits)
                self.assertEqual(report["outputs"], [])
                self.assertEqual(report["validation_samples"], 0)
                # Mixed bits: how they were chosen, and that an ONNX file has no such widths.
                self.assertEqual(len(report["warnings"]), 2 if bits == "0" else 0)
            self.run_quench("quantize", "model.onnx", "-o", "d.onnx", "--type", "dynamic")
            self.run_quench("pack", "w.onnx", "-o", "w.qnch")
            self.run_quench("unpack", "w.qnch", "-o", "w.onnx")
            self.run_quench("inspect", "w.qnch")
            error = self.run_quench("eval", "w.onnx", "--data", "images.npy", "--reference",
                                    "model.onnx", expect=4).stderr
            self.assertIn("engine", error)

    def test_weights_inside_branches(self):
        names = ["first_w", "last_w", "then_w", "else_w"]
        for words in (["--bits", "8"], ["--bits", "4"], ["--bits", "12"], ["--bits", "0"]):
            report = self.weights(*words, model="branch.onnx")
            self.assertEqual([each["weight"] for each in report["weights"]], names)
            near = self.run_json("eval", "w.onnx", "--data", "images.npy", "--reference",
                                 "branch.onnx")["cosine"]
            self.assertGreater(near, 0.98)
            self.run_quench("pack", "w.onnx", "-o", "w.qnch")
            packed = self.run_json("eval", "w.qnch", "--data", "images.npy", "--reference",
                                   "w.onnx")["cosine"]
            self.assertGreater(packed, 0.999999)
        report = self.weights("--skip-node", "then_conv,first_conv", model="branch.onnx")
        self.assertEqual([each["weight"] for each in report["weights"]], ["last_w", "else_w"])
        self.check_refused("did you mean 'then_conv'", "--type", "weight", "--skip-node",
                           "then_con", model="branch.onnx", expect=3)

    def test_with_data_the_outputs_are_judged(self):
        report = self.weights("--data", "images.npy")
        self.assertGreater(report["outputs"][0]["cosine"], 0.999)

    def test_text(self):
        text = self.run_quench("quantize", "model.onnx", "-o", "w.onnx", "--type", "weight",
                               "--bits", "4").stdout
        self.assertRegex(text, r"filters +Conv +432 +4 +0\.\d+ +mse")
        self.assertRegex(text, r"size after, bytes +[\d,]+")

    def test_small_layers_and_skipped_ones_stay_in_float(self):
        report = self.weights("--min-weight-size", "160")
        self.assertEqual([each["weight"] for each in report["weights"]], ["filters"])
        self.assertIn("no more than 160 elements", str(report["float_layers"]))
        report = self.weights("--skip-node", "conv_node")
        self.assertEqual([each["weight"] for each in report["weights"]], ["weights"])

    def test_ini_file(self):
        (self.dir / "w.ini").write_text(
            "[common_quant_param]\nquant_type=WEIGHT_QUANT\nbit_num=5\n"
            "min_quant_weight_channel=0\n[weight_quant_param]\nper_channel=false\n")
        report = self.run_json("quantize", "model.onnx", "-o", "w.onnx", "--config", "w.ini")
        self.assertEqual({each["bits"] for each in report["weights"]}, {5})
        self.assertEqual(report["weights"][0]["bytes"], 432 + 4 + 1)

    def test_same_bytes_every_time(self):
        self.weights("--bits", "4", "--threads", "1")
        first = (self.dir / "w.onnx").read_bytes()
        self.weights("--bits", "4", "--threads", "3")
        self.assertEqual(first, (self.dir / "w.onnx").read_bytes())

    def test_gptq_rounds_few_bits_by_the_data(self):
        report = self.weights("--bits", "2", "--data", "images.npy")
        self.assertIn("gptq", {each["method"] for each in report["weights"]})
        self.assertEqual(report["calibration_samples"], 16)
        self.assertEqual(report["validation_samples"], 4)
        self.check_refused("GPTQ needs samples", "--type", "weight", "--gptq")

    def test_mixed_bits_fill_the_size_of_fixed_ones(self):
        def packed(*words):
            self.weights(*words)
            return self.run_json("pack", "w.onnx", "-o", "w.qnch")["bytes"], self.near("w.qnch")
        fixed = packed("--bits", "7")
        sizes = [packed("--bits", "0", "--init-scale", scale)
                 for scale in ("0.1", "0.02", "0.004")]
        self.assertLess(sizes[0][0], sizes[1][0])
        self.assertLess(sizes[1][0], sizes[2][0])
        self.assertLess(sizes[0][1], sizes[1][1])
        self.assertLess(sizes[1][1], sizes[2][1])
        self.assertLessEqual(sizes[1][0], fixed[0])
        self.assertIn("quench.weights", (self.dir / "w.onnx").read_bytes().decode("latin-1"))

    def test_mixed_bits_by_data(self):
        report = self.weights("--bits", "0", "--data", "images.npy")
        self.assertEqual(len(report["warnings"]), 1)
        self.assertRegex(report["warnings"][0], r"w\.onnx takes [\d.]+ bits a weight .*\.qnch")
        self.assertGreater(report["outputs"][0]["cosine"], 0.999)
        self.assertEqual({each["method"] for each in report["weights"]}, {"step"})
        self.check_refused("no_such.npy", "--type", "weight", "--bits", "0", "--data",
                           "no_such.npy", expect=3)

    def test_mixed_bits_keep_a_cosine_or_a_size(self):
        report = self.weights("--bits", "0", "--auto-tune", "--target-cosine", "0.99")
        self.assertGreater(self.near("w.onnx"), 0.98)
        loose = sum(each["bits"] * each["elements"] for each in report["weights"])
        report = self.weights("--bits", "0", "--auto-tune", "--target-cosine", "0.9999")
        tight = sum(each["bits"] * each["elements"] for each in report["weights"])
        self.assertLess(loose, tight)
        self.assertGreater(self.near("w.onnx"), 0.999)
        report = self.weights("--bits", "0", "--target-size", "0.2")
        bits = sum(each["bits"] * each["elements"] for each in report["weights"])
        self.assertLess(bits / 8, 0.2 * 4 * sum(each["elements"] for each in report["weights"]))
        self.check_refused("cannot be made as small", "--type", "weight", "--bits", "0",
                           "--target-size", "0.01", expect=4)
        self.check_refused("between 0 and 1", "--type", "weight", "--bits", "0", "--init-scale",
                           "1.5")

    def test_dynamic(self):
        for strategy in ("ALWC", "ACWL"):
            report = self.run_json("quantize", "model.onnx", "-o", "d.onnx", "--type", "dynamic",
                                   "--strategy", strategy, "--data", "images.npy")
            self.assertEqual([each["op_type"] for each in report["weights"]], ["Gemm"])
            self.assertEqual(report["integer_nodes"], 1)
            self.assertIn("matrix products", str(report["float_layers"]))
            self.assertGreater(report["outputs"][0]["cosine"], 0.999)
            operators = self.run_json("inspect", "d.onnx")["operators"]
            self.assertIn("MatMulInteger", str(operators))
        self.check_refused("--bits would change nothing", "--type", "dynamic", "--bits", "4")
        self.check_refused("no weight of the model", "--type", "dynamic", model="odd.onnx",
                           expect=4)

    def test_bits_out_of_range(self):
        for bits in ("-1", "17", "100", "x"):
            self.check_refused("--bits", "--type", "weight", "--bits", bits)
        self.check_refused("16, 32, 64 or 128", "--type", "weight", "--group-size", "48")
        self.check_refused("there is no observer 'abs_mx'", "--type", "weight",
                           "--weight-observer", "abs_mx")

    def test_weights_that_are_not_finite(self):
        data = bytearray((self.dir / "model.onnx").read_bytes())
        # The first weight of the classifier's matrix, found by its bytes.
        place = self.find_floats(data, 432)
        data[place:place + 4] = struct.pack("<f", float("nan"))
        (self.dir / "nan.onnx").write_bytes(bytes(data))
        self.check_refused("weight 'filters'", "--type", "weight", model="nan.onnx", expect=3)

    @staticmethod
    def find_floats(data, count):
        """Where a raw tensor of so many floats begins: after its tag and its size."""
        size = count * 4
        header = bytes([0x4A, size & 0x7F | 0x80, size >> 7])
        place = bytes(data).find(header)
        assert place > 0
        return place + len(header)

    def test_no_weights_at_all(self):
        self.check_refused("no weight of the model can be quantised", "--type", "weight",
                           model="odd.onnx", expect=4)

    def test_output_that_cannot_be_written(self):
        error = self.run_quench("quantize", "model.onnx", "-o", "no/such/folder/w.onnx", "--type",
                                "weight", expect=3).stderr
        self.assertIn("no/such/folder", error)


if __name__ == "__main__":
    unittest.main()
