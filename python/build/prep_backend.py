"""The build of the wheel (PEP 517): maturin makes the module `prep_decode`; the binary `prep` and the reader join it.

maturin packs either a module or a binary; a wheel's `.data` folder takes the binary (scripts/) and the reader (purelib/).
"""
import os, shutil, subprocess, sys

from maturin import build_sdist, get_requires_for_build_sdist, get_requires_for_build_wheel  # noqa: F401 (hooks of PEP 517)
import maturin

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    # One target folder for both: the module and the binary share the compiled crates.
    target = os.environ.setdefault("CARGO_TARGET_DIR", os.path.join(ROOT, "target"))
    subprocess.run(["cargo", "build", "--release", "--locked", "--bin", "prep"], cwd=ROOT, check=True)
    data = os.path.join(ROOT, "target", "wheel-data")
    shutil.rmtree(data, ignore_errors=True)
    for folder, source in (("scripts", os.path.join(target, "release", "prep.exe" if sys.platform == "win32" else "prep")),
                           ("purelib", os.path.join(ROOT, "python", "prep_cache.py"))):
        os.makedirs(os.path.join(data, folder))
        shutil.copy2(source, os.path.join(data, folder))
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)
