#!/usr/bin/env python3
"""prep shrink against the tools that people use today: CPU seconds, in pairs, at equal size, quality and subsampling.

usage: bench/shrink.py [--photos DIR] [--work DIR] [--rounds N] [--count N] [--only SET,...]

Runs each command in turn with prep, A B A B, on the same files; prints the median of the pairwise ratios of CPU seconds
(user + system, all processes), peak memory, bytes, and PSNR against a full decode resampled in floating point. It
installs nothing: peers that are missing are named and left out. Peers: vipsthumbnail (libvips-tools), mogrify
(imagemagick), Pillow, OpenCV (Python modules of the interpreter that runs this), and the floor of libjpeg itself
(floor.c; needs cc and the headers of libjpeg).

--photos names a folder of JPEGs from a camera; from them the sets are made: `camera` (the files as they are), `12mp`
(4000x3000, baseline), `progressive`, `imagenet` (500x375). Without it pictures are drawn, which are easier than photos.
"""
import argparse, glob, json, os, resource, shutil, statistics, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PREP = os.environ.get("PREP", os.path.join(HERE, "..", "target", "release", "prep"))


def need(module):
    try:
        return __import__(module)
    except ImportError:
        return None


np, PIL = need("numpy"), need("PIL")
if np is None or PIL is None:
    sys.exit("bench/shrink.py makes its pictures with numpy and Pillow: python3 -m pip install numpy pillow")
from PIL import Image, ImageOps  # noqa: E402


# ---------------------------------------------------------------------------------------------------------- pictures
def drawn(rng, width, height):
    """A picture with texture at all scales, as a photo of leaves has."""
    out = np.zeros((height, width), np.float32)
    for octave in range(9):
        step = 2 ** octave
        small = rng.standard_normal((height // step + 3, width // step + 3)).astype(np.float32)
        big = np.asarray(Image.fromarray(small).resize((width, height), Image.BICUBIC))
        out += big * (1.45 ** octave)
    out = (out - out.min()) / (out.max() - out.min())
    return np.stack([out * 140 + 30, out * 180 + 40, out * 90 + 20], -1)


def photos_of(folder, count, rng):
    """Float pictures of 4000x3000, cut from the user's photos (padded by reflection, never enlarged)."""
    files = sorted(glob.glob(os.path.join(folder, "*.[jJ][pP]*[gG]"))) if folder else []
    for i in range(count):
        if files:
            a = np.asarray(Image.open(files[i % len(files)]).convert("RGB"))
            pad = [(0, max(0, 3000 - a.shape[0])), (0, max(0, 4000 - a.shape[1])), (0, 0)]
            a = np.pad(a, pad, mode="reflect")
            y, x = (int(rng.integers(0, a.shape[k] - n + 1)) for k, n in ((0, 3000), (1, 4000)))
            a = a[y:y + 3000, x:x + 4000].astype(np.float32)
            a = a[:, ::-1] if rng.random() < 0.5 else a
        else:
            a = drawn(rng, 4000, 3000)
        noise = rng.standard_normal(a.shape[:2]).astype(np.float32)
        yield np.clip(np.rint(a + noise[..., None]), 0, 255).astype(np.uint8)


def make_sets(work, folder, count):
    rng = np.random.default_rng(7)
    sets = {name: os.path.join(work, name) for name in ("12mp", "progressive", "imagenet")}
    mark = os.path.join(work, "made.json")
    want = {"folder": folder, "count": count, "version": 2}
    if not (os.path.exists(mark) and json.load(open(mark)) == want):
        for path in sets.values():
            shutil.rmtree(path, ignore_errors=True)
            os.makedirs(path)
        for i, a in enumerate(photos_of(folder, count, rng)):
            im, q = Image.fromarray(a), int(rng.integers(90, 96))
            exif = Image.Exif()
            exif[274] = [1, 1, 1, 6][i % 4]
            sub = [2, 2, 1][i % 3]
            im.save(f"{sets['12mp']}/{i:03}.jpg", quality=q, subsampling=sub, exif=exif)
            if i < max(4, count // 3):
                im.save(f"{sets['progressive']}/{i:03}.jpg", quality=q, subsampling=sub, progressive=True)
            for k in range(16):
                part = im.crop((k % 4 * 1000, k // 4 * 750, k % 4 * 1000 + 1000, k // 4 * 750 + 750))
                part.resize((500, 375), Image.LANCZOS).save(f"{sets['imagenet']}/{i:03}_{k:02}.jpg", quality=94)
        json.dump(want, open(mark, "w"))
    if folder:
        sets["camera"] = os.path.join(work, "camera")
        shutil.rmtree(sets["camera"], ignore_errors=True)
        os.makedirs(sets["camera"])
        for f in sorted(glob.glob(os.path.join(folder, "*.[jJ][pP]*[gG]"))):
            shutil.copy(f, sets["camera"])
    return sets


# -------------------------------------------------------------------------------------------------------------- peers
PILLOW = """
import sys
from PIL import Image, ImageOps
out, short = sys.argv[1], int(sys.argv[2])
for f in sys.argv[3:]:
    im = Image.open(f)
    w, h = im.size
    s = short / min(w, h)
    size = (round(w * s), round(h * s))
    im.draft("RGB", (size[0] * 2, size[1] * 2))
    im = ImageOps.exif_transpose(im.convert("RGB").resize(size, Image.LANCZOS, reducing_gap=2.0))
    im.save(out + "/" + f.rsplit("/", 1)[1], quality=90, subsampling=2)
"""
OPENCV = """
import sys, cv2
out, short = sys.argv[1], int(sys.argv[2])
cv2.setNumThreads(1)
for f in sys.argv[3:]:
    head = cv2.imread(f, cv2.IMREAD_REDUCED_COLOR_2 if short == 512 else cv2.IMREAD_COLOR)
    h, w = head.shape[:2]
    s = short / min(w, h)
    im = cv2.resize(head, (round(w * s), round(h * s)), interpolation=cv2.INTER_AREA)
    cv2.imwrite(out + "/" + f.rsplit("/", 1)[1], im, [cv2.IMWRITE_JPEG_QUALITY, 90, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_420])
"""


def peers(short, files):
    # These two know boxes, not short edges; all files of a set have one aspect ratio, so one box means the same.
    width, height = Image.open(files[0]).size
    box = round(short * max(width, height) / min(width, height))
    one = {"VIPS_CONCURRENCY": "1", "MAGICK_THREAD_LIMIT": "1", "OMP_NUM_THREADS": "1"}
    found = {}
    if shutil.which("vipsthumbnail"):
        found["vipsthumbnail"] = lambda o: (["vipsthumbnail", "-s", f"{box}x{box}", "-o",
                                             o + "/%s.jpg[Q=90,strip,subsample_mode=on]", *files], one)
    mogrify = shutil.which("mogrify-im6.q16") or shutil.which("mogrify")
    if mogrify:
        found["ImageMagick jpeg:size"] = lambda o: ([mogrify, "-path", o, "-define", f"jpeg:size={2 * box}x{2 * box}",
                                                     "-auto-orient", "-resize", f"{box}x{box}", "-sampling-factor",
                                                     "4:2:0", "-quality", "90", "-strip", *files], one)
    found["Pillow draft"] = lambda o: ([sys.executable, "-c", PILLOW, o, str(short), *files], one)
    if need("cv2"):
        found["OpenCV reduced"] = lambda o: ([sys.executable, "-c", OPENCV, o, str(short), *files], one)
    for name in ("vipsthumbnail", "ImageMagick jpeg:size", "OpenCV reduced"):
        if name not in found:
            print(f"  ({name} is not here)")
    return found


def timed(command, env):
    """CPU seconds of a command and all its children, and the peak memory of the largest process in MiB."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(command, env={**os.environ, **env}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, stderr = process.communicate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode != 0:
        sys.exit(f"{command[:4]} … ended with {process.returncode}: {stderr.decode(errors='replace')[-400:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, after.ru_maxrss / 1024


def prep(files_in, out, short, threads="1"):
    return [PREP, "shrink", files_in, "-o", out, "--short-edge", str(short), "--quality", "90", "--chroma", "420",
            "-j", threads, "--progress", "none", "-q"]


# ------------------------------------------------------------------------------------------------------------ quality
def reference(path, short):
    im = ImageOps.exif_transpose(Image.open(path).convert("RGB"))
    w, h = im.size
    s = short / min(w, h)
    size = (round(w * s), round(h * s))
    planes = [np.asarray(Image.fromarray(np.asarray(im)[..., c].astype(np.float32)).resize(size, Image.LANCZOS)) for c in range(3)]
    return np.stack(planes, -1) @ np.array([0.299, 0.587, 0.114])


def psnr(folder, references):
    values = []
    for name, want in references.items():
        hits = glob.glob(os.path.join(folder, "**", name + ".jpg"), recursive=True)
        if not hits:
            continue
        got = np.asarray(Image.open(hits[0]).convert("RGB")).astype(np.float32) @ np.array([0.299, 0.587, 0.114])
        h, w = min(got.shape[0], want.shape[0]), min(got.shape[1], want.shape[1])
        values.append(10 * np.log10(255 ** 2 / np.mean((got[:h, :w] - want[:h, :w]) ** 2)))
    return sum(values) / len(values) if values else float("nan")


def size_of(folder):
    found = glob.glob(os.path.join(folder, "**", "*.jpg"), recursive=True)
    return sum(map(os.path.getsize, found)) / max(1, len(found)), len(found)


# ---------------------------------------------------------------------------------------------------------------- main
def floor_program(work):
    program = os.path.join(work, "floor")
    if shutil.which("cc") and subprocess.run(["cc", "-O2", "-o", program, os.path.join(HERE, "floor.c"), "-ljpeg"],
                                             capture_output=True).returncode == 0:
        return program
    print("  (no floor: cc or the headers of libjpeg are not here)")
    return None


def bench(name, folder, work, rounds, floor):
    short = 256 if name == "imagenet" else 512
    files = sorted(glob.glob(folder + "/*.*"))
    print(f"\n{name}: {len(files)} files, {sum(map(os.path.getsize, files)) / len(files) / 1e6:.2f} MB each, short edge {short}, q90 4:2:0, one thread")
    references = {os.path.splitext(os.path.basename(f))[0]: reference(f, short) for f in files[:12]}
    rows, ours = [], []
    for peer, command in peers(short, files).items():
        ratios, peer_cpu, peer_rss = [], [], 0
        for _ in range(rounds):
            out_p, out_o = os.path.join(work, "out-peer"), os.path.join(work, "out-prep")
            for out in (out_p, out_o):
                shutil.rmtree(out, ignore_errors=True)
            os.makedirs(out_p)
            cpu_o, _ = timed(prep(folder, out_o, short), {})
            argv, env = command(out_p)
            cpu_p, rss = timed(argv, env)
            ratios.append(cpu_o / cpu_p)
            peer_cpu.append(cpu_p)
            ours.append(cpu_o)
            peer_rss = rss
        weight, n = size_of(out_p)
        rows.append((peer, statistics.median(peer_cpu) / len(files) * 1e3, statistics.median(ratios), min(ratios), max(ratios), weight, n, psnr(out_p, references)))
    weight, n = size_of(out_o)
    mine = statistics.median(ours) / len(files) * 1e3
    print(f"  {'':24}{'ms CPU':>8} {'prep/it':>8} {'(min-max)':>13} {'bytes':>9} {'PSNR-Y':>7}")
    print(f"  {'prep shrink':24}{mine:8.2f} {'':8} {'':13} {weight:9.0f} {psnr(out_o, references):7.2f}   {n} copies")
    for peer, ms, ratio, low, high, size, copies, quality in rows:
        print(f"  {peer:24}{ms:8.2f} {ratio:8.3f} {f'({low:.2f}-{high:.2f})':>13} {size:9.0f} {quality:7.2f}   {copies} copies")
    if floor:
        ratios = []
        for _ in range(rounds):
            shutil.rmtree(out_o, ignore_errors=True)
            cpu, _ = timed(prep(folder, out_o, short), {})
            width, height = Image.open(files[0]).size
            long = round(short * max(width, height) / min(width, height))
            least = float(subprocess.run([floor, str(long), str(short), *files], capture_output=True, text=True).stdout)
            ratios.append(cpu / len(files) * 1e3 / least)
        print(f"  {'floor: read+1/8+encode':24}{least:8.2f} {statistics.median(ratios):8.3f} {f'({min(ratios):.2f}-{max(ratios):.2f})':>13}")
    return short


def scaling(folder, work, rounds):
    import time
    ratios = []
    for _ in range(rounds):
        walls = []
        for threads in ("1", "2"):
            out = os.path.join(work, "out-prep")
            shutil.rmtree(out, ignore_errors=True)
            begun = time.monotonic()
            timed(prep(folder, out, 512, threads), {})
            walls.append(time.monotonic() - begun)
        ratios.append(walls[0] / walls[1])
    print(f"\ntwo threads against one, wall time on 12mp: {statistics.median(ratios):.2f}x ({min(ratios):.2f}-{max(ratios):.2f})")


def memory(folder, work):
    """Peak resident memory of the working process, by its own account (VmHWM), for one and for two workers."""
    for threads in ("1", "2"):
        out = os.path.join(work, "out-prep")
        shutil.rmtree(out, ignore_errors=True)
        run = subprocess.run(["/usr/bin/time", "-f", "%M", *prep(folder, out, 512, threads)], capture_output=True, text=True)
        print(f"peak memory on 12mp, {threads} worker{'s' if threads != '1' else ''}: {int(run.stderr.split()[-1]) / 1024:.0f} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos")
    parser.add_argument("--work", default=os.path.join(tempfile.gettempdir(), "prep-bench"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    if not os.path.exists(PREP):
        sys.exit(f"{PREP} is not there: make bench builds it, or set PREP")
    os.makedirs(args.work, exist_ok=True)
    print(subprocess.run([PREP, "--version"], capture_output=True, text=True).stdout.strip())
    sets = make_sets(args.work, args.photos and os.path.abspath(args.photos), args.count)
    floor = floor_program(args.work)
    for name, folder in sets.items():
        if not args.only or name in args.only.split(","):
            bench(name, folder, args.work, args.rounds, floor)
    if not args.only:
        scaling(sets["12mp"], args.work, args.rounds)
        memory(sets["12mp"], args.work)


main()
