"""Reader of the caches that `prep pack` writes. One file, needs NumPy alone; torch, Pillow and `prep_decode` are optional.

    from prep_cache import Cache
    train = Cache("photos-shards").split("train")        # raw pixels: as packed; JPEG: add .at(224, crop="random")
    for epoch in range(90):
        for images, labels in train.loader(256, seed=0, epoch=epoch):    # uint8 (n, H, W, 3), int64 (n,)
            ...                                          # the arrays are reused: copy what must outlive the next batch

On a GPU, ship bytes and normalise there (a quarter of the traffic, and no CPU time):

    mean, std = (torch.tensor(v, device=dev).view(1, 3, 1, 1) for v in (train.cache.mean_255, train.cache.std_255))
    pinned = [torch.empty(256, 256, 256, 3, dtype=torch.uint8, pin_memory=True).numpy() for _ in range(4)]
    for images, labels in train.loader(256, seed=0, epoch=epoch, buffers=pinned, keep=2):
        x = torch.from_numpy(images).to(dev, non_blocking=True).permute(0, 3, 1, 2).float().sub_(mean).div_(std)

With torch's DataLoader (a Split is a map-style dataset that takes whole batches; num_workers=0 unless JPEGs are decoded):

    DataLoader(train, batch_sampler=train.batches(256, seed=0, epoch=epoch), collate_fn=prep_cache.collate)

JAX takes the arrays as they are: jnp.array(images) copies them, which the reuse of the buffers makes necessary.
Format, order and options: docs/cache.md and docs/reader.md of prep.
"""
from __future__ import annotations

import contextlib, csv, io as _io, json, mmap, os, warnings, zlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np

try:
    import resource
except ImportError:  # Windows
    resource = None

SCHEMA = 1
ROW = np.dtype([("offset", "<u8"), ("shard", "<u4"), ("size", "<u4"), ("h", "<u2"), ("w", "<u2"), ("label", "<i4"),
                ("group", "<i4"), ("crc32", "<u4"), ("row", "<u4"), ("flags", "<u4")])
TABLES = {"rows.npy": ROW, "labels.npy": np.dtype("<i8"), "class_ptr.npy": np.dtype("<i8"), "class_rows.npy": np.dtype("<u4")}
PAGE = 4096
GAP = 2.0  # a reduced decode leaves the filter so many pixels for one, as in prep and Pillow's reducing_gap
REPAIR = "`prep verify --repair-index` makes it anew from the shards"
AGAIN = "take it from a copy, or pack again with --resume"


class CacheError(RuntimeError):
    """The cache is not whole, or not what it says. The message names the file and what to do."""


class CorruptSample(CacheError):
    """Bytes of one sample are wrong. `sample` is its number, `path` its source, `label` its label's text."""
    def __init__(self, message: str, sample: int = -1, path: str = "", label: str = ""):  # one is enough for pickle
        super().__init__(message)
        self.sample, self.path, self.label = sample, path, label


@contextlib.contextmanager
def _using(file: str, remedy: str):
    """What a damaged or hostile file makes Python or NumPy raise becomes a CacheError that names the file."""
    try:
        yield
    except CacheError:
        raise
    except Exception as e:
        raise CacheError(f"{file} cannot be used ({type(e).__name__}: {e}): {remedy}") from None


def _int(value, most: int = 2**62) -> int:
    """A count or size of the manifest."""
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{value!r} where a number from 0 to {most} must be")
    return value


def _regular(file: str, size: int):
    """Refuses what is not there, is no file (a pipe would be waited for), or has another size than the manifest says."""
    if not os.path.isfile(file) or os.path.getsize(file) != size:
        raise ValueError(f"it is not there with the {size} bytes of the manifest")


def _plain(name: str) -> str:
    """A name that stays in its folder."""
    if not isinstance(name, str) or name in ("", ".", "..") or any(c in name for c in "/\\\0"):
        raise ValueError(f"{name!r} is no plain file name")
    return name


# --- the order ------------------------------------------------------------------------------------------------------

def mix(x: np.ndarray) -> np.ndarray:
    """One step of splitmix64 (Steele, Lea, Flood 2014), elementwise on uint64; wraps around."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def keys(n: int, *path: int) -> np.ndarray:
    """n distinct uint64 keys that are a function of the numbers in `path` (any integers, taken modulo 2**64)."""
    return mix(_chain(*path) ^ np.arange(n, dtype=np.uint64))


def _chain(*path: int) -> np.ndarray:
    """The k of `keys`: uint64 (1,)."""
    k = np.zeros(1, np.uint64)  # an array, since NumPy warns when a scalar wraps around
    for number in path:
        k = mix(k ^ np.uint64(number & (2**64 - 1)))
    return k


def epoch_order(n: int, seed: int, epoch: int) -> np.ndarray:
    """The samples 0 ... n-1 in the order of an epoch: int64 (n,). Sorted by key(i) = mix(k ^ i) with k = mix(mix(mix(seed)
    ^ epoch) ^ 0): `mix` is a bijection, so there are no ties, and nothing but (n, seed, epoch) decides."""
    return np.argsort(keys(n, seed, epoch, 0), kind="stable")


def balanced_order(ptr: np.ndarray, rows: np.ndarray, n: int, seed: int, epoch: int) -> np.ndarray:
    """n draws in which every class that has samples comes equally often: int64 (n,).

    Each run of K draws holds each of the K classes once, in mixed order; a class deals out all its samples before it
    deals one again. `ptr` (classes+1,) and `rows` are class_ptr.npy and class_rows.npy."""
    classes = np.flatnonzero(np.diff(ptr) > 0)
    if not len(classes):
        raise ValueError("balanced=True needs samples with labels")
    rounds = -(-n // len(classes))
    order = np.argsort(keys(rounds * len(classes), seed, epoch, 1).reshape(rounds, -1), axis=1, kind="stable")
    # All decks of all classes beside each other, each deck sorted by the keys of its class: no step for each class, of
    # which there may be 70,000.
    sizes = np.diff(ptr)[classes]
    total = -(-rounds // sizes) * sizes
    owner, at = np.repeat(np.arange(len(classes)), total), np.arange(total.sum()) - np.repeat(np.cumsum(total) - total, total)
    key = mix(mix(_chain(seed, epoch, 2) ^ classes.astype(np.uint64))[owner] ^ at.astype(np.uint64))
    deck, card = np.cumsum(at % sizes[owner] == 0), at % sizes[owner]
    dealt = (ptr[classes][owner] + card[np.lexsort((key, deck))])[at < rounds].reshape(len(classes), rounds)
    out = np.asarray(rows, np.int64)[dealt[order, np.arange(rounds)[:, None]]]
    return out.ravel()[:n]


class Batches:
    """The batches of one rank and epoch as int64 arrays of sample numbers; also a torch batch sampler.

    Step s takes samples s*batch*world ... of the epoch's order, and rank r the r-th of `world` equal parts of them. The
    last step is shared out in parts that differ by one at most (a rank may get none when there are fewer samples than
    ranks); `drop_last` leaves it out, as distributed training wants it."""
    def __init__(self, split, batch: int, seed=0, epoch=0, step=0, rank=0, world=1, shuffle=True, balanced=False,
                 drop_last=False):
        if batch < 1 or world < 1 or not 0 <= rank < world or step < 0:
            raise ValueError(f"batch {batch} and world {world} must be 1 or more, rank {rank} below world, step {step} 0 or more")
        n = len(split)
        if balanced:
            self.order = balanced_order(*split.by_class(), n, seed, epoch)
        else:
            self.order = epoch_order(n, seed, epoch) if shuffle else np.arange(n)
        self.share, self.rank, self.world, self.step = batch * world, rank, world, step
        self.steps = n // self.share if drop_last else -(-n // self.share)
        if step > self.steps:
            raise ValueError(f"step {step} of {self.steps}: a state of another cache, part or batch x world than this")

    def __len__(self) -> int:
        return self.steps - self.step

    def at(self, step: int) -> np.ndarray:
        """The samples of this rank at a step of the epoch."""
        part = self.order[step * self.share:(step + 1) * self.share]
        return part[len(part) * self.rank // self.world:len(part) * (self.rank + 1) // self.world]

    def __iter__(self):
        return (self.at(step) for step in range(self.step, self.steps))


# --- the cache ------------------------------------------------------------------------------------------------------

class Cache:
    """A directory that `prep pack` wrote. Opens nothing but manifest.json."""
    def __init__(self, path):
        self.path = os.path.abspath(os.fspath(path))
        self.file = os.path.join(self.path, "manifest.json")
        if not os.path.isfile(self.file):
            raise CacheError(f"{self.path} has no manifest.json: no cache, or one whose writing was stopped; run the same "
                             "`prep pack` command again")
        with _using(self.file, AGAIN):
            with open(self.file, encoding="utf-8") as f:
                self.manifest = m = json.load(f)
            if m["kind"] != "prep-cache" or m["store"] not in ("raw", "jpeg"):
                raise ValueError("it is no manifest of `prep pack`")
            if _int(m["schema"]) > SCHEMA:
                raise CacheError(f"{self.file} has schema {m['schema']}, this reader knows {SCHEMA}: take the newer "
                                 "prep_cache.py that lies beside it")
            self.store, self.splits, self.classes = m["store"], list(m["splits"].keys()), m["classes"]
            if not isinstance(self.classes, list) or not all(isinstance(c, str) for c in self.classes):
                raise ValueError("`classes` are no names")
            # Per channel R, G, B of the training pixels; on a scale of 0 to 1 and of 0 to 255. None without such pixels.
            stats = m["stats"] or {}
            self.mean, self.std, self.mean_255, self.std_255 = (stats.get(k) for k in ("mean", "std", "mean_255", "std_255"))

    def split(self, name: str = "train") -> "Split":
        """A part of the split: `train`, `val`, ...; `all` where the data had no split."""
        if name not in self.splits:
            raise KeyError(f"no part {name!r} in {self.path}; there are: {', '.join(self.splits)}")
        return Split(self, name)

    def __repr__(self):
        return f"Cache({self.path!r}: {', '.join(f'{s} {len(self.split(s))}' for s in self.splits)})"


class Split:
    """One part of a cache: `len`, `[i]` -> (uint8 (h, w, 3), label), `batch`, `loader`. Safe to fork and to pickle.

    `labels` int64 (n,), -1 without one; `rows` structured (n,), see ROW. Both stay on disk until they are touched."""
    def __init__(self, cache: Cache, name: str, view=None):
        self.cache, self.name = cache, name
        self.view = view  # (H, W, short edge, crop, seed, epoch): see `at`
        with _using(cache.file, AGAIN):
            about, image = cache.manifest["splits"][name], cache.manifest["image"]
            self.folder = os.path.join(cache.path, _plain(about.get("folder", name)))
            self._n = _int(about["rows"], 2**32)
            self._names = [_plain(s["name"]) for s in about["shards"]]
            self._bytes = np.array([_int(s["bytes"]) for s in about["shards"]], np.int64)
            self._counts, self._image0 = ([_int(s[k]) for s in about["shards"]] for k in ("rows", "image0"))
            self._sizes = {table: _int(about["tables"][table]["bytes"]) for table in (*TABLES, "ids.csv")}
            self._stride = None if image["stride"] is None else _int(image["stride"])
            fixed = [image["height"], image["width"]]
            self.shape = None if fixed == [None, None] else (*(_int(side, 65535) for side in fixed), 3)
            self._aligned = _int(cache.manifest["alignment"]) % PAGE == 0
            if self.shape and cache.store == "raw" and self._n:
                size = int(np.prod(self.shape))
                if not 0 < size <= self._bytes.max(initial=0) or self._stride is not None and self._stride < size:
                    raise ValueError(f"no pictures of {self.shape} lie in the shards of {name}")
        self._fits = self._bytes.sum(dtype=float) * 2 <= _memory()
        self._files, self._pid, self._most = {}, os.getpid(), _files_for(2 * len(self._names))
        self.rows, self.labels = self.table("rows.npy"), self.table("labels.npy")

    def table(self, name: str) -> np.ndarray:
        """A table of the part, memory-mapped: one of TABLES."""
        file = os.path.join(self.folder, name)
        with _using(file, REPAIR):
            _regular(file, self._sizes[name])
            table = np.asarray(np.load(file, mmap_mode="r", allow_pickle=False))
            length = {"class_ptr.npy": len(self.cache.classes) + 1, "class_rows.npy": table.size}.get(name, self._n)
            if table.dtype != TABLES[name] or table.shape != (length,):
                raise ValueError(f"it has {table.shape} items of {table.dtype}, not {length}")
        return table

    def by_class(self) -> tuple[np.ndarray, np.ndarray]:
        """The samples of class c are rows[ptr[c]:ptr[c + 1]]: (ptr, rows)."""
        ptr, rows = self.table("class_ptr.npy"), self.table("class_rows.npy")
        if ptr[0] != 0 or ptr[-1] != len(rows) or (ptr[:-1] > ptr[1:]).any() or (rows >= self._n).any():
            raise CacheError(f"{self.folder}: class_ptr.npy and class_rows.npy do not fit; {REPAIR}")
        return ptr, rows

    def ids(self) -> list[dict]:
        """ids.csv: for each sample the columns sample, row, path, hash, label, group, as text."""
        file = os.path.join(self.folder, "ids.csv")
        with _using(file, REPAIR):
            _regular(file, self._sizes["ids.csv"])
            with open(file, newline="", encoding="utf-8") as f:
                ids = list(csv.DictReader(f))
            if any(row["sample"] != str(i) for i, row in enumerate(ids)) or len(ids) != self._n:
                raise ValueError(f"it does not list the samples 0 to {self._n - 1}")
            return ids

    def at(self, size, short: int | None = None, crop: str = "center", seed: int = 0, epoch: int = 0) -> "Split":
        """The same part, seen at `size` (H, W) or a side of a square, resampled bilinearly with antialiasing.

        crop "center": the shorter side becomes `short` (size / 0.875 unless given, as timm and torchvision have it) and
        the middle is cut out (raw pictures of this very size are taken as they are); "random": torchvision's
        RandomResizedCrop (8-100 % of the area, 3:4 to 4:3), a function of (seed, epoch, sample); a loader puts in its own
        seed and epoch."""
        h, w = (size, size) if np.ndim(size) == 0 else size
        short = round(max(h, w) / 0.875) if short is None else short
        whole = h == int(h) and w == int(w)
        if crop not in ("center", "random") or not whole or not 1 <= min(h, w) <= max(h, w) <= short <= 65535:
            raise ValueError(f"size {size} must be whole and 1 or more, short {short} no less and up to 65535, crop `center` or `random`")
        return Split(self.cache, self.name, (h, w, short, crop, seed, epoch))

    def __len__(self) -> int:
        return self._n

    def __repr__(self):
        return f"Split({self.folder!r}, {self._n} samples, {self.cache.store}{f', at {self.view[:4]}' if self.view else ''})"

    def __reduce__(self):  # paths only: whoever gets it opens its own files
        return _reopen, (self.cache.path, self.name, self.view)

    # --- bytes --------------------------------------------------------------------------------------------------

    def _open(self, shard: int, direct: bool = False) -> "_File":
        """A shard, mapped into memory or opened for reads past the page cache."""
        if self._pid != os.getpid() or len(self._files) >= self._most:  # after a fork nothing is shared with the parent
            self._files, self._pid = {}, os.getpid()
        file = self._files.get((shard, direct))
        if file is None:
            path = os.path.join(self.folder, self._names[shard])
            with _using(path, "copy it again, or pack with --resume"):
                file = self._files.setdefault((shard, direct), _File(path, direct, int(self._bytes[shard]), self._fits))
        return file

    def _locate(self, samples) -> tuple[np.ndarray, np.ndarray]:
        """Samples as int64 (n,) and their rows, checked against the manifest."""
        samples = np.asarray(samples)
        if samples.ndim != 1 or (samples.dtype.kind not in "iu" and samples.size):
            raise TypeError(f"sample numbers must be a list of integers, not {samples.dtype} of shape {samples.shape}")
        samples = samples.astype(np.int64)
        samples = np.where(samples < 0, samples + self._n, samples)
        outside = samples[(samples < 0) | (samples >= self._n)]
        if len(outside):
            raise IndexError(f"sample {outside[0]} of {self._n}")
        rows = self.rows[samples]
        h, w, size, shard = (rows[k].astype(np.int64) for k in ("h", "w", "size", "shard"))
        jpeg = self.cache.store == "jpeg"
        bad = (shard >= len(self._names)) | (h == 0) | (w == 0) | ((rows["flags"] & 1) != jpeg)
        if not jpeg:
            bad |= size != h * w * 3
        if self.shape:
            bad |= (h != self.shape[0]) | (w != self.shape[1])
        bad |= (rows["label"] < -1) | (rows["label"] >= len(self.cache.classes))
        room = np.append(self._bytes, 0)[np.minimum(shard, len(self._names))] - size
        bad |= (room < 0) | (rows["offset"] > np.maximum(room, 0).astype(np.uint64))
        if bad.any():
            raise CacheError(f"{self.folder}/rows.npy: sample {samples[np.argmax(bad)]} is at a place, or of a kind, that no "
                             f"sample here can have: {REPAIR}")
        return samples, rows

    def _check(self, data, row, sample: int):
        if zlib.crc32(data) == row["crc32"]:
            return
        try:
            name = self.ids()[sample]
        except CacheError:  # the table is damaged as well
            name = {"path": "?", "label": "?"}
        raise CorruptSample(f"sample {sample} ({name['path']}, label {name['label']}) in {self._names[row['shard']]} at "
                            f"{row['offset']}: the {row['size']} bytes have not their checksum; `prep verify` lists all such",
                            sample, name["path"], name["label"])

    def _payloads(self, samples, rows, direct: bool, check: bool, slots: np.ndarray | None = None):
        """The stored bytes of each sample, one after the other: uint8 views that the next one may overwrite. With `slots`
        (n, bytes) a direct read goes straight there where both ends lie on pages."""
        scratch = np.empty(0, np.uint8)
        straight = slots is not None and slots.shape[1] % PAGE == 0 and slots.ctypes.data % PAGE == 0
        shards = rows["shard"].tolist()
        files = {shard: self._open(shard, direct) for shard in set(shards)}
        for k, (shard, offset, size) in enumerate(zip(shards, rows["offset"].tolist(), rows["size"].tolist())):
            if direct:
                first, last = offset // PAGE * PAGE, -(-(offset + size) // PAGE) * PAGE
                if straight and first == offset and last - first == slots.shape[1]:
                    target = slots[k]
                else:
                    scratch = scratch if last - first <= len(scratch) else _pages(last - first)
                    target = scratch[:last - first]
                with _using(os.path.join(self.folder, self._names[shard]), "copy it again, or pack with --resume"):
                    if os.preadv(files[shard].fd, [target], first) < offset + size - first:
                        raise ValueError("it ended early: it was cut while it was read")
                data = target[offset - first:offset - first + size]
            else:
                data = files[shard].bytes[offset:offset + size]
            if check:
                self._check(data, rows[k], int(samples[k]))
            yield data

    def payload(self, i: int, check: bool = True) -> bytes:
        """The stored bytes of a sample: a JPEG file, or h*w*3 bytes of RGB."""
        samples, rows = self._locate([i])
        return next(self._payloads(samples, rows, False, check)).tobytes()

    def shard(self, k: int) -> np.ndarray:
        """All pictures of shard k of raw pixels of one size, without a copy: uint8 (n, H, W, 3), read-only."""
        if not self._stride or not self.shape or self.cache.store != "raw":
            raise ValueError("only raw pixels of one size in the layouts mds and npy form an array")
        n, first = self._counts[k], self._image0[k]
        if first + (n - 1) * self._stride + int(np.prod(self.shape)) > self._bytes[k]:  # NumPy does not look, where strides are huge
            raise CacheError(f"{self._names[k]} in {self.folder} has no room for {n} pictures: {self.cache.file} is damaged; {AGAIN}")
        return np.ndarray((n, *self.shape), np.uint8, self._open(k).bytes, first, (self._stride, self.shape[1] * 3, 3, 1))

    # --- pictures -----------------------------------------------------------------------------------------------

    def __getitem__(self, i: int) -> tuple[np.ndarray, int]:
        samples, rows = self._locate([i])
        if self.view:
            images, labels = self.batch(samples)
            return images[0], int(labels[0])
        h, w = int(rows["h"][0]), int(rows["w"][0])
        payloads = self._payloads(samples, rows, False, False)
        if self.cache.store == "raw":
            return np.array(next(payloads)).reshape(h, w, 3), int(rows["label"][0])
        out = np.empty((1, h, w, 3), np.uint8)
        self._decode(samples, rows, payloads, np.array([[0, 0, w, h]], float), out)
        return out[0], int(rows["label"][0])

    def __getitems__(self, samples: list[int]) -> tuple[np.ndarray, np.ndarray]:
        return self.batch(samples)

    def batch_shape(self) -> tuple[int, int, int]:
        """(H, W, 3) of every picture of a batch."""
        if self.view is None and (self.shape is None or self.cache.store != "raw"):
            raise ValueError(f"the pictures of {self.folder} have many sizes or are JPEGs: say at which size with .at(224)")
        return (*self.view[:2], 3) if self.view else self.shape

    def batch(self, samples, out: np.ndarray | None = None, check: bool = False, io: str = "mmap") -> tuple[np.ndarray, np.ndarray]:
        """Pictures uint8 (n, H, W, 3) and labels int64 (n,) of the samples. `out`: any writable uint8 array of that shape,
        C-contiguous. `check` compares each sample's crc32. `io` "direct" reads past the page cache (Linux)."""
        samples, rows = self._locate(samples)
        want = (len(samples), *self.batch_shape())
        out = _pages(int(np.prod(want))).reshape(want) if out is None else out
        if out.shape != want or out.dtype != np.uint8 or not out.flags.c_contiguous or not out.flags.writeable:
            raise ValueError(f"out must be writable, C-contiguous uint8 of shape {want}, not {out.dtype} {out.shape}")
        flat = out.reshape(len(samples), int(np.prod(want[1:])))
        plain = self.cache.store == "raw" and (not self.view or self.view[:2] == (self.shape or ())[:2] and self.view[3] == "center")
        payloads = self._payloads(samples, rows, io == "direct", check, flat if plain else None)
        if plain:
            self._copy(rows, payloads, flat, io == "direct")
        elif len(samples):
            self._decode(samples, rows, payloads, self._boxes(samples, rows), out)
        return out, rows["label"].astype(np.int64)

    def _copy(self, rows, payloads, flat, direct: bool):
        """Raw pixels as they are. A copy to a place that is a little further into its page than the source stalls on its own
        stores (4 KiB aliasing), at a third of the speed, and NumPy's large arrays begin 16 bytes into a page: such go by a
        detour. What was read directly into its place is there already."""
        ahead = (flat.ctypes.data + np.arange(len(flat)) * flat.shape[1] - rows["offset"].astype(np.int64)) % PAGE
        stalls = ((ahead > 0) & (ahead < 32)).tolist()
        detour = _pages(flat.shape[1] + 64)[64:] if any(stalls) else None
        for k, data in enumerate(payloads):
            if direct and np.may_share_memory(data, flat):
                continue
            if stalls[k]:
                detour[:] = data
                data = detour
            flat[k] = data

    def _boxes(self, samples, rows) -> np.ndarray:
        """left, top, right, bottom of the part of each stored picture that becomes the output: float64 (n, 4)."""
        th, tw, short, crop, seed, epoch = self.view
        h, w = rows["h"].astype(np.int64), rows["w"].astype(np.int64)
        if crop == "center":
            edge = np.minimum(h, w)
            rh, rw = short * h // edge, short * w // edge  # torchvision cuts the longer side off below the point
            top, left = np.rint((rh - th) / 2), np.rint((rw - tw) / 2)
            right, bottom = np.minimum((left + tw) * w / rw, w), np.minimum((top + th) * h / rh, h)
            return np.stack([left * w / rw, top * h / rh, right, bottom], 1)
        # Ten tries of an area and a ratio for each; the first that fits, else the middle in a ratio that is allowed.
        u = np.stack([keys(10 * 4, seed, epoch, 3, int(s)).reshape(10, 4) for s in samples]) / 2.0**64
        area, ratio = (h * w)[:, None] * (0.08 + 0.92 * u[..., 0]), np.exp(np.log(4 / 3) * (2 * u[..., 1] - 1))
        bw, bh = np.rint(np.sqrt(area * ratio)), np.rint(np.sqrt(area / ratio))
        fits = (bw >= 1) & (bh >= 1) & (bw <= w[:, None]) & (bh <= h[:, None])
        pick, at = np.argmax(fits, 1), np.arange(len(rows))
        none = ~fits.any(1)
        bw, bh = (np.where(none, np.minimum(a, np.rint(b * 4 / 3)), c[at, pick]) for a, b, c in ((w, h, bw), (h, w, bh)))
        left, top = (np.where(none, (a - b) / 2, np.floor(u[at, pick, k] * (a - b + 1))) for a, b, k in ((w, bw, 2), (h, bh, 3)))
        return np.stack([left, top, left + bw, top + bh], 1)

    def _decode(self, samples, rows, payloads, boxes, out):
        """Each stored picture, cut to its box and resampled to the size of `out` (n, H, W, 3)."""
        compiled = _compiled()
        for k, data in enumerate(payloads):
            file, size = data.tobytes(), (int(rows["w"][k]), int(rows["h"][k]))
            if self.cache.store == "raw":  # a PPM is such pixels behind a line of text
                file = b"P6 %d %d 255\n" % size + file
            try:
                if compiled:
                    compiled.decode_batch([file], out[k:k + 1], boxes=[tuple(boxes[k].tolist())])
                else:
                    _pillow(file, size, boxes[k], out[k])
            except Exception as e:  # decoders raise what they like
                raise CorruptSample(f"sample {samples[k]} in {self._names[rows['shard'][k]]} at {rows['offset'][k]} does not "
                                    f"decode ({e}): run `prep verify --read-data`", int(samples[k])) from None

    # --- epochs -------------------------------------------------------------------------------------------------

    def advise(self, samples, probe=False):
        """Asks the system to read the payloads of these samples into the page cache, without waiting for it. With `probe`
        not the last page of the first, which then tells whoever touches it whether the page cache had it."""
        if hasattr(mmap, "MADV_WILLNEED"):
            _, rows = self._locate(samples)
            for shard, offset, size in zip(rows["shard"].tolist(), rows["offset"].tolist(), rows["size"].tolist()):
                first = offset // mmap.PAGESIZE * mmap.PAGESIZE
                last = offset + size - mmap.PAGESIZE if probe else offset + size
                if last > first:
                    self._open(shard).map.madvise(mmap.MADV_WILLNEED, first, last - first)
                probe = False

    def best_io(self) -> str:
        """"direct" where it works and the part is larger than half of the memory, else "mmap"."""
        if not (self._aligned and hasattr(os, "O_DIRECT") and hasattr(os, "preadv") and self._names):
            return "mmap"
        if self._fits:
            return "mmap"
        try:  # some file systems have no such reads
            os.preadv(self._open(0, True).fd, [_pages(PAGE)], 0)
        except (OSError, CacheError):
            return "mmap"
        return "direct"

    def batches(self, batch: int, **options) -> Batches:
        """See Batches; as `batch_sampler` of a torch DataLoader."""
        return Batches(self, batch, **options)

    def loader(self, batch: int, **options) -> "Loader":
        """See Loader."""
        return Loader(self, batch, **options)


class Loader:
    """The batches of one epoch of one rank, filled ahead by threads: (images uint8 (n, H, W, 3), labels int64 (n,)).

    batch: pictures a rank and step. seed, epoch, step: where to begin; `state()` gives the three back, and beginning in the
    middle costs nothing. rank, world, shuffle, balanced, drop_last: see Batches. threads: one for raw pixels, four for
    direct reads, one a CPU for decoding. buffers: how many batches are held in memory, or the arrays (batch, H, W, 3)
    to use (pinned ones, say). keep: how many batches handed out last stay untouched. check: crc32 of every sample.
    io: "mmap" reads through the page cache, advising it ahead; "direct" past it (Linux); "auto" takes the latter for
    caches that are larger than half of the memory. `samples` holds the numbers of the batch handed out last."""
    def __init__(self, split: Split, batch: int, seed=0, epoch=0, step=0, rank=0, world=1, shuffle=True, balanced=False,
                 drop_last=False, io="auto", threads: int | None = None, buffers=3, keep=1, check=False):
        if io not in ("auto", "mmap", "direct"):
            raise ValueError(f"io must be auto, mmap or direct, not {io!r}")
        if split.view and split.view[3] == "random":
            split = split.at(split.view[:2], split.view[2], "random", seed, epoch)
        self.split, self.check, self.keep, self.samples = split, check, max(keep, 1), np.empty(0, np.int64)
        self._batches = Batches(split, batch, seed, epoch, step, rank, world, shuffle, balanced, drop_last)
        self.seed, self.epoch, self.step, self._ahead, self._pid = seed, epoch, step, step, os.getpid()
        shape = (batch, *split.batch_shape())
        self.io = split.best_io() if io == "auto" else io
        cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        decodes = split.cache.store == "jpeg" or split.view is not None
        self.threads = threads or (cpus if decodes else 4 if self.io == "direct" else 1)
        if isinstance(buffers, int):
            count = min(max(buffers, self.keep + 1), max(len(self._batches), 1))
            buffers = [_pages(int(np.prod(shape))).reshape(shape) for _ in range(count)]
        if len(buffers) <= self.keep < len(self._batches) or any(b.shape != shape for b in buffers):
            raise ValueError(f"there must be more buffers than keep={self.keep}, each of shape {shape}")
        self._free, self._busy, self._lent = deque(buffers), deque(), deque()
        self._cold = len(buffers) + 1  # so many batches are advised before it is known how warm the page cache is
        self._pool = ThreadPoolExecutor(self.threads, "prep_cache")

    def __len__(self) -> int:
        return max(self._batches.steps - self.step, 0)

    def __iter__(self):
        return self

    def state(self) -> dict[str, int]:
        """Where the next batch is: loader(batch, **state) goes on there, with any number of threads or workers."""
        return {"seed": self.seed, "epoch": self.epoch, "step": self.step}

    def __next__(self) -> tuple[np.ndarray, np.ndarray]:
        if self._pid != os.getpid():
            raise RuntimeError("this loader belongs to the process that made it; after a fork make one of your own")
        while len(self._lent) >= self.keep:
            self._free.append(self._lent.popleft())
        while self._free and self._ahead < self._batches.steps:
            self._start()
        if not self._busy:
            self.close()
            raise StopIteration
        buffer, self.samples, parts = self._busy.popleft()
        self._lent.append(buffer)
        self.step += 1  # first, so that whoever catches a CorruptSample goes on with the batch after it
        for error in [part.exception() for part in parts]:  # of all: none may still write when the buffer is used again
            if error:
                raise error
        labels = np.concatenate([part.result() for part in parts])
        return buffer[:len(labels)], labels

    def _start(self):
        """Lets the threads fill the next free buffer with the next batch, each a part of it."""
        samples, buffer = self._batches.at(self._ahead), self._free.popleft()
        self._cold -= 1
        if self.io == "mmap" and self._cold >= 0:
            self.split.advise(samples, probe=True)
        cuts = [len(samples) * t // self.threads for t in range(self.threads + 1)]
        self._busy.append((buffer, samples, [
            self._pool.submit(self._fill, samples[a:b], buffer[a:b]) for a, b in zip(cuts, cuts[1:])]))
        self._ahead += 1

    def _fill(self, samples, out) -> np.ndarray:
        """One thread's part of a batch. A page that had to be read from the disk (a major fault) says that the cache is
        cold, and the next 16 batches are advised ahead, all but one page of each, since what was advised faults no more;
        where the cache is warm, advice would be a fifth of the work."""
        before = _major_faults()
        labels = self.split.batch(samples, out, self.check, self.io)[1]
        if _major_faults() > before:
            self._cold = 16
        return labels

    def close(self):
        """Ends the threads; also done at the end of the epoch and by `with`."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if "_pool" in self.__dict__ and self._pid == os.getpid():
            self._pool.shutdown(wait=False, cancel_futures=True)


class _File:
    """An open shard of `size` bytes: `bytes` over a memory map that gives its pages when touched, or the descriptor `fd`.
    `fits`: all of it will stay in memory, so the first touch may read 2 MiB and map them as one page: a tenth less time
    for every copy after it."""
    def __init__(self, path: str, direct: bool, size: int, fits: bool):
        # Not to wait for a pipe in its place.
        self.fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | (os.O_DIRECT if direct else 0))
        if os.fstat(self.fd).st_size != size:
            raise ValueError(f"it has not the {size} bytes of the manifest: it was cut or replaced")
        if not direct:
            self.map = mmap.mmap(self.fd, 0, access=mmap.ACCESS_READ)
            if fits and hasattr(mmap, "MADV_HUGEPAGE"):
                with contextlib.suppress(OSError):  # a kernel without them
                    self.map.madvise(mmap.MADV_HUGEPAGE)
            self.bytes = np.frombuffer(self.map, np.uint8)
            os.close(self.fd)
            self.fd = -1

    def __del__(self):
        if getattr(self, "fd", -1) >= 0:
            os.close(self.fd)


def _files_for(n: int) -> int:
    """How many shards may be open, after asking for `n`: a mapped shard costs a descriptor, and 1,024 are few."""
    if not resource:
        return n + 1
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < n + 256:
        soft = n + 256 if hard < 0 else min(n + 256, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return n + 1 if soft < 0 else max(soft - 200, 8)


def _memory() -> float:
    """Bytes of memory that this process may use; 0 where the system does not tell."""
    if not hasattr(os, "sysconf"):
        return 0
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError), open("/sys/fs/cgroup/memory.max") as f:  # a container may have less
        memory = min(memory, int(f.read()))
    return memory


def _pages(n: int) -> np.ndarray:
    """n bytes that begin on a page, as direct reads want it."""
    memory = np.empty(n + PAGE, np.uint8)
    first = -memory.ctypes.data % PAGE
    return memory[first:first + n]


def _major_faults() -> int:
    """Of this thread, where the system counts them."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_majflt if hasattr(resource, "RUSAGE_THREAD") else 0


def _reopen(path: str, name: str, view) -> Split:
    return Split(Cache(path), name, view)


def collate(batch):
    """The `collate_fn` of a torch DataLoader over a Split: a batch is whole already, only its arrays become tensors."""
    import torch
    return tuple(torch.from_numpy(a) for a in batch)


_decoder: list = []  # the module prep_decode, or None, once it was looked for


def _compiled():
    if not _decoder:
        try:
            import prep_decode
            _decoder.append(prep_decode)
        except ImportError:
            _decoder.append(None)
            warnings.warn("prep_decode is not installed: pictures are decoded by Pillow, with more CPU time and within a "
                          "rounding of the same pixels", stacklevel=3)
    return _decoder[0]


def _pillow(file: bytes, size, box, out: np.ndarray):
    """What prep_decode.decode_batch does, for one picture of `size` (w, h)."""
    from PIL import Image
    image = Image.open(_io.BytesIO(file))
    if image.size != size:
        raise ValueError(f"it has {image.size} pixels, rows.npy says {size}")
    (w, h), (th, tw) = size, out.shape[:2]
    image.draft("RGB", (round(GAP * tw * w / (box[2] - box[0])), round(GAP * th * h / (box[3] - box[1]))))
    sx, sy = image.size[0] / w, image.size[1] / h
    box = (box[0] * sx, box[1] * sy, min(box[2] * sx, image.size[0]), min(box[3] * sy, image.size[1]))
    out[:] = np.asarray(image.convert("RGB").resize((tw, th), Image.Resampling.BILINEAR, box))
