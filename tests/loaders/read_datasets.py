"""Hugging Face datasets reads layout wds."""
import glob, io, sys, tempfile
import numpy as np
import datasets
from packed import compare

data = sys.argv[1]
print("datasets", datasets.__version__)
datasets.disable_progress_bars()
with tempfile.TemporaryDirectory() as cache:
    for name, ext in (("wds-jpeg", "jpg"), ("wds-raw", "npy")):
        tars = sorted(glob.glob(f"{data}/{name}/all/*.tar"))
        ds = datasets.load_dataset("webdataset", data_files={"train": tars}, split="train", cache_dir=cache)

        def picture(value):
            if isinstance(value, bytes):
                return np.load(io.BytesIO(value))
            return np.asarray(value.convert("RGB")) if hasattr(value, "convert") else np.asarray(value, np.uint8)
        compare(name, data, name, ((picture(s[ext]), s["cls"]) for s in ds))
        stream = datasets.load_dataset("webdataset", data_files={"train": tars}, split="train", streaming=True, cache_dir=cache)
        compare(f"{name}, streaming", data, name, ((picture(s[ext]), s["cls"]) for s in stream))
