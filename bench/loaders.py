#!/usr/bin/env python3
"""The reader of caches against MosaicML Streaming, LitData, WebDataset and torch's DataLoader: CPU seconds.

usage: bench/loaders.py [--work DIR] [--raw N] [--jpeg N] [--photos DIR] [--rounds R] [--only PART,...]
parts: size gather loop first memory cold jpeg

Run it with the interpreter of an environment that has the peers (tests/loaders.sh makes one: target/loaders/main); peers
that are missing are named and left out. CPU is user + system of all processes; within a part the candidates take turns,
A B A B, and the numbers are medians over the rounds. PREP names the binary (target/release/prep).
"""
import argparse, csv, glob, io, json, os, resource, shutil, statistics, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
PREP = os.environ.get("PREP", os.path.join(HERE, "..", "target", "release", "prep"))
sys.path.insert(0, os.path.join(HERE, "..", "python"))
import numpy as np
from prep_cache import Cache

SIDE, BATCH = 256, 256
verdicts = []


def goal(what, value, limit, unit="x"):
    """Prints whether a goal holds."""
    holds = value <= limit
    verdicts.append((what, value, limit, holds))
    print(f"  {'holds ' if holds else 'MISSED'}  {what}: {value:.3g} {unit}, goal at most {limit} {unit}", flush=True)


def need(module):
    try:
        return __import__(module)
    except ImportError as e:
        print(f"  (left out: {module}: {e})")
        return None


def cpu():
    """CPU seconds of this process and of its children that have ended."""
    own, children = (resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def turns(candidates, rounds, samples, warm=True):
    """Median CPU µs per sample of each candidate (name -> function), one after the other in every round."""
    seen = {name: [] for name in candidates}
    for name, run in candidates.items():
        if warm:
            run()
    for _ in range(rounds):
        for name, run in candidates.items():
            before = cpu()
            run()
            seen[name].append((cpu() - before) / samples * 1e6)
    for name, values in seen.items():
        print(f"  {name:40} {statistics.median(values):9.1f} µs a sample   ({', '.join(f'{v:.1f}' for v in values)})", flush=True)
    return {name: statistics.median(values) for name, values in seen.items()}


def child(program, work):
    """Runs one of PROGRAMS in a process of its own: (CPU seconds, what it printed)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run([sys.executable, "-c", f"work = {work!r}\n" + PROGRAMS[program]], capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": os.path.join(HERE, "..", "python")})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert out.returncode == 0, out.stderr
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, out.stdout


# --- the data -------------------------------------------------------------------------------------------------------

def pictures(n, seed=0):
    """n pictures uint8 (SIDE, SIDE, 3): cheap to make, all different, with structure and noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:SIDE, 0:SIDE].astype(np.float32)
    bases = [np.stack([np.sin(x / rng.uniform(5, 40)) * 90 + 120, np.cos(y / rng.uniform(5, 40) + x / 40) * 80 + 120, (x * 1.3 + y) % 256], -1) for _ in range(16)]
    noise = rng.integers(-9, 10, (SIDE * 2, SIDE * 2, 3)).astype(np.float32)
    for i in range(n):
        a, b = rng.integers(0, SIDE, 2)
        yield np.clip(bases[i % 16] + noise[a:a + SIDE, b:b + SIDE], 0, 255).astype(np.uint8)


def sources(work, raw, jpeg, photos):
    """PPM files of one size, and JPEG files with a shorter side of 512, in five class folders."""
    from PIL import Image
    if not os.path.isdir(work + "/ppm"):
        for i, picture in enumerate(pictures(raw)):
            folder = f"{work}/ppm.tmp/c{i % 5}"
            os.makedirs(folder, exist_ok=True)
            with open(f"{folder}/{i:06}.ppm", "wb") as f:
                f.write(b"P6 %d %d 255\n" % (SIDE, SIDE) + picture.tobytes())
        os.rename(work + "/ppm.tmp", work + "/ppm")
    if not os.path.isdir(work + "/jpg"):
        rng = np.random.default_rng(1)
        files = sorted(f for f in glob.glob(photos + "/**/*.jp*g", recursive=True))
        print(f"  JPEG sources from {len(files)} photos" if files else "  JPEG sources are drawn")
        pool = [Image.open(f).convert("RGB") for f in files[:40]] or [Image.fromarray(p).resize((900, 700)) for p in pictures(20)]
        for i in range(jpeg):
            im = pool[i % len(pool)]
            w, h = im.size
            cut = min(w, h, int(rng.integers(600, 1400)))
            w0, h0 = min(w, int(cut * rng.uniform(1, 1.5))), cut
            left, top = int(rng.integers(0, w - w0 + 1)), int(rng.integers(0, h - h0 + 1))
            scale = 512 / min(w0, h0)
            im = im.resize((round(w0 * scale), round(h0 * scale)), Image.Resampling.BICUBIC, (left, top, left + w0, top + h0))
            folder = f"{work}/jpg.tmp/c{i % 5}"
            os.makedirs(folder, exist_ok=True)
            im.save(f"{folder}/{i:06}.jpg", quality=90, subsampling=2)
        os.rename(work + "/jpg.tmp", work + "/jpg")


def pack(source, out, *options):
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run([PREP, "pack", source, "-o", out, "--progress", "none", "-q", *options], check=True, capture_output=True)
    return Cache(out)


def settle(folder):
    """Brings files to rest as a cache has them that was written a while ago: on disk, and read back by the system."""
    for file in glob.glob(folder + "/**/*", recursive=True):
        if os.path.isfile(file):
            evict(file)
            with open(file, "rb") as f:
                while f.read(1 << 20):
                    pass


def evict(file):
    fd = os.open(file, os.O_RDWR)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


# --- peers' own sets ------------------------------------------------------------------------------------------------

def raw_of(split):
    return ((split.shard(k)[i], int(label)) for k, i, label in
            ((k, i, split.labels[sum(split._counts[:k]) + i]) for k in range(len(split._counts)) for i in range(split._counts[k])))


def write_mds(out, samples):
    from streaming import MDSWriter
    shutil.rmtree(out, ignore_errors=True)
    with MDSWriter(out=out, columns={"image": f"ndarray:uint8:{SIDE},{SIDE},3", "label": "int"}, size_limit=1 << 26) as w:
        for picture, label in samples:
            w.write({"image": picture, "label": label})


def write_wds(out, samples, ext):
    import webdataset as wds
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    with wds.ShardWriter(out + "/train-%06d.tar", maxsize=256 << 20, verbose=0) as w:
        for i, (payload, label) in enumerate(samples):
            w.write({"__key__": f"{i:09}", ext: payload, "cls": label})


def write_litdata(out, samples):
    from litdata.streaming import Cache as Chunks
    shutil.rmtree(out, ignore_errors=True)
    chunks = Chunks(out, chunk_bytes="64MB")
    for i, (picture, label) in enumerate(samples):
        chunks[i] = {"image": picture.reshape(-1), "label": label}
    chunks.done()
    chunks.merge()


# --- the parts ------------------------------------------------------------------------------------------------------

def part_size(work, rounds):
    print("size: bytes of the shards above those of the payloads (bench/pack.py measures what writing costs)")
    for name, limit in (("raw", 0.025), ("jpeg", 0.03)):
        goal(f"size overhead, {name}", Cache(f"{work}/{name}").manifest["bytes"]["overhead"], limit, "of the payload")


def part_gather(work, rounds):
    print("gather: batches of 256 raw pictures into one reused array, page cache warm: filled by each reader's own first epoch")
    split = Cache(work + "/raw").split("all")
    for folder in ("raw", "peer-mds", "peer-wds", "peer-lit"):
        [evict(f) for f in glob.glob(f"{work}/{folder}/**/*", recursive=True) if os.path.isfile(f)]
    n = len(split) // BATCH * BATCH
    rng = np.random.default_rng(5)
    order = rng.permutation(len(split))[:n]
    out = np.empty((BATCH, SIDE, SIDE, 3), np.uint8)
    flat, labels = out.reshape(BATCH, -1), np.empty(BATCH, np.int64)
    ram = np.concatenate([split.batch(range(lo, min(lo + BATCH, len(split))))[0] for lo in range(0, len(split), BATCH)]).reshape(len(split), -1)

    def memcpy():
        for lo in range(0, n, BATCH):
            for k, i in enumerate(order[lo:lo + BATCH].tolist()):
                flat[k] = ram[i]

    own, _ = split.batch(order[:BATCH])  # an array of the reader's own begins on a page; np.empty 16 bytes behind one

    def ours(into):
        for lo in range(0, n, BATCH):
            split.batch(order[lo:lo + BATCH], into)
    runs = {"memcpy from RAM": memcpy, "prep batch(), random": lambda: ours(own), "prep batch() into np.empty": lambda: ours(out)}
    if need("streaming"):
        from streaming import StreamingDataset
        if not os.path.isdir(work + "/peer-mds"):
            write_mds(work + "/peer-mds", raw_of(split))
            settle(work + "/peer-mds")
        mds = StreamingDataset(local=work + "/peer-mds", shuffle=False, batch_size=BATCH)

        def mds_items():
            for lo in range(0, n, BATCH):
                for k, i in enumerate(order[lo:lo + BATCH].tolist()):
                    sample = mds[i]
                    out[k], labels[k] = sample["image"], sample["label"]
        runs["MDS ds[i], random"] = mds_items
    if need("webdataset"):
        import webdataset as wds
        if not os.path.isdir(work + "/peer-wds"):
            write_wds(work + "/peer-wds", raw_of(split), "npy")
            settle(work + "/peer-wds")
        tars = sorted(glob.glob(work + "/peer-wds/*.tar"))

        def wds_items():
            for i, sample in enumerate(wds.WebDataset(tars, shardshuffle=False)):
                if i == n:
                    break
                out[i % BATCH], labels[i % BATCH] = np.load(io.BytesIO(sample["npy"])), int(sample["cls"])
        runs["WebDataset, sequential"] = wds_items
    if need("litdata"):
        from litdata import StreamingDataset as Lit
        if not os.path.isdir(work + "/peer-lit"):
            write_litdata(work + "/peer-lit", raw_of(split))
            settle(work + "/peer-lit")
        lit = Lit(work + "/peer-lit", shuffle=False)

        def lit_items():
            for i, sample in enumerate(lit):
                if i == n:
                    break
                flat[i % BATCH], labels[i % BATCH] = sample["image"], sample["label"]
        runs["LitData, sequential"] = lit_items
    cost = turns(runs, rounds, n)
    own = cost["prep batch(), random"]
    goal("warm gather / memcpy", own / cost["memcpy from RAM"], 1.15)
    for name, limit in (("MDS ds[i], random", 0.35), ("WebDataset, sequential", 0.20), ("LitData, sequential", 0.30)):
        if name in cost:
            goal(f"warm gather / {name}", own / cost[name], limit)


class Items:
    """The same cache as people write a torch dataset: one picture an item."""
    def __init__(self, path):
        self.split = Cache(path).split("all")

    def __len__(self):
        return len(self.split)

    def __getitem__(self, i):
        import torch
        picture, label = self.split[i]
        return torch.from_numpy(picture), label


def part_loop(work, rounds):
    print("loop: an epoch of batches of 256 raw pictures, shuffled, workers and threads included")
    if not need("torch"):
        return
    from torch.utils.data import DataLoader
    split = Cache(work + "/raw").split("all")

    def ours(epochs):
        for e in range(epochs):
            for images, labels in split.loader(BATCH, epoch=e):
                labels.sum()

    def theirs(epochs):
        loader = DataLoader(Items(work + "/raw"), batch_size=BATCH, shuffle=True, num_workers=2, persistent_workers=True)
        for _ in range(epochs):
            for images, labels in loader:
                labels.sum()
        loader._iterator._shutdown_workers()  # so that their CPU is counted
    # The difference of many epochs and one leaves out what starting costs.
    seen = {"prep loader()": [], "DataLoader, 2 workers": []}
    for _ in range(rounds):
        for name, run, many in (("prep loader()", ours, 11), ("DataLoader, 2 workers", theirs, 4)):
            spent = []
            for epochs in (1, many):
                before = cpu()
                run(epochs)
                spent.append(cpu() - before)
            seen[name].append((spent[1] - spent[0]) / ((many - 1) * len(split)) * 1e6)
    for name, values in seen.items():
        print(f"  {name:40} {statistics.median(values):9.1f} µs a sample   ({', '.join(f'{v:.1f}' for v in values)})")
    goal("batch loop / DataLoader with 2 workers", statistics.median(seen["prep loader()"]) / statistics.median(seen["DataLoader, 2 workers"]), 0.15)


def part_first(work, rounds):
    print("first: CPU of a whole process to the first batch of 256")
    names = ["first-prep"] + (["first-wds"] if need("webdataset") and os.path.isdir(work + "/peer-wds") else [])
    seen = {name: [] for name in names}
    for _ in range(rounds + 1):
        for name in names:
            seen[name].append(child(name, work)[0])
    for name, values in seen.items():
        print(f"  {name:40} {statistics.median(values):9.3f} s   ({', '.join(f'{v:.2f}' for v in values)})")
    goal("CPU to the first batch", statistics.median(seen["first-prep"]), 0.3, "s")
    if "first-wds" in seen:
        goal("CPU to the first batch / WebDataset", statistics.median(seen["first-prep"]) / statistics.median(seen["first-wds"]), 0.2)


def part_memory(work, rounds):
    print("memory: anonymous memory of a process that fills one batch of 50 MB, NumPy alone")
    goal("anonymous memory", float(child("memory", work)[1]), 70, "MB")


def part_cold(work, rounds):
    print("cold: 1,000 random raw pictures, page cache emptied before each run")
    split = Cache(work + "/raw").split("all")
    shards = [os.path.join(split.folder, s) for s in split._names]
    n = min(1000, len(split)) // 50 * 50
    order = np.random.default_rng(9).permutation(len(split))[:n]
    out = np.empty((n, SIDE, SIDE, 3), np.uint8)
    rate, cost = {}, {}

    def plain():
        views = [np.memmap(f, np.uint8, "r") for f in shards]
        rows = split.rows[order]
        for k, (s, o, size) in enumerate(zip(rows["shard"].tolist(), rows["offset"].tolist(), rows["size"].tolist())):
            out[k] = views[s][o:o + size].reshape(SIDE, SIDE, 3)

    def loader(io):
        for images, _ in Cache(work + "/raw").split("all").loader(50, seed=9, io=io, drop_last=True):
            done[0] += len(images)
            if done[0] >= n:
                break
    runs = {"default mmap": plain, "prep, io=direct": lambda: loader("direct"), "prep, io=mmap (advised)": lambda: loader("mmap")}
    done = [0]
    for _ in range(rounds):
        for name, run in runs.items():
            [evict(f) for f in shards]
            done[0], before, start = 0, cpu(), time.perf_counter()
            run()
            rate.setdefault(name, []).append(n / (time.perf_counter() - start))
            cost.setdefault(name, []).append((cpu() - before) / n * 1e6)
    for name in runs:
        print(f"  {name:40} {statistics.median(rate[name]):9.0f} samples/s, {statistics.median(cost[name]):.0f} µs CPU")
    med = lambda t, name: statistics.median(t[name])
    goal("cold random: default mmap's rate / prep's (a quarter is 4 times)", med(rate, "default mmap") / med(rate, "prep, io=direct"), 0.25)
    goal("cold random: CPU / default mmap", med(cost, "prep, io=direct") / med(cost, "default mmap"), 0.4)


class Photos:
    """JPEG files through torchvision: Resize(256) and CenterCrop(224), by its own decoder or by Pillow's."""
    def __init__(self, work, kind):
        self.files, self.kind = sorted(glob.glob(work + "/jpg/*/*.jpg")), kind

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        import torchvision
        from torchvision.transforms import v2
        file = self.files[i]
        if self.kind == "tensor":
            image = torchvision.io.decode_jpeg(torchvision.io.read_file(file), torchvision.io.ImageReadMode.RGB)
        else:
            from PIL import Image
            image = Image.open(file).convert("RGB")
        image = v2.functional.center_crop(v2.functional.resize(image, [256], antialias=True), [224, 224])
        return (image if self.kind == "tensor" else v2.functional.pil_to_tensor(image)), int(file.split("/c")[-1][0])


def part_jpeg(work, rounds):
    print("jpeg: an epoch of batches of 64 JPEGs at 224x224 (shorter side 256, centre), workers and threads included")
    import prep_cache
    split = Cache(work + "/jpeg").split("all").at(224, short=256)
    if prep_cache._compiled() is None:
        print("  prep_decode is NOT installed: this measures Pillow against Pillow")
    runs = {"prep loader()": lambda: [labels.sum() for _, labels in split.loader(64)]}
    if need("torch") and need("torchvision"):
        import torch
        from torch.utils.data import DataLoader
        for kind in ("tensor", "pillow"):
            def run(kind=kind):
                for images, labels in DataLoader(Photos(work, kind), batch_size=64, shuffle=True, num_workers=2):
                    labels.sum()
            runs[f"torchvision ({kind}) + DataLoader, 2 workers"] = run
    cost = turns(runs, rounds, len(split), warm=False)
    peers = [v for k, v in cost.items() if k.startswith("torchvision")]
    if peers:
        goal("JPEG to 224x224 / the faster torchvision pipeline", cost["prep loader()"] / min(peers), 0.6)


# Whole programs, as small as they can be.
PROGRAMS = {
    "first-prep": """
from prep_cache import Cache
import os
images, labels = next(Cache(work + "/raw").split("all").loader(256))
assert len(labels) == 256
os._exit(0)
""",
    "first-wds": """
import glob, io, os
import numpy as np
import webdataset as wds
out = np.empty((256, 256, 256, 3), np.uint8)
for i, sample in enumerate(wds.WebDataset(sorted(glob.glob(work + "/peer-wds/*.tar")), shardshuffle=False)):
    if i == 256:
        break
    out[i] = np.load(io.BytesIO(sample["npy"]))
os._exit(0)
""",
    "memory": """
import numpy as np
from prep_cache import Cache
split = Cache(work + "/raw").split("all")
out = np.empty((256, 256, 256, 3), np.uint8)
for samples in split.batches(256, drop_last=True):
    split.batch(samples, out)
status = dict(line.split(":") for line in open("/proc/self/status").read().splitlines() if ":" in line)
print(int(status["RssAnon"].split()[0]) / 1000)
""",
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", default=os.path.join(HERE, "..", "target", "bench-loaders"))
    parser.add_argument("--raw", type=int, default=3072)
    parser.add_argument("--jpeg", type=int, default=512)
    parser.add_argument("--photos", default=os.path.join(os.environ.get("PREP_SHARED", HERE + "/../../shared"), "bench", "jpeg"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="size,gather,loop,first,memory,cold,jpeg")
    a = parser.parse_args()
    work = os.path.abspath(a.work)
    os.makedirs(work, exist_ok=True)
    sources(work, a.raw, a.jpeg, a.photos)
    for name, source, options in (("raw", "ppm", ["--store", "raw", "--size", f"{SIDE}x{SIDE}"]), ("jpeg", "jpg", ["--store", "jpeg"])):
        if not os.path.exists(f"{work}/{name}/manifest.json"):
            pack(f"{work}/{source}", f"{work}/{name}", *options)
            settle(f"{work}/{name}")
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, NumPy {np.__version__}, {a.raw} raw pictures of {SIDE}x{SIDE}, {a.jpeg} JPEGs", flush=True)
    for part in a.only.split(","):
        globals()["part_" + part](work, a.rounds)
    missed = [v for v in verdicts if not v[3]]
    print(f"{len(verdicts) - len(missed)} of {len(verdicts)} goals hold")


if __name__ == "__main__":
    main()
