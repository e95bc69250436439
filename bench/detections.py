# SPDX-License-Identifier: Apache-2.0
"""From the outputs of detectors to boxes, and from two lists of boxes to a score. NumPy only."""
import numpy as np


def runs_of(row):
    """[begin, end) of each run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], row.astype(np.int8), [0]))))
    return edges.reshape(-1, 2)


def components(mask):
    """Bounding boxes x0 y0 x1 y1 (ends exclusive) of the 8-connected parts of a mask."""
    parent, boxes, above = [], [], []

    def root(label):
        while parent[label] != label:
            label = parent[label]
        return label

    for y, row in enumerate(mask):
        here = []
        for begin, end in runs_of(row):
            label = len(parent)
            parent.append(label)
            boxes.append([begin, y, end, y + 1])
            for other_begin, other_end, other in above:
                if other_begin <= end and other_end >= begin:
                    parent[root(other)] = root(label)
            here.append((begin, end, label))
        above = here
    joined = {}
    for label, box in enumerate(boxes):
        whole = joined.setdefault(root(label), list(box))
        whole[:2] = [min(a, b) for a, b in zip(whole[:2], box[:2])]
        whole[2:] = [max(a, b) for a, b in zip(whole[2:], box[2:])]
    return np.array(list(joined.values()), np.float64).reshape(-1, 4)


def text_boxes(heat, threshold=0.3, unclip=1.5, least_score=0.6, least_side=3):
    """Differentiable binarisation: parts above the threshold, grown by unclip x area / perimeter."""
    found = []
    for x0, y0, x1, y1 in components(heat > threshold):
        width, height = x1 - x0, y1 - y0
        inside = heat[int(y0):int(y1), int(x0):int(x1)]
        if min(width, height) < least_side or inside[inside > threshold].mean() < least_score:
            continue
        grow = unclip * width * height / (2 * (width + height))
        found.append([x0 - grow, y0 - grow, x1 + grow, y1 + grow])
    return np.array(found).reshape(-1, 4)


def overlaps(a, b):
    """Intersection over union of every box of a with every box of b."""
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum(a[:, None, 2:4], b[None, :, 2:4])
    both = np.prod(np.clip(high - low, 0, None), axis=2)
    area = [np.prod(x[:, 2:4] - x[:, :2], axis=1) for x in (a, b)]
    return both / np.maximum(area[0][:, None] + area[1][None, :] - both, 1e-12)


def matches(found, wanted, least=0.5):
    """How many boxes pair up, each at most once, the best overlap first."""
    table = overlaps(found, wanted)
    count = 0
    while table.size and table.max() >= least:
        i, j = np.unravel_index(table.argmax(), table.shape)
        table[i, :] = 0
        table[:, j] = 0
        count += 1
    return count


def f1(pairs):
    """100 x F1 over (found, wanted) of many images."""
    hits = sum(matches(found, wanted) for found, wanted in pairs)
    total = sum(len(found) + len(wanted) for found, wanted in pairs)
    return 200 * hits / max(1, total)


def face_boxes(scores, boxes, least_score=0.7, most_overlap=0.3):
    """Boxes of class 1 above a score, without those that overlap a better one."""
    chosen = scores[:, 1] > least_score
    score, box = scores[chosen, 1], boxes[chosen]
    order = np.argsort(-score)
    kept = []
    while len(order):
        first, order = order[0], order[1:]
        kept.append(first)
        if len(order):
            order = order[overlaps(box[first:first + 1], box[order])[0] <= most_overlap]
    return box[kept]
