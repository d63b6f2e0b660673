"""`prep weights` against scikit-learn's compute_class_weight, and its other formulas against NumPy, to 1e-12.

  python tests/references/weights.py        (needs numpy and scikit-learn; PREP names the binary, default target/debug/prep)
"""
import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

ROOT = Path(__file__).resolve().parent.parent.parent
PREP = os.environ.get("PREP", str(ROOT / "target/debug/prep"))


def weights(table, *more):
    words = [PREP, "weights", str(table), "--no-files", "--json", "-n", "-q", *more]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return {c["name"]: c["weight"] for c in json.loads(said)["classes"]}


def compare(what, got, want):
    names = sorted(want)
    assert [n for n in sorted(got) if got[n] > 0] == names, what
    off = max(abs(got[n] / want[n] - 1) for n in names)
    assert off <= 1e-12, f"{what}: off by {off:.1e}"
    return off


def main():
    checked, worst = 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(5):
            lot = np.random.default_rng(seed)
            shares = lot.dirichlet(np.full(12, 0.5))
            labels = lot.choice([f"class_{c}" for c in range(12)], 3000, p=shares)
            parts = lot.choice(["train", "val"], 3000, p=[0.8, 0.2])
            table = Path(folder) / f"t{seed}.csv"
            with open(table, "w", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(["path", "label", "split"])
                writer.writerows((f"{i:05d}.jpg", label, part) for i, (label, part) in enumerate(zip(labels, parts)))
            train = labels[parts == "train"]
            names, counts = np.unique(train, return_counts=True)
            balanced = compute_class_weight("balanced", classes=names, y=train)
            formulas = {
                ("balanced",): balanced,
                ("inverse",): 1 / counts,
                ("sqrt",): 1 / np.sqrt(counts),
                ("effective", "--beta", "0.999"): (1 - 0.999) / (1 - 0.999 ** counts),
                ("effective", "--beta", "0.9"): (1 - 0.9) / (1 - 0.9 ** counts),
            }
            for words, bare in formulas.items():
                method, *more = words
                scaled = bare if method == "balanced" else bare * counts.sum() / (bare * counts).sum()
                got = weights(table, "--method", method, *more)
                worst = max(worst, compare(f"seed {seed} {words}", got, dict(zip(names, scaled))))
                got = weights(table, "--method", method, "--normalize", "none", *more)
                worst = max(worst, compare(f"seed {seed} {words} bare", got, dict(zip(names, bare))))
                checked += 2
    assert checked == 50, checked
    print(f"weights: {checked} sets of weights as scikit-learn and NumPy have them, off by at most {worst:.1e}")


if __name__ == "__main__":
    sys.exit(main())
