"""Pictures made for the tests of the public cases, and what must become of them."""

import math
import struct
import zlib

import numpy


def geometry(width, height, least=4, most=1280):
    """Size, grid and tokens that a picture of this size gets, as Qwen's preprocessing has it."""
    sides = [max(32, round(side / 32) * 32) for side in (height, width)]
    if math.prod(sides) > most * 1024:
        scale = math.sqrt(height * width / (most * 1024))
        sides = [max(32, math.floor(side / scale / 32) * 32) for side in (height, width)]
    elif math.prod(sides) < least * 1024:
        scale = math.sqrt(least * 1024 / (height * width))
        sides = [math.ceil(side * scale / 32) * 32 for side in (height, width)]
    return {"resized_hw": sides, "grid_thw": [1, sides[0] // 16, sides[1] // 16],
            "image_tokens": math.prod(sides) // 1024}


def on_white(rgb, alpha):
    """RGB over white, straight alpha, rounded to nearest."""
    rgb, alpha = rgb.astype(float), alpha.astype(float)[..., None]
    return numpy.rint((rgb * alpha + 255 * (255 - alpha)) / 255).astype(numpy.uint8)


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, colour, rows, before=b""):
    """A PNG of raw sample rows; `before` is chunks that come ahead of the data."""
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows))
    return (b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + before + png_chunk(b"IDAT", data) +
            png_chunk(b"IEND", b""))
