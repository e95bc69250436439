# SPDX-License-Identifier: Apache-2.0
"""quench convert, which takes converter_lite's command lines."""
import json
import struct
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
        result = self.convert(out="plain").stdout
        self.assertTrue(result.endswith(DONE), result)
        self.assertIn("converted as it is", result)
        self.assertIn("plain.onnx: ", result)
        self.assertTrue((self.dir / "plain.onnx").exists())
        self.convert(out="named.onnx")
        self.assertTrue((self.dir / "named.onnx").exists())

    def test_supported_words_are_taken(self):
        self.convert("--inputDataFormat=NCHW", "--outputDataFormat=NCHW", "--inputDataType=FLOAT",
                     "--outputDataType=DEFAULT", "--fp16=off", "--optimize=ascend_oriented:910b",
                     "--encryption=false", "--infer=false", "--trainModel=false")

    def test_half_precision_and_layout_of_inputs(self):
        self.convert("--fp16=on", out="half")
        self.assertIn("float16", self.run_quench("inspect", "half.onnx", "--dump").stdout)
        self.convert("--inputDataFormat=NHWC", out="last")
        text = json.dumps(self.run_json("inspect", "last.onnx"))
        self.assertRegex(text, r"8, ?8, ?3")
        flag = self.write_config("[common_quant_param]\nquant_type=WEIGHT_QUANT\n")
        for word in ("--fp16=on", "--inputDataFormat=NHWC"):
            self.assertIn("first", self.convert(word, flag, out="refused", expect=4).stderr)

    def test_half_precision_in_tflite(self):
        self.convert(out="plain.tflite")
        self.convert("--fp16=on", out="half.tflite")
        sizes = [(self.dir / name).stat().st_size for name in ("plain.tflite", "half.tflite")]
        self.assertLess(sizes[1], sizes[0])
        told = self.run_json("compare", "model.onnx", "half.tflite")
        self.assertGreater(told["outputs"][0]["cosine"], 0.99999)

    def test_half_precision_leaves_scales_as_they_are(self):
        self.run_quench("quantize", "model.onnx", "-o", "q8.onnx", "--data", "images.npy")
        told = self.convert("--fp16=on", model="q8.onnx", out="half8", expect=2).stderr
        self.assertIn("would change nothing", told)

    def test_sizes_count_the_weights_of_a_second_file(self):
        seed = harness.SOURCE / "fuzz" / "seeds" / "caffe"
        files = sorted(seed.glob("*")) if seed.exists() else []
        text, _, weights = files[0].read_bytes().partition(b"\0")
        (self.dir / "net.prototxt").write_bytes(text)
        (self.dir / "net.caffemodel").write_bytes(weights)
        told = json.loads(self.run_quench(
            "convert", "--fmk=CAFFE", "--modelFile=net.prototxt", "--weightFile=net.caffemodel",
            "--outputFile=caffe", "--json").stdout)
        self.assertEqual(told["bytes_before"], len(text) + len(weights))

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
            (["--saveType=MINDIR_LITE"], 4, "MINDIR"),
            (["--decryptKey=00"], 4, "--decryptKey"),
        ]
        for flags, code, mention in table:
            with self.subTest(flags=flags):
                self.assertIn(mention, self.convert(*flags, out="refused", expect=code).stderr)
        self.assertIn("folder", self.convert(out="refused/", expect=2).stderr)
        self.assertFalse((self.dir / "refused.onnx").exists())

    def test_format_must_be_known_and_flags_complete(self):
        words = ["--modelFile=model.onnx", "--outputFile=refused"]
        self.assertIn("of the format onnx",
                      self.run_quench("convert", "--fmk=TF", *words, expect=2).stderr)
        told = self.run_quench("convert", "--fmk=PYTORCH", "--modelFile=net.pt",
                               "--outputFile=refused", expect=4).stderr
        self.assertIn("torch.onnx.export(torch.jit.load('net.pt')", told)
        self.assertIn("--modelFile=net.onnx", told)
        self.assertIn("made from",
                      self.run_quench("convert", "--fmk=MSLITE", *words, expect=4).stderr)
        self.assertIn("of the format onnx",
                      self.run_quench("convert", "--fmk=TFLITE", *words, expect=2).stderr)
        self.assertIn("did you mean 'ONNX'?",
                      self.run_quench("convert", "--fmk=ONX", *words, expect=2).stderr)
        self.assertIn("fmk", self.run_quench("convert", *words, expect=2).stderr)
        self.assertIn("outputFile", self.run_quench("convert", "--fmk=ONNX",
                                                    "--modelFile=model.onnx", expect=2).stderr)

    def test_mindir_is_written_and_read(self):
        result = self.convert("--saveType=MINDIR", out="there").stdout
        self.assertTrue(result.endswith(DONE), result)
        self.run_quench("convert", "--fmk=MINDIR", "--modelFile=there.mindir",
                        "--outputFile=back")
        shown = [self.run_json("inspect", name) for name in ("there.mindir", "back.onnx")]
        self.assertEqual(shown[0]["operators"], shown[1]["operators"])
        self.assertEqual(shown[0]["inputs"][0]["name"], "x")
        told = self.run_quench("compare", "model.onnx", "there.mindir", "--json").stdout
        self.assertGreater(json.loads(told)["outputs"][0]["cosine"], 0.99999)
        self.assertIn("MindIR is written",
                      self.convert("--saveType=MINDIR", out="no.onnx", expect=2).stderr)

    def test_quantised_model_is_written_as_arithmetic(self):
        self.run_quench("quantize", "model.onnx", "-o", "q.onnx", "--data", "images.npy")
        self.run_quench("convert", "q.onnx", "-o", "q.mindir")
        told = self.run_quench("compare", "q.onnx", "q.mindir", "--json").stdout
        self.assertGreater(json.loads(told)["outputs"][0]["cosine"], 0.999)
        self.assertIn("int8", self.run_json("inspect", "q.mindir")["weights"])

    def test_frozen_graph_of_tensorflow(self):
        seed = harness.SOURCE / "fuzz" / "seeds" / "tf" / "network"
        words = ["convert", "--fmk=TF", f"--modelFile={seed}"]
        self.run_quench(*words, "--outputFile=frozen")
        shown = self.run_json("inspect", "frozen.onnx")
        self.assertEqual(shown["operators"]["Conv"], 2)
        self.assertEqual(shown["operators"]["Transpose"], 2)
        self.run_quench(*words, "--outputFile=first", "--inputDataFormat=NCHW", "--fp16=on")
        shown = self.run_json("inspect", "first.onnx")
        self.assertRegex(json.dumps(shown["inputs"]), r"2, ?6, ?6")
        self.assertIn("float16", shown["weights"])

    def test_lite_files_are_shown_and_nothing_else(self):
        seed = harness.SOURCE / "fuzz" / "seeds" / "ms" / "net"
        shown = self.run_json("inspect", seed)
        self.assertEqual(shown["operators"], {"mslite.Conv2DFusion": 1, "mslite.Softmax": 1})
        self.assertIn("2 scales", json.dumps(shown["scales"]))
        self.assertIn("zero point 3", self.run_quench("inspect", seed).stdout)
        for words in (["convert", seed, "-o", "no.onnx"], ["run", seed], ["lint", seed]):
            self.assertIn("converted from", self.run_quench(*words, expect=4).stderr)

    def test_config_mistakes_have_a_line(self):
        flag = self.write_config("[common_quant_param]\nquant_typ=FULL_QUANT\n")
        self.assertIn("c.cfg:2: ", self.convert(flag, out="refused", expect=3).stderr)
        flag = self.write_config("[comon_quant_param]\nquant_type=FULL_QUANT\n")
        self.assertIn("'common_quant_param'?", self.convert(flag, out="refused", expect=3).stderr)
        flag = self.write_config("[common_quant_param]\nquant_type=WEIGHT_QUANTS\n")
        self.assertIn("c.cfg:2: ", self.convert(flag, out="refused", expect=3).stderr)
        self.assertFalse((self.dir / "refused.onnx").exists())

    def test_all_config_mistakes_are_told_at_once(self):
        flag = self.write_config("[common_quant_param]\nquant_typ=FULL_QUANT\nbit_num=99\n"
                                 "[ful_quant_param]\n[data_preprocess_param]\n"
                                 "calibrate_size=none\n")
        error = self.convert(flag, out="refused", expect=3).stderr
        for line in (2, 3, 4, 6):
            self.assertIn(f"c.cfg:{line}: ", error)

    def test_messages_name_keys_and_not_flags(self):
        def error(text, code):
            return self.convert(self.write_config(text), out="refused", expect=code).stderr
        common = "[common_quant_param]\nquant_type="
        needs_data = error(common + "FULL_QUANT\n", 2)
        self.assertIn("give calibrate_path", needs_data)
        self.assertNotIn("--data", needs_data)
        self.assertIn("calibrate_path", error(
            common + "WEIGHT_QUANT\nbit_num=4\nmin_quant_weight_channel=0\n"
            "[weight_quant_param]\nquant_strategy=GPTQ\n", 2))
        # What has no key is said to be a flag of another command.
        self.assertIn("--stats of quench quantize", needs_data)

    def test_json(self):
        common = "[common_quant_param]\nquant_type=WEIGHT_QUANT\nmin_quant_weight_channel=0\n"
        result = json.loads(self.convert(self.write_config(common), "--json", out="j").stdout)
        self.assertEqual(result["out"], "j.onnx")
        self.assertTrue(result["quantised"])
        self.assertGreater(len(result["weights"]), 0)
        self.assertEqual(result["bytes_after"], (self.dir / "j.onnx").stat().st_size)
        result = json.loads(self.convert("--json", out="k").stdout)
        self.assertFalse(result["quantised"])
        self.assertEqual(result["bytes_after"], (self.dir / "k.onnx").stat().st_size)

    def test_mixed_bits_are_smaller_than_eight(self):
        common = ("[common_quant_param]\nquant_type=WEIGHT_QUANT\nmin_quant_weight_channel=0\n"
                  "bit_num={}\n")
        model = harness.SOURCE / "examples" / "data" / "fashion.onnx"
        self.convert(self.write_config(common.format(8)), model=model, out="eight")
        mixed = self.write_config(common.format(0))
        self.convert(mixed, model=model, out="mixed")
        self.assertLess((self.dir / "mixed.qnch").stat().st_size,
                        (self.dir / "eight.onnx").stat().st_size)
        told = self.convert(mixed, model=model, out="mixed.onnx")
        self.assertRegex(told.stderr, r"mixed\.onnx takes [\d.]+ bits .* ends in \.qnch")

    def test_encoding_counts_in_packed_files(self):
        common = ("[common_quant_param]\nquant_type=WEIGHT_QUANT\nmin_quant_weight_channel=0\n"
                  "enable_encode={}\n")
        model = harness.SOURCE / "examples" / "data" / "fashion.onnx"
        encoded = self.convert(self.write_config(common.format("true")), model=model,
                               out="encoded.qnch")
        self.convert(self.write_config(common.format("false")), model=model, out="plain.qnch")
        self.assertLess((self.dir / "encoded.qnch").stat().st_size,
                        (self.dir / "plain.qnch").stat().st_size)
        self.assertNotIn("enable_encode", encoded.stderr)
        told = self.convert(self.write_config(common.format("true")), out="onnx").stderr
        self.assertIn("c.cfg:4: enable_encode has no effect", told)

    def test_raw_files_are_nhwc_unless_told(self):
        shape, values = harness.read_npy(self.dir / "images.npy")
        size = shape[1] * shape[2] * shape[3]
        for name, order in (("nchw", range(size)),
                            ("nhwc", [c * 64 + i for i in range(64) for c in range(3)])):
            (self.dir / name).mkdir()
            for at in range(10):
                pixels = [values[at * size + i] for i in order]
                (self.dir / name / f"{at}.bin").write_bytes(struct.pack(f"<{size}f", *pixels))
        config = ("[common_quant_param]\nquant_type=FULL_QUANT\n[data_preprocess_param]\n"
                  "calibrate_path=x:{}\ncalibrate_size=10\ninput_type=BIN\n")

        def made(folder, *flags):
            self.convert(self.write_config(config.format(folder)), *flags, out="bins")
            return self.tensors("bins.onnx")
        expected = made("nchw", "--inputDataFormat=NCHW")
        self.assertEqual(made("nhwc"), expected)
        self.assertNotEqual(made("nchw"), expected)

    def tensors(self, name):
        """The bytes of a model without its settings, which name paths."""
        data = (self.dir / name).read_bytes()
        return data[:data.index(b"quench.version")]

    def test_dynamic_shapes_are_refused(self):
        for line in ("dynamic_batch_size=1,2", "input_shape=x:[-1,3,8,8]", "input_format=NHWC"):
            flag = self.write_config(f"[ascend_context]\n{line}\n")
            self.assertIn("c.cfg:2: ", self.convert(flag, out="refused", expect=4).stderr)

    def test_full_quantisation(self):
        config = ("[common_quant_param]\nquant_type=FULL_QUANT\n{}[full_quant_param]\n"
                  "activation_quant_method=MAX_MIN\n[data_preprocess_param]\n"
                  "calibrate_path=x:images.npy\ncalibrate_size=10\n[ascend_context]\n"
                  "input_format=NCHW\n")
        result = self.convert(self.write_config(config.format("")), out="int8")
        self.assertTrue(result.stdout.endswith(DONE), result.stdout)
        self.assertRegex(result.stdout, r"nodes on integers +[1-9]")
        self.assertRegex(result.stdout, r"int8\.onnx: [\d.]+ kB from [\d.]+ kB")
        self.assertIn("[ascend_context]", result.stderr)
        self.assertIn(b"QuantizeLinear", (self.dir / "int8.onnx").read_bytes())
        words = ["quantize", "model.onnx", "-o", "q.onnx", "--config", "c.cfg"]
        report = self.run_json(*words)
        self.assertEqual(report["calibration_samples"] + report["validation_samples"], 10)
        report = self.run_json(*words, "--limit", "5")
        self.assertEqual(report["calibration_samples"] + report["validation_samples"], 5)
        self.write_config(config.format("skip_quant_node=conv_node\n"))
        report = self.run_json(*words)
        self.assertIn('"conv_node"', json.dumps(report["float_layers"]))
        self.write_config(config.format("min_quant_weight_size=65535\n"))
        self.run_quench(*words, expect=4)
        self.run_quench(*words, "--min-weight-size", "0")

    def test_config_without_quant_type_only_converts(self):
        flag = self.write_config("[full_quant_param]\nper_channel=true\n")
        result = self.convert(flag, out="unquantised")
        self.assertTrue(result.stdout.endswith(DONE), result.stdout)
        self.assertIn("c.cfg:1: [full_quant_param] has no effect", result.stderr)
        self.assertNotIn(b"QuantizeLinear", (self.dir / "unquantised.onnx").read_bytes())


if __name__ == "__main__":
    unittest.main()
