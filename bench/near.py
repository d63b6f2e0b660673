#!/usr/bin/env python3
"""near.py BASE OUT [N=140] [SEED=0]: edited copies of N photos below BASE, for examples/near_report.rs.

Each copy is OUT/<place of the photo in the sorted list>@<edit>[.<number>].jpg. Needs Pillow and numpy.
The edits are those of research/audit.md section 4: easy ones, the seven turns, crops, small rotations."""
import io
import os
import random
import sys

import numpy as np
from PIL import Image, ImageDraw, ImageEnhance, ImageFilter, ImageOps

EXTENSIONS = (".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif")


def photos(root):
    """Every picture below root, sorted by the bytes of its path, as examples/near_report.rs sorts them."""
    found = []
    for folder, _, names in os.walk(root):
        found += [os.path.join(folder, name) for name in names if name.lower().endswith(EXTENSIONS)]
    return sorted(found, key=os.fsencode)


def jpeg(picture, quality):
    held = io.BytesIO()
    picture.save(held, "JPEG", quality=quality)
    return Image.open(io.BytesIO(held.getvalue())).convert("RGB")


def levels(picture, change):
    return Image.fromarray(np.clip(change(np.asarray(picture).astype(np.float32)), 0, 255).astype(np.uint8))


def hue(picture, turn):
    h, s, v = picture.convert("HSV").split()
    return Image.merge("HSV", (h.point(lambda x: (x + turn) % 256), s, v)).convert("RGB")


def watermark(picture):
    out = picture.copy()
    w, h = out.size
    draw = ImageDraw.Draw(out, "RGBA")
    draw.rectangle((int(w * 0.55), int(h * 0.82), int(w * 0.97), int(h * 0.95)), fill=(255, 255, 255, 150))
    draw.text((int(w * 0.58), int(h * 0.86)), "example.com", fill=(200, 20, 20, 255))
    return out


def crop(picture, left, top, right, bottom):
    w, h = picture.size
    return picture.crop((round(w * left), round(h * top), round(w * (1 - right)), round(h * (1 - bottom))))


def border(picture, share, colour):
    w, h = picture.size
    return ImageOps.expand(picture, (round(w * share), round(h * share)), colour)


def turned_inside(picture, degrees):
    """Turned, then cut to the largest part of the same shape without empty corners (near enough)."""
    w, h = picture.size
    cut = abs(np.sin(np.radians(degrees))) * max(w / h, h / w)
    share = cut / (1 + cut) / 2 * 1.05
    return crop(picture.rotate(degrees, Image.BICUBIC), share, share, share, share)


def edits(p, rng):
    w, h = p.size
    noise = np.random.default_rng(rng.randrange(1 << 30)).normal(0, 12, (h, w, 3))
    yield "easy:half", p.resize((max(1, w // 2), max(1, h // 2)), Image.LANCZOS)
    yield "easy:to128", ImageOps.contain(p, (128, 128), Image.BICUBIC)
    yield "easy:q30", jpeg(p, 30)
    yield "easy:q10", jpeg(p, 10)
    yield "easy:square", p.resize((224, 224), Image.BILINEAR)
    yield "easy:nearest", p.resize((max(1, w * 2 // 5), max(1, h * 2 // 5)), Image.NEAREST)
    yield "easy:brighter", levels(p, lambda a: a * 1.3)
    yield "easy:darker", levels(p, lambda a: a * 0.7)
    yield "easy:gamma", levels(p, lambda a: 255 * (a / 255) ** 0.6)
    yield "easy:contrast", ImageEnhance.Contrast(p).enhance(1.4)
    yield "easy:gray", p.convert("L").convert("RGB")
    yield "easy:hue", hue(p, 12)
    yield "easy:watermark", watermark(p)
    yield "easy:blur", p.filter(ImageFilter.GaussianBlur(2))
    yield "easy:noise", levels(p, lambda a: a + noise)
    yield "turn:mirror", ImageOps.mirror(p)
    yield "turn:flip", ImageOps.flip(p)
    yield "turn:rot90", p.transpose(Image.ROTATE_90)
    yield "turn:rot180", p.transpose(Image.ROTATE_180)
    yield "turn:rot270", p.transpose(Image.ROTATE_270)
    yield "turn:transpose", p.transpose(Image.TRANSPOSE)
    yield "geo:crop2", crop(p, 0.02, 0.02, 0.02, 0.02)
    yield "geo:crop5", crop(p, 0.05, 0.05, 0.05, 0.05)
    yield "geo:crop10", crop(p, 0.1, 0.1, 0.1, 0.1)
    yield "geo:side20", crop(p, 0, 0, 0.2, 0)
    yield "geo:border", border(p, 0.05, (255, 255, 255))
    for degrees in (2, 3, -3, 5):
        yield f"rot:{degrees}", p.rotate(degrees, Image.BICUBIC)
    yield "rot:3inside", turned_inside(p, 3)
    yield "rot:-3inside", turned_inside(p, -3)
    for limit in (5, 10, 15):
        for number in range(4 if limit == 10 else 2):
            sides = [rng.uniform(0, limit / 100) for _ in range(4)]
            yield f"random{limit}:{number}", crop(p, *sides)
    yield "random10mirror:0", ImageOps.mirror(crop(p, *[rng.uniform(0, 0.1) for _ in range(4)]))


def main():
    base, out = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 140
    rng = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 0)
    found = photos(base)
    if not found:
        sys.exit(f"no picture below {base}")
    os.makedirs(out, exist_ok=True)
    chosen = sorted(rng.sample(range(len(found)), min(count, len(found))))
    for at in chosen:
        picture = ImageOps.exif_transpose(Image.open(found[at])).convert("RGB")
        for name, copy in edits(picture, rng):
            copy.save(os.path.join(out, f"{at:06}@{name.replace(':', '@')}.jpg"), quality=92)
    print(f"{len(chosen)} photos of {len(found)}, edited copies in {out}")


if __name__ == "__main__":
    main()
