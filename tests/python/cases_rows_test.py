"""Cases D*: every row form and every odd line, through `check`, `train`, by the cases' ids."""

import base64
import json
import unittest

from PIL import Image

from cases_support import (EXPECTED, FILES, MODEL, CasesTest, ids_of, labels_of, message_row,
                           prompt_ids)
from support import run


class RowCases(CasesTest):
    def make_picture(self, name, size, colour=(9, 90, 200)):
        Image.new("RGB", size, colour).save(self.path / name)

    def test_d01_empty_documents_are_legal_and_null_is_not(self):
        lines = self.dump_case("D01")
        for number, wanted in EXPECTED["D01"]["lines"].items():
            row = lines[int(number)]
            self.assertEqual(row["status"], wanted["status"])
            if wanted["status"] == "rejected":
                for word in wanted["reason_mentions"]:
                    self.assertIn(word, row["reason"])
                continue
            for pair in wanted["pairs"]:
                self.assertIn(pair["input_ids"], ids_of(row))
                position = ids_of(row).index(pair["input_ids"])
                self.assertEqual(row["pairs"][position]["label"], pair["label"])
        lines = self.dump(self.write([
            message_row("", [""], ["full"]),
            {"query": "a", "pos": [""], "neg": ["b", " "]},
            message_row(None, ["d"], ["n"]),
            {"query": "q", "document": "", "label": 0.25},
            {"query": {"text": "q"}, "documents": [{"text": None, "label": 1}, {"text": "", "label": 0}]},
        ]))
        self.assert_status(lines, ok=[1, 2, 4, 5], rejected=[3])
        self.assertEqual(ids_of(lines[1]), [prompt_ids("", ""), prompt_ids("", "full")])
        self.assertEqual(ids_of(lines[2]),
                         [prompt_ids("a", ""), prompt_ids("a", "b"), prompt_ids("a", " ")])
        self.assertIn("messages[0].content is null", lines[3]["reason"])
        self.assertEqual((ids_of(lines[4]), labels_of(lines[4])), ([prompt_ids("q", "")], [0.25]))
        # Qwen's script writes NULL where a side has neither text nor media.
        self.assertEqual(ids_of(lines[5])[0], prompt_ids("q", "NULL"))

    def test_d02_positives_alone_are_trained_on(self):
        wanted = EXPECTED["D02"]["expected"]
        lines = self.dump_case("D02")
        self.assertEqual(labels_of(lines[1]) + labels_of(lines[2]), wanted["labels"])
        said = run("check", "--model", MODEL, "--dataset", FILES / "D02.jsonl")
        self.assertIn(wanted["warnings_mention"], said.stdout + said.stderr)
        self.assertIn("2 rows have no negative document", said.stdout + said.stderr)
        rows = self.write([{"query": "a", "pos": ["b"], "neg": []},
                           {"query": "c", "positive": "d", "negative": None},
                           message_row("e", ["f", "g"], [])])
        lines = self.dump(rows)
        self.assertEqual([labels_of(lines[n]) for n in (1, 2, 3)], [[1], [1], [1, 1]])
        for loss in ("pointwise", "listwise"):
            done = run("train", "--model", MODEL, "--dataset", rows, "--output-dir", self.path / loss,
                       "--cache-dir", self.path / "cache", "--loss", loss, "--max-steps", "1",
                       check=False)
            self.assertLess(done.returncode, 70, done.stderr)
            if loss == "pointwise":
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertTrue((self.path / loss / "last").exists())

    def test_d04_each_line_stands_alone(self):
        lines = self.dump_case("D04")
        wanted = EXPECTED["D04"]["expected"]
        self.assertEqual(len(lines), wanted["lines_ok"])
        self.assert_status(lines, ok=lines)
        self.assertEqual([[len(pair["images"]) for pair in lines[n]["pairs"]] for n in sorted(lines)],
                         wanted["images_per_pair"])
        self.make_picture("a.png", (64, 64))
        plain = {"query": "q", "pos": ["p"], "neg": ["n"]}
        lines = self.dump(self.write([
            plain | {"images": None}, plain | {"images": []}, dict(reversed(plain.items())),
            plain | {"unknown": {"deep": [None]}}, plain | {"images": "a.png"}, plain]))
        self.assert_status(lines, ok=range(1, 7))
        bare = [prompt_ids("q", "p"), prompt_ids("q", "n")]
        for number in (1, 2, 3, 4, 6):
            self.assertEqual(ids_of(lines[number]), bare)
        self.assertEqual(ids_of(lines[5]), [prompt_ids([4, "q"], d) for d in "pn"])

    def test_d05_marks_and_carriage_returns_are_no_text(self):
        wanted = EXPECTED["D05"]["expected"]
        lines = self.dump_case("D05")
        self.assert_status(lines, ok=lines)
        pairs = [ids for number in sorted(lines) for ids in ids_of(lines[number])]
        self.assertEqual((len(lines), len(pairs)), (wanted["lines_ok"], wanted["pairs"]))
        self.assertEqual(pairs[0], wanted["first_pair_ids"])
        self.assertEqual(pairs[-1], wanted["last_pair_ids"])
        path = self.path / "windows.jsonl"
        row = '{"query":"ü","pos":["%s"],"neg":["z"]}'
        path.write_bytes(b"\xef\xbb\xbf" + (row % "a").encode() + b"\r\n\r\n" +
                         (row % "b").encode() + b"\r\n" + (row % "c").encode())
        lines = self.dump(path)
        self.assertEqual({n: ids_of(lines[n])[0] for n in lines},
                         {1: prompt_ids("ü", "a"), 3: prompt_ids("ü", "b"), 4: prompt_ids("ü", "c")})
        path.write_bytes(b"\xef\xbb\xbf" + (row % "only").encode() + b"\r")
        self.assertEqual(ids_of(self.dump(path)[1])[0], prompt_ids("ü", "only"))

    def test_d06_only_a_line_feed_ends_a_line(self):
        lines = self.dump_case("D06")
        self.assertEqual([ids for n in sorted(lines) for ids in ids_of(lines[n])],
                         EXPECTED["D06"]["expected"]["pair_ids"])
        texts = ["a\u2028b", "a\u2029b", "a\u0085b", "a\x7fb", "a\u200bb\u2028"]
        lines = self.dump(self.write([{"query": text, "pos": [text], "neg": []} for text in texts]))
        self.assertEqual([ids_of(lines[n + 1])[0] for n in range(len(texts))],
                         [prompt_ids(text, text) for text in texts])

    def test_d08_duplicates_are_counted_and_dropped(self):
        wanted = EXPECTED["D08"]["expected"]
        lines = self.dump_case("D08")
        self.assertEqual([labels_of(lines[n]).count(0) for n in (1, 2)],
                         wanted["negatives_after_default_cleaning"])
        said = run("check", "--model", MODEL, "--dataset", FILES / "D08.jsonl").stdout
        self.assertIn("1 duplicates, 1 documents both positive and negative, 1 queries seen", said)
        self.make_picture("one.png", (64, 64))
        self.make_picture("two.png", (64, 64), (1, 1, 1))
        rows = self.write([
            {"query": "q", "pos": ["a"], "neg": ["a", "A", "a ", "b", "b"]},
            message_row("q", ["<image>x"], ["<image>x", "<image>x", "x"],
                        positive_images=[["one.png"]],
                        negative_images=[["one.png"], ["two.png"], []]),
        ])
        lines = self.dump(rows)
        self.assertEqual(ids_of(lines[1]), [prompt_ids("q", d) for d in ("a", "A", "a ", "b")])
        self.assertEqual(labels_of(lines[2]), [1, 0, 0])
        kept = self.dump(rows, "--keep-duplicates")
        self.assertEqual([len(kept[n]["pairs"]) for n in (1, 2)], [6, 4])

    def test_d09_tags_and_images_agree_on_each_side(self):
        lines = self.dump_case("D09")
        for number, wanted in EXPECTED["D09"]["lines"].items():
            row = lines[int(number)]
            self.assertEqual(row["status"], wanted["status"])
            for word in wanted.get("reason_mentions", []):
                self.assertIn(word, row["reason"])
            if "positive_pair_ids" in wanted:
                self.assertEqual(ids_of(row)[0], wanted["positive_pair_ids"])
        self.make_picture("q.png", (64, 64))
        self.make_picture("d.png", (96, 64))
        lines = self.dump(self.write([
            message_row("no tag", ["a<image>b"], ["n"], images=["q.png"], positive_images=[["d.png"]]),
            message_row("no tag", ["two, no tag"], ["n"], positive_images=[["d.png", "q.png"]]),
            message_row("<image>x<image>y<image>", ["d"], ["n"], images=["q.png", "d.png"]),
            message_row("q", ["d"], ["<image><image>"], negative_images=[["q.png"]]),
        ]))
        self.assert_status(lines, ok=[1, 2], rejected=[3, 4])
        self.assertEqual(ids_of(lines[1]), [prompt_ids([4, "no tag"], ["a", 6, "b"]),
                                            prompt_ids([4, "no tag"], "n")])
        self.assertEqual(ids_of(lines[2])[0], prompt_ids("no tag", [6, 4, "two, no tag"]))

    def test_d10_tags_without_media_stay_text(self):
        lines = self.dump_case("D10")
        self.assertEqual([ids for n in sorted(lines) for ids in ids_of(lines[n])],
                         EXPECTED["D10"]["expected"]["pair_ids"])
        texts = ["<video>", "a <image/> b", "<image>", "x<image><video><image>"]
        lines = self.dump(self.write([message_row(t, [t], ["n"]) for t in texts]))
        self.assertEqual([ids_of(lines[n + 1])[0] for n in range(len(texts))],
                         [prompt_ids(t, t) for t in texts])
        self.make_picture("q.png", (64, 64))
        lines = self.dump(self.write([message_row("[[pic]] <image>", ["d"], [], images="q.png")]),
                          "--image-tag", "[[pic]]")
        self.assertEqual(ids_of(lines[1])[0], prompt_ids([4, " <image>"], "d"))

    def test_d11_older_forms_are_converted_or_named(self):
        wanted = EXPECTED["D11"]["expected"]["converted_ids_if_converted"]
        first = self.dump_case("D11_a")[1]
        self.assertEqual(ids_of(first)[:2], [wanted["a_first"], wanted["a_second"]])
        self.assertEqual(labels_of(first), [1, 0, 0])
        self.assertEqual(labels_of(self.dump_case("D11_b")[1]), [1, 0])
        done = run("train", "--model", MODEL, "--dataset", FILES / "D11_c.jsonl", "--output-dir",
                   self.path / "run", "--cache-dir", self.path / "cache", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertFalse((self.path / "run" / "last").exists())
        done = run("check", "--model", MODEL, "--dataset", FILES / "D11_c.jsonl", check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn("positive_messages", done.stdout + done.stderr)
        lines = self.dump(self.write([
            {"query": "q", "positive": "p", "negative": ["n", "m"]},
            {"query": "q", "response": "p", "rejected_response": "n"},
            {"instruction": "Judge.", "query": {"text": "q"},
             "documents": [{"text": "p", "label": 0.5}, {"text": "n", "label": 0}]},
            {"question": "q", "answer": "p"}, {"query": "q", "chosen": "p", "rejected": "n"}]))
        self.assert_status(lines, ok=[1, 2, 3], rejected=[4, 5])
        self.assertEqual(ids_of(lines[1]), [prompt_ids("q", d) for d in "pnm"])
        self.assertEqual(ids_of(lines[2]), [prompt_ids("q", d) for d in "pn"])
        self.assertEqual(ids_of(lines[3]), [prompt_ids("q", d, "Judge.") for d in "pn"])
        self.assertEqual(labels_of(lines[3]), [0.5, 0])
        for number, key in ((4, "question"), (5, "chosen")):
            self.assertIn(key, lines[number]["reason"])
            self.assertIn("positive_messages", lines[number]["reason"])

    def test_d12_every_shape_of_a_media_field(self):
        wanted = EXPECTED["D12"]["expected"]
        lines = self.dump_case("D12")
        self.assert_status(lines, wanted["ok_lines"], wanted["rejected_lines"])
        for number in range(1, 6):
            self.assertEqual(ids_of(lines[number])[0], wanted["ids_lines_1_to_5_positive"])
        self.assertEqual(ids_of(lines[6])[0], wanted["ids_line_6_first_positive"])
        self.make_picture("a.png", (128, 64))
        data = base64.b64encode((self.path / "a.png").read_bytes()).decode()
        shapes = ["a.png", ["a.png"], {"path": "a.png"}, [{"path": "a.png", "bytes": None}],
                  [{"bytes": data}], ["data:image/png;base64," + data], [{"path": None, "bytes": data}],
                  str(self.path / "a.png")]
        bad = [["a.png", "b.png"], ["missing.png"], [{}], 7]
        lines = self.dump(self.write([message_row("<image>s", ["d"], ["n"], images=shape)
                                      for shape in shapes + bad]))
        self.assert_status(lines, range(1, len(shapes) + 1), [len(shapes) + 1 + n for n in range(4)])
        for number in range(1, len(shapes) + 1):
            self.assertEqual(ids_of(lines[number])[0], prompt_ids([8, "s"], "d"), shapes[number - 1])
        lines = self.dump(self.write([
            message_row("s", ["<image>a", "<image>b"], [], positive_images=["a.png", "a.png"]),
            message_row("s", ["<image>a"], ["b", "c"], positive_images=["a.png"],
                        negative_images=[[], ["a.png"]]),
            message_row("s", ["a", "b"], [], positive_images=["a.png"])]))
        self.assert_status(lines, [1, 2], [3])
        self.assertEqual(ids_of(lines[2])[2], prompt_ids("s", [8, "c"]))

    def test_d15_an_instruction_has_its_place(self):
        lines = self.dump_case("D15")
        for number in (1, 2, 3):
            self.assertEqual(ids_of(lines[number]), EXPECTED["D15"]["expected"][f"line{number}"])
        system = {"role": "system", "content": "Find 雨."}
        rows = [message_row("q", ["d"], ["n"]), message_row("q", ["d"], ["n"])]
        rows[0]["messages"].insert(0, system)
        rows[1]["negative_messages"][0].insert(0, system)
        path = self.write([*rows, {"query": "q", "pos": ["d"], "neg": ["n"]}])
        lines = self.dump(path, "--instruction", "Given one.")
        self.assertEqual(ids_of(lines[1]), [prompt_ids("q", d, "Find 雨.") for d in "dn"])
        self.assertEqual(ids_of(lines[2]), [prompt_ids("q", "d", "Given one."),
                                            prompt_ids("q", "n", "Find 雨.")])
        self.assertEqual(ids_of(lines[3]), [prompt_ids("q", d, "Given one.") for d in "dn"])

    def test_d16_every_bad_line_is_named(self):
        wanted = EXPECTED["D16"]["expected"]
        lines = self.dump_case("D16")
        self.assert_status(lines, wanted["good_lines"], wanted["bad_lines"])
        self.assertEqual(set(lines), {*wanted["good_lines"], *wanted["bad_lines"]})
        self.assertEqual(sum(len(row["pairs"]) for row in lines.values()), wanted["lenient_pairs"])
        strict = run("check", "--model", MODEL, "--dataset", FILES / "D16.jsonl", "--strict", check=False)
        self.assertEqual(strict.returncode, 3)
        good = {"query": "q", "pos": ["p"], "neg": ["n"]}
        path = self.write([good, "{", "", '{"query": 1}', "\t", b'{"query": "\xff"}', "null", good,
                           '{"query": "q", "pos": ["p"], "neg": [Infinity]}', json.dumps(good) + "x",
                           '{"query": "\\ud800", "pos": ["p"], "neg": []}'])
        done = run("check", "--model", MODEL, "--dataset", path, "--max-bad-rows", "20")
        for number in (2, 4, 6, 7, 9, 10, 11):
            self.assertIn(f"{path}:{number}: ", done.stdout + done.stderr)
        self.assertIn("2 usable, 7 bad", done.stdout + done.stderr)

    def test_d17_no_step_is_no_run(self):
        rows = FILES / "D17.jsonl"
        for plan in EXPECTED["D17"]["expected"]["plans"]:
            if plan["world"] > 2 and not plan["must_stop"]:
                continue
            self.check_plan(rows, plan)
        five = self.write([{"query": f"q{n}", "pos": ["p"], "neg": ["n"]} for n in range(7)])
        for per_device, accumulation, steps in ((2, 1, 3), (8, 1, 0)):
            self.check_plan(five, {"world": 1, "groups_per_device": per_device,
                                   "grad_accum": accumulation, "optimizer_steps_drop_last": steps,
                                   "must_stop": steps == 0})

    def check_plan(self, rows, plan):
        output = self.path / f"run-{len(list(self.path.iterdir()))}"
        done = run("train", "--model", MODEL, "--dataset", rows, "--output-dir", output, "--cache-dir",
                   self.path / "cache", "--num-train-epochs", "1", "--dataloader-drop-last", "true",
                   "--per-device-train-batch-size", plan["groups_per_device"],
                   "--gradient-accumulation-steps", plan["grad_accum"], "--logging-steps", "1",
                   ranks=plan["world"], check=False)
        if plan["must_stop"]:
            self.assertEqual(done.returncode, 2, done.stderr)
            for number in (plan["groups_per_device"], plan["grad_accum"], plan["world"]):
                self.assertIn(str(number), done.stderr)
            self.assertFalse((output / "last").exists())
        else:
            self.assertEqual(done.returncode, 0, done.stderr)
            last = (output / "last").resolve().name
            self.assertEqual(last, f"checkpoint-{plan['optimizer_steps_drop_last']}")


if __name__ == "__main__":
    unittest.main()
