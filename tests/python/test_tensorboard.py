"""The real tensorboard package reads our event files: `test_tensorboard.py WRITER`."""

import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

from tensorboard.backend.event_processing import event_accumulator
from tensorboard.backend.event_processing import event_file_loader
from tensorboard.util import tensor_util

WRITER = sys.argv.pop(1)


class EventFiles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        subprocess.run([WRITER, cls.folder.name], check=True)
        cls.files = sorted(pathlib.Path(cls.folder.name).iterdir())
        cls.events = event_accumulator.EventAccumulator(
            cls.folder.name, size_guidance={event_accumulator.TENSORS: 0, event_accumulator.SCALARS: 0})
        cls.events.Reload()

    def scalars(self, tag):
        return [(event.step, event.value) for event in self.events.Scalars(tag)]

    def test_files_have_the_name_that_tensorboard_looks_for(self):
        self.assertEqual(len(self.files), 2)
        for file in self.files:
            self.assertRegex(file.name, r"^events\.out\.tfevents\.\d{10}\.")

    def test_scalars_come_back_with_step_and_value(self):
        rates = self.scalars("train/learning_rate")
        for step, value in rates:
            self.assertAlmostEqual(value, 1e-5 * step, delta=1e-9)
        self.assertEqual([step for step, _ in rates], list(range(1, 201)))

    def test_a_resumed_run_replaces_the_later_steps(self):
        losses = dict(self.scalars("train/loss"))
        self.assertEqual(sorted(losses), list(range(1, 251)))
        self.assertAlmostEqual(losses[200], 1 / 200, delta=1e-8)
        self.assertEqual(losses[201], 2.0)

    def test_times_are_now(self):
        self.assertLess(abs(self.events.Scalars("train/loss")[0].wall_time - time.time()), 120)

    def test_texts_belong_to_the_text_plug_in(self):
        tag = "run/first sample"
        self.assertEqual(self.events.SummaryMetadata(tag).plugin_data.plugin_name, "text")
        words = tensor_util.make_ndarray(self.events.Tensors(tag)[0].tensor_proto)
        self.assertEqual(words.shape, (1,))
        self.assertEqual(words[0].decode(), "**query**: どこ? <Document>:\n\n| id | text |")

    def test_every_record_passes_its_checksums(self):
        counts = [len(list(event_file_loader.EventFileLoader(str(file)).Load())) for file in self.files]
        self.assertEqual(counts, [1 + 2 * 300 + 1, 2 + 50])


if __name__ == "__main__":
    unittest.main()
