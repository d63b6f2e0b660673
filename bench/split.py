"""Split quality of `prep split` against scikit-learn and iterative-stratification on the cases of ../shared/bench/split.

  python bench/split.py [--sizes 2000,10000] [--seeds 20] [--cases plants,few] [--ratios 2,3] [--gens 0] [--peers 3]

Needs numpy and scikit-learn (iterative-stratification for the cases with several labels), target/release/prep, and the
generator and scorer in $PREP_SHARED/bench/split (default: ../shared beside the project). Every number is measured here;
the last lines tell which goals do not hold. CPU seconds are user + system of the whole process.

bound   mean over classes of the least deviation that whole groups of the class alone would allow
forced  the same when a class with enough groups must be in every part: what can be asked of a splitter that leaves none out
"""
import argparse
import csv
import itertools
import os
import resource
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("PREP_SHARED", ROOT.parent / "shared")) / "bench" / "split"
if not (SHARED / "gen.py").exists():
    sys.exit(f"the generator is not at {SHARED}: set PREP_SHARED")
sys.path.insert(0, str(SHARED))
warnings.filterwarnings("ignore")

import numpy as np  # noqa: E402
from gen import CASES, make  # noqa: E402
from score import bound, gmat, score  # noqa: E402

PREP = os.environ.get("PREP", str(ROOT / "target/release/prep"))
RATIOS = {2: (0.8, 0.2), 3: (0.8, 0.1, 0.1)}
NAMES = ["train", "val", "test"]
MULTI = ["multi", "multi_g"]


def write_table(path, y, g):
    if y.ndim == 1:
        labels = [f"c{v}" for v in y]
    else:
        labels = ["|".join(f"c{j}" for j in np.flatnonzero(row)) for row in y]
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "label", "group"])
        writer.writerows((f"{i:08d}.jpg", label, f"g{x}") for i, (label, x) in enumerate(zip(labels, g)))


def prep(table, n, shares, seed, threads=None):
    """The part of each row, CPU seconds and peak MB."""
    out = table + ".out.csv"
    for stale in (out, table + ".out.prep.json"):
        Path(stale).unlink(missing_ok=True)
    ratio = ",".join(f"{name}={share}" for name, share in zip(NAMES, shares))
    words = [PREP, "split", table, "--no-files", "--stratify", "--group-by", "group", "--seed", str(seed)]
    words += ["--ratio", ratio, "--allow-missing", "-o", out, "-q", "-q"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    part = np.full(n, -1, np.int8)
    with open(out, newline="") as file:
        for row in csv.DictReader(file):
            if row["split"]:
                part[int(row["path"][:8])] = NAMES.index(row["split"])
    # Rows without a label are in no part: the generator of several labels makes some.
    return part, cpu, after.ru_maxrss / 1024


def sgkf(y, g, shares, seed):
    from sklearn.model_selection import StratifiedGroupKFold

    folds = StratifiedGroupKFold(round(1 / shares[1]), shuffle=True, random_state=seed).split(y, y, g)
    part = np.zeros(len(y), np.int8)
    for at, (_, held) in zip(range(1, len(shares)), folds):
        part[held] = at
    return part


def gss(y, g, shares, seed):
    from sklearn.model_selection import GroupShuffleSplit

    part = np.zeros(len(y), np.int8)
    _, held = next(GroupShuffleSplit(1, test_size=1 - shares[0], random_state=seed).split(y, y, g))
    part[held] = 1
    if len(shares) == 3:
        share = shares[2] / (shares[1] + shares[2])
        _, test = next(GroupShuffleSplit(1, test_size=share, random_state=seed).split(held, y[held], g[held]))
        part[held[test]] = 2
    return part


def msss(y, g, shares, seed):
    from iterstrat.ml_stratifiers import MultilabelStratifiedShuffleSplit

    part = np.zeros(len(y), np.int8)
    _, held = next(MultilabelStratifiedShuffleSplit(1, test_size=shares[1], random_state=seed).split(y, y))
    part[held] = 1
    return part


def forced_bound(y, g, shares):
    """As `bound`, with every class that has as many groups as parts in every part; exact for classes of few groups."""
    _, _, counts, _ = gmat(y, g)
    parts, gaps = len(shares), []
    for c in range(counts.shape[1]):
        sizes = counts[:, c][counts[:, c] > 0]
        total = sizes.sum()
        best = None
        if parts <= len(sizes) <= 8:
            for of in itertools.product(range(parts), repeat=len(sizes)):
                if len(set(of)) == parts:
                    rows = np.bincount(of, weights=sizes, minlength=parts)
                    gap = np.abs(rows[1:] / total - np.array(shares[1:])).mean()
                    best = gap if best is None else min(best, gap)
        gaps.append(best)
    plain = np.array([[bound_of(counts[:, c], f) for f in shares[1:]] for c in range(counts.shape[1])]).mean(1)
    return 100 * np.mean([p if b is None else b for p, b in zip(plain, gaps)])


def bound_of(sizes, share):
    from score import subset_gap

    return subset_gap(sizes, share)


def mean(rows, key):
    return float(np.mean([row[key] for row in rows]))


def run_case(case, n, shares, gen, seeds, peer_seeds, folder, failures):
    y, g = make(case, n, gen)
    table = os.path.join(folder, f"{case}.csv")
    write_table(table, y, g)
    labelled = np.ones(len(y), bool) if y.ndim == 1 else y.sum(1) > 0
    scored, cpu = [], []
    for seed in range(seeds):
        part, seconds, peak = prep(table, len(y), shares, seed)
        assert (part >= 0).sum() == labelled.sum(), "rows without a part"
        scored.append(score(y[labelled], g[labelled], part[labelled], shares))
        cpu.append(seconds)
    limit = bound(y, g, shares)[1] if len(y) <= 20_000 else float("nan")
    forced = forced_bound(y, g, shares) if len(y) <= 20_000 else float("nan")
    ours = {key: mean(scored, key) for key in scored[0]}
    print(
        f"{case:10s} {len(y):7d} {len(shares)} parts gen {gen}  bound {limit:6.3f} forced {forced:6.3f} | prep mean {ours['mean']:6.3f} "
        f"(worst {max(s['mean'] for s in scored):6.3f}) max {ours['max']:6.2f} size {ours['size']:5.3f} missing {ours['miss']:.1f} "
        f"untrained {ours['notrain']:.1f} leaks {ours['leak']:.0f} cpu {np.mean(cpu):5.2f} s {peak:4.0f} MB",
        flush=True,
    )
    what = f"{case} {len(y)} rows {len(shares)} parts gen {gen}"
    for key, name in (("leak", "leaks"), ("miss", "missing"), ("notrain", "untrained")):
        if max(s[key] for s in scored) > 0:
            failures.append(f"{what}: {name} {max(s[key] for s in scored)}")
    times = {"nogroup": 1.1, "plants": 1.1, "zipf_pure": 1.1, "few": 1.2, "tiny": 1.2}.get(case)
    if times and ours["mean"] > times * limit:
        failures.append(f"{what}: mean {ours['mean']:.3f} is {ours['mean'] / limit:.2f} x bound, {ours['mean'] / forced:.2f} x forced")
    points = {"zipf_mixed": 1.2, "session": 1.1}.get(case)
    if points and n == 10_000 and gen == 0 and len(shares) == 2 and ours["mean"] > points:
        failures.append(f"{what}: mean {ours['mean']:.3f} above {points}")
    peers = {"MSSS": msss} if case in MULTI else {"StratifiedGroupKFold": sgkf, "GroupShuffleSplit": gss}
    if case in MULTI and len(shares) > 2:
        return
    for name, peer in peers.items():
        theirs = [score(y, g, peer(y, g, shares, seed), shares) for seed in range(peer_seeds)]
        if not theirs:
            continue
        theirs = {key: mean(theirs, key) for key in theirs[0]}
        print(
            f"{'':33s}{name:>22s} mean {theirs['mean']:6.3f} max {theirs['max']:6.2f} missing {theirs['miss']:.1f} "
            f"untrained {theirs['notrain']:.1f} leaks {theirs['leak']:.0f}   prep / this {ours['mean'] / max(theirs['mean'], 1e-9):.2f}",
            flush=True,
        )
        for key in ("mean", "miss", "notrain"):
            slack = 1.1 if case in MULTI else 1.0
            if ours[key] > theirs[key] * slack + 1e-9:
                failures.append(f"{what}: {key} {ours[key]:.4f} is worse than {name}'s {theirs[key]:.4f}")
        share = {"zipf_mixed": 0.3, "session": 0.45}.get(case)
        if name == "StratifiedGroupKFold" and share and gen != 0 and ours["mean"] > share * theirs["mean"]:
            failures.append(f"{what}: mean {ours['mean']:.3f} is {ours['mean'] / theirs['mean']:.2f} of {name}'s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="2000,10000")
    parser.add_argument("--ratios", default="2,3")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--gens", default="0")
    parser.add_argument("--peers", type=int, default=3, help="seeds for the peers")
    parser.add_argument("--cases", default=",".join(CASES + MULTI))
    args = parser.parse_args()
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        numbers = [map(int, text.split(",")) for text in (args.sizes, args.ratios, args.gens)]
        for n, ratio, gen in itertools.product(*numbers):
            for case in args.cases.split(","):
                run_case(case, n, RATIOS[ratio], gen, args.seeds, args.peers, folder, failures)
    print(f"{len(failures)} goals do not hold" if failures else "all goals hold")
    for failure in failures:
        print("  " + failure)


if __name__ == "__main__":
    main()
