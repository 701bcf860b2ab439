"""Memory does not grow with the data set, and a full disk ends a run with its own code."""

import json
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

from support import PROGRAM, run, test_data

MODEL = test_data("reference/model")
WORDS = "river stone maple copper lantern signal winter harbor violet engine paper salt".split()


def write_rows(path, count):
    """Rows of text whose shards hold about 100 KB each when they carry a picture."""
    images = sorted(test_data("reference/images").glob("*.png"))
    generator = random.Random(7)
    with open(path, "w", encoding="utf-8") as out:
        for number in range(count):
            words = [" ".join(generator.choices(WORDS, k=40)) for _ in range(4)]
            row = {"query": f"{number} {words[0]}", "pos": words[1:2], "neg": words[2:],
                   "images": [str(images[number % len(images)])]}
            out.write(json.dumps(row) + "\n")


def peak_mib(*arguments):
    """Peak resident memory of one `vlrerank` process."""
    process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode:
        raise AssertionError(output)
    return usage.ru_maxrss / 1024


class Limits(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def test_training_memory_does_not_grow_with_the_data(self):
        peaks = {}
        for count in (200, 4000):
            write_rows(self.path / f"{count}.jsonl", count)
            run("prepare", "--model", MODEL, "--dataset", self.path / f"{count}.jsonl", "--output",
                self.path / f"shards-{count}", "--image-max-tokens", "64")
            peaks[count] = peak_mib(
                "train", "--model", MODEL, "--dataset", self.path / f"shards-{count}", "--output-dir",
                self.path / f"run-{count}", "--image-max-tokens", "64", "--max-steps", "25",
                "--global-batch-size", "8", "--micro-batch-tokens", "2000", "--save-only-model", "true")
        self.assertLess(peaks[4000], peaks[200] + 40, peaks)

    @unittest.skipUnless(os.geteuid() == 0, "mounting a small file system needs root")
    def test_a_full_disk_ends_the_run_and_leaves_no_half_checkpoint(self):
        small = self.path / "small"
        small.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", small], check=True)
        try:
            done = run(
                "train", "--model", MODEL, "--dataset", test_data("reference/swift-run/train.jsonl"),
                "--cache-dir", self.path / "cache", "--output-dir", small / "run", "--max-steps", "2",
                "--global-batch-size", "4", "--save-steps", "2", ranks=2, check=False)
            self.assertEqual(done.returncode, 74, done.stderr)
            self.assertIn("No space left", done.stderr)
            left = [entry.name for entry in (small / "run").iterdir()]
            self.assertNotIn("checkpoint-2", left)
            self.assertNotIn("last", left)
        finally:
            subprocess.run(["umount", small], check=True)


if __name__ == "__main__":
    unittest.main()
