#!/usr/bin/env python3
"""JPEG decode + resize: images_bench against Pillow 12 on the same pictures, one thread each.

    python run.py BUILD/tests/bench/images/images_bench [--pictures 200] [--rounds 3]

Needs pillow==12.0.0 and numpy. The two take turns within one run, the best round of each counts;
the resized pixels must be equal. Exit code 1 when they are not or when Pillow is faster.
"""
import argparse
import hashlib
import math
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy
import PIL
from PIL import Image

SIZES = [(1024, 768), (1280, 853), (1600, 1200), (1920, 1080), (2048, 1536), (800, 1200), (3000, 2000)]


def draw(index, width, height):
    """Smooth shapes, edges and some noise: compresses like a photograph, about 2 bits a pixel."""
    random = numpy.random.default_rng(index)
    y, x = numpy.mgrid[0:height, 0:width].astype(numpy.float32)
    picture = numpy.empty((height, width, 3), numpy.float32)
    for channel in range(3):
        a, b, c, d = random.uniform(20, 200, 4)
        picture[..., channel] = 128 + 60 * numpy.sin(x / a + y / b) + 40 * numpy.cos(x / c - y / d)
    for _ in range(30):
        cx, cy, radius = random.uniform(0, width), random.uniform(0, height), random.uniform(10, 200)
        picture[(x - cx) ** 2 + (y - cy) ** 2 < radius**2] = random.uniform(0, 255, 3)
    picture += random.normal(0, 6, picture.shape).astype(numpy.float32)
    return Image.fromarray(picture.clip(0, 255).astype(numpy.uint8))


def target(width, height, max_tokens):
    """The reranker's size rule; the pictures here are all above its lower limit."""
    rows, columns = (max(1, round(side / 32)) * 32 for side in (height, width))
    if rows * columns > max_tokens * 1024:
        shrink = math.sqrt(height * width / (max_tokens * 1024))
        rows, columns = (math.floor(side / shrink / 32) * 32 for side in (height, width))
    return columns, rows


def run_pillow(paths, max_tokens):
    digest, spent = hashlib.sha256(), 0.0
    for path in paths:
        start = time.perf_counter()
        picture = Image.open(path).convert("RGB")
        resized = picture.resize(target(*picture.size, max_tokens), Image.Resampling.BICUBIC)
        spent += time.perf_counter() - start
        digest.update(resized.tobytes())
    return spent, digest.hexdigest()


def run_ours(program, paths, max_tokens):
    out = subprocess.run([program, str(max_tokens), *paths], check=True, capture_output=True, text=True)
    seconds, digest = out.stdout.split()
    return float(seconds), digest


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--pictures", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--max-tokens", type=int, default=1280)
    given = parser.parse_args()
    if int(PIL.__version__.split(".")[0]) > 12:
        sys.exit(f"Pillow {PIL.__version__} resizes differently: install 12.0.0")
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for index in range(given.pictures):
            path = pathlib.Path(folder) / f"{index:03}.jpg"
            draw(index, *SIZES[index % len(SIZES)]).save(path, quality=85 + index % 3 * 5)
            paths.append(str(path))
        megabytes = sum(pathlib.Path(path).stat().st_size for path in paths) / 1e6
        pillow, ours = [], []
        for _ in range(given.rounds):
            pillow.append(run_pillow(paths, given.max_tokens))
            ours.append(run_ours(given.program, paths, given.max_tokens))
    equal = pillow[0][1] == ours[0][1]
    theirs, mine = min(pillow)[0], min(ours)[0]
    print(f"pictures {given.pictures}, {megabytes:.1f} MB, pixels equal: {equal}")
    print(f"Pillow {PIL.__version__}: {given.pictures / theirs:.1f} pictures/s")
    print(f"vlrerank: {given.pictures / mine:.1f} pictures/s")
    print(f"ratio {theirs / mine:.2f}")
    return 0 if equal and mine <= theirs else 1


if __name__ == "__main__":
    sys.exit(main())
