"""The pixels that prep writes against Pillow's, on pictures of many kinds. Run by tests/references.sh."""
import csv, io, os, subprocess, sys, tempfile
import numpy as np
from PIL import Image, ImageCms, ImageOps

PREP = os.environ["PREP"]
rng = np.random.default_rng(3)


def photo(w, h):
    """Smooth, with edges and a little noise."""
    y, x = np.mgrid[0:h, 0:w].astype(np.float64)
    base = np.stack([np.sin(x / 23) * 90 + 120, np.cos(y / 17 + x / 40) * 80 + 120, (x * 255 / max(w - 1, 1) + y) % 256], -1)
    base[h // 4:h // 2, w // 4:w // 2] = (230, 40, 30)
    return np.clip(base + rng.normal(0, 3, base.shape), 0, 255).astype(np.uint8)


def shrink(folder, *options):
    out = folder + "-out"
    run = subprocess.run([PREP, "shrink", folder, "-o", out, "--progress", "none", *options], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    rows = {r["src"]: r for r in csv.DictReader(open(out + "/manifest.csv", newline=""))}
    return {src: np.asarray(Image.open(os.path.join(out, r["path"])).convert("RGB")) for src, r in rows.items() if r["status"] == "ok"}, rows


def white(im):
    im = im.convert("RGBA")
    ground = Image.new("RGBA", im.size, (255, 255, 255, 255))
    return Image.alpha_composite(ground, im).convert("RGB")


def kinds(folder):
    """Writes files of many kinds; gives what each must look like, and by how much it may differ."""
    want = {}

    def put(name, data, picture, most, mean):
        open(os.path.join(folder, name), "wb").write(data)
        want[name] = (np.asarray(picture), most, mean)

    def save(im, **options):
        out = io.BytesIO()
        im.save(out, **options)
        return out.getvalue()

    rgb = Image.fromarray(photo(211, 157))
    for sub in (0, 1, 2):
        for progressive in (False, True):
            data = save(rgb, format="JPEG", quality=91, subsampling=sub, progressive=progressive)
            put(f"jpeg_{sub}_{progressive}.jpg", data, Image.open(io.BytesIO(data)).convert("RGB"), 2, 0.1)
    data = save(rgb.convert("L"), format="JPEG", quality=90)
    put("gray.jpg", data, Image.open(io.BytesIO(data)).convert("RGB"), 2, 0.1)
    data = save(rgb.convert("CMYK"), format="JPEG", quality=95)
    put("cmyk.jpg", data, Image.open(io.BytesIO(data)).convert("RGB"), 3, 0.6)
    for o in range(1, 9):
        exif = Image.Exif()
        exif[274] = o
        data = save(rgb, format="JPEG", quality=91, exif=exif)
        put(f"turn_{o}.jpg", data, ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB"), 2, 0.1)
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA"):
        im = rgb.convert(mode) if mode != "RGBA" else Image.merge("RGBA", (*rgb.split(), rgb.convert("L")))
        if mode == "LA":
            im = Image.merge("LA", (rgb.convert("L"), rgb.split()[0]))
        put(f"png_{mode}.png", save(im, format="PNG"), white(im), 1, 0.5)
    deep = (np.arange(211 * 157, dtype=np.uint32) * 65535 // (211 * 157 - 1)).astype(np.uint16).reshape(157, 211)
    eight = ((deep.astype(np.uint32) * 255 + 32767) // 65535).astype(np.uint8)
    put("deep.png", save(Image.fromarray(deep), format="PNG"), np.stack([eight] * 3, -1), 0, 0)
    put("deep.tif", save(Image.fromarray(deep), format="TIFF"), np.stack([eight] * 3, -1), 0, 0)
    for fmt, ext in (("BMP", "bmp"), ("TIFF", "tif"), ("PPM", "ppm"), ("TGA", "tga")):
        put(f"plain.{ext}", save(rgb, format=fmt), rgb, 0, 0)
    put("lossless.webp", save(rgb, format="WEBP", lossless=True), rgb, 0, 0)
    data = save(rgb, format="WEBP", quality=90)
    put("lossy.webp", data, Image.open(io.BytesIO(data)).convert("RGB"), 4, 0.8)
    data = save(rgb.quantize(64), format="GIF")
    put("plain.gif", data, Image.open(io.BytesIO(data)).convert("RGB"), 0, 0)
    lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    data = save(rgb, format="PNG", icc_profile=lab)
    put("srgb_profile.png", data, rgb, 1, 0.3)
    return want


def compare(name, got, want, most, mean):
    assert got.shape == want.shape, (name, got.shape, want.shape)
    off = np.abs(got.astype(int) - want.astype(int))
    assert off.max() <= most and off.mean() <= mean, f"{name}: off by {off.max()} at most, {off.mean():.3f} in the mean; allowed {most}, {mean}"
    return off.max(), off.mean()


with tempfile.TemporaryDirectory() as work:
    folder = os.path.join(work, "kinds")
    os.makedirs(folder)
    want = kinds(folder)
    got, rows = shrink(folder, "--no-resize", "--format", "png")
    missing = {n: rows[n]["fault"] for n in want if n not in got}
    assert not missing, missing
    for name, (picture, most, mean) in want.items():
        compare(name, got[name], picture, most, mean)
    print(f"{len(want)} kinds of files have Pillow's pixels")

    # A zone plate shows every error of a resampling filter: phase, aliasing, a wrong kernel.
    folder = os.path.join(work, "zone")
    os.makedirs(folder)
    y, x = np.mgrid[0:3000, 0:4000].astype(np.float64)
    plate = ((np.cos(((x - 2000) ** 2 + (y - 1500) ** 2) / 5200) + 1) * 127.5).astype(np.uint8)
    plate = np.stack([plate, plate[::-1], plate[:, ::-1]], -1)
    Image.fromarray(plate).save(folder + "/zone.png", compress_level=1)
    for ours, theirs in (("lanczos", Image.LANCZOS), ("bicubic", Image.BICUBIC), ("bilinear", Image.BILINEAR), ("area", Image.BOX)):
        got, _ = shrink(folder, "--short-edge", "512", "--filter", ours, "--format", "png", "--force")
        want = np.asarray(Image.fromarray(plate).resize((683, 512), theirs))
        off = compare(f"zone plate, {ours}", got["zone.png"], want, 3, 0.5)
        print(f"zone plate 4000x3000 -> 683x512, {ours}: off by {off[0]} at most, {off[1]:.4f} in the mean")

    # JPEG sources are decoded at a reduced scale; that must not be seen.
    folder = os.path.join(work, "reduced")
    os.makedirs(folder)
    big = Image.fromarray(photo(3001, 1999))
    big.save(folder + "/big.jpg", quality=93)
    got, _ = shrink(folder, "--short-edge", "300", "--format", "png")
    want = np.asarray(Image.open(folder + "/big.jpg").resize((450, 300), Image.LANCZOS))
    off = compare("reduced decode", got["big.jpg"], want, 40, 1.0)
    print(f"a reduced decode against a full one: off by {off[0]} at most, {off[1]:.3f} in the mean")
