"""What the tests of the public cases share: expected values, dumps, and the prompt's ids."""

import json
import pathlib
import tempfile
import unittest

from tokenizers import Tokenizer

from support import run, test_data

MODEL = test_data("reference/model")
FILES = test_data("cases/files")
EXPECTED = json.loads(test_data("cases/expected.json").read_text(encoding="utf-8"))
META = EXPECTED["_meta"]
INSTRUCTION = META["default_instruction"]
PAD = 151655

# Special strings inside user text are plain characters: this tokenizer knows none of them.
_description = json.loads((MODEL / "tokenizer.json").read_text(encoding="utf-8"))
_plain = Tokenizer.from_str(json.dumps(_description | {"added_tokens": []}))


def encode_plain(text):
    return _plain.encode(text, add_special_tokens=False).ids


def picture(tokens):
    """The ids that stand for one picture of so many tokens."""
    return [151652] + [PAD] * tokens + [151653]


def prompt_ids(query, document, instruction=INSTRUCTION):
    """Ids of a pair; a side is a string, or a list of strings and of pictures' token counts."""
    ids = [151644, *encode_plain("system\n" + META["system"]), 151645, 198, 151644]
    parts = ["user\n<Instruct>: " + instruction + "<Query>:"]
    for part in [*side(query), "\n<Document>:", *side(document)]:
        if isinstance(part, str) and isinstance(parts[-1], str):
            parts[-1] += part
        else:
            parts.append(part)
    for part in parts:
        ids += encode_plain(part) if isinstance(part, str) else picture(part)
    return ids + META["suffix_ids"]


def side(value):
    return [value] if isinstance(value, (str, int)) else value


def message_row(query, positives, negatives, **others):
    """A row in ms-swift's form."""
    documents = {"positive_messages": positives, "negative_messages": negatives}
    return {"messages": [{"role": "user", "content": query}]} | {
        name: [[{"role": "assistant", "content": text}] for text in texts]
        for name, texts in documents.items()} | others


class CasesTest(unittest.TestCase):
    """Gives each test a folder, and the dump of a file of rows."""

    maxDiff = 400

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def write(self, rows, name="rows.jsonl"):
        """Rows as JSONL; a str or bytes is written as it is."""
        path = self.path / name
        with open(path, "wb") as out:
            for row in rows:
                if not isinstance(row, (str, bytes)):
                    row = json.dumps(row, ensure_ascii=False)
                out.write((row if isinstance(row, bytes) else row.encode()) + b"\n")
        return path

    def dump(self, path, *options):
        """What became of each row, by line number."""
        lines, _ = self.dump_and_log(path, *options)
        return lines

    def dump_and_log(self, path, *options):
        done = run("check", "--model", MODEL, "--dataset", path, "--dump", "1:100000",
                   "--max-bad-rows", "1000", *options)
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"file"')]
        return {row["line"]: row for row in rows}, done.stdout + done.stderr

    def dump_case(self, name, *options):
        return self.dump(FILES / f"{name}.jsonl", *options)

    def assert_status(self, lines, ok=(), rejected=()):
        for number in ok:
            self.assertEqual(lines[number]["status"], "ok", lines[number])
        for number in rejected:
            self.assertEqual(lines[number]["status"], "rejected", lines[number])
            self.assertTrue(lines[number]["reason"], lines[number])


def ids_of(row):
    return [pair["input_ids"] for pair in row["pairs"]]


def labels_of(row):
    return [pair["label"] for pair in row["pairs"]]
