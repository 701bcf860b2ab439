"""Our adapter loads in the real peft with the same scores, and peft's loads in ours."""

import json
import pathlib
import tempfile
import unittest

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoTokenizer, Qwen3VLForConditionalGeneration

from support import run, test_data

SYSTEM = (
    "Judge whether the Document meets the requirements based on the Query and the Instruct "
    'provided. Note that the answer can only be "yes" or "no".'
)
INSTRUCTION = "Given a search query, retrieve relevant candidates that answer the query."
ROWS = [
    ("how do I reset the router", ["Hold the reset pin for ten seconds.", "It weighs 300 g.", "Two years."]),
    ("Hauptstadt von Frankreich", ["Paris ist die Hauptstadt.", "Lyon has a large old town."]),
    ("天空为什么是蓝色的", ["瑞利散射偏向短波长。", "海水是咸的。", "The sun is a star.", "Grass is green."]),
]


def prompt(query, document):
    return (
        f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n<Instruct>: {INSTRUCTION}"
        f"<Query>:{query}\n<Document>:{document}<|im_end|>\n<|im_start|>assistant\n"
    )


def write_rows(path):
    with open(path, "w", encoding="utf-8") as out:
        for query, documents in ROWS:
            row = {"query": query, "pos": documents[:1], "neg": documents[1:]}
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


class Peft(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model_dir = test_data("reference/model")
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        write_rows(cls.path / "rows.jsonl")
        cls.tokenizer = AutoTokenizer.from_pretrained(cls.model_dir)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def base(self):
        model = Qwen3VLForConditionalGeneration.from_pretrained(self.model_dir, dtype=torch.float32)
        return model.eval()

    def their_logits(self, model):
        rows = []
        with torch.no_grad():
            for query, documents in ROWS:
                logits = []
                for document in documents:
                    ids = self.tokenizer(prompt(query, document), return_tensors="pt").input_ids
                    last = model(input_ids=ids).logits[0, -1].float()
                    logits.append((last[9693] - last[2152]).item())
                rows.append(logits)
        return rows

    def our_logits(self, adapter):
        arguments = ["score", "--model", self.model_dir, "--dataset", self.path / "rows.jsonl"]
        done = run(*arguments, *(["--adapter", adapter] if adapter else []))
        return [json.loads(line)["logits"] for line in done.stdout.splitlines()]

    def compare(self, ours, theirs):
        self.assertEqual([len(row) for row in ours], [len(row) for row in theirs])
        for mine, other in zip(ours, theirs):
            for a, b in zip(mine, other):
                self.assertAlmostEqual(a, b, delta=2e-5)

    def test_peft_loads_what_training_saved(self):
        out = self.path / "run"
        run(
            "train", "--model", self.model_dir, "--dataset", self.path / "rows.jsonl", "--output-dir",
            out, "--learning-rate", "1e-2", "--lora-dropout", "0", "--global-batch-size", "2",
            "--num-train-epochs", "3", "--save-steps", "100", "--seed", "5", ranks=2,
        )
        adapter = out / "last"
        tuned = PeftModel.from_pretrained(self.base(), adapter).eval()
        theirs = self.their_logits(tuned)
        self.compare(self.our_logits(adapter), theirs)
        untouched = self.their_logits(self.base())
        self.assertGreater(abs(theirs[0][0] - untouched[0][0]), 1e-3, "training changed nothing")

    def test_ours_loads_what_peft_saved(self):
        torch.manual_seed(3)
        for name, config in {
            "suffixes": LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "down_proj"]),
            "rslora": LoraConfig(r=8, lora_alpha=8, use_rslora=True, target_modules=["v_proj", "up_proj"]),
            "expression": LoraConfig(
                r=2, target_modules=r"model\.language_model\.layers\.[024]\..*\.(k|o)_proj"
            ),
        }.items():
            with self.subTest(name):
                model = get_peft_model(self.base(), config)
                for key, value in model.named_parameters():
                    if "lora_B" in key:
                        torch.nn.init.normal_(value, std=0.05)
                model.save_pretrained(self.path / name)
                self.compare(self.our_logits(self.path / name), self.their_logits(model.eval()))

    def test_the_base_alone_agrees(self):
        self.compare(self.our_logits(None), self.their_logits(self.base()))


if __name__ == "__main__":
    unittest.main()
