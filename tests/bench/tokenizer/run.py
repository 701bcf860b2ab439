"""Our tokenizer against the `tokenizers` package on one thread, the same texts, in one run.

    .deps/venv/bin/python tests/bench/tokenizer/run.py [--bench BUILD/tests/bench/tokenizer/tokenizer_bench]

Prints one line a kind of text, and "ratio" = time of the package / ours. Exits with 1 when ids differ
or when any ratio is below --least.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from array import array
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
ROOT = Path(__file__).resolve().parents[3]


def texts(kind, cases, count, rng):
    """`count` texts of some hundred characters, mixed from the words of the golden strings."""
    if kind == "english":
        words = [w for c in cases if c["category"] in ("english", "code", "long") for w in c["text"].split()]
        words += (ROOT / "README.md").read_text().split() if (ROOT / "README.md").exists() else []
        words += "the of and to in is that for it as was with be by on not he his but at are this have from".split() * 20
        joint = " "
    elif kind == "mixed":
        words = [c["text"] for c in cases if c["category"] not in ("unicode_new", "long", "odd bytes")]
        joint = " "
    else:
        words = [chr(c) for c in range(0x4E00, 0x5E00)] + ["，", "。"] * 200
        joint = ""
    return [joint.join(rng.choices(words, k=rng.randint(20, 200))) for _ in range(count)]


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--bench", default=ROOT / "build/cpu/tests/bench/tokenizer/tokenizer_bench")
    arguments.add_argument("--data", default=ROOT / ".deps/testdata")
    arguments.add_argument("--count", type=int, default=3000)
    arguments.add_argument("--repeats", type=int, default=5)
    arguments.add_argument("--least", type=float, default=2.0)
    options = arguments.parse_args()
    import tokenizers

    data = Path(options.data)
    tokenizer_json = data / "qwen3-tokenizer/tokenizer.json"
    start = time.perf_counter()
    theirs = tokenizers.Tokenizer.from_file(str(tokenizer_json))
    load = time.perf_counter() - start
    cases = json.loads((data / "reference/tokenizer-cases.json").read_text())
    good = True
    for kind in ("english", "chinese", "mixed"):
        strings = texts(kind, cases, options.count, random.Random(1))
        best = float("inf")
        for _ in range(options.repeats):
            start = time.perf_counter()
            encoded = [theirs.encode(s, add_special_tokens=False).ids for s in strings]
            best = min(best, time.perf_counter() - start)
        expected = array("i", (i for row in encoded for i in row))
        with tempfile.TemporaryDirectory() as folder:
            given, made = Path(folder) / "texts.json", Path(folder) / "ids"
            given.write_text(json.dumps(strings))
            ours = json.loads(subprocess.check_output([options.bench, tokenizer_json, given, str(options.repeats), made]))
            equal = made.read_bytes() == expected.tobytes()
        ratio = best / ours["encode_seconds"]
        size = sum(len(s.encode()) for s in strings) / 1e6
        good &= equal and ratio >= options.least
        print(f"{kind:8} {size:5.1f} MB  tokenizers {tokenizers.__version__} {size / best:6.1f} MB/s  "
              f"ours {size / ours['encode_seconds']:6.1f} MB/s  ratio {ratio:.1f}  ids {'equal' if equal else 'DIFFER'}")
    print(f"load     tokenizers {load:.2f} s  ours {ours['load_seconds']:.2f} s")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
