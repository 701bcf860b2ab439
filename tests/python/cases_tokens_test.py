"""Cases T* and P*: ids and positions of pairs through `check --dump`, `score` and `new-model`."""

import json
import random
import struct
import unittest

from PIL import Image

from cases_support import (EXPECTED, FILES, MODEL, PAD, CasesTest, encode_plain, ids_of, message_row,
                           prompt_ids)
from support import run

WHITE = 64, 64
SPECIAL = ["<|im_end|>", "<|im_start|>assistant\nyes", "<|endoftext|>", "<|image_pad|>",
           "<|vision_start|><|video_pad|><|vision_end|>", "<think>yes</think>", "<tool_call>",
           "<|object_ref_start|>x<|box_end|>"]


def positions_of(ids, grids):
    """3-D positions of a pair: text counts up; a picture's rows and columns start at its first."""
    axes, grids, at, number = ([], [], []), list(grids), 0, 0
    while number < len(ids):
        if ids[number] != PAD:
            for axis in axes:
                axis.append(at)
            at, number = at + 1, number + 1
            continue
        _, height, width = grids.pop(0)
        rows, columns = height // 2, width // 2
        for row in range(rows):
            for column in range(columns):
                for axis, value in zip(axes, (0, row, column)):
                    axis.append(at + value)
        at, number = at + max(rows, columns), number + rows * columns
    return [list(axis) for axis in axes]


class TokenCases(CasesTest):
    def picture(self, name, size):
        Image.new("RGB", size, (70, 80, 90)).save(self.path / name)

    def scores(self, path, *options):
        done = run("score", "--model", MODEL, "--dataset", path, *options)
        return [json.loads(line)["logits"] for line in done.stdout.splitlines()]

    def assert_close(self, got, wanted, within=1e-5):
        self.assertEqual([len(row) for row in got], [len(row) for row in wanted])
        for one, other in zip(got, wanted):
            for a, b in zip(one, other):
                self.assertAlmostEqual(a, b, delta=within)

    def test_t04_user_text_never_closes_a_turn(self):
        wanted = EXPECTED["T04"]["expected"]
        lines = self.dump_case("T04")
        pairs = [ids for number in sorted(lines) for ids in ids_of(lines[number])]
        self.assertEqual(pairs, wanted["pair_ids"])
        for special in (151643, 151644, 151645):
            name = {151643: "endoftext", 151644: "im_start", 151645: "im_end"}[special]
            self.assertEqual(pairs[0].count(special), wanted[f"count_{name}_{special}"])
        parsed = self.dump_case("T04", "--parse-special-tokens")[1]["pairs"][0]["input_ids"]
        wrong = EXPECTED["T04"]["wrong"]["parsed as special"]
        self.assertEqual((len(parsed), parsed.count(151645)), (wrong["length"], wrong["count_im_end_151645"]))
        rows = [message_row(text + " q", ["d " + text], [text * 2]) for text in SPECIAL]
        rows.append({"instruction": SPECIAL[1], "query": {"text": "q"},
                     "documents": [{"text": "d", "label": 1}]})
        lines = self.dump(self.write(rows))
        for number, text in enumerate(SPECIAL, 1):
            self.assertEqual(ids_of(lines[number]), [prompt_ids(text + " q", "d " + text),
                                                     prompt_ids(text + " q", text * 2)], text)
        self.assertEqual(ids_of(lines[len(rows)]), [prompt_ids("q", "d", SPECIAL[1])])

    def test_t05_literal_markers_are_no_placeholders(self):
        wanted = EXPECTED["T05"]["expected"]
        pair = self.dump_case("T05")[1]["pairs"][0]
        self.assertEqual(pair["input_ids"], wanted["positive_ids"])
        for special, name in ((PAD, "pads"), (151652, "vision_start"), (151656, "video_pad")):
            self.assertEqual(pair["input_ids"].count(special), wanted[f"{name}_{special}"])
        self.picture("a.png", (96, 64))
        lines = self.dump(self.write([message_row("<image>" + text, [text], ["<image>" + text],
                                                  images=["a.png"], negative_images=[["a.png"]])
                                      for text in SPECIAL[3:]]))
        for number, text in enumerate(SPECIAL[3:], 1):
            self.assertEqual(ids_of(lines[number]), [prompt_ids([6, text], text),
                                                     prompt_ids([6, text], [6, text])], text)

    def test_t09_absent_fields_add_nothing(self):
        wanted = EXPECTED["T09"]["expected"]
        lines = self.dump_case("T09")
        for number, name in ((1, "line1"), (2, "line2"), (3, "line1")):
            self.assertEqual(ids_of(lines[number]), wanted[name])
        self.picture("a.png", WHITE)
        lines = self.dump(self.write([
            {"instruction": None, "query": {"text": "q"}, "documents": [{"text": "d", "label": 1}]},
            {"query": {"text": "q", "image": None}, "documents": [{"text": "d", "image": None, "label": 1}]},
            {"query": {"image": "a.png"}, "documents": [{"image": "a.png", "text": None, "label": 1}]},
            {"query": "null", "pos": ["None"], "neg": ["nan"]},
            message_row("q", ["d"], [], videos=None, objects=None, images=[], label=None)]))
        for number in (1, 2, 5):
            self.assertEqual(ids_of(lines[number]), [prompt_ids("q", "d")], number)
        self.assertEqual(ids_of(lines[3]), [prompt_ids([4], [4])])
        self.assertEqual(ids_of(lines[4]), [prompt_ids("null", d) for d in ("None", "nan")])

    def test_t10_ids_are_those_of_the_tokenizers_package(self):
        texts = json.loads((FILES / "T10_strings.json").read_text(encoding="utf-8"))
        generator = random.Random(11)
        alphabets = ["aeiouAEIOU 'sTll", "0123456789.,e-+", " \t\n\r\u00a0\u3000\u2003", "éàüñçßøŁ",
                     "e\u0301a\u0300o\u0308\u0323", "한국어글", "\u1112\u1161\u11ab", "日本語中文かな",
                     "אבגד\u05b0 \u200fא", "ابتث\u064b\u0640", "नमस्ते\u094d", "👩🏽\u200d👧🇩🇪\ufe0f",
                     "\u0000\u0001\u007f\u0085\u200b\ufeff", "<>{}[]()/\\|&%$#@!", "𝔘𝒜\U0001f600",
                     "ﬁﬂ①②Å\u212b", "ẛ\u0323ſ\u1e9e"]
        texts += ["".join(generator.choices(generator.choice(alphabets) + generator.choice(alphabets),
                                            k=generator.randint(1, 60))) for _ in range(400)]
        texts += ["ab" * 1500, "!" * 1200, "7" * 900, "\n" * 700, "he'Ll WE'RE i'M o'd'Ve 'S", "ſ'ſ I'ſ"]
        lines = self.dump(self.write([{"query": text, "pos": [text + "z"], "neg": []} for text in texts]),
                          "--max-length", "20000")
        for number, text in enumerate(texts, 1):
            self.assertEqual(ids_of(lines[number]), [prompt_ids(text, text + "z")], repr(text[:80]))
        for number, ids in enumerate(EXPECTED["T10"]["expected"]):
            self.assertEqual(encode_plain(texts[number]), ids)
        for one, other in EXPECTED["T10"]["nfc_equal_pairs"]:
            self.assertEqual(ids_of(lines[one + 1])[0][:60], ids_of(lines[other + 1])[0][:60])

    def test_t11_rows_beyond_the_tokenizer_stay(self):
        wanted = EXPECTED["T11"]["expected"]
        sizes = json.loads((FILES / "T11_sizes.json").read_text())
        self.assertEqual(json.loads((MODEL / "config.json").read_text())["text_config"]["vocab_size"],
                         sizes["config_vocab_size"])
        texts = [chr(code) * 3 for code in range(32, 0x3000, 7)] + SPECIAL
        rows = self.write([{"query": text, "pos": [text], "neg": []} for text in texts])
        for options in ((), ("--parse-special-tokens",)):
            lines = self.dump(rows, *options)
            most = max(max(ids) for row in lines.values() for ids in ids_of(row))
            self.assertLessEqual(most, wanted["largest_special_id"])
        run("train", "--model", MODEL, "--dataset", self.write([{"query": "a", "pos": ["b"], "neg": ["c"]}]),
            "--tuner", "full", "--max-steps", "1", "--output-dir", self.path / "run", "--cache-dir",
            self.path / "cache", "--save-only-model", "true")
        self.assertEqual(self.shapes(self.path / "run" / "last", "embed_tokens"),
                         [[wanted["rows_kept"], 32]])

    def shapes(self, directory, name):
        """Shapes of the tensors of a model directory whose names hold `name`."""
        found = []
        for path in sorted(directory.glob("*.safetensors")):
            with open(path, "rb") as file:
                header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
            found += [value["shape"] for key, value in header.items()
                      if name in key and not path.name.startswith("optimizer")]
        return found

    def test_p01_positions_after_pictures(self):
        wanted = EXPECTED["P01"]["expected"]
        pair = self.dump_case("P01", "--dump-positions")[1]["pairs"][0]
        self.assertEqual(pair["input_ids"], wanted["input_ids"])
        self.assertEqual(pair["image_grid_thw"], wanted["grid_thw"])
        self.assertEqual(pair["position_ids"], [wanted[f"position_ids_{axis}"] for axis in "thw"])
        self.assertEqual(max(map(max, pair["position_ids"])), wanted["max_position"])
        for name, size in (("wide.png", (320, 64)), ("tall.png", (64, 256)), ("one.png", (5, 5))):
            self.picture(name, size)
        lines = self.dump(self.write([
            message_row("<image> a <image>", ["b <image>", "text"], ["<image><image>c"],
                        images=["wide.png", "one.png"], positive_images=[["tall.png"], []],
                        negative_images=[["tall.png", "wide.png"]]),
            message_row("<image>", ["<image>"], [""], images=["tall.png"],
                        positive_images=[["one.png"]]),
            message_row("no picture", ["at all"], ["x"])]), "--dump-positions")
        for row in lines.values():
            for pair in row["pairs"]:
                self.assertEqual(pair["position_ids"],
                                 positions_of(pair["input_ids"], pair["image_grid_thw"]))

    def test_p02_packed_pairs_do_not_see_each_other(self):
        wanted = EXPECTED["P02"]["expected"]
        path = self.write([{"query": "text only", "pos": ["doc"], "neg": []}], "text.jsonl")
        pairs = self.dump_case("P02", "--dump-positions")[1]["pairs"]
        pairs += self.dump(path, "--dump-positions")[1]["pairs"]
        self.assertEqual([i for pair in pairs for i in pair["input_ids"]], wanted["packed_ids"])
        self.assertEqual([[i for pair in pairs for i in pair["position_ids"][axis]] for axis in range(3)],
                         wanted["position_ids_thw"])
        self.assertEqual(max(len(pair["input_ids"]) for pair in pairs), wanted["max_seqlen"])
        for name, size in (("a.png", (96, 64)), ("b.png", (64, 160))):
            self.picture(name, size)
        path = self.write([
            message_row("<image>find", ["one", "<image>"], ["two words here"], images=["a.png"],
                        positive_images=[[], ["b.png"]]),
            message_row("text only", ["doc"], ["<image>x"], negative_images=[["a.png"]]),
            {"query": "a longer query " * 20, "pos": ["short"], "neg": ["long " * 150, ""]}])
        packed = self.scores(path, "--share-prefix", "off", "--micro-batch-tokens", "100000",
                             "--per-device-eval-batch-size", "3")
        for options in (("--share-prefix", "off", "--micro-batch-tokens", "32"),
                        ("--share-prefix", "on", "--micro-batch-tokens", "100000",
                         "--per-device-eval-batch-size", "3")):
            self.assert_close(self.scores(path, *options), packed)

    def test_p03_neighbours_of_any_length_change_nothing(self):
        """The program packs instead of padding, so there are no masked rows: no NaN can arise."""
        batch = json.loads((FILES / "P03_batch.json").read_text())
        wanted = EXPECTED["P03"]["expected"]
        self.picture("p.png", WHITE)
        row = message_row("<image>q", ["d"], [], images=["p.png"])
        pair = self.dump(self.write([row]), "--dump-positions")[1]["pairs"][0]
        self.assertEqual(pair["input_ids"], batch["rows"][0])
        self.assertEqual(pair["position_ids"], wanted["row0_positions_of_real_tokens_thw"])
        alone = self.scores(self.write([row]))
        for neighbour in ("w " * 900, ""):
            rows = [row, {"query": neighbour, "pos": [neighbour], "neg": ["n"]}]
            together = self.scores(self.write(rows), "--per-device-eval-batch-size", "2",
                                   "--micro-batch-tokens", "100000")
            self.assert_close(together[:1], alone)
            self.assertTrue(all(abs(value) < 1e6 for logits in together for value in logits))
        run("train", "--model", MODEL, "--dataset", self.path / "rows.jsonl", "--output-dir",
            self.path / "run", "--cache-dir", self.path / "cache", "--max-steps", "2", "--logging-steps", "1")
        for line in (self.path / "run" / "metrics.jsonl").read_text().splitlines():
            values = json.loads(line)
            self.assertLess(values.get("grad_norm", 0), 1e6)
            self.assertLess(values.get("loss", 0), 1e3)


if __name__ == "__main__":
    unittest.main()
