#!/usr/bin/env python3
"""prep sheet against the ways in which people lay twelve photos onto one canvas: CPU seconds and peak memory.

usage: bench/sheet.py [--photos DIR] [--rounds N]

Twelve JPEGs of 4000x3000 onto one sheet of 4x3 cells of 224 px, one thread each. DIR holds at least twelve such JPEGs;
without it they are drawn (which decode faster than photos). Commands run in turn, A B C A B C; printed are medians of
user + system seconds of all processes, and the largest resident set. Peers: vipsthumbnail and `vips arrayjoin`
(libvips-tools), Pillow with draft mode. Those that are missing are named and left out. Header, captions and frames are
drawn by prep alone.
"""
import argparse, glob, os, shutil, statistics, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PREP = os.environ.get("PREP", os.path.join(HERE, "..", "target", "release", "prep"))

PILLOW = """
import sys
from PIL import Image, ImageOps
sheet = Image.new("RGB", (4 * 224, 3 * 224), "white")
for i, name in enumerate(sys.argv[2:]):
    im = Image.open(name); im.draft("RGB", (336, 336))
    im = ImageOps.exif_transpose(im); im.thumbnail((224, 224))
    sheet.paste(im, (i % 4 * 224 + (224 - im.width) // 2, i // 4 * 224 + (224 - im.height) // 2))
sheet.save(sys.argv[1], quality=90)
"""


def measured(command, env=None):
    """CPU seconds and peak MB of a command and its children."""
    code = (
        "import resource,subprocess,sys,os\n"
        "r=subprocess.run(sys.argv[1:],stdout=subprocess.DEVNULL,stderr=subprocess.PIPE)\n"
        "u=resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "sys.stderr.buffer.write(r.stderr) if r.returncode else None\n"
        "print(u.ru_utime+u.ru_stime,u.ru_maxrss/1000.0);sys.exit(r.returncode)"
    )
    ran = subprocess.run([sys.executable, "-S", "-c", code, *command], capture_output=True, text=True, env=env)
    if ran.returncode:
        sys.exit(f"{command[0]} failed: {ran.stderr}")
    cpu, memory = ran.stdout.split()
    return float(cpu), float(memory)


def drawn(folder):
    try:
        import numpy as np
        from PIL import Image
    except ImportError:
        sys.exit("without --photos the pictures are drawn with numpy and Pillow: python3 -m pip install numpy pillow")
    for i in range(12):
        rng = np.random.default_rng(i)
        out = np.zeros((3000, 4000), np.float32)
        for octave in range(9):
            small = rng.standard_normal((3000 // 2**octave + 3, 4000 // 2**octave + 3)).astype(np.float32)
            out += np.asarray(Image.fromarray(small).resize((4000, 3000), Image.BICUBIC)) * 1.45**octave
        out = (out - out.min()) / (out.max() - out.min())
        rgb = np.stack([out * 140 + 30, out * 180 + 40, out * 90 + 20], -1).astype(np.uint8)
        Image.fromarray(rgb).save(f"{folder}/{i:02}.jpg", quality=93, subsampling=2)


def main():
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--photos")
    ask.add_argument("--rounds", type=int, default=7)
    args = ask.parse_args()
    work = tempfile.mkdtemp(prefix="prep-sheet-")
    try:
        photos = os.path.join(work, "photos")
        os.makedirs(photos)
        if args.photos:
            found = sorted(glob.glob(os.path.join(args.photos, "**", "*.[jJ][pP]*[gG]"), recursive=True))[:12]
            if len(found) < 12:
                sys.exit(f"{args.photos} has {len(found)} JPEGs; twelve are needed")
            for i, name in enumerate(found):
                shutil.copy(name, f"{photos}/{i:02}.jpg")
        else:
            drawn(photos)
        files = sorted(glob.glob(photos + "/*.jpg"))
        commands = {"prep sheet": [PREP, "sheet", photos, "-j", "1", "--per-class", "12", "--cols", "4", "--cell", "224",
                                   "--no-cache", "-q", "-o", os.path.join(work, "sheets")]}
        if shutil.which("vipsthumbnail") and shutil.which("vips"):
            thumbs = [f"{work}/t{i:02}.v" for i in range(12)]
            line = " ".join(["vipsthumbnail", *files, "--size", "224x224", "-o", f"{work}/t%s.v", "&&",
                             "vips", "arrayjoin", f'"{" ".join(thumbs)}"', f"{work}/vips.jpg[Q=90]", "--across", "4",
                             "--hspacing", "224", "--vspacing", "224"])
            commands["vipsthumbnail + arrayjoin"] = ["sh", "-c", line]
        else:
            print("left out: vipsthumbnail and vips (apt-get install libvips-tools)")
        try:
            import PIL
            commands[f"Pillow {PIL.__version__} draft"] = [sys.executable, "-c", PILLOW, f"{work}/pillow.jpg", *files]
        except ImportError:
            print("left out: Pillow (python3 -m pip install pillow)")
        env = dict(os.environ, VIPS_CONCURRENCY="1")
        results = {name: [] for name in commands}
        for _ in range(args.rounds):
            for name, command in commands.items():
                results[name].append(measured(command, env))
        size = sum(os.path.getsize(f) for f in files) / 1e6
        print(f"12 JPEGs of 4000x3000, {size:.1f} MB, onto 4x3 cells of 224 px; {args.rounds} rounds")
        for name, runs in results.items():
            cpu = statistics.median(r[0] for r in runs)
            low = min(r[0] for r in runs)
            print(f"  {name:26} {cpu:6.3f} CPU s (least {low:.3f})  {max(r[1] for r in runs):6.1f} MB")
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
