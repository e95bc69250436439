# SPDX-License-Identifier: Apache-2.0
"""Labels that are more than a class: boxes, texts and masks from files, right and wrong."""
import json
import pathlib
import struct
import unittest
import zlib

import harness

# boxes.onnx finds these in every image of 8x8: x1, y1, x2, y2, class.
FOUND = [(1, 1, 5, 5, 0), (4, 4, 8, 8, 1)]


def write_png(path, width, height, pixels, depth=8, colour=0):
    """An 8-bit gray PNG, or one that says it is of another kind."""
    def chunk(kind, body):
        whole = kind + body
        return struct.pack(">I", len(body)) + whole + struct.pack(">I", zlib.crc32(whole))
    rows = b"".join(b"\0" + bytes(pixels[y * width:(y + 1) * width]) for y in range(height))
    palette = chunk(b"PLTE", bytes(3 * 256)) if colour == 3 else b""
    pathlib.Path(path).write_bytes(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
        + palette + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class TruthTest(harness.CliTest):
    def images(self, count=2, side=16):
        folder = self.dir / f"images{side}"
        folder.mkdir(exist_ok=True)
        for index in range(count):
            (folder / f"{index}.ppm").write_bytes(
                b"P6\n%d %d\n255\n" % (side, side) + bytes([index * 40 % 256]) * (side * side * 3))
        return folder

    def coco(self, boxes, sized=True, count=2, **changes):
        """A file of the same boxes in every image, given in pixels of 16x16 images."""
        size = {"width": 16, "height": 16} if sized else {}
        whole = {"images": [{"id": 7 + i, "file_name": f"{i}.ppm", **size} for i in range(count)],
                 "categories": [{"id": 9, "name": "second"}, {"id": 3, "name": "first"}],
                 "annotations": [{"image_id": 7 + i, "category_id": (3, 9)[label],
                                  "bbox": [2 * x1, 2 * y1, 2 * (x2 - x1), 2 * (y2 - y1)]}
                                 for i in range(count) for x1, y1, x2, y2, label in boxes]}
        whole.update(changes)
        (self.dir / "boxes.json").write_text(json.dumps(whole))
        return "boxes.json"

    def scores(self, model, labels, *words):
        return self.run_json("eval", model, self.images(), "--labels", labels, "--resize", "8,8",
                             "--mean", "0", *words)["outputs"][0]

    def refused(self, sentence, model, labels, *words, expect=3):
        said = self.run_quench("eval", model, self.images(), "--labels", labels, "--resize", "8,8",
                               "--mean", "0", *words, expect=expect).stderr
        self.assertIn(sentence, said)

    def test_boxes_are_moved_as_images_are(self):
        for sized in (True, False):
            scores = self.scores("boxes.onnx", self.coco(FOUND, sized))
            self.assertEqual(scores["box_f1"], 100)
            self.assertAlmostEqual(scores["map"], 100)
        # One of two is found, and one of two that were found is right.
        half = self.scores("boxes.onnx", self.coco([FOUND[0], (0, 6, 2, 8, 1)]))
        self.assertEqual(half["box_f1"], 50)
        self.assertAlmostEqual(half["map"], 50)
        wrong = self.scores("boxes.onnx", self.coco([(*box[:4], 1 - box[4]) for box in FOUND]))
        self.assertEqual((wrong["box_f1"], wrong["map"]), (0, 0))

    def test_boxes_in_a_crop(self):
        """The middle 8x8 of an image of 16x16 that is not resized."""
        boxes = [(x1 / 2 + 2, y1 / 2 + 2, x2 / 2 + 2, y2 / 2 + 2, c) for x1, y1, x2, y2, c in FOUND]
        scores = self.run_json("eval", "boxes.onnx", self.images(), "--labels", self.coco(boxes),
                               "--center-crop", "8,8", "--mean", "0")["outputs"][0]
        self.assertEqual(scores["box_f1"], 100)

    def test_boxes_in_lines_and_arrays(self):
        words = " ".join(",".join(str(2 * x) for x in box[:4]) + f",{box[4]}" for box in FOUND)
        (self.dir / "boxes.txt").write_text(f"0.ppm {words}\n1.ppm {words}\n")
        self.assertAlmostEqual(self.scores("boxes.onnx", "boxes.txt")["map"], 100)
        (self.dir / "none.txt").write_text(f"0.ppm\n1.ppm {words}\n")
        self.assertLess(self.scores("boxes.onnx", "none.txt")["box_f1"], 100)
        rows = [x for _ in range(harness.IMAGES) for box in [*FOUND, (0, 0, 0, 0, -1)] for x in box]
        harness.write_npy(self.dir / "boxes.npy", "<f4", (harness.IMAGES, 3, 5), rows)
        scores = self.run_json("eval", "boxes.onnx", "--data", "images.npy", "--labels", "boxes.npy")
        self.assertAlmostEqual(scores["outputs"][0]["map"], 100)

    def test_images_of_a_file_that_are_not_there(self):
        self.assertEqual(self.scores("boxes.onnx", self.coco(FOUND, count=5))["box_f1"], 100)
        self.refused("has no label in boxes.json", "boxes.onnx", self.coco(FOUND, count=1))

    def test_damaged_boxes(self):
        image = {"id": 7, "file_name": "0.ppm"}
        for change, sentence in (
                ({"images": 3}, "there is no list 'images'"),
                ({"images": [image, image]}, "images[1] has the id of another image"),
                ({"images": [{"id": 7}]}, "images[0] needs a 'file_name'"),
                ({"images": [{**image, "width": -1, "height": 5}]}, "impossible size"),
                ({"images": [{**image, "width": 10**12, "height": 5}]}, "impossible size"),
                ({"categories": [{"id": "x"}]}, "categories[0] needs a whole number 'id'"),
                ({"annotations": [{"image_id": 7, "category_id": 4, "bbox": [0, 0, 1, 1]}]},
                 "a category that is not listed"),
                ({"annotations": [{"image_id": 1, "category_id": 3, "bbox": [0, 0, 1, 1]}]},
                 "an image that is not listed"),
                ({"annotations": [{"image_id": 7, "category_id": 3, "bbox": [0, 0, -1, 1]}]},
                 "annotations[0] needs 'bbox'"),
                ({"annotations": [{"image_id": 7, "category_id": 3, "bbox": "x"}]}, "needs 'bbox'"),
                ({"annotations": ["x"]}, "annotations[0] needs a whole number 'image_id'")):
            self.refused(sentence, "boxes.onnx", self.coco(FOUND, **change))
        for text in ("", "[1]", '{"images":', "[" * 100000):
            (self.dir / "bad.json").write_text(text)
            self.refused("bad.json", "boxes.onnx", "bad.json")
        (self.dir / "bad.txt").write_text("0.ppm 1,2,3,4,0\n1.ppm 1,2,3\n")
        self.refused("bad.txt:2: expected 'x1,y1,x2,y2,class', got '1,2,3'", "boxes.onnx", "bad.txt")
        (self.dir / "twice.txt").write_text("0.ppm 1,2,3,4,0\n0.ppm 1,2,3,4,0\n")
        self.refused("twice.txt:2: '0.ppm' is named a second time", "boxes.onnx", "twice.txt")

    def test_texts(self):
        (self.dir / "characters.txt").write_text("a\nb\nc\n", encoding="utf-8")
        (self.dir / "texts.txt").write_text("0.ppm\tab\n1.ppm\tba\n")
        words = ["--characters", "characters.txt"]
        self.assertEqual(self.scores("text.onnx", "texts.txt", *words)["ctc"], 50)
        (self.dir / "texts.txt").write_text("0.ppm\tab\n1.ppm\ta\u00e9b\n", encoding="utf-8")
        self.assertEqual(self.scores("text.onnx", "texts.txt", *words)["ctc"], 50)
        lines = "ab\n" * harness.IMAGES
        (self.dir / "order.txt").write_text(lines)
        scores = self.run_json("eval", "text.onnx", "--data", "images.npy", "--labels", "order.txt",
                               *words)
        self.assertEqual(scores["outputs"][0]["ctc"], 100)

    def test_wrong_texts(self):
        (self.dir / "texts.txt").write_text("0.ppm\tab\n1.ppm\tba\n")
        (self.dir / "many.txt").write_text("a\n" + "\n".join("bcdefgh") + "\n")
        self.refused("the output has 4 classes, and the file of characters 8 lines", "text.onnx",
                     "texts.txt", "--characters", "many.txt")
        (self.dir / "empty.txt").write_text("")
        self.refused("empty.txt: holds no characters", "text.onnx", "texts.txt", "--characters",
                     "empty.txt")
        self.refused("'name index'", "text.onnx", "texts.txt")
        said = self.run_quench("eval", "text.onnx", self.images(), "--resize", "8,8", "--characters",
                               "many.txt", "--mean", "0", expect=2).stderr
        self.assertIn("--labels", said)

    def masks(self, pixels, side=16, **kind):
        folder = self.dir / "masks"
        folder.mkdir(exist_ok=True)
        for index in range(2):
            write_png(folder / f"{index}.png", side, side, pixels, **kind)
        return folder

    def test_masks(self):
        halves = [0 if i % 16 < 8 else 1 for i in range(256)]
        self.assertEqual(self.scores("halves.onnx", self.masks(halves))["iou"], 100)
        # A quarter of class 1 is not asked for: what is left is right.
        self.assertEqual(self.scores("halves.onnx", self.masks(
            [255 if i % 16 >= 12 else x for i, x in enumerate(halves)]))["iou"], 100)
        # Class 1 everywhere: half of it is found, and what was said of class 0 does not count.
        self.assertEqual(self.scores("halves.onnx", self.masks([1] * 256))["iou"], 50)
        masks = [0 if i % 8 < 4 else 1 for _ in range(harness.IMAGES) for i in range(64)]
        harness.write_npy(self.dir / "masks.npy", "|u1", (harness.IMAGES, 8, 8), masks)
        scores = self.run_json("eval", "halves.onnx", "--data", "images.npy", "--labels",
                               "masks.npy")
        self.assertEqual(scores["outputs"][0]["iou"], 100)

    def test_wrong_masks(self):
        halves = [0] * 256
        self.refused("8-bit gray PNG", "halves.onnx", self.masks(halves, colour=3))
        (self.masks(halves) / "0.png").unlink()
        self.refused("has no mask for '0.ppm'", "halves.onnx", "masks")
        (self.dir / "masks" / "0.png").write_bytes(b"\x89PNG")
        self.refused("0.png", "halves.onnx", "masks")

    def test_metrics_and_labels_that_do_not_go_together(self):
        boxes = self.coco(FOUND)
        self.refused("the metric 'iou' needs masks, and boxes.json holds boxes", "boxes.onnx", boxes,
                     "--metric", "iou")
        self.refused("needs classes", "boxes.onnx", boxes, "--metric", "top1")
        self.refused("give --reference MODEL", "boxes.onnx", boxes, "--metric", "sqnr", expect=2)
        both = self.scores("boxes.onnx", boxes, "--reference", "boxes.onnx", "--metric",
                           "box_f1,sqnr")
        self.assertEqual(both["box_f1"], 100)
        self.assertIn("sqnr", both)

    def test_scores_before_and_after(self):
        """quantize --labels scores by whatever the labels hold."""
        rows = [x for _ in range(harness.IMAGES) for x in (0, 0, 8, 8, 0)]
        harness.write_npy(self.dir / "one.npy", "<f4", (harness.IMAGES, 1, 5), rows)
        said = self.run_quench("quantize", "model.onnx", "-o", "q.onnx", "--data", "images.npy",
                               "--labels", "one.npy", expect=3).stderr
        self.assertIn("holds no boxes in a known form", said)


if __name__ == "__main__":
    unittest.main()
