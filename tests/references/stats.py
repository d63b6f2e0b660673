"""prep stats against NumPy in float64 on the same pixels. Run by tests/references.sh."""
import json, os, shutil, subprocess, tempfile
import numpy as np
from PIL import Image, ImageOps

PREP = os.environ["PREP"]
rng = np.random.default_rng(5)


def stats(folder, *options):
    run = subprocess.run([PREP, "stats", folder, "--json", "--no-write", "--progress", "none", *options], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def numpy_moments(pictures):
    """The three definitions, straight from their words."""
    flat = [p.reshape(-1, 3).astype(np.float64) / 255 for p in pictures]
    pool = np.concatenate(flat)
    means, squares = (np.stack([f(x) for x in flat]) for f in (lambda x: x.mean(0), lambda x: (x * x).mean(0)))
    own = np.stack([x.std(0) for x in flat])
    return {
        "pixel": (pool.mean(0), pool.std(0)),
        "image": (means.mean(0), np.sqrt(squares.mean(0) - means.mean(0) ** 2)),
        "imagenet": (means.mean(0), own.mean(0)),
    }


def compare(what, got, pictures, most=1e-9):
    worst = 0
    for name, (mean, std) in numpy_moments(pictures).items():
        for key, want in (("mean", mean), ("std", std)):
            off = np.abs(np.array(got["all"][name][key]) - want).max()
            assert off < most, f"{what}: {name} {key} is off by {off}"
            worst = max(worst, off)
    print(f"{what}: {got['images']} images, off by at most {worst:.1e}")


def upright(path):
    return np.asarray(ImageOps.exif_transpose(Image.open(path)).convert("RGB"))


with tempfile.TemporaryDirectory() as work:
    folder = os.path.join(work, "set")
    os.makedirs(folder + "/a")
    os.makedirs(folder + "/b")
    for i in range(24):
        size = (int(rng.integers(1, 90)), int(rng.integers(1, 90)), 3)
        picture = rng.integers(0, 256, size, dtype=np.uint8) // (i % 3 + 1)
        Image.fromarray(picture).save(f"{folder}/{'ab'[i % 2]}/{i:02}.png")
    files = sorted(os.path.join(d, f) for d, _, fs in os.walk(folder) for f in fs)
    pictures = [upright(f) for f in files]
    got = stats(folder)
    compare("sizes from 1x1", got, pictures)
    for threads in ("1", "2", "16"):
        assert stats(folder, "-j", threads) == got, threads

    three = os.path.join(work, "three")
    os.makedirs(three)
    sizes = [(40, 30, 255), (3, 7, 0), (100, 1, 128)]
    for i, (w, h, v) in enumerate(sizes):
        Image.new("RGB", (w, h), (v, v // 2, 0)).save(f"{three}/{i}.png")
    compare("three images of unequal size", stats(three), [upright(f"{three}/{i}.png") for i in range(3)])

    view = stats(folder, "--at", "48,32")
    seen = []
    for f in files:
        im = Image.open(f).convert("RGB")
        w, h = im.size
        size = (48, int(48 * h / w)) if w <= h else (int(48 * w / h), 48)
        im = im.resize(size, Image.BILINEAR)
        left, top = (int(round((a - 32) / 2.0)) for a in im.size)
        seen.append(np.asarray(im.crop((left, top, left + 32, top + 32))))
    # Two resamplers round the same values differently by one level here and there.
    compare("as torchvision would see it (--at 48,32)", view, seen, 2e-4)

    for name in ("data/banana_ccby", "data/grocery_nested/train"):
        path = os.path.join("..", "shared", "corpus", name)
        if not os.path.isdir(path):
            continue
        copy = os.path.join(work, "real")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(path, copy)
        subprocess.run(["chmod", "-R", "u+w", copy], check=True)
        names = [os.path.join(d, f) for d, _, fs in os.walk(copy) for f in fs if f.lower().endswith((".jpg", ".jpeg", ".png"))]
        assert names
        plain = [n for n in names if not Image.open(n).info.get("icc_profile")]
        for n in set(names) - set(plain):
            os.remove(n)
        compare(name, stats(copy, "--no-labels"), [upright(n) for n in plain])
