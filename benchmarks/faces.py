"""Measures face detectors on labelled photographs: recall, false alarms and CPU time.

    python benchmarks/faces.py labels.tsv

Each line of labels.tsv is a path, `face` or `none`, and a group, separated by tabs. Images of one
clip or person share a group. Half of the groups, chosen by hash, were used to select YuNet's
threshold; the other half judges.
"""

import argparse
import csv
import hashlib
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import dlib
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from eqforge.transforms.filters.faces import FaceSettings, score_faces

Detector = Callable[[NDArray[np.uint8]], float]
SETTINGS = FaceSettings()


def yunet(pixels: NDArray[np.uint8]) -> float:
    (score,) = score_faces(pixels, SETTINGS)
    return score.value or 0


def hog() -> Detector:
    detector = dlib.get_frontal_face_detector()
    return lambda pixels: max(detector.run(pixels, 1, -1.0)[1], default=-1)


def haar() -> Detector:
    file = f"{cv2.data.haarcascades}haarcascade_frontalface_alt2.xml"  # type: ignore[attr-defined]
    cascade = cv2.CascadeClassifier(file)

    def score(pixels: NDArray[np.uint8]) -> float:
        grey = cv2.cvtColor(pixels, cv2.COLOR_RGB2GRAY)
        return max(cascade.detectMultiScale3(grey, outputRejectLevels=True)[2], default=0)

    return score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("labels", type=Path)
    rows = list(csv.reader(parser.parse_args().labels.open(), delimiter="\t"))
    cv2.setNumThreads(1)
    images = [np.array(Image.open(path).convert("RGB")) for path, _, _ in rows]
    face = np.array([label == "face" for _, label, _ in rows])
    judged = np.array([hashlib.sha256(g.encode()).digest()[-1] % 2 == 1 for _, _, g in rows])

    detectors = {
        "HOG": (hog(), 0.0),
        "Haar": (haar(), 55.8),
        "YuNet": (yunet, SETTINGS.face_threshold),
    }
    found, cost = {}, {}
    for name, (detector, limit) in detectors.items():
        start = time.thread_time()
        scores = np.array([detector(image) for image in images])
        cost[name] = (time.thread_time() - start) / len(images)
        found[name] = scores >= limit
    for name, both in (("either", np.logical_or), ("both", np.logical_and)):
        found[name] = both(found["HOG"], found["Haar"])
        cost[name] = cost["HOG"] + cost["Haar"]
    print("| detector | faces found | false alarms | ms per image |\n|---|---|---|---|")
    for name, seen in found.items():
        hits, alarms = seen[judged & face], seen[judged & ~face]
        counts = f"{hits.sum()} of {len(hits)} | {alarms.sum()} of {len(alarms)}"
        print(f"| {name} | {counts} | {1000 * cost[name]:.0f} |")


if __name__ == "__main__":
    main()
