"""LitData reads layout mds, from the same index.json and shards."""
import sys
import numpy as np
import litdata
from litdata import StreamingDataset
from packed import H, W, compare

data = sys.argv[1]
print("litdata", getattr(litdata, "__version__", "?"))


def picture(name, image):
    if name == "mds-raw":  # no_header_numpy is flat
        return np.asarray(image).reshape(H, W, 3)
    if name == "mds-jpeg":  # torchvision's decoder, channels first; PIL in some versions
        return image.permute(1, 2, 0).numpy() if hasattr(image, "permute") else np.asarray(image.convert("RGB"))
    return np.asarray(image.convert("RGB"))


for name in ("mds-raw", "mds-varied", "mds-jpeg"):
    ds = StreamingDataset(f"{data}/{name}/all", shuffle=False)
    # torchvision may bring another libjpeg than Pillow
    most = 2 if name == "mds-jpeg" else 0
    compare(f"{name}, iter(ds)", data, name, ((picture(name, s["image"]), s["label"]) for s in ds), most)
    compare(f"{name}, ds[i]", data, name, ((picture(name, ds[i]["image"]), ds[i]["label"]) for i in range(len(ds))), most)
