"""Caches of prep pack, read back with prep_cache.py and with plain NumPy, against Pillow's pixels of the sources.
Run by tests/references.sh."""
import csv, io, json, multiprocessing, os, pickle, shutil, subprocess, sys, tarfile, tempfile, time, warnings
import numpy as np
from PIL import Image

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))
import prep_cache
from prep_cache import Cache, CacheError, CorruptSample

PREP = os.environ.get("PREP", "")
CLASSES = {"ant": 40, "bee": 90, "cat": 150, "dog": 120}
W, H = 44, 36
warnings.filterwarnings("ignore", message="prep_decode is not installed")


def photo(rng, w, h):
    """Smooth, with edges and a little noise."""
    y, x = np.mgrid[0:h, 0:w].astype(np.float64)
    base = np.stack([np.sin(x / 23 + rng.uniform(0, 6)) * 90 + 120, np.cos(y / 17 + x / 40) * 80 + 120, (x * rng.uniform(1, 4) + y) % 256], -1)
    return np.clip(base + rng.normal(0, 4, base.shape), 0, 255).astype(np.uint8)


def sources(folder, ext, sizes, **options):
    """Class folders of pictures, and one file that is no picture. Gives Pillow's pixels by path."""
    rng, want = np.random.default_rng(7), {}
    for name, count in CLASSES.items():
        os.makedirs(os.path.join(folder, name))
        for i in range(count):
            path = f"{name}/{i:04}.{ext}"
            Image.fromarray(photo(rng, *sizes(rng))).save(os.path.join(folder, path), **options)
            want[path] = np.asarray(Image.open(os.path.join(folder, path)).convert("RGB"))
    open(os.path.join(folder, "ant", "broken.png"), "wb").write(b"no picture")
    return want


def pack(folder, out, *options):
    run = subprocess.run([PREP, "pack", folder, "-o", out, "--max-bad", "1", "--progress", "none", *options], capture_output=True, text=True)
    assert run.returncode == 0, (options, run.returncode, run.stderr)
    assert open(out + "/prep_cache.py").read() == open(prep_cache.__file__).read(), "the reader lies in the cache"
    return Cache(out)


def same_as_sources(cache, want, most=0):
    """Every source is in the cache once, with its class and its pixels; the broken one is in left_out.csv."""
    split = cache.split("all")
    ids = split.ids()
    assert sorted(r["path"] for r in ids) == sorted(want) and len(split) == len(want)
    assert [r["path"] for r in csv.DictReader(open(cache.path + "/left_out.csv", newline=""))] == ["ant/broken.png"]
    assert cache.classes == sorted(CLASSES) and cache.manifest["splits"]["all"]["counts"] == [CLASSES[c] for c in cache.classes]
    worst = 0
    for i, row in enumerate(ids):
        picture, label = split[i]
        assert label == split.labels[i] == cache.classes.index(row["path"].split("/")[0]), row
        assert picture.shape == want[row["path"]].shape, (row, picture.shape)
        worst = max(worst, int(np.abs(picture.astype(int) - want[row["path"]]).max()))
    assert worst <= most, f"pixels differ by {worst}, allowed {most}"
    return split


def plain_numpy(cache, want):
    """The pictures again, by the page docs/cache.md alone: rows.npy, the files, and no reader."""
    folder, about = cache.path + "/all", cache.manifest["splits"]["all"]
    rows, ids = np.load(folder + "/rows.npy"), list(csv.DictReader(open(folder + "/ids.csv", newline="")))
    files = [np.fromfile(f"{folder}/{s['name']}", np.uint8) for s in about["shards"]]
    assert [len(f) for f in files] == [s["bytes"] for s in about["shards"]] and len(files) >= 2, "the test wants several shards"
    for r, row in zip(ids, rows):
        payload = files[row["shard"]][int(row["offset"]):int(row["offset"]) + int(row["size"])]
        if row["flags"] & 1:
            picture = np.asarray(Image.open(io.BytesIO(payload.tobytes())).convert("RGB"))
        else:
            picture = payload.reshape(row["h"], row["w"], 3)
        assert np.array_equal(picture, want[r["path"]]), r
    image = cache.manifest["image"]
    if image["stride"]:
        h, w = image["height"], image["width"]
        first = 0
        for shard, file in zip(about["shards"], files):
            view = np.ndarray((shard["rows"], h, w, 3), "u1", file, shard["image0"], (image["stride"], w * 3, 3, 1))
            assert all(np.array_equal(view[k], want[ids[first + k]["path"]]) for k in range(shard["rows"]))
            first += shard["rows"]
        assert first == len(rows)


def epoch(split, batch, **options):
    with split.loader(batch, **options) as loader:
        return [(images.copy(), labels.copy(), loader.samples.copy()) for images, labels in loader]


def equal(a, b):
    return len(a) == len(b) and all(np.array_equal(x, y) for one, other in zip(a, b) for x, y in zip(one, other))


def orders(split):
    """Resume, ranks, balance; and the order itself, so that no version changes it."""
    assert prep_cache.epoch_order(8, 0, 0).tolist() == GOLDEN_ORDER, prep_cache.epoch_order(8, 0, 0).tolist()
    assert prep_cache.epoch_order(5, -1, 2**40).tolist() == python_order(5, -1, 2**40)
    whole = epoch(split, 8, seed=5, epoch=2, threads=2)
    with split.loader(8, seed=5, epoch=2, threads=3, io="mmap") as loader:
        head = [(images.copy(), labels.copy(), loader.samples.copy()) for _, (images, labels) in zip(range(17), loader)]
        state = json.loads(json.dumps(loader.state()))
    assert state == {"seed": 5, "epoch": 2, "step": 17}
    tail = epoch(split, 8, threads=1, **state)
    assert equal(head + tail, whole) and len(tail) == len(whole) - 17 > 10
    assert sorted(np.concatenate([w[2] for w in whole])) == list(range(len(split)))
    assert not equal(whole, epoch(split, 8, seed=5, epoch=3)) and not equal(whole, epoch(split, 8, seed=6, epoch=2))

    for world in (2, 3):
        ranks = [epoch(split, 8, seed=1, rank=r, world=world) for r in range(world)]
        seen = np.concatenate([b[2] for rank in ranks for b in rank])
        assert sorted(seen) == list(range(len(split))), "ranks share nothing and miss nothing"
        together = [np.concatenate([rank[s][2] for rank in ranks]) for s in range(len(ranks[0]))]
        assert all(np.array_equal(a, b[2]) for a, b in zip(together, epoch(split, 8 * world, seed=1))), "as one rank with the larger batch"
        even = [list(split.batches(8, seed=1, rank=r, world=world, drop_last=True)) for r in range(world)]
        assert len({len(e) for e in even}) == 1 and all(len(b) == 8 for e in even for b in e)

    draws = np.concatenate([b for e in range(25) for b in split.batches(64, seed=3, epoch=e, balanced=True)])
    assert len(draws) == 25 * len(split) >= 10_000
    shares = np.bincount(split.labels[draws[:10_000]], minlength=4) / 10_000
    assert np.abs(shares - 0.25).max() < 0.01 * 0.25, shares
    times = np.bincount(draws, minlength=len(split))
    for c in range(4):
        own = times[split.labels == c]
        assert own.min() > 0 and own.max() - own.min() <= 25, "a class deals out all before it deals one again"
    few = prep_cache.balanced_order(np.array([0, 2, 2, 5, 6]), np.array([5, 1, 0, 3, 4, 2], np.uint32), 12, 3, -1)
    assert few.tolist() == GOLDEN_BALANCED, few.tolist()
    began = time.process_time()
    many = prep_cache.balanced_order(np.arange(70_001), np.arange(70_000, dtype=np.uint32), 100_000, 3, 1)
    assert sorted(many[:70_000]) == list(range(70_000)) and time.process_time() - began < 10, "no step for each class"

    steps = len(split.batches(8))
    assert [len(split.batches(8, step=step)) for step in (0, steps - 1, steps)] == [steps, 1, 0]
    fails(ValueError, "another cache", lambda: split.loader(8, step=steps + 1))
    for size in (1.5, (20, 20.5), 2**40, 0):
        fails(ValueError, "size", lambda: split.at(size))
    print(f"resume at step 17, ranks, balance {shares.round(4).tolist()}")


GOLDEN_ORDER = [0, 1, 4, 2, 3, 6, 7, 5]
GOLDEN_BALANCED = [2, 1, 3, 5, 0, 2, 5, 4, 2, 2, 1, 3]


def python_order(n, seed, epoch):
    """The documented order in Python's own integers."""
    top = 2**64 - 1

    def mix(x):
        x = (x + 0x9E3779B97F4A7C15) & top
        x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & top
        x = ((x ^ x >> 27) * 0x94D049BB133111EB) & top
        return x ^ x >> 31

    k = mix(mix(mix(seed & top) ^ epoch) ^ 0)
    return sorted(range(n), key=lambda i: mix(k ^ i))


def child(split, queue):
    """In another process: one batch, and one through a loader."""
    images, labels = split.batch([3, 1, 4], check=True)
    first = next(split.loader(16, seed=9))
    queue.put((images, labels, first[0].copy(), first[1].copy()))


def processes(split):
    want = (*split.batch([3, 1, 4]), *epoch(split, 16, seed=9)[0][:2])
    for how in ("fork", "spawn"):
        context = multiprocessing.get_context(how)
        queue = context.Queue()
        workers = [context.Process(target=child, args=(split, queue)) for _ in range(2)]
        [w.start() for w in workers]
        for _ in workers:
            assert all(np.array_equal(a, b) for a, b in zip(queue.get(timeout=120), want)), how
        [w.join() for w in workers]
        assert all(w.exitcode == 0 for w in workers)
    assert np.array_equal(pickle.loads(pickle.dumps(split))[5][0], split[5][0])
    print("forked and spawned processes read the same")


def fails(kind, word, do):
    try:
        do()
    except kind as e:
        assert word in str(e), f"{e!r} does not say {word!r}"
        return e
    raise AssertionError(f"no {kind.__name__} that says {word!r}")


def hostile(good, work):
    """Damage of every kind ends in an error that names the file, and never in pixels or an error of NumPy."""
    def damaged(change):
        path = os.path.join(work, "damaged")
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(good.path, path)
        change(path)
        return path

    def rewrite(name, change):
        def do(path):
            data = bytearray(open(f"{path}/{name}", "rb").read())
            open(f"{path}/{name}", "wb").write(change(data))
        return damaged(do)

    def manifest(change):
        def do(path):
            m = json.load(open(path + "/manifest.json"))
            change(m)
            json.dump(m, open(path + "/manifest.json", "w"))
        return damaged(do)

    everything = range(len(good.split("all")))
    name = good.manifest["splits"]["all"]["shards"][0]["name"]
    row = good.split("all").rows[0]
    at = int(row["offset"]) + int(row["size"]) // 2

    def flip(data):
        data[at] ^= 4
        return data
    split = Cache(rewrite(f"all/{name}", flip)).split("all")
    error = fails(CorruptSample, name, lambda: split.batch(everything, check=True))
    first = good.split("all").ids()[0]
    assert (error.sample, error.path, error.label) == (0, first["path"], first["label"]), vars(error)
    fails(CorruptSample, name, lambda: list(split.loader(32, check=True)))
    fails(CorruptSample, name, lambda: split.payload(0))

    batch = lambda path: Cache(path).split("all").batch(everything)
    fails(CacheError, name, lambda: batch(rewrite(f"all/{name}", lambda d: d[:-1])))
    fails(CacheError, name, lambda: batch(damaged(lambda p: os.remove(f"{p}/all/{name}"))))
    fails(CacheError, "rows.npy", lambda: batch(rewrite("all/rows.npy", lambda d: d[:-7])))
    fails(CacheError, "labels.npy", lambda: batch(damaged(lambda p: os.remove(f"{p}/all/labels.npy"))))

    def far(data):
        data[-40:-32] = (2**63).to_bytes(8, "little")
        return data
    fails(CacheError, "rows.npy", lambda: batch(rewrite("all/rows.npy", far)))

    def other(data):
        data[-32:-28] = (77).to_bytes(4, "little")
        return data
    fails(CacheError, "rows.npy", lambda: batch(rewrite("all/rows.npy", other)))
    fails(CacheError, "manifest.json", lambda: batch(damaged(lambda p: os.remove(p + "/manifest.json"))))
    whole = len(open(good.path + "/manifest.json", "rb").read().rstrip())
    for cut in list(range(0, whole, 211)) + [whole - 1]:
        fails(CacheError, "manifest.json", lambda: batch(rewrite("manifest.json", lambda d: d[:cut])))
    nonsense = [
        lambda m: m.update(schema=99), lambda m: m.update(schema="1"), lambda m: m.update(splits=[1]), lambda m: m.update(kind="zip"),
        lambda m: m["splits"].update(all=3), lambda m: m["splits"]["all"].update(shards={"a": 1}), lambda m: m["splits"]["all"].update(rows=-1),
        lambda m: m["splits"]["all"].update(rows=10**12), lambda m: m["splits"]["all"]["shards"][0].update(name="../../etc/passwd"),
        lambda m: m["splits"]["all"]["shards"][0].update(bytes="many"), lambda m: m["splits"]["all"]["shards"][0].update(bytes=1),
        lambda m: m["splits"]["all"].update(folder="/etc"), lambda m: m["splits"]["all"]["tables"].pop("rows.npy"),
        lambda m: m["image"].update(height=10**9), lambda m: m["image"].update(height=H + 1), lambda m: m.update(image=None), lambda m: m.update(store="jpeg"),
    ]
    for change in nonsense:
        fails(CacheError, "", lambda: batch(manifest(change)))
    fails(IndexError, "", lambda: good.split("all")[len(everything)])
    fails(TypeError, "", lambda: good.split("all").batch([0.5]))
    fails(ValueError, "", lambda: good.split("all").batch([0], out=np.empty((1, H, W, 3), np.float32)))
    fails(KeyError, "all", lambda: good.split("train"))
    print(f"{len(nonsense)} kinds of nonsense, flips and cuts end in errors that say where")


NONSENSE = [None, -1, 2**63, 10**30, 1.5, float("nan"), "x", "../x", "a\0b", [], [1], {"a": 1}, True, "gone"]


def leaves(value, at=()):
    """Where every value of a manifest stands, tables and lists among them."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in pairs:
        yield (*at, key)
        yield from leaves(below, (*at, key))


def everything(path):
    """All that a reader does with a cache."""
    cache = Cache(path)
    split = cache.split(cache.splits[0])
    jpeg = cache.store == "jpeg"
    seen = split.at(8) if jpeg or not split.shape else split
    samples = range(len(split))
    repr(cache), seen.batch(samples, io="direct"), split.ids(), split.labels.sum(), split.at(6, crop="random").batch(samples)
    if len(split):
        split[0], split[-1], split.payload(0)
    if split._stride and split.shape and not jpeg:
        [split.shard(k).sum() for k in range(len(split._names))]
    for balanced in (False, True):
        try:
            list(seen.loader(4, check=True, balanced=balanced))
        except ValueError as e:
            assert "needs samples with labels" in str(e), e


def fuzzed(good, work):
    """Whatever a manifest, a table or a shard says: what comes of it is an answer or a CacheError, and never another error,
    a crash or an endless wait."""
    path, (part, about) = work + "/fuzzed", next(iter(good.manifest["splits"].items()))
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(good.path, path)
    refused = []

    def attempt(what, manifest):
        json.dump(manifest, open(path + "/manifest.json", "w"))
        try:
            everything(path)
        except CacheError:
            refused.append(True)
        except Exception as e:
            raise AssertionError(f"{what}: {type(e).__name__}: {e}") from e
        else:
            refused.append(False)

    rng = np.random.default_rng(len(good.path))
    for at in leaves(good.manifest):
        for value in rng.choice(np.array(NONSENSE, object), 3, replace=False):
            m = json.loads(json.dumps(good.manifest))
            inner = m
            for key in at[:-1]:
                inner = inner[key]
            if value == "gone":
                del inner[at[-1]]
            else:
                inner[at[-1]] = value
            attempt((at, value), m)
    files = [(name, about["tables"]) for name in (*prep_cache.TABLES, "ids.csv")] + [(s["name"], s) for s in about["shards"]]
    for name, entry in files:
        file = f"{path}/{part}/{name}"
        data = open(file, "rb").read()
        made = [b"", data[:-1], data + b"\0", data[:70], b"\xff" * len(data), bytes(len(data)), b'"' * 200_000, b"sample\n" + b"1" * 200_000]
        for k in rng.integers(0, min(len(data), 128), 60):  # headers of NumPy's files are a program of sorts
            made.append(data[:k] + rng.choice(np.frombuffer(b"'([{,:\"9L\0\xff", "S1")).ljust(1, b"\0") + data[k + 1:])
        for _ in range(40):
            body = bytearray(data)
            for k in rng.integers(0, len(data), 3):
                body[k] = rng.choice([0, 1, 127, 128, 255])
            made.append(bytes(body))
        for content in [*made, None]:
            os.remove(file)  # a new file each time: the old one may still be mapped
            open(file, "wb").write(content) if content is not None else os.mkfifo(file)
            m = json.loads(json.dumps(good.manifest))
            split = m["splits"][part]
            told = split["tables"][name] if name in split["tables"] else next(s for s in split["shards"] if s["name"] == name)
            told["bytes"] = len(content or b"")
            attempt((name, content and content[:80]), m)
        os.remove(file)
        open(file, "wb").write(data)
    assert 100 < sum(refused) < len(refused)
    return len(refused)


def golden():
    """Caches that earlier versions wrote; tests/it/golden_cache.rs makes and describes them."""
    root, seen = os.path.join(ROOT, "tests", "golden"), 0
    y, x, c = np.mgrid[0:12, 0:20, 0:3]
    for schema in range(1, prep_cache.SCHEMA + 1):
        for name in sorted(os.listdir(f"{root}/cache-{schema}")):
            cache = Cache(f"{root}/cache-{schema}/{name}")
            assert cache.splits == ["train", "val"] and cache.classes == ["ant", "bee"]
            numbers = []
            for part in cache.splits:
                split = cache.split(part)
                for i, row in enumerate(split.ids()):
                    number = int(row["path"].split("/")[-1].split(".")[0])
                    numbers.append(number)
                    picture, label = split[i]
                    off = np.abs(picture.astype(int) - (20 + 4 * x + 3 * y + 9 * number + 20 * c)).max()
                    assert off <= (12 if cache.store == "jpeg" else 0) and label == number % 2, (name, row, off)
                    assert part == ("val" if number % 4 == 3 else "train")
            assert sorted(numbers) == list(range(8))
            seen += 1
    assert seen >= 4
    return [Cache(f"{root}/cache-1/{name}") for name in ("mds-raw", "mds-jpeg", "wds-raw", "npy-raw")]


def off_pillow(split, want, side):
    """How far .at(side) is from Pillow's own resize and crop of the whole picture: the largest mean of a picture."""
    ids, picked, off = split.ids(), range(0, len(split), 7), []
    images, _ = split.at(side).batch(picked)
    for image, i in zip(images, picked):
        whole = Image.fromarray(want[ids[i]["path"]])
        short = round(side / 0.875)
        w, h = (short, short * whole.height // whole.width) if whole.width <= whole.height else (short * whole.width // whole.height, short)
        left, top = round((w - side) / 2), round((h - side) / 2)
        ref = np.asarray(whole.resize((w, h), Image.Resampling.BILINEAR).crop((left, top, left + side, top + side)))
        off.append(np.abs(image.astype(int) - ref).mean())
    return max(off)


def resampled(split, want):
    """.at(): the fallback against Pillow; random crops are the same in any batch and lie in the picture."""
    exact, reduced = off_pillow(split, want, 48), off_pillow(split, want, 24)
    assert exact < 0.5 and reduced < 4, (exact, reduced)
    random = split.at(24, crop="random", seed=4, epoch=1)
    a, b = random.batch([5, 6, 7])[0], random.batch([7, 5])[0]
    assert np.array_equal(a[[2, 0]], b) and not np.array_equal(a, split.at(24, crop="random", seed=4, epoch=2).batch([5, 6, 7])[0])
    boxes = random._boxes(*split._locate(np.arange(len(split))))
    rows = split.rows
    assert (boxes[:, :2] >= 0).all() and (boxes[:, 2] <= rows["w"]).all() and (boxes[:, 3] <= rows["h"]).all()
    share = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]) / (rows["w"].astype(float) * rows["h"])
    assert 0.05 < share.min() and 0.35 < share.mean() < 0.65, (share.min(), share.mean())
    assert equal(epoch(random, 32, seed=4, threads=1), epoch(random, 32, seed=4, threads=3))
    print(f"resize and crop off Pillow's by {exact:.2f} in the mean at most, {reduced:.2f} with a reduced decode; random crops cover {share.mean():.2f} in the mean")


def direct(split):
    """Reads past the page cache give the same, where the file system has them."""
    try:
        got = split.batch(range(50), io="direct", check=True)
    except (CacheError, OSError) as e:
        print(f"no direct reads on this file system: {e}")
        return
    assert all(np.array_equal(a, b) for a, b in zip(got, split.batch(range(50))))
    assert equal(epoch(split, 32, io="direct"), epoch(split, 32, io="mmap"))


def main():
    with tempfile.TemporaryDirectory(dir=os.environ.get("PREP_SCRATCH")) as work:
        fixed = sources(work + "/fixed", "png", lambda rng: (W, H))
        varied = sources(work + "/varied", "png", lambda rng: (int(rng.integers(20, 60)), int(rng.integers(20, 60))))
        jpegs = sources(work + "/jpegs", "jpg", lambda rng: (int(rng.integers(60, 160)), int(rng.integers(60, 160))), quality=92, subsampling=2)
        size, small = ("--size", f"{H}x{W}"), ("--shard-size", "1M")
        done = []
        for layout in ("mds", "wds", "npy"):
            cache = pack(work + "/fixed", f"{work}/raw-{layout}", "--layout", layout, "--store", "raw", *size, *small)
            split = same_as_sources(cache, fixed)
            plain_numpy(cache, fixed)
            assert all(np.array_equal(a, b) for a, b in zip(split.batch(range(40), check=True), (np.stack([split[i][0] for i in range(40)]), split.labels[:40])))
            if cache.manifest["image"]["stride"]:
                assert np.array_equal(split.shard(1), split.batch(range(len(split.shard(0)), len(split.shard(0)) + len(split.shard(1))))[0])
            direct(split)
            done.append(f"{layout} raw")
        for layout in ("mds", "wds"):
            plain_numpy(cache := pack(work + "/varied", f"{work}/varied-{layout}", "--layout", layout, "--store", "raw", *small), varied)
            split = same_as_sources(cache, varied)
            done.append(f"{layout} raw of many sizes")
            plain_numpy(cache := pack(work + "/jpegs", f"{work}/jpeg-{layout}", "--layout", layout, "--store", "jpeg", *small), jpegs)
            split = same_as_sources(cache, jpegs)
            done.append(f"{layout} JPEG")
            resampled(split, jpegs)
        print("as Pillow decodes the sources: " + ", ".join(done))
        for tar in (f for f in os.listdir(work + "/raw-wds/all") if f.endswith(".tar")):
            with tarfile.open(f"{work}/raw-wds/all/{tar}") as t:
                assert len(t.getnames()) > 3
        good = Cache(work + "/raw-mds")
        orders(good.split("all"))
        processes(good.split("all"))
        hostile(good, work)
        few = pack(work + "/jpegs", work + "/few", "--layout", "mds", "--store", "jpeg", "--size", "200x200", "--quality", "5")
        assert few.split("all").at(200).batch([0, 1])[0].shape == (2, 200, 200, 3), "a JPEG may be smaller than its pixels"
        print(f"{sum(fuzzed(cache, work) for cache in golden()[:2])} fuzzed caches end in answers or CacheErrors; golden caches hold what they held")


if __name__ == "__main__":
    main()
