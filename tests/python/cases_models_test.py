"""Cases A*, L*, H*: adapters, metrics, choices, dropout and shards through the program."""

import json
import math
import pathlib
import struct
import unittest

import numpy
from safetensors.numpy import load_file, save_file
from safetensors.torch import load_file as load_torch
from safetensors.torch import save_file as save_torch

from cases_support import EXPECTED, FILES, MODEL, CasesTest
from support import run

ADAPTER_CONFIG = {
    "peft_type": "LORA", "r": 2, "lora_alpha": 4, "lora_dropout": 0.0, "bias": "none",
    "base_model_name_or_path": "toy", "fan_in_fan_out": False, "task_type": None,
    "target_modules": ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]}
TOY = ("--hidden-size", 16, "--intermediate-size", 24, "--num-attention-heads", 2,
       "--num-key-value-heads", 1, "--head-dim", 8, "--num-hidden-layers", 2, "--tokenizer", MODEL)


def ranking(labels, scores):
    """MRR, NDCG and average precision of a list without ties; None where they mean nothing."""
    if not 0 < sum(labels) < len(labels):
        return None
    order = [labels[n] for n in sorted(range(len(labels)), key=lambda n: -scores[n])]
    ranks = [n + 1 for n, label in enumerate(order) if label]
    gain = sum(1 / math.log2(rank + 1) for rank in ranks)
    best = sum(1 / math.log2(n + 2) for n in range(len(ranks)))
    precision = sum((n + 1) / rank for n, rank in enumerate(ranks)) / len(ranks)
    return {"mrr": 1 / ranks[0], "ndcg": gain / best, "ap": precision}


class ModelCases(CasesTest):
    def toy(self, name="toy", *options):
        run("new-model", "--output", self.path / name, *TOY, *options)
        return self.path / name

    def adapter(self, name, source, **changes):
        """A PEFT directory around a file, or around tensors."""
        directory = self.path / name
        directory.mkdir()
        if isinstance(source, pathlib.Path):
            (directory / "adapter_model.safetensors").write_bytes(source.read_bytes())
        else:
            save_file(source, directory / "adapter_model.safetensors")
        (directory / "adapter_config.json").write_text(json.dumps(ADAPTER_CONFIG | changes))
        return directory

    def score(self, model, *options, **more):
        rows = self.write([{"query": "a", "pos": ["b"], "neg": ["c"]}, {"query": "d e", "documents": ["f"]}])
        return run("score", "--model", model, "--dataset", rows, *options, **more)

    def logits(self, model, *options):
        return [json.loads(line)["logits"] for line in self.score(model, *options).stdout.splitlines()]

    def assert_refused(self, model, adapter, *words):
        done = self.score(model, "--adapter", adapter, check=False)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_a01_every_key_of_an_adapter_matches(self):
        wanted = EXPECTED["A01"]["expected"]
        toy = self.toy()
        tuned = self.logits(toy, "--adapter", self.adapter("good", FILES / "A01_good.safetensors"))
        self.assertNotEqual(tuned, self.logits(toy))
        for name in ("noprefix", "textonly", "adaptername", "missing"):
            self.assert_refused(toy, self.adapter(name, FILES / f"A01_bad_{name}.safetensors"), "lora_")
        tensors = load_file(FILES / "A01_good.safetensors")
        key = next(iter(tensors))
        more = tensors | {key.replace("layers.0", "layers.7"): tensors[key]}
        self.assert_refused(toy, self.adapter("more", more), "layers.7")
        wrong = tensors | {key: numpy.zeros((5, 3), numpy.float32)}
        self.assert_refused(toy, self.adapter("shape", wrong), key)
        rows = self.write([{"query": "a", "pos": ["b"], "neg": ["c"]}])
        run("train", "--model", toy, "--dataset", rows, "--lora-rank", 2,
            "--output-dir", self.path / "run", "--cache-dir", self.path / "cache", "--max-steps", 1)
        saved = load_file(self.path / "run" / "last" / "adapter_model.safetensors")
        self.assertEqual({name: list(value.shape) for name, value in saved.items()}, wanted["shapes"])
        self.assertEqual(sorted(saved), sorted(wanted["keys"]))

    def test_a02_empty_tensors_are_refused(self):
        toy = self.toy()
        self.assert_refused(toy, self.adapter("empty", FILES / "A02_empty.safetensors"))
        self.assert_refused(toy, self.adapter("none", FILES / "A02_none.safetensors"))
        tensors = load_file(FILES / "A01_good.safetensors")
        key = next(iter(tensors))
        self.assert_refused(toy, self.adapter("one", tensors | {key: numpy.zeros((0, 16), numpy.float32)}), key)
        self.assert_refused(toy, self.adapter("all", {k: v[:0] for k, v in tensors.items()}))
        rows = self.write([{"query": f"q{n}", "pos": ["p"], "neg": ["n"]} for n in range(4)], "train.jsonl")
        files = []
        for zero in range(3):
            run("train", "--model", toy, "--dataset", rows, "--lora-rank", 2, "--zero", zero,
                "--output-dir", self.path / f"zero{zero}", "--cache-dir", self.path / "cache",
                "--max-steps", 2, "--global-batch-size", 4, ranks=2)
            files.append(load_file(self.path / f"zero{zero}" / "last" / "adapter_model.safetensors"))
        for other in files[1:]:
            self.assertEqual(set(other), set(files[0]))
            for name, value in files[0].items():
                numpy.testing.assert_array_equal(other[name], value, name)
        self.assertTrue(any(value.any() for name, value in files[0].items() if "lora_B" in name))

    def test_a04_a_tied_head_is_the_embedding(self):
        for seed in (3, 4):
            tied = self.toy(f"tied{seed}", "--tie-word-embeddings", "true", "--seed", seed,
                            "--embedding-range", "0.5")
            tensors = {k: v for path in tied.glob("*.safetensors") for k, v in load_torch(path).items()}
            self.assertNotIn("lm_head.weight", tensors)
            apart = self.path / f"apart{seed}"
            apart.mkdir()
            tensors["lm_head.weight"] = tensors["model.language_model.embed_tokens.weight"].clone()
            save_torch(tensors, apart / "model.safetensors", {"format": "pt"})
            for path in tied.glob("*.json"):
                if not path.name.endswith("index.json"):
                    (apart / path.name).write_bytes(path.read_bytes())
            config = json.loads((apart / "config.json").read_text())
            config["tie_word_embeddings"] = config["text_config"]["tie_word_embeddings"] = False
            (apart / "config.json").write_text(json.dumps(config))
            self.assertEqual(self.logits(tied), self.logits(apart))

    def test_a07_a_damaged_file_is_named(self):
        for name, verdict in EXPECTED["A07"]["expected"].items():
            done = run("inspect", FILES / name, check=False)
            if verdict == "rejects":
                self.assertEqual(done.returncode, 3, name)
                self.assertIn(name, done.stderr)
            else:
                tensors = [word for word in verdict.split(": ")[1].split(",") if word]
                self.assertIn(f"{len(tensors)} tensors", done.stdout, name)
        good = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
        headers = {
            "list": [good], "text": "no", "unknown": {"a": good["a"] | {"dtype": "F99"}},
            "negative": {"a": good["a"] | {"shape": [-2]}}, "back": {"a": good["a"] | {"data_offsets": [8, 0]}},
            "hole": good | {"b": {"dtype": "F32", "shape": [1], "data_offsets": [12, 16]}},
            "overflow": {"a": good["a"] | {"shape": [1 << 62, 4]}}}
        for name, header in headers.items():
            text = json.dumps(header).encode()
            size = 16 if name == "hole" else 8
            path = self.path / f"{name}.safetensors"
            path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(size))
            done = run("inspect", path, check=False)
            self.assertEqual(done.returncode, 3, (name, done.stdout, done.stderr))
            self.assertIn(path.name, done.stderr)

    def test_a08_module_names_keep_their_dots(self):
        toy = self.toy()
        good, names = (load_file(FILES / f"{name}.safetensors") for name in ("A01_good", "A08_names"))
        self.assert_refused(toy, self.adapter("alone", names), "lora_block.weight_norm.lora_A.weight")
        key = next(iter(good))
        module = key.removesuffix("down_proj.lora_A.weight")
        for name, odd in (("norm", module + "weight.lora_A.weight"), ("twice", key + ".weight")):
            self.assert_refused(toy, self.adapter(name, good | {odd: good[key]}), odd)
        self.assert_refused(toy, self.adapter("both", good | names),
                            *EXPECTED["A08"]["expected"]["round_trip_keys"])

    def test_l04_lists_are_ranked_whole(self):
        groups = json.loads((FILES / "L04_groups.json").read_text())
        wanted = EXPECTED["L04"]["expected"]
        for group, values in zip(groups, wanted["per_group"]):
            got = ranking(group["labels"], group["scores"])
            self.assertEqual(got is None, values is None)
            for key in values or {}:
                self.assertAlmostEqual(got[key], values[key], delta=1e-9)
        for salt in ("x", "y"):
            rows = [{"query": {"text": f"{salt} {n}"}, "documents": [
                {"text": f"{salt * 3}{k} of {n}", "label": label} for k, label in enumerate(group["labels"])]}
                for n, group in enumerate(groups + groups[::-1])]
            path = self.write(rows)
            scored = [json.loads(line)["logits"] for line in
                      run("score", "--model", MODEL, "--dataset", path).stdout.splitlines()]
            values = [ranking([d["label"] for d in row["documents"]], logits)
                      for row, logits in zip(rows, scored)]
            values = [value for value in values if value]
            for ranks in (0, 2):
                said = run("eval", "--model", MODEL, "--dataset", path, "--json", "--cache-dir",
                           self.path / "cache", "--at", "10", ranks=ranks).stdout
                said = json.loads(said.strip().splitlines()[-1])
                for ours, theirs in (("mrr", "mrr"), ("map", "ap"), ("ndcg@10", "ndcg")):
                    mean = sum(value[theirs] for value in values) / len(values)
                    self.assertAlmostEqual(said[ours], mean, delta=1e-6, msg=said)

    def test_l07_choices_depend_on_seed_and_epoch_alone(self):
        losses = {}
        for name, seed, ranks in (("one", 42, 1), ("two", 42, 2), ("other", 43, 1)):
            run("train", "--model", MODEL, "--dataset", FILES / "L07.jsonl", "--max-positives", 1,
                "--max-negatives", 4, "--data-seed", seed, "--seed", 42, "--learning-rate", "1e-12",
                "--lora-dropout", 0, "--global-batch-size", 4, "--num-train-epochs", 2,
                "--logging-steps", 1, "--output-dir", self.path / name, "--cache-dir",
                self.path / "cache", ranks=ranks)
            lines = (self.path / name / "metrics.jsonl").read_text().splitlines()
            losses[name] = [row["loss"] for row in map(json.loads, lines) if "loss" in row]
        for one, two in zip(losses["one"], losses["two"], strict=True):
            self.assertAlmostEqual(one, two, delta=1e-6)
        steps = len(losses["one"]) // 2
        self.assertNotAlmostEqual(sum(losses["one"][:steps]), sum(losses["one"][steps:]), places=6)
        self.assertNotEqual(losses["one"], losses["other"])

    def test_l08_dropout_is_for_training_only(self):
        rows = self.write([{"query": f"q{n}", "pos": [f"p{n}"], "neg": [f"n{n}"]} for n in range(6)], "l.jsonl")
        for dropout in ("0.5", "0.9"):
            output = self.path / dropout
            run("train", "--model", MODEL, "--dataset", rows, "--val-dataset", rows, "--lora-dropout",
                dropout, "--max-steps", 2, "--eval-steps", 1, "--global-batch-size", 6,
                "--learning-rate", "1e-2", "--output-dir", output, "--cache-dir", self.path / "cache")
            lines = map(json.loads, (output / "metrics.jsonl").read_text().splitlines())
            during = [row["eval_loss"] for row in lines if "eval_loss" in row][-1]
            twice = []
            for _ in range(2):
                said = run("eval", "--model", MODEL, "--adapter", output / "last", "--dataset", rows,
                           "--json", "--cache-dir", self.path / "cache").stdout
                twice.append(json.loads(said.strip().splitlines()[-1]))
                del twice[-1]["seconds"]
            self.assertEqual(*twice)
            after = twice[0]["loss"]
            self.assertAlmostEqual(during, after, delta=1e-6)

    def test_h02_many_readers_see_the_same_rows(self):
        rows = self.write([{"query": f"q{n} " * (n % 9), "pos": [f"p{n}"], "neg": [f"n{n} " * (n % 5)]}
                           for n in range(64)], "h.jsonl")
        run("prepare", "--model", MODEL, "--dataset", rows, "--output", self.path / "shards")
        curves = []
        for workers in (1, 4, 16):
            output = self.path / f"workers{workers}"
            run("train", "--model", MODEL, "--dataset", self.path / "shards", "--max-steps", 6,
                "--dataloader-num-workers", workers, "--global-batch-size", 16, "--logging-steps", 1,
                "--output-dir", output)
            lines = map(json.loads, (output / "metrics.jsonl").read_text().splitlines())
            curves.append([row["loss"] for row in lines if "loss" in row])
        self.assertEqual(curves[0], curves[1])
        self.assertEqual(curves[0], curves[2])


if __name__ == "__main__":
    unittest.main()
