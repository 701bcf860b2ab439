"""data/emoji/build: what its rows promise, and that the same seed gives the same bytes."""

import filecmp
import json
import pathlib
import subprocess
import tempfile
import unittest

import support

BUILD = support.ROOT / "data" / "emoji" / "build"
SLICE = support.ROOT / "data" / "emoji" / "slice"
FILES = ("train.jsonl", "dev-queries.jsonl", "dev-pictures.jsonl")


def build(folder, *options):
    subprocess.run([BUILD, folder, "--emoji", "120", "--rows", "200", "--dev-rows", "40", *options],
                   check=True, stdout=subprocess.DEVNULL)


def rows(folder, name):
    with open(pathlib.Path(folder, name), encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def query(row):
    return row["messages"][0]["content"]


def files(row):
    return {file for media in row["positive_images"] + row["negative_images"] for file in media}


class EmojiData(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.scratch.name, "a")
        build(cls.folder)
        cls.rows = {name: rows(cls.folder, name) for name in FILES}

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()

    def test_the_same_seed_gives_the_same_bytes(self):
        again, other = (pathlib.Path(self.scratch.name, name) for name in "bc")

        build(again)
        build(other, "--seed", "1")

        same = [filecmp.cmp(self.folder / name, again / name, shallow=False) for name in FILES]
        self.assertEqual(same, [True, True, True])
        self.assertFalse(filecmp.cmp(self.folder / FILES[0], other / FILES[0], shallow=False))

    def test_held_out_queries_ask_what_no_training_row_asks(self):
        asked = {query(row).casefold() for row in self.rows["train.jsonl"]}

        held_out = {query(row).casefold() for row in self.rows["dev-queries.jsonl"]}

        self.assertEqual(len(held_out), 40)
        self.assertFalse(asked & held_out)

    def test_unseen_pictures_are_in_no_training_row(self):
        seen = set().union(*map(files, self.rows["train.jsonl"] + self.rows["dev-queries.jsonl"]))

        unseen = set().union(*map(files, self.rows["dev-pictures.jsonl"]))

        self.assertTrue(unseen)
        self.assertFalse(seen & unseen)

    def test_every_row_has_its_number_of_documents_and_all_its_pictures(self):
        for folder, negatives in ((self.folder, {"train.jsonl": 3, "dev-queries.jsonl": 9}),
                                  (SLICE, dict(zip(FILES, (3, 7, 7))))):
            for name, count in negatives.items():
                for row in rows(folder, name):
                    self.assertEqual(len(row["positive_messages"]), 1)
                    self.assertEqual(len(row["negative_messages"]), count)
                    self.assertEqual(len(row["negative_images"]), count)
                    for file in files(row):
                        self.assertTrue((folder / file).read_bytes().startswith(b"\x89PNG"))

    def test_no_document_stands_twice_in_a_row(self):
        for name in FILES:
            for row in self.rows[name]:
                pictures = [media[0] for media in row["positive_images"] + row["negative_images"] if media]
                self.assertEqual(len(pictures), len(set(pictures)))


if __name__ == "__main__":
    unittest.main()
