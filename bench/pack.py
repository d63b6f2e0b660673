"""CPU seconds of writing shards: prep against MosaicML's MDSWriter and webdataset's TarWriter, where they are installed.

    python3 bench/pack.py --python /path/to/venv/bin/python --samples 1500 --rounds 3

A B A B on the same data, one thread each; user + system; the median of the pairwise ratios, then all of them. Peers write
from memory (raw) or from the files in the page cache (JPEG), without hashes; prep with crc32 and XXH3. Imports are not
counted. `prep pack` decodes every JPEG before it writes it, which the peers do not; from a workspace of `prep shrink` it
knows them by their hashes. Needs `cargo build --release --bin prep --example pack_writer` and, for the pictures, Pillow.
"""
import argparse, os, resource, shutil, statistics, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SIDE = 256

PEER = r"""
import os, resource, sys
kind, out, source, samples = sys.argv[1:5]
samples = int(samples)
import numpy as np
side = 256
if source == "-":
    base = [np.random.default_rng(k).integers(0, 256, (side, side, 3), dtype=np.uint8) for k in range(16)]
    images = [base[i % 16] for i in range(samples)]
else:
    files = sorted(os.path.join(d, f) for d, _, fs in os.walk(source) for f in fs)[:samples]
def cpu():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime
if kind == "mds":
    from streaming import MDSWriter
    encoding = "ndarray:uint8:%d,%d,3" % (side, side) if source == "-" else "bytes"
    begin = cpu()
    with MDSWriter(out=out, columns={"image": encoding, "label": "int"}) as writer:
        for i in range(samples):
            image = images[i] if source == "-" else open(files[i], "rb").read()
            writer.write({"image": image, "label": i % 2})
else:
    import webdataset
    begin = cpu()
    with webdataset.ShardWriter(os.path.join(out, "%06d.tar"), maxsize=64 << 20, verbose=0) as writer:
        for i in range(samples):
            if source == "-":
                writer.write({"__key__": "%09d" % i, "bin": images[i].tobytes(), "cls": i % 2})
            else:
                writer.write({"__key__": "%09d" % i, "jpg": open(files[i], "rb").read(), "cls": i % 2})
print(cpu() - begin)
"""


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    return folder


def children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(command):
    before = children()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return children() - before


def peer(python, kind, out, source, samples):
    command = [python, "-c", PEER, kind, fresh(out), source, str(samples)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return float(done.stdout.split()[-1])


def draw(folder, samples):
    """JPEGs of some 96 kB in the mean and of many sizes, as photographs are, in two classes."""
    import numpy as np
    from PIL import Image
    rng = np.random.default_rng(1)
    for i in range(samples):
        small = rng.integers(0, 256, (*rng.integers(8, 70, 2), 3), dtype=np.uint8)
        image = np.asarray(Image.fromarray(small).resize((int(rng.integers(512, 800)), 512), Image.BICUBIC)).astype(np.int16)
        image = np.clip(image + rng.normal(0, rng.uniform(2, 12), image.shape), 0, 255).astype(np.uint8)
        path = os.path.join(folder, "ab"[i % 2], f"{i:05}.jpg")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Image.fromarray(image).save(path, quality=int(rng.integers(82, 93)), subsampling=2)


def bytes_of(folder, *ends):
    files = [os.path.join(d, f) for d, _, fs in os.walk(folder) for f in fs if f.endswith(ends)]
    return sum(map(os.path.getsize, files))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="a Python that has the peers")
    parser.add_argument("--samples", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--work", default=None, help="where to write; a folder on the disk that matters")
    args = parser.parse_args()
    prep = os.path.join(HERE, "target/release/prep")
    writer = os.path.join(HERE, "target/release/examples/pack_writer")
    work = tempfile.mkdtemp(prefix="prep-bench-pack-", dir=args.work)
    n = str(args.samples)
    photos, space = os.path.join(work, "photos"), os.path.join(work, "space")
    draw(photos, args.samples)
    subprocess.run([prep, "shrink", photos, "-o", space, "--no-resize", "-q", "--progress", "none"], check=True)

    def out(name):
        return os.path.join(work, name)

    def packed(source, *more):
        shutil.rmtree(out("c"), ignore_errors=True)
        return run([prep, "pack", source, "-o", out("c"), "-j", "1", "-q", "--progress", "none", *more])

    ours = {
        "raw mds": lambda: run([writer, fresh(out("a")), "mds", n, str(SIDE)]),
        "raw wds": lambda: run([writer, fresh(out("a")), "wds", n, str(SIDE)]),
        "jpeg, a workspace": lambda: packed(space),
        "jpeg, a workspace, tar": lambda: packed(space, "--layout", "wds"),
        "jpeg, decoded once": lambda: packed(photos),
    }
    theirs = {kind: {source: (lambda kind=kind, source=source: peer(args.python, kind, out("b"), source, args.samples))
                     for source in ("-", photos)} for kind in ("mds", "wds")}
    pairs = [("raw mds", "mds", "-"), ("raw wds", "wds", "-"), ("jpeg, a workspace", "mds", photos),
             ("jpeg, a workspace", "wds", photos), ("jpeg, a workspace, tar", "wds", photos),
             ("jpeg, decoded once", "wds", photos)]
    for name, kind, source in pairs:
        rows = []
        for _ in range(args.rounds):
            try:
                rows.append((ours[name](), theirs[kind][source]()))
            except RuntimeError as e:
                print(f"{name}: {kind} cannot be run ({e})")
                break
        if rows:
            ratios = sorted(a / b for a, b in rows)
            each = [statistics.median(column) / args.samples * 1e6 for column in zip(*rows)]
            print(f"{name:24} / {'MDSWriter' if kind == 'mds' else 'webdataset':10} {statistics.median(ratios):.2f} "
                  f"({ratios[0]:.2f}-{ratios[-1]:.2f})   {each[0]:.0f} and {each[1]:.0f} us a sample", flush=True)
    payload = bytes_of(photos, ".jpg")
    for layout, end in (("mds", ".mds"), ("wds", ".tar")):
        ours["raw " + layout]()
        raw = bytes_of(out("a"), end) / (args.samples * SIDE * SIDE * 3) - 1
        packed(space, "--layout", layout)
        jpeg = bytes_of(out("c"), end) / payload - 1
        print(f"shards of {layout} above their payloads: raw {100 * raw:.2f} %, JPEGs of {payload / args.samples / 1000:.0f} kB {100 * jpeg:.2f} %")
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
