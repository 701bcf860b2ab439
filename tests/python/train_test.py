"""`vlrerank train` as users call it: layouts agree, runs resume, bad input is told in one line."""

import json
import pathlib
import tempfile
import unittest

from support import run, test_data

MODEL = test_data("reference/model")
TRAIN = test_data("reference/swift-run/train.jsonl")
DEV = test_data("reference/swift-run/dev.jsonl")


def metrics(directory):
    return [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]


def losses(directory):
    return [row["loss"] for row in metrics(directory) if "loss" in row]


class Train(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def train(self, name, *more, **options):
        """Trains; an option given in `more` replaces the default here."""
        defaults = {
            "--model": MODEL, "--dataset": TRAIN, "--val-dataset": DEV, "--output-dir": self.path / name,
            "--learning-rate": "1e-3", "--global-batch-size": "5", "--max-steps": "6",
            "--logging-steps": "1", "--save-steps": "3", "--eval-steps": "3",
            "--cache-dir": self.path / "cache",
        }
        kept = [word for flag, value in defaults.items() if flag not in more for word in (flag, value)]
        return run("train", *kept, *more, **options)

    def adapter(self, name, link="last"):
        return (self.path / name / link / "adapter_model.safetensors").read_bytes()

    def test_ranks_packing_and_sharing_change_no_loss(self):
        self.train("one")
        want = losses(self.path / "one")
        self.assertEqual(len(want), 6)
        layouts = {
            "two": (["--zero", "0"], 2),
            "three": (["--zero", "1"], 3),
            "four": (["--zero", "2", "--micro-batch-tokens", "300"], 4),
            "apart": (["--share-prefix", "off", "--micro-batch-tokens", "1000"], 0),
            "recompute": (["--gradient-checkpointing", "true"], 2),
        }
        for name, (more, ranks) in layouts.items():
            with self.subTest(name):
                self.train(name, *more, ranks=ranks)
                got = losses(self.path / name)
                self.assertEqual(len(got), len(want))
                self.assertAlmostEqual(got[0], want[0], delta=1e-6)
                for a, b in zip(got, want):
                    self.assertAlmostEqual(a, b, delta=1e-5)

    def test_a_resumed_run_ends_in_the_same_bits(self):
        self.train("whole")
        self.train("parts", "--max-steps", "6", "--save-total-limit", "9")
        directory = self.path / "parts"
        # Forget the second half: as after a kill between the two checkpoints.
        for name in ["checkpoint-6"]:
            for file in sorted((directory / name).iterdir()):
                file.unlink()
            (directory / name).rmdir()
        done = self.train("parts", "--resume", "auto", "--save-total-limit", "9")
        self.assertIn("resumed from", done.stdout)
        self.assertEqual(self.adapter("parts"), self.adapter("whole"))
        self.assertEqual(losses(directory), losses(self.path / "whole"))
        again = self.train("parts", "--resume", "auto", "--save-total-limit", "9")
        self.assertIn("nothing to do", again.stdout)

    def test_another_number_of_ranks_goes_on_with_the_same_rows(self):
        self.train("whole", ranks=2)
        self.train("parts", ranks=2)
        target = self.path / "parts" / "checkpoint-6"
        for file in sorted(target.iterdir()):
            file.unlink()
        target.rmdir()
        self.train("parts", "--resume", "auto", ranks=3)
        for a, b in zip(losses(self.path / "parts"), losses(self.path / "whole")):
            self.assertAlmostEqual(a, b, delta=1e-5)

    def test_the_run_directory_holds_what_it_should(self):
        self.train("run")
        directory = self.path / "run"
        for name in ["config.json", "plan.json", "metrics.jsonl", "checkpoint-3", "checkpoint-6", "best", "last"]:
            self.assertTrue((directory / name).exists(), name)
        self.assertEqual(len(list(directory.glob("events.out.tfevents.*"))), 1)
        self.assertTrue((directory / "last").is_symlink())
        rows = metrics(directory)
        self.assertEqual(rows[0]["step"], 0)  # the untouched base model
        evaluations = [row for row in rows if "eval_mrr" in row]
        self.assertEqual([row["step"] for row in evaluations], [0, 3, 6])
        for key in ["loss", "grad_norm", "learning_rate", "acc", "epoch", "global_step/max_steps"]:
            self.assertTrue(any(key in row for row in rows), key)
        contract = json.loads((directory / "last" / "vlrerank.json").read_text())
        self.assertEqual(contract["limits"]["image_max_tokens"], 1280)
        # The written configuration is itself a --config.
        run("train", "--config", directory / "config.json", "--output-dir", self.path / "again")
        self.assertEqual(self.adapter("again"), self.adapter("run"))

    def test_the_articles_command_line_runs(self):
        line = (
            f"train --model {MODEL} --task_type generative_reranker --loss_type generative_reranker "
            "--train_type lora --lora_rank 8 --lora_alpha 32 --learning_rate 5e-6 --target_modules "
            f"all-linear --dataset {TRAIN} --attn_impl flash_attn --padding_free true --torch_dtype "
            f"bfloat16 --output_dir {self.path / 'article'} --save_steps 500 --eval_steps 500 "
            "--num_train_epochs 3 --max_length 4096 --per_device_train_batch_size 1 "
            "--per_device_eval_batch_size 1 --gradient_accumulation_steps 8 --dataloader_num_workers 4 "
            "--deepspeed zero2 --gradient_checkpointing true --warmup_ratio 0.05 "
            "--load_from_cache_file true --dataset_num_proc 4"
        )
        done = run(*line.split(), cwd=self.path)
        self.assertIn("float32", done.stdout + done.stderr)
        self.assertIn("zero", (done.stdout + done.stderr).lower())
        self.assertTrue((self.path / "article" / "last" / "adapter_model.safetensors").exists())

    def test_full_fine_tuning_saves_a_model_that_scores(self):
        self.train("full", "--tuner", "full", "--learning-rate", "1e-4", ranks=2)
        model = self.path / "full" / "last"
        done = run("eval", "--model", model, "--dataset", DEV, "--json", "true",
                   "--cache-dir", self.path / "cache")
        figures = json.loads(done.stdout.splitlines()[-1])
        last = [row for row in metrics(self.path / "full") if "eval_mrr" in row][-1]
        self.assertAlmostEqual(figures["mrr"], last["eval_mrr"], delta=1e-9)
        self.assertAlmostEqual(figures["loss"], last["eval_loss"], delta=1e-5)

    def test_bad_input_ends_with_one_message_and_its_code(self):
        (self.path / "used").mkdir()
        (self.path / "used" / "metrics.jsonl").write_text("")
        (self.path / "empty.jsonl").write_text("")
        (self.path / "cut").mkdir()
        for file in MODEL.iterdir():
            data = file.read_bytes()
            (self.path / "cut" / file.name).write_bytes(data[:-100] if "00003-of" in file.name else data)
        cases = {
            "output": (["--output-dir", self.path / "used"], 2, "already holds a run"),
            "model": (["--model", self.path / "nowhere"], 3, "nowhere"),
            "weights": (["--model", self.path / "cut"], 3, "model-00003-of-00003.safetensors"),
            "data": (["--dataset", self.path / "empty.jsonl"], 3, "empty.jsonl"),
            "missing": (["--dataset", self.path / "gone.jsonl"], 3, "gone.jsonl"),
            "option": (["--learning-rat", "1"], 2, "learning-rate"),
            "device": (["--device", "cuda"], 2, "cuda"),
        }
        for name, (more, code, words) in cases.items():
            for ranks in (0, 2):
                with self.subTest(name, ranks=ranks):
                    done = self.train("new", *more, ranks=ranks, check=False)
                    self.assertEqual(done.returncode, code, done.stderr)
                    self.assertIn(words, done.stderr)
                    self.assertEqual(done.stderr.count("\n  fix:"), 1, done.stderr)
                    self.assertFalse((self.path / "new").exists())

    def test_zero_steps_are_refused_with_the_numbers(self):
        done = self.train("zero", "--dataloader-drop-last", "true", "--global-batch-size", "100", check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("12 rows", done.stderr)


if __name__ == "__main__":
    unittest.main()
