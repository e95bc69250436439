# SPDX-License-Identifier: Apache-2.0
"""A user's day: help, manual pages, colour, hints, images given directly, scores, the doctor."""
import os
import pathlib
import pty
import random
import shutil
import subprocess
import unittest

import harness


def write_ppm(path, width, height, seed):
    """A photograph of noise that the images module reads."""
    source = random.Random(seed)
    pixels = bytes(source.randrange(256) for _ in range(width * height * 3))
    pathlib.Path(path).write_bytes(b"P6\n%d %d\n255\n" % (width, height) + pixels)


class DayTest(harness.CliTest):
    def on_terminal(self, *words, **environment):
        """Everything that the program writes to a terminal, stdout and stderr."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen([harness.PROGRAM, *words], cwd=self.dir, stdout=theirs,
                                   stderr=theirs, env={**os.environ, "TERM": "xterm", **environment})
        os.close(theirs)
        text = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            if not part:
                break
            text += part
        os.close(ours)
        process.wait(timeout=60)
        return text.decode()

    def photographs(self):
        folder = self.dir / "photographs"
        folder.mkdir(exist_ok=True)
        for index in range(6):
            write_ppm(folder / f"{index}.ppm", 8, 8, index)
        return folder

    def test_short_and_long_help(self):
        short = self.run_quench("quantize", "--help").stdout
        whole = self.run_quench("quantize", "--help-all").stdout
        self.assertIn("--help-all", short)
        for flag in ("--data", "--target", "--skip-node", "--preset", "--mean"):
            self.assertIn(flag, short)
            self.assertIn(flag, whole)
        for flag in ("--correction-samples", "--max-isa", "--settings"):
            self.assertNotIn(f"\n  {flag} ", short)
            self.assertIn(f"\n  {flag} ", whole)
        self.assertLess(len(short.splitlines()), 0.7 * len(whole.splitlines()))

    def test_help_of_a_command(self):
        self.assertEqual(self.run_quench("help", "bench").stdout,
                         self.run_quench("bench", "--help").stdout)
        self.assertEqual(self.run_quench("help").stdout, self.run_quench("--help").stdout)
        self.assertIn("--correction-samples", self.run_quench("help", "quantize", "--all").stdout)
        self.assertIn("at-least", self.run_quench("help", "analyze", "target").stdout)
        self.assertIn("did you mean 'bench'?", self.run_quench("help", "bnech", expect=2).stderr)
        headings = self.run_quench("--help").stdout
        self.assertLess(headings.index("Start here"), headings.index("Look closer"))

    def test_short_flags(self):
        self.assertEqual(self.run_quench("-V").stdout, self.run_quench("--version").stdout)
        words = ["eval", "model.onnx", "images.npy", "--labels", "labels.npy"]
        self.assertEqual(self.run_quench(*words, "-q").stderr, "")
        self.run_quench(*words, "-v")

    def test_manual_pages(self):
        page = self.run_quench("man", "quantize").stdout
        for part in (".TH quench-quantize 1", ".SH SYNOPSIS", "correction\\-samples", ".SH EXAMPLE"):
            self.assertIn(part, page)
        self.run_quench("man", "--folder", "pages")
        names = {path.name for path in (self.dir / "pages").iterdir()}
        self.assertLessEqual({"quench.1", "quench-quantize.1", "quench-analyze-target.1"}, names)

    def test_completion_of_every_shell(self):
        for shell in ("bash", "zsh", "fish"):
            text = self.run_quench("completion", shell).stdout
            self.assertIn("correction-samples", text)
            self.assertIn("doctor", text)

    @unittest.skipIf(shutil.which("zsh") is None, "no zsh here")
    def test_zsh_completes(self):
        """With zsh's own functions in place of which ours prints what it offers."""
        script = r"""
compdef() { }
compadd() { shift; print -rl -- $@ }
_files() { print files }
_describe() { [[ $1 == -o ]] && shift; print -rl -- ${(P)2} }
source $1; shift
words=("$@") CURRENT=$# PREFIX=${@[-1]}
_quench
"""
        (self.dir / "stubs.zsh").write_text(script)
        (self.dir / "_quench").write_text(self.run_quench("completion", "zsh").stdout)

        def offered(*words):
            done = subprocess.run(["zsh", "-f", "stubs.zsh", "./_quench", "quench", *words], cwd=self.dir,
                                  capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr, "")
            return done.stdout.splitlines()

        self.assertIn("quantize:Turn a float model into an 8-bit one", offered(""))
        self.assertEqual([line.split(":")[0] for line in offered("analyze", "")],
                         ["sensitivity", "target", "statistics"])
        self.assertIn("onnxruntime", offered("quantize", "m.onnx", "--target", ""))
        self.assertEqual(offered("quantize", "m.onnx", "--data", ""), ["files"])
        self.assertTrue(any(line.startswith("--at-least:") for line in offered("analyze", "target", "--")))
        self.assertEqual(offered("inspect", ""), ["files"])

    def test_colour_only_on_a_terminal(self):
        wrong = ["inspect", "nowhere.onnx"]
        self.assertIn("\x1b[1;31mquench: error:", self.on_terminal(*wrong))
        self.assertNotIn("\x1b", self.on_terminal(*wrong, NO_COLOR="1"))
        self.assertNotIn("\x1b", self.on_terminal(*wrong, TERM="dumb"))
        self.assertNotIn("\x1b", self.run_quench(*wrong, expect=3).stderr)

    def test_the_next_command_is_told_on_a_terminal(self):
        words = ["quantize", "model.onnx", "-o", "t.onnx", "--data", "images.npy"]
        self.assertIn("quench compare t.onnx model.onnx", self.on_terminal(*words))
        self.assertNotIn("quench compare", self.on_terminal(*words, "-q"))
        self.assertNotIn("quench compare", self.run_quench(*words).stdout)

    def test_the_next_command_after_every_job(self):
        data = ["--data", "images.npy"]
        self.run_quench("quantize", "model.onnx", "-o", "next.onnx", *data)
        for words, command in (
                (["quantize", "model.onnx", "-o", "n.onnx", "--report", "n.html", *data],
                 "see it: open n.html in a browser"),
                (["calibrate", "model.onnx", "-o", "n.stats", *data],
                 "use it: quench quantize model.onnx -o int8.onnx --stats n.stats"),
                (["analyze", "sensitivity", "model.onnx", "-o", "n", *data], "--skip-node "),
                (["analyze", "target", "model.onnx", "-o", "n", "--metric", "sqnr", "--at-least", "5",
                  "--model-out", "t.onnx", *data], "quench bench model.onnx t.onnx"),
                (["analyze", "statistics", "model.onnx", "-o", "n", *data], "see it: open n "),
                (["train", "model.onnx", "-o", "n.onnx", "--steps", "1", "--train-batch", "8",
                  *data],
                 "quench compare n.onnx model.onnx --data images.npy"),
                (["convert", "model.onnx", "-o", "copy.onnx"], "quench inspect copy.onnx"),
                (["bench", "model.onnx", "--runs", "3"], "quench bench model.onnx --profile"),
                (["compare", "next.onnx", "model.onnx", *data],
                 "quench analyze sensitivity next.onnx --float model.onnx --data images.npy"),
                (["eval", "model.onnx", "images.npy", "--labels", "labels.npy"],
                 "quench quantize model.onnx -o int8.onnx --data images.npy")):
            self.assertIn(command, self.on_terminal(*words), words)
            self.assertNotIn(command, self.on_terminal(*words, "--quiet"), words)
            self.assertNotIn(command, self.run_quench(*words).stdout, words)

    def test_raw_pixels_are_doubted(self):
        """Where the first layer was trained on smaller numbers, and nothing else says so."""
        folder = self.photographs()
        doubt = "`quench doctor {} --data photographs`"
        jobs = (["quantize", "{}", "-o", "doubted.onnx", "--data", "photographs"],
                ["calibrate", "{}", "-o", "doubted.stats", "--data", "photographs"],
                ["eval", "{}", "--data", "photographs", "--reference", "{}"])
        for job in jobs:
            def said(model, *words):
                return self.run_quench(*(word.format(model) for word in job), *words).stderr
            self.assertIn(doubt.format("model.onnx"), said("model.onnx"), job)
            self.assertIn("the first layer, Conv node 'conv_node', expects smaller ones", said("model.onnx"), job)
            self.assertNotIn("doctor", said("raw_pixels.onnx"), job)
            self.assertNotIn("doctor", said("model.onnx", "--preset", "yolo"), job)
            self.assertNotIn("doctor", said("model.onnx", "--mean", "127", "--std", "128"), job)
            self.assertEqual(said("model.onnx", "--quiet"), "", job)
        for model in ("fixed.onnx", "sizes.onnx"):  # four samples a run; any size
            self.assertIn("doctor", self.run_quench("eval", model, folder, "--reference",
                                                    model).stderr)
        # What was quantised for small numbers holds no others.
        self.run_quench("quantize", "model.onnx", "-o", "small.onnx", "--data", folder, "--mean",
                        "127", "--std", "128")
        said = self.run_quench("eval", "small.onnx", folder, "--reference", "small.onnx").stderr
        self.assertIn("the model's quantised input holds a range of", said)
        self.assertEqual(self.run_quench("eval", "model.onnx", "images.npy", "--reference",
                                         "model.onnx").stderr, "")

    def test_the_doctor_of_gray_images(self):
        data = harness.SOURCE / "examples" / "data"
        trials = self.run_json("doctor", data / "fashion.onnx", "--data", data / "images",
                               "--labels", data / "images.txt")["trials"]
        self.assertLessEqual({"as given", "tf", "unit"}, {trial["name"] for trial in trials})

    def test_names_for_short(self):
        words = ["quantize", "model.onnx", "--data", "images.npy", "--no-metadata", "-o"]
        self.run_quench(*words, "a.onnx", "--target", "trt")
        self.run_quench(*words, "b.onnx", "--target", "tensorrt")
        self.assertEqual((self.dir / "a.onnx").read_bytes(), (self.dir / "b.onnx").read_bytes())
        self.assertIn("integers", self.run_quench("lint", "a.onnx", "--target", "ort").stdout)

    def test_labels_give_scores_before_and_after(self):
        words = ["quantize", "model.onnx", "-o", "s.onnx", "--data", "images.npy", "--labels",
                 "labels.npy"]
        scores = self.run_json(*words)["scores"]
        for model, key in (("model.onnx", "before"), ("s.onnx", "after")):
            alone = self.run_json("eval", model, "--data", "images.npy", "--labels", "labels.npy")
            self.assertEqual(scores[key]["top1"], alone["top1"])
        text = self.run_quench(*words).stdout
        self.assertRegex(text, r"metric +float +quantised\ntop1 ")

    def test_images_given_directly(self):
        folder = self.photographs()
        rows = self.run_json("run", "model.onnx", folder)["samples"]
        self.assertEqual([row["name"] for row in rows], [f"{i}.ppm" for i in range(6)])
        best = rows[0]["outputs"]["scores"]["highest"]
        self.assertEqual(len(best), 5)
        self.assertGreaterEqual(best[0]["value"], best[1]["value"])
        one = self.run_json("run", "model.onnx", folder / "3.ppm")["samples"]
        self.assertEqual(one, [row for row in rows if row["name"] == "3.ppm"])
        self.assertIn("3.ppm", self.run_quench("run", "model.onnx", folder / "3.ppm").stdout)
        by_flag = self.run_json("eval", "model.onnx", "--data", folder, "--reference", "model.onnx")
        direct = self.run_json("eval", "model.onnx", folder, "--reference", "model.onnx")
        self.assertEqual(by_flag["outputs"], direct["outputs"])
        self.run_quench("eval", "model.onnx", folder, "--data", folder, expect=2)
        self.run_quench("run", "model.onnx", folder, "--input", "x=zeros", expect=2)

    def test_called_as_converter_lite(self):
        link = self.dir / "converter_lite"
        if not link.exists():
            link.symlink_to(harness.PROGRAM)
        done = subprocess.run([str(link), "--fmk=ONNX", "--modelFile=model.onnx",
                               "--outputFile=by_link"], cwd=self.dir, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("CONVERT RESULT SUCCESS:0", done.stdout)

    def test_presets(self):
        folder = self.photographs()

        def scores(*words):
            return self.run_json("run", "model.onnx", folder, *words)["samples"]

        spelled = scores("--mean", "127.5,127.5,127.5", "--std", "127.5,127.5,127.5", "--resize",
                         "8,8")
        self.assertEqual(scores("--preset", "tf", "--resize", "8,8", "--center-crop", "8,8"),
                         spelled)
        # Flags win over the preset, wherever they stand.
        self.assertEqual(scores("--color", "BGR", "--preset", "tf", "--resize", "8,8",
                                "--center-crop", "8,8"),
                         scores("--preset", "tf", "--color", "BGR", "--resize", "8,8",
                                "--center-crop", "8,8"))
        self.assertNotEqual(scores("--preset", "caffe", "--resize", "8,8", "--center-crop", "8,8"),
                            spelled)
        wrong = self.run_quench("run", "model.onnx", folder, "--preset", "imagnet", expect=2)
        self.assertIn("did you mean 'imagenet'?", wrong.stderr)
        self.assertIn("paddleocr-rec", self.run_quench("list", "presets").stdout)

    def test_doctor(self):
        folder = self.photographs()
        result = self.run_json("doctor", "model.onnx", "--data", folder)
        names = [trial["name"] for trial in result["trials"]]
        self.assertLessEqual({"as given", "imagenet", "caffe"}, set(names))
        order = [trial["sureness"] for trial in result["trials"]]
        self.assertEqual(order, sorted(order, reverse=True))
        self.assertIn("as given", self.run_quench("doctor", "model.onnx", "--data", folder).stdout)
        self.run_quench("doctor", "model.onnx", expect=2)
        labelled = self.dir / "names.txt"
        labelled.write_text("".join(f"{i}.ppm {i}\n" for i in range(6)))
        trials = self.run_json("doctor", "model.onnx", "--data", folder, "--labels",
                               labelled)["trials"]
        self.assertTrue(all(0 <= trial["top1"] <= 100 for trial in trials))


if __name__ == "__main__":
    unittest.main()
