# SPDX-License-Identifier: Apache-2.0
"""The tables of debug_info_save_path, read back by a standard reader."""
import csv
import os
import unittest

import harness

ROUND = ["", "NodeName", "NodeType", "TensorName", "InOutFlag", "DataTypeFlag", "TensorTypeFlag",
         "Min", "Q1", "Median", "Q3", "Max", "Mean", "Var", "Sparsity", "Clip",
         "CosineSimilarity", ""]
PARAMS = ["NodeName", "NodeType", "TensorName", "ElementsNum", "Dims", "Scale", "ZeroPoint", "Bits",
          "CorrectionVar", "CorrectionMean", ""]
SUMMARY = ["Round", "TensorName", "CosineSimilarity", ""]
ODD = 'a,"b"/</script><script>alert(1)</script>\u00e9'
ODD_WEIGHT = 'w,"1"\n<b>'


class DebugInfoTest(harness.CliTest):
    def read(self, path):
        """The rows of a table, every one as long as the first, which names the columns."""
        with open(self.dir / path, newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        self.assertGreater(len(rows), 1, path)
        self.assertEqual({len(row) for row in rows}, {len(rows[0])}, path)
        return rows[0], rows[1:]

    def tables(self, folder):
        names = sorted(path.name for path in (self.dir / folder).iterdir())
        found = {}
        for name in names:
            head, rows = self.read(f"{folder}/{name}")
            self.assertEqual(head, {"quant_param.csv": PARAMS, "output_summary.csv": SUMMARY}.get(
                name, ROUND), name)
            found[name] = rows
        return found

    def quantize(self, folder, *words, model="model.onnx"):
        self.run_quench("quantize", model, "-o", "made.onnx", "--debug-info", folder, *words)
        return self.tables(folder)

    def config(self, folder, kind):
        """An INI file of converter_lite whose samples are ten files of raw floats."""
        (self.dir / "bins").mkdir(exist_ok=True)
        pixels = (self.dir / "images.npy").read_bytes()[-harness.IMAGES * 768:]
        for at in range(10):
            (self.dir / "bins" / f"{at:02}.bin").write_bytes(pixels[at * 768:(at + 1) * 768])
        (self.dir / "c.cfg").write_text(
            f"[common_quant_param]\nquant_type={kind}\nbit_num=8\nmin_quant_weight_channel=0\n"
            f"debug_info_save_path={folder}\n[data_preprocess_param]\ncalibrate_path=x:bins\n"
            "calibrate_size=10\ninput_type=BIN\n")
        return "c.cfg"

    def check_numbers(self, rows):
        for row in rows:
            numbers = [float(field) for field in row[7:17]]
            self.assertLessEqual(numbers[0], numbers[1])  # Min, Q1, Median, Q3, Max
            self.assertEqual(sorted(numbers[:5]), numbers[:5])
            self.assertTrue(0 <= numbers[7] <= 1 and 0 <= numbers[8] <= 1, row)
            if row[5] == "Origin":
                self.assertEqual(numbers[9], 1)

    def check_joins(self, tables):
        """Every grid is of a tensor that each round has."""
        grids = {tuple(row[:3]) for row in tables["quant_param.csv"]}
        for name, rows in tables.items():
            if name.startswith("round_"):
                self.assertLessEqual(grids, {tuple(row[1:4]) for row in rows}, name)

    def test_numbers_of_weights(self):
        """Var is a variance; the corrections are what is missing from spread and mean."""
        tables = self.quantize("few", "--type", "weight", "--bits", "5", "--per-layer")
        self.assertEqual({row[7] for row in tables["quant_param.csv"]}, {"5"})
        self.check_joins(tables)
        rows = {(row[1], row[5]): row for row in tables["round_0.csv"] if row[3] in
                ("filters", "weights")}
        for grid in tables["quant_param.csv"]:
            origin, dequant = (rows[grid[0], kind] for kind in ("Origin", "Dequant"))
            var = (float(origin[13]) / float(dequant[13])) ** 0.5
            self.assertAlmostEqual(float(grid[8]), var, 4)
            self.assertAlmostEqual(float(grid[9]), float(origin[12]) - var * float(dequant[12]), 4)
            self.assertNotEqual(grid[8:10], ["1", "0"])
            # Uniform noise in [-1, 1] has a variance of a third.
            self.assertAlmostEqual(float(origin[13]), 1 / 3, delta=0.05)

    def test_open_batches_have_the_dims_of_a_sample(self):
        tables = self.quantize("dims", "--data", "images.npy")
        grids = {row[2]: row for row in tables["quant_param.csv"]}
        self.assertEqual(grids["x"][3:5], ["192", "1 3 8 8 "])
        self.assertEqual(grids["filters"][3:5], ["432", "16 3 3 3 "])
        for row in tables["quant_param.csv"]:
            self.assertTrue(row[4].split(), row)
        self.check_joins(tables)

    def test_bits_of_full_quantisation(self):
        tables = self.quantize("low", "--data", "images.npy", "--weight-bits", "6",
                               "--activation-bits", "7")
        bits = {row[2]: row[7] for row in tables["quant_param.csv"]}
        self.assertEqual((bits["filters"], bits["x"], bits["weights"]), ("6", "7", "6"))

    def test_dynamic_products_are_compared(self):
        tables = self.quantize("products", "--type", "dynamic", "--data", "images.npy")
        rows = [row for row in tables["round_0.csv"] if row[1] == "gemm_node"]
        self.assertEqual({(row[3], row[4]) for row in rows},
                         {("features", "Input"), ("weights", "Input"), ("bias", "Input"),
                          ("scores", "Output")})
        for row in rows:
            self.assertGreater(float(row[16]), 0.999, row)
        changed = [row for row in rows if row[5] == "Dequant" and row[3] in ("features", "weights")]
        for row in changed:
            self.assertLess(float(row[16]), 1, row)

    def test_full(self):
        tables = self.quantize("full", "--data", "images.npy")
        self.assertEqual(len(tables), 2 + 2)  # a twelfth of the samples, at least two
        rows = tables["round_0.csv"]
        self.assertEqual([row[0] for row in rows], [str(i) for i in range(len(rows))])
        self.check_numbers(rows)
        outputs = [row for row in rows if row[1] == "gemm_node" and row[4] == "Output"]
        self.assertEqual([row[5] for row in outputs], ["Origin", "Dequant"])
        self.assertGreater(float(outputs[1][16]), 0.999)
        self.assertEqual({row[6] for row in rows}, {"Weight", "Activation"})
        summary = tables["output_summary.csv"]
        self.assertEqual([row[0] for row in summary], ["0", "1"])
        self.assertEqual({row[1] for row in summary}, {"scores"})
        grids = [row for row in tables["quant_param.csv"] if row[2] == "filters"]
        self.assertEqual(len(grids), 16)
        self.assertEqual({row[4] for row in grids}, {"16 3 3 3 "})
        for row in grids:
            self.assertGreater(float(row[5]), 0)
            self.assertEqual(row[7], "8")

    def test_integer_operators_have_the_same_tables(self):
        plain = self.quantize("qdq", "--data", "images.npy")
        other = self.quantize("qoperator", "--data", "images.npy", "--format", "qoperator")
        self.assertEqual(plain["round_0.csv"], other["round_0.csv"])

    def test_weights_and_dynamic_have_one_round(self):
        for kind in ("weight", "dynamic"):
            for data in ([], ["--data", "images.npy"]):
                tables = self.quantize(f"{kind}{len(data)}", "--type", kind, *data)
                self.assertEqual(sorted(tables),
                                 ["output_summary.csv", "quant_param.csv", "round_0.csv"])
                self.check_numbers(tables["round_0.csv"])
                grids = {row[2] for row in tables["quant_param.csv"]}
                self.assertIn("weights", grids)
                self.check_joins(tables)

    def test_odd_names_come_back(self):
        for kind in ("full", "weight"):
            tables = self.quantize(f"odd_{kind}", "--type", kind, "--data", "images.npy",
                                   model="names.onnx")
            rows = tables["round_0.csv"]
            self.assertIn(ODD, {row[1] for row in rows})
            self.assertIn(ODD_WEIGHT, {row[3] for row in rows})
            self.assertIn(ODD, {row[0] for row in tables["quant_param.csv"]})
            self.assertIn(ODD_WEIGHT, {row[2] for row in tables["quant_param.csv"]})
            self.check_joins(tables)

    def test_rerun_replaces(self):
        shape, values = harness.read_npy(self.dir / "images.npy")
        harness.write_npy(self.dir / "twice.npy", "<f4", (2 * harness.IMAGES, *shape[1:]), values * 2)
        first = self.quantize("again", "--data", "twice.npy")
        self.assertEqual(len(first), 3 + 2)
        (self.dir / "again" / "mine.txt").write_text("kept")
        self.run_quench("quantize", "model.onnx", "-o", "made.onnx", "--debug-info", "again",
                        "--data", "images.npy", "--limit", "10")
        self.assertEqual((self.dir / "again" / "mine.txt").read_text(), "kept")
        (self.dir / "again" / "mine.txt").unlink()
        second = self.tables("again")
        self.assertEqual(len(second), 2 + 2)
        self.assertNotEqual(first["quant_param.csv"], second["quant_param.csv"])

    def test_convert_and_ini(self):
        for kind, files in (("FULL_QUANT", 4), ("WEIGHT_QUANT", 3), ("DYNAMIC_QUANT", 3)):
            config = self.config(f"deep/{kind}", kind)
            self.run_quench("convert", "--fmk=ONNX", "--modelFile=model.onnx",
                            "--outputFile=converted", f"--configFile={config}")
            converted = self.tables(f"deep/{kind}")
            self.assertEqual(len(converted), files)
            self.run_quench("quantize", "model.onnx", "-o", "made.onnx", "--config",
                            self.config(f"flat_{kind}", kind))
            self.assertEqual(self.tables(f"flat_{kind}"), converted)

    def test_as_many_samples_as_are_asked_for(self):
        rounds = [f"round_{i}.csv" for i in range(5)]
        tables = self.quantize("five", "--data", "images.npy", "--debug-samples", "5")
        self.assertEqual([name for name in tables if name.startswith("round")], rounds)
        tables = self.quantize("all", "--data", "images.npy", "--debug-samples", "1000")
        self.assertEqual(len([name for name in tables if name.startswith("round")]), harness.IMAGES)
        error = self.run_quench("quantize", "model.onnx", "-o", "made.onnx", "--data", "images.npy",
                                "--debug-samples", "5", expect=2).stderr
        self.assertIn("--debug-info", error)

    def test_folder_that_cannot_be_made(self):
        (self.dir / "kept.onnx").write_bytes(b"before")
        error = self.run_quench("quantize", "model.onnx", "-o", "kept.onnx", "--debug-info",
                                "model.onnx/deep", "--data", "images.npy", expect=3).stderr
        self.assertIn("model.onnx/deep", error)
        self.assertEqual((self.dir / "kept.onnx").read_bytes(), b"before")

    @unittest.skipIf(os.geteuid() == 0, "root may write everywhere")
    def test_locked_folder(self):
        (self.dir / "locked").mkdir(mode=0o500)
        error = self.run_quench("quantize", "model.onnx", "-o", "m.onnx", "--debug-info", "locked",
                                "--data", "images.npy", expect=3).stderr
        self.assertIn("locked", error)


if __name__ == "__main__":
    unittest.main()
