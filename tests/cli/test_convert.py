# SPDX-License-Identifier: Apache-2.0
"""quench convert, which takes converter_lite's command lines."""
import json
import unittest

import harness

DONE = "CONVERT RESULT SUCCESS:0\n"


class ConvertTest(harness.CliTest):
    def convert(self, *flags, model="model.onnx", out="converted", expect=0):
        return self.run_quench("convert", "--fmk=ONNX", f"--modelFile={model}",
                               f"--outputFile={out}", *flags, expect=expect)

    def write_config(self, text):
        (self.dir / "c.cfg").write_text(text, encoding="utf-8")
        return "--configFile=c.cfg"

    def test_plain_conversion_adds_the_suffix(self):
        self.assertEqual(self.convert(out="plain").stdout, DONE)
        self.assertTrue((self.dir / "plain.onnx").exists())
        self.assertEqual(self.convert(out="named.onnx").stdout, DONE)
        self.assertTrue((self.dir / "named.onnx").exists())

    def test_supported_words_are_taken(self):
        self.convert("--inputDataFormat=NCHW", "--outputDataFormat=NCHW", "--inputDataType=FLOAT",
                     "--outputDataType=DEFAULT", "--fp16=off", "--optimize=ascend_oriented:910b",
                     "--encryption=false", "--infer=false", "--trainModel=false")

    def test_input_shape(self):
        self.convert("--inputShape=x:5,3,8,8;", out="five")
        text = json.dumps(self.run_json("inspect", "five.onnx"))
        self.assertRegex(text, r"5, ?3, ?8, ?8")
        self.assertIn("did you mean 'in:0'?",
                      self.convert("--inputShape=in:1:1,1", model="odd.onnx", expect=2).stderr)
        self.assertIn("does not fit", self.convert("--inputShape=x:1,3,9,9", expect=2).stderr)

    def test_wrong_usage_table(self):
        table = [
            (["--fmkk=ONNX"], 2, "did you mean '--fmk'?"),
            (["--fmk=ONNX"], 2, "fmk"),
            (["--inputShape=x"], 2, "name:1,32,32,4"),
            (["--inputShape=x:a"], 2, "--inputShape"),
            (["--fp16=maybe"], 2, "on"),
            (["--optimize=speed"], 2, "--optimize"),
            (["--weightFile=w"], 2, "CAFFE"),
            (["--encryption=true"], 4, "--encryption=true"),
            (["--trainModel=true"], 4, "--trainModel=true"),
            (["--fp16=on"], 4, "fp16"),
            (["--inputDataFormat=NHWC"], 4, "layout"),
            (["--saveType=MINDIR"], 4, "ONNX"),
            (["--decryptKey=00"], 4, "--decryptKey"),
        ]
        for flags, code, mention in table:
            with self.subTest(flags=flags):
                self.assertIn(mention, self.convert(*flags, out="refused", expect=code).stderr)
        self.assertIn("folder", self.convert(out="refused/", expect=2).stderr)
        self.assertFalse((self.dir / "refused.onnx").exists())

    def test_format_must_be_known_and_flags_complete(self):
        words = ["--modelFile=model.onnx", "--outputFile=refused"]
        self.assertIn("only ONNX", self.run_quench("convert", "--fmk=TF", *words, expect=4).stderr)
        self.assertIn("did you mean 'ONNX'?",
                      self.run_quench("convert", "--fmk=ONX", *words, expect=2).stderr)
        self.assertIn("fmk", self.run_quench("convert", *words, expect=2).stderr)
        self.assertIn("outputFile", self.run_quench("convert", "--fmk=ONNX",
                                                    "--modelFile=model.onnx", expect=2).stderr)

    def test_config_mistakes_have_a_line(self):
        flag = self.write_config("[common_quant_param]\nquant_typ=FULL_QUANT\n")
        self.assertIn("c.cfg:2: ", self.convert(flag, out="refused", expect=3).stderr)
        flag = self.write_config("[comon_quant_param]\nquant_type=FULL_QUANT\n")
        self.assertIn("'common_quant_param'?", self.convert(flag, out="refused", expect=3).stderr)
        flag = self.write_config("[common_quant_param]\nquant_type=WEIGHT_QUANTS\n")
        self.assertIn("c.cfg:2: ", self.convert(flag, out="refused", expect=3).stderr)
        self.assertFalse((self.dir / "refused.onnx").exists())

    def test_full_quantisation(self):
        config = ("[common_quant_param]\nquant_type=FULL_QUANT\n{}[full_quant_param]\n"
                  "activation_quant_method=MAX_MIN\n[data_preprocess_param]\n"
                  "calibrate_path=x:images.npy\ncalibrate_size=10\n[ascend_context]\n"
                  "input_format=NCHW\n")
        result = self.convert(self.write_config(config.format("")), out="int8")
        self.assertEqual(result.stdout, DONE)
        self.assertIn("[ascend_context]", result.stderr)
        self.assertIn(b"QuantizeLinear", (self.dir / "int8.onnx").read_bytes())
        words = ["quantize", "model.onnx", "-o", "q.onnx", "--config", "c.cfg"]
        report = self.run_json(*words)
        self.assertEqual(report["calibration_samples"] + report["judged_samples"], 10)
        report = self.run_json(*words, "--limit", "5")
        self.assertEqual(report["calibration_samples"] + report["judged_samples"], 5)
        self.write_config(config.format("skip_quant_node=conv_node\n"))
        report = self.run_json(*words)
        self.assertIn("'conv_node'", json.dumps(report["float_layers"]))
        self.write_config(config.format("min_quant_weight_size=65535\n"))
        self.run_quench(*words, expect=4)
        self.run_quench(*words, "--min-weight-size", "0")

    def test_config_without_quant_type_only_converts(self):
        flag = self.write_config("[full_quant_param]\nper_channel=true\n")
        self.assertEqual(self.convert(flag, out="unquantised").stdout, DONE)
        self.assertNotIn(b"QuantizeLinear", (self.dir / "unquantised.onnx").read_bytes())


if __name__ == "__main__":
    unittest.main()
