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
from PIL import Image, ImageDraw

SIZES = [(1024, 768), (1280, 853), (1600, 1200), (1920, 1080), (2048, 1536), (800, 1200), (3000, 2000)]


def draw(index, width, height):
    """Smooth shapes, edges and some noise: compresses like a photograph, about 2 bits a pixel."""
    random = numpy.random.default_rng(index)
    small = random.integers(0, 256, (height // 64, width // 64, 3), numpy.uint8)
    picture = Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC)
    pen = ImageDraw.Draw(picture)
    for _ in range(30):
        x, y, radius = random.uniform(0, width), random.uniform(0, height), random.uniform(10, 200)
        pen.ellipse([x - radius, y - radius, x + radius, y + radius], fill=tuple(random.integers(0, 256, 3)))
    noise = random.integers(-10, 11, (height, width, 1), numpy.int16)
    return Image.fromarray((numpy.asarray(picture) + noise).clip(0, 255).astype(numpy.uint8))


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
