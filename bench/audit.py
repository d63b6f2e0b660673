#!/usr/bin/env python3
"""prep audit against a bare full decode by libjpeg-turbo, and against itself on unchanged data: CPU seconds, A B A B.

usage: bench/audit.py SET [SET ...] [--rounds N]

SET is a folder of JPEGs (those that bench/shrink.py made will do). Goals: an audit costs at most 1.35 times the bare
decode; the second command on unchanged data at least 20 times less than the first. Needs cc and the headers of libjpeg.
"""
import argparse
import glob
import os
import resource
import statistics
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PREP = os.environ.get("PREP", os.path.join(HERE, "..", "target", "release", "prep"))


def cpu(command, env=None):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        floor = os.path.join(work, "floor")
        subprocess.run(["cc", "-O2", "-o", floor, os.path.join(HERE, "floor.c"), "-ljpeg"], check=True)
        for folder in args.sets:
            files = sorted(glob.glob(os.path.join(folder, "*.[jJ][pP]*[gG]")))
            base = [PREP, "audit", folder, "-j", "1", "-q", "--fail-on", "never"]
            ratios, spared = [], []
            for i in range(args.rounds):
                whole = cpu([*base, "--no-cache"])
                bare = cpu([floor, "--full", *files])
                ratios.append(whole / bare)
                env = dict(os.environ, XDG_CACHE_HOME=os.path.join(work, f"{os.path.basename(folder)}-{i}"))
                spared.append(cpu(base, env) / max(cpu(base, env), 0.01))
            print(f"{folder}: {len(files)} files, audit / bare decode {statistics.median(ratios):.2f} "
                  f"({min(ratios):.2f}-{max(ratios):.2f}), first / second {statistics.median(spared):.0f}", flush=True)


main()
