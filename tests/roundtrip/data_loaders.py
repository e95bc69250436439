# SPDX-License-Identifier: Apache-2.0
"""Data loaders of paddle, and of torch where that is installed, give what arrays give."""
import gzip
import os
import pathlib
import sys
import tempfile

SOURCE = pathlib.Path(os.environ["QUENCH_SOURCE"])
sys.path.insert(0, str(pathlib.Path(os.environ["QUENCH_BINARY"]) / "python"))
DATA = SOURCE / "examples" / "data"
MODEL = DATA / "fashion.onnx"
COUNT = 100

try:
    import numpy as np
    import quench
except ImportError as error:
    print(f"the Python package is not for this Python: {error}")
    sys.exit(77)


def samples():
    """The first images and their classes."""
    with gzip.open(DATA / "fashion-test-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8)[16:].reshape(-1, 1, 28, 28)[:COUNT]
    with gzip.open(DATA / "fashion-test-labels-idx1-ubyte.gz") as file:
        classes = np.frombuffer(file.read(), np.uint8)[8:][:COUNT]
    return (pixels.astype(np.float32) - 72.9) / 90, classes.astype(np.int64)


def paddle_loaders(images, classes):
    """Loaders in this process and in workers, batches that come out even and that do not."""
    import paddle  # pylint: disable=import-outside-toplevel

    class Pairs(paddle.io.Dataset):
        """Images with their classes."""

        def __len__(self):
            return len(images)

        def __getitem__(self, index):
            return images[index], classes[index]

    for words in ({"batch_size": 20}, {"batch_size": 7}, {"batch_size": 20, "num_workers": 2}):
        yield f"paddle {words}", paddle.io.DataLoader(Pairs(), **words)


def torch_loaders(images, classes):
    """The same of torch, which lives in one process with the engine's own libtorch."""
    import torch  # pylint: disable=import-outside-toplevel
    from torch.utils.data import DataLoader, TensorDataset  # pylint: disable=import-outside-toplevel
    pairs = TensorDataset(torch.from_numpy(images), torch.from_numpy(classes))
    for words in ({"batch_size": 20}, {"batch_size": 7}, {"batch_size": 20, "num_workers": 2}):
        yield f"torch {words}", DataLoader(pairs, **words)


def main():
    images, classes = samples()
    folder = pathlib.Path(tempfile.mkdtemp())

    def quantised(data):
        quench.quantize(MODEL, folder / "int8.onnx", data=data, no_metadata=True, progress=False)
        return (folder / "int8.onnx").read_bytes()

    wanted = quantised(images)
    score = quench.evaluate(MODEL, images, "top1", labels=classes).outputs[0].scores
    failed = 0
    for make in (paddle_loaders, torch_loaders):
        try:
            loaders = list(make(images, classes))
        except ImportError as error:
            print(f"{make.__name__}: passed over: {error}")
            continue
        for name, loader in loaders:
            same = quantised(loader) == wanted
            scored = quench.evaluate(MODEL, loader, "top1").outputs[0].scores == score
            print(f"{name}: same bytes {same}, same score {scored}")
            failed += not (same and scored)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
