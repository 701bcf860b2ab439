"""Cases I*: pictures of every kind through `check --dump`, `prepare` and `score`, by the ids."""

import hashlib
import io
import json
import math
import resource
import struct
import unittest
import zlib

import numpy
from PIL import Image

from cases_pictures import geometry, on_white, png, png_chunk
from cases_support import EXPECTED, FILES, MODEL, CasesTest, ids_of, message_row, prompt_ids
from support import run

PROFILES = {
    "official_reranker": ("--image-min-tokens", "4", "--image-max-tokens", "1800"),
    "msswift_default": ("--image-min-tokens", "4", "--image-max-tokens", "16384"),
    "hf_preprocessor_default": ("--image-min-tokens", "64", "--image-max-tokens", "16384"),
}
PICTURE_CASES = ("I02", "I03", "I04", "I06", "I07", "I13")


class ImageCases(CasesTest):
    def setUp(self):
        super().setUp()
        self.random = numpy.random.default_rng(5)

    def noise(self, height, width, channels=3):
        return self.random.integers(0, 256, (height, width, channels), dtype=numpy.uint8)

    def save(self, name, data, **options):
        """Writes a picture: bytes as they are, arrays and images in the format of the name."""
        if isinstance(data, bytes):
            (self.path / name).write_bytes(data)
        else:
            if isinstance(data, numpy.ndarray):
                data = Image.fromarray(data)
            data.save(self.path / name, **options)
        return name

    def dump_pictures(self, paths, *options):
        """The dumped row of each picture, standing in a query."""
        rows = [message_row("<image>x", ["d"], ["n"], images=[str(path)]) for path in paths]
        lines = self.dump(self.write(rows), *options)
        return [lines[number + 1] for number in range(len(rows))]

    def assert_pixels(self, row, rgb, tolerance=0):
        """The row's picture has the size and colours of this array."""
        self.assertEqual(row["status"], "ok", row["reason"])
        got = row["images"][0]
        self.assertEqual(got["size_wh"], [rgb.shape[1], rgb.shape[0]], got["source"])
        if tolerance == 0:
            self.assertEqual(got["sha256_rgb8"], hashlib.sha256(rgb.tobytes()).hexdigest(), got)
        for name, value in (("rgb_mean", rgb.reshape(-1, 3).mean(0)), ("px_topleft", rgb[0, 0]),
                            ("px_bottomright", rgb[-1, -1])):
            worst = numpy.abs(numpy.array(got[name]) - value).max()
            self.assertLessEqual(worst, tolerance + 0.01, (got["source"], name, got[name], value))
        wanted = geometry(rgb.shape[1], rgb.shape[0])
        self.assertEqual({key: got[key] for key in wanted}, wanted, got["source"])

    def test_pictures_of_the_reports(self):
        """I02, I03, I04, I06, I07, I13: colours, sizes, and the grids of the three profiles."""
        wanted = [(name, values, EXPECTED[case]["tol_rgb"]) for case in PICTURE_CASES
                  for name, values in EXPECTED[case]["expected"].items()]
        for profile, options in PROFILES.items():
            rows = self.dump_pictures([FILES / name for name, _, _ in wanted], *options)
            for row, (name, values, tolerance) in zip(rows, wanted):
                with self.subTest(picture=name, profile=profile):
                    self.assertEqual(row["status"], "ok", row["reason"])
                    got = row["images"][0]
                    self.assertEqual(got["size_wh"], values["size_wh"])
                    for key in ("rgb_mean", "px_topleft", "px_bottomright"):
                        difference = numpy.subtract(got[key], values[key])
                        self.assertLessEqual(numpy.abs(difference).max(), tolerance + 0.01, key)
                    if tolerance == 0:
                        self.assertEqual(got["sha256_rgb8"], values["sha256_rgb8"])
                    grid = values["geometry"][profile]
                    self.assertEqual({key: got[key] for key in grid}, grid)

    def test_i02_alpha_lies_over_white(self):
        rgba, grey = self.noise(40, 70, 4), self.noise(33, 65, 2)
        names = [self.save("a.png", rgba), self.save("b.webp", rgba, lossless=True, exact=True),
                 self.save("c.tiff", rgba), self.save("d.png", Image.fromarray(grey, "LA"))]
        rows = self.dump_pictures(names)
        for row in rows[:3]:
            self.assert_pixels(row, on_white(rgba[..., :3], rgba[..., 3]), 1)
        self.assert_pixels(rows[3], on_white(grey[..., :1].repeat(3, 2), grey[..., 1]), 1)

    def test_i03_transparency_without_an_alpha_channel(self):
        indices = self.random.integers(0, 8, (50, 60), dtype=numpy.uint8)
        palette = self.noise(8, 1)[:, 0]
        paletted = Image.fromarray(indices, "P")
        paletted.putpalette(palette.tobytes())
        alphas = numpy.array([0, 40, 255, 128, 255, 255, 255, 255], numpy.uint8)
        grey = (indices * 30).astype(numpy.uint8)
        colour = palette[indices]
        names = [self.save("one.png", paletted, transparency=3),
                 self.save("many.png", paletted, transparency=alphas[:5].tobytes()),
                 self.save("grey.png", grey, transparency=60),
                 self.save("rgb.png", colour, transparency=tuple(int(v) for v in palette[2])),
                 self.save("one.gif", paletted, transparency=3)]
        one = numpy.where(indices == 3, 0, 255)
        rows = self.dump_pictures(names)
        self.assert_pixels(rows[0], on_white(colour, one))
        self.assert_pixels(rows[1], on_white(colour, alphas[indices]), 1)
        self.assert_pixels(rows[2], on_white(grey[..., None].repeat(3, 2),
                                             numpy.where(indices == 2, 0, 255)))
        self.assert_pixels(rows[3], on_white(colour, numpy.where(indices == 2, 0, 255)))
        self.assert_pixels(rows[4], on_white(colour, one))

    def test_i04_sixteen_bits_are_scaled(self):
        names, wanted = [], []
        for colour, channels in ((0, 1), (2, 3), (4, 2), (6, 4)):
            samples = self.random.integers(0, 65536, (48, 36, channels))
            rows = [row.astype(">u2").tobytes() for row in samples]
            names.append(self.save(f"{colour}.png", png(36, 48, 16, colour, rows)))
            scaled = numpy.rint(samples * 255 / 65535)
            rgb = scaled[..., :3] if channels > 2 else scaled[..., :1].repeat(3, 2)
            alpha = scaled[..., -1] if channels in (2, 4) else numpy.full((48, 36), 255)
            wanted.append(on_white(rgb, alpha))
        grey = self.random.integers(0, 65536, (40, 40), dtype=numpy.uint16)
        names.append(self.save("grey.tiff", grey))
        wanted.append(numpy.rint(grey[..., None].repeat(3, 2) / 257).astype(numpy.uint8))
        for row, rgb in zip(self.dump_pictures(names), wanted):
            self.assert_pixels(row, rgb, 1)

    def test_i06_grey_becomes_three_equal_channels(self):
        grey, bits = self.noise(37, 90, 1)[..., 0], self.noise(45, 45, 1)[..., 0] > 127
        names = [self.save(name, grey) for name in ("a.png", "a.bmp", "a.tiff", "a.webp")]
        names += [self.save(name, Image.fromarray(bits)) for name in ("b.png", "b.bmp", "b.tiff")]
        smooth = numpy.add.outer(numpy.arange(64), numpy.arange(64)).astype(numpy.uint8)
        names.append(self.save("c.jpg", smooth, quality=95))
        fours = [bytes(self.random.integers(0, 256, 16, dtype=numpy.uint8)) for _ in range(32)]
        names.append(self.save("d.png", png(32, 32, 4, 0, fours)))
        rows = self.dump_pictures(names)
        for row in rows[:3]:
            self.assert_pixels(row, grey[..., None].repeat(3, 2))
        self.assertEqual(rows[3]["status"], "ok")
        for row in rows[4:7]:
            self.assert_pixels(row, (bits * 255).astype(numpy.uint8)[..., None].repeat(3, 2))
        self.assert_pixels(rows[7], smooth[..., None].repeat(3, 2), 3)
        packed = numpy.array([[value for byte in row for value in (byte >> 4, byte & 15)] for row in fours])
        self.assert_pixels(rows[8], (packed * 17).astype(numpy.uint8)[..., None].repeat(3, 2))

    def test_i07_tiny_pictures_are_enlarged(self):
        sizes = [(1, 1), (2, 1), (1, 7), (5, 5), (31, 31), (1, 150), (40, 3)]
        pictures = [self.noise(height, width) for width, height in sizes]
        names = [self.save(f"{n}.png", picture) for n, picture in enumerate(pictures)]
        for row, picture in zip(self.dump_pictures(names), pictures):
            self.assert_pixels(row, picture)
            tokens = row["images"][0]["image_tokens"]
            self.assertEqual(ids_of(row)[0], prompt_ids([tokens, "x"], "d"))

    def test_i08_strips_are_rejected_by_name(self):
        wanted = EXPECTED["I08"]["expected"]
        for profile, options in PROFILES.items():
            lines = self.dump_case("I08", *options)
            self.assert_status(lines, wanted["ok_lines"], wanted["rejected_lines"])
            for key in ("resized_hw", "grid_thw", "image_tokens"):
                self.assertEqual(lines[1]["images"][0][key], wanted["line1_geometry"][profile][key])
        sizes = [(200, 1), (1, 200), (600, 3), (201, 1), (1, 201), (3, 601), (1001, 5)]
        names = [self.save(f"{width}x{height}.png", self.noise(height, width)) for width, height in sizes]
        rows = self.dump_pictures(names)
        self.assertEqual([row["status"] for row in rows], ["ok"] * 3 + ["rejected"] * 4)
        for row, name in zip(rows[3:], names[3:]):
            self.assertIn(name, row["reason"])
            self.assertIn(wanted["reason_mentions"], row["reason"])
        done = run("prepare", "--model", MODEL, "--dataset", self.path / "rows.jsonl", "--output",
                   self.path / "shards", ranks=2)
        for name in names[3:]:
            self.assertIn(name, done.stdout + done.stderr)
        self.assertIn(": 3 rows, 6 pairs", run("inspect", self.path / "shards").stdout)

    def test_i12_the_first_bytes_say_the_format(self):
        wanted = EXPECTED["I12"]["expected"]
        lines = self.dump_case("I12")
        self.assert_status(lines, wanted["ok_lines"], wanted["rejected_lines"])
        for number in wanted["ok_lines"]:
            difference = numpy.subtract(lines[number]["images"][0]["rgb_mean"], wanted["rgb"])
            self.assertLessEqual(numpy.abs(difference).max(), EXPECTED["I12"]["tol_rgb"])
        picture = Image.new("RGB", (64, 48), (20, 130, 220))
        names = []
        for form, name in (("GIF", "a.jpg"), ("BMP", "b.webp"), ("TIFF", "c.png"), ("JPEG", "d.gif"),
                           ("PNG", "no-ending"), ("WEBP", "e.html")):
            names.append(self.save(name, picture, format=form))
        bad = [b"", b"\xff", b"<!DOCTYPE html><html></html>", b"plain words", b"%PDF-1.7\n",
               b'{"error": 404}', (self.path / "no-ending").read_bytes()[:60]]
        names += [self.save(f"bad{n}.jpg", data) for n, data in enumerate(bad)]
        rows = self.dump_pictures(names)
        for row in rows[:6]:
            self.assertEqual(row["status"], "ok", row["reason"])
            self.assertLessEqual(numpy.abs(numpy.subtract(row["images"][0]["px_topleft"],
                                                          (20, 130, 220))).max(), 3, row)
        for row, name in zip(rows[6:], names[6:]):
            self.assertEqual(row["status"], "rejected", name)
            self.assertIn(name, row["reason"])

    def test_i13_the_first_frame_counts(self):
        first, second = Image.new("RGBA", (80, 50), (10, 200, 30)), Image.new("RGBA", (80, 50), (1, 2, 3))
        hole = first.copy()
        hole.paste((0, 0, 0, 0), (0, 0, 20, 20))
        names = []
        for disposal in (0, 1, 2):
            names.append(self.save(f"{disposal}.gif", first.convert("RGB"), save_all=True,
                                   append_images=[second.convert("RGB")], disposal=disposal))
        for name, options in (("hole.webp", {"lossless": True}), ("hole.png", {}), ("hole.gif", {})):
            names.append(self.save(name, hole, save_all=True, append_images=[second], **options))
        rows = self.dump_pictures(names)
        full = numpy.array(first)[..., :3]
        for row in rows[:3]:
            self.assert_pixels(row, full, 2)
        for row in rows[3:]:
            self.assert_pixels(row, on_white(numpy.array(hole)[..., :3], numpy.array(hole)[..., 3]), 2)

    def test_i14_the_limit_has_an_effect(self):
        wanted = EXPECTED["I14"]["expected"]
        cases = [(values, PROFILES.get(name, ("--max-pixels", values["max_pixels"])))
                 for name, values in wanted.items()]
        for values, options in cases:
            got = self.dump_case("I14", *options)[1]["images"][0]
            for key in ("resized_hw", "grid_thw", "image_tokens"):
                self.assertEqual(got[key], values[key], options)
        sizes = [(1999, 1001), (640, 480), (3000, 400), (200, 1500)]
        names = [self.save(f"{n}.jpg", Image.new("RGB", size)) for n, size in enumerate(sizes)]
        for least, most in ((4, 16), (4, 300), (32, 3500)):
            rows = self.dump_pictures(names, "--image-min-tokens", least, "--image-max-tokens", most)
            for row, size in zip(rows, sizes):
                self.assertEqual(row["status"], "ok", row["reason"])
                wanted = geometry(*size, least, most)
                self.assertEqual({key: row["images"][0][key] for key in wanted}, wanted, (size, most))

    def test_i16_large_pictures_cost_no_memory(self):
        lines = self.dump_case("I16")
        self.assert_status(lines, [2], [1])
        self.assertIn("20000x20000", lines[1]["reason"])
        self.assertEqual(lines[2]["images"][0]["px_topleft"], EXPECTED["I16"]["expected"]["line2_rgb"])
        pixels = [bytes((9, 8, 7)) * 64] * 64
        texts = [b"k\0\0" + zlib.compress(bytes(200 << 20)), b"k\0" + b"a" * (9 << 20)]
        names = [self.save("ztxt.png", png(64, 64, 8, 2, pixels, png_chunk(b"zTXt", texts[0]))),
                 self.save("text.png", png(64, 64, 8, 2, pixels, png_chunk(b"tEXt", texts[1]))),
                 self.save("wide.png", png(60000, 30000, 8, 2, pixels))]
        gif, bmp = io.BytesIO(), io.BytesIO()
        Image.new("P", (8, 8)).save(gif, "GIF")
        Image.new("RGB", (8, 8)).save(bmp, "BMP")
        gif, bmp = bytearray(gif.getvalue()), bytearray(bmp.getvalue())
        gif[6:10] = struct.pack("<HH", 65000, 65000)
        bmp[18:26] = struct.pack("<ii", 50000, 50000)
        names += [self.save("big.gif", bytes(gif)), self.save("big.bmp", bytes(bmp))]
        rows = self.dump_pictures(names)
        for row in rows[:2]:
            self.assert_pixels(row, numpy.full((64, 64, 3), (9, 8, 7), numpy.uint8))
        self.assertEqual([row["status"] for row in rows[2:]], ["rejected"] * 3)
        self.assertIn("60000x30000", rows[2]["reason"])
        self.assertLess(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, 1 << 20)

    def test_i17_grids_follow_the_placeholders(self):
        wanted = EXPECTED["I17"]["expected"]
        lines = self.dump_case("I17", *PROFILES["official_reranker"])
        pairs = [pair for number in sorted(lines) for pair in lines[number]["pairs"]]
        self.assertEqual([pair["input_ids"] for pair in pairs], wanted["pair_ids"])
        grids = [grid for pair in pairs for grid in pair["image_grid_thw"]]
        self.assertEqual(grids, wanted["image_grid_thw_in_order"])
        self.assertEqual(sum(math.prod(grid) for grid in grids), wanted["pixel_value_rows_total"])
        self.assertEqual([[math.prod(grid) // 4 for grid in pair["image_grid_thw"]] for pair in pairs],
                         wanted["pads_per_pair"])
        for name, size in (("a.png", (64, 64)), ("b.png", (96, 64)), ("c.png", (64, 160))):
            self.save(name, Image.new("RGB", size))
        rows = self.write([
            message_row("<image>q<image>", ["t", "<image>", "u<image>v<image>w"], ["<image>a<image>"],
                        images=["c.png", "a.png"], positive_images=[[], ["b.png"], ["a.png", "c.png"]],
                        negative_images=[["c.png", "b.png"]]),
            message_row("plain", ["text"], ["<image>"], negative_images=[["b.png"]])])
        lines = self.dump(rows)
        query = [10, "q", 4]
        self.assertEqual(ids_of(lines[1]), [
            prompt_ids(query, "t"), prompt_ids(query, [6]), prompt_ids(query, ["u", 4, "v", 10, "w"]),
            prompt_ids(query, [10, "a", 6])])
        self.assertEqual(ids_of(lines[2]), [prompt_ids("plain", "text"), prompt_ids("plain", [6])])
        together = run("score", "--model", MODEL, "--dataset", rows, "--per-device-eval-batch-size", "2")
        self.assertEqual([len(json.loads(line)["scores"]) for line in together.stdout.splitlines()], [4, 2])


if __name__ == "__main__":
    unittest.main()
