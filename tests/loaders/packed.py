"""Packs small sets in every layout for the libraries to read, and tells what must come out. Run by tests/loaders.sh."""
import csv, io, json, os, subprocess, sys
import numpy as np
from PIL import Image

CLASSES = {"ant": 21, "bee": 34, "cat": 12}
H, W = 40, 56
# name: sources, options of prep pack
SETS = {
    "mds-raw": ("fixed", "--layout mds --store raw --size 40x56"),
    "mds-varied": ("varied", "--layout mds --store raw"),
    "mds-jpeg": ("jpegs", "--layout mds --store jpeg"),
    "wds-raw": ("fixed", "--layout wds --store raw --size 40x56"),
    "wds-jpeg": ("jpegs", "--layout wds --store jpeg"),
    "npy-raw": ("fixed", "--layout npy --store raw --size 40x56"),
    "beton-raw": ("fixed", "--layout beton --store raw --size 40x56"),
    "beton-jpeg": ("jpegs", "--layout beton --store jpeg"),
}


def sources(folder, ext, size, **options):
    """Class folders of smooth pictures with a little noise."""
    rng = np.random.default_rng(11)
    for name, count in CLASSES.items():
        os.makedirs(f"{folder}/{name}")
        for i in range(count):
            w, h = size(rng)
            y, x = np.mgrid[0:h, 0:w].astype(np.float64)
            base = np.stack([np.sin(x / 9 + rng.uniform(0, 6)) * 90 + 120, np.cos(y / 7) * 80 + 120, (x * 3 + y) % 256], -1)
            picture = np.clip(base + rng.normal(0, 3, base.shape), 0, 255).astype(np.uint8)
            Image.fromarray(picture).save(f"{folder}/{name}/{i:03}.{ext}", **options)


def expected(data, name):
    """What set `name` holds, in its own order: pictures (Pillow's pixels of the sources) and labels."""
    root = f"{data}/{SETS[name][0]}"
    ids = list(csv.DictReader(open(f"{data}/{name}/all/ids.csv", newline="")))
    classes = json.load(open(f"{data}/{name}/manifest.json"))["classes"]
    pictures = [np.asarray(Image.open(f"{root}/{r['path']}").convert("RGB")) for r in ids]
    assert len(ids) == sum(CLASSES.values()) and classes == sorted(CLASSES)
    return pictures, [classes.index(r["path"].split("/")[0]) for r in ids]


def compare(what, data, name, got, most=0):
    """`got`: pairs (picture uint8 (h, w, 3), label) in the order of the set."""
    pictures, labels = expected(data, name)
    got = list(got)
    assert len(got) == len(pictures), f"{what}: {len(got)} samples, not {len(pictures)}"
    assert [int(label) for _, label in got] == labels, f"{what}: other labels"
    worst = 0
    for (picture, _), want in zip(got, pictures):
        picture = np.asarray(picture)
        assert picture.shape == want.shape and picture.dtype == np.uint8, (what, picture.shape, want.shape)
        worst = max(worst, int(np.abs(picture.astype(int) - want).max()))
    assert worst <= most, f"{what}: pixels differ by {worst}"
    print(f"{what}: {len(got)} samples, pixels off by {worst} at most, labels equal", flush=True)


def decode(jpeg):
    return np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB"))


if __name__ == "__main__":
    data = sys.argv[1]
    sources(f"{data}/fixed", "png", lambda rng: (W, H))
    sources(f"{data}/varied", "png", lambda rng: (int(rng.integers(20, 90)), int(rng.integers(20, 90))))
    sources(f"{data}/jpegs", "jpg", lambda rng: (int(rng.integers(40, 200)), int(rng.integers(40, 200))), quality=92, subsampling=2)
    for name, (source, options) in SETS.items():
        command = [os.environ["PREP"], "pack", f"{data}/{source}", "-o", f"{data}/{name}", "--shard-size", "256K", "--progress", "none", *options.split()]
        run = subprocess.run(command, capture_output=True, text=True)
        assert run.returncode == 0, (name, run.stderr)
    print(f"{len(SETS)} sets packed")
