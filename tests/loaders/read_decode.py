"""The compiled decoder against Pillow and torchvision's arithmetic, and what it does with damage. Needs the wheel."""
import io, sys, threading, time
import numpy as np
from PIL import Image
import prep_cache, prep_decode
from prep_cache import Cache, CorruptSample
from packed import expected

data = sys.argv[1]
assert prep_cache._compiled() is prep_decode


def pillow_view(picture, side, short):
    """Resize(short) and CenterCrop(side) of the whole picture, with Pillow's bilinear filter."""
    whole = Image.fromarray(picture)
    w, h = (short, short * whole.height // whole.width) if whole.width <= whole.height else (short * whole.width // whole.height, short)
    left, top = round((w - side) / 2), round((h - side) / 2)
    return np.asarray(whole.resize((w, h), Image.Resampling.BILINEAR).crop((left, top, left + side, top + side)))


for name in ("mds-jpeg", "wds-jpeg", "mds-varied"):
    split = Cache(f"{data}/{name}").split("all")
    pictures, _ = expected(data, name)
    images, labels = split.at(32, short=36).batch(range(len(split)))
    off = [np.abs(a.astype(int) - pillow_view(p, 32, 36)) for a, p in zip(images, pictures)]
    worst = max(o.mean() for o in off)
    assert worst < 4, worst
    exact = max(o.mean() for o, p in zip(off, pictures) if min(p.shape[:2]) < 100)  # these are decoded whole
    assert exact < 0.6, exact
    print(f"{name}: off Pillow by {exact:.2f} in the mean of a picture at most, {worst:.2f} with a reduced decode")

# The three ways to say what is cut out agree.
split = Cache(f"{data}/mds-jpeg").split("all")
files = [split.payload(i) for i in range(8)]
a, b, c = (np.zeros((8, 32, 32, 3), np.uint8) for _ in range(3))
view = split.at(32, short=40)
prep_decode.decode_batch(files, a, short_edge=40)
prep_decode.decode_batch(files, b, boxes=[tuple(x) for x in view._boxes(*split._locate(range(8)))])
assert np.array_equal(a, b) and np.array_equal(a, view.batch(range(8))[0])
prep_decode.decode_batch(files, a)
prep_decode.decode_batch(files, c, boxes=[(0, 0, int(r["w"]), int(r["h"])) for r in split.rows[:8]])
assert np.array_equal(a, c)

# Turned pictures come upright.
exif = Image.Exif()
exif[274] = 6
out = io.BytesIO()
left_red = np.zeros((64, 96, 3), np.uint8)
left_red[:, :48, 0] = 255
Image.fromarray(left_red).save(out, "JPEG", quality=95, exif=exif)
turned = np.zeros((1, 96, 64, 3), np.uint8)
prep_decode.decode_batch([out.getvalue()], turned)
assert turned[0, :40, :, 0].min() > 200 and turned[0, 56:, :, 0].max() < 60, "the left side is on top"


def refuses(word, *args, **options):
    try:
        prep_decode.decode_batch(*args, **options)
    except ValueError as e:
        assert word in str(e), e
    else:
        raise AssertionError(f"no error that says {word!r}")


cut = files[1][:len(files[1]) // 2]
refuses("image 1", [files[0], cut], np.zeros((2, 32, 32, 3), np.uint8))
refuses("image 0", [b"no picture"], np.zeros((1, 32, 32, 3), np.uint8))
refuses("shape", files, np.zeros((8, 32, 32, 4), np.uint8))
refuses("shape", files, np.zeros((7, 32, 32, 3), np.uint8))
refuses("shape", files, np.zeros((8, 32, 64, 3), np.uint8)[:, :, ::2])
refuses("short_edge", files, a, short_edge=20)
refuses("box", files, a, boxes=[(0.0, 0.0, 5000.0, 5000.0)] * 8)
refuses("box", files, a, boxes=[(float("nan"), 0.0, 5.0, 5.0)] * 8)
refuses("filter", files, a, filter="sinc")
locked = np.zeros((8, 32, 32, 3), np.uint8)
locked.flags.writeable = False
refuses("writable", files, locked)

# The GIL is free while it decodes: another thread goes on counting.
big = io.BytesIO()
Image.fromarray(np.random.default_rng(0).integers(0, 255, (2000, 3000, 3), dtype=np.uint8)).save(big, "JPEG", quality=95)
target = np.zeros((4, 32, 32, 3), np.uint8)
worker = threading.Thread(target=prep_decode.decode_batch, args=([big.getvalue()] * 4, target))
start, ticks = time.perf_counter(), 0
worker.start()
while worker.is_alive():
    time.sleep(0.001)
    ticks += 1
assert ticks > 5, f"{ticks} ticks in {time.perf_counter() - start:.2f} s: the GIL was held"
print(f"boxes, short edge, turns, refusals; {ticks} ticks of another thread while it decoded")
