"""FFCV reads layout beton, with the system's page cache and without."""
import glob, importlib.metadata, os, sys
import numpy as np
from ffcv.fields.basics import IntDecoder
from ffcv.fields.rgb_image import CenterCropRGBImageDecoder, SimpleRGBImageDecoder
from ffcv.loader import Loader, OrderOption
from packed import compare, expected

data = sys.argv[1]
print("ffcv", importlib.metadata.version("ffcv"))
for name in ("beton-raw", "beton-jpeg"):
    (file,) = glob.glob(f"{data}/{name}/all/*.beton")
    for os_cache in (True, False):
        if name == "beton-raw":
            pipelines = {"image": [SimpleRGBImageDecoder()], "label": [IntDecoder()]}
            loader = Loader(file, batch_size=7, num_workers=1, order=OrderOption.SEQUENTIAL, os_cache=os_cache, drop_last=False, pipelines=pipelines)
            got = [(np.array(p), int(np.ravel(l)[0])) for images, labels in loader for p, l in zip(np.asarray(images), np.asarray(labels))]
            compare(f"{name}, os_cache={os_cache}", data, name, got)
        else:  # sizes vary: FFCV crops them to one; it must decode each, and give the labels in order
            pipelines = {"image": [CenterCropRGBImageDecoder((32, 32), ratio=1.0)], "label": [IntDecoder()]}
            loader = Loader(file, batch_size=7, num_workers=1, order=OrderOption.SEQUENTIAL, os_cache=os_cache, drop_last=False, pipelines=pipelines)
            got = [(np.array(p), int(np.ravel(l)[0])) for images, labels in loader for p, l in zip(np.asarray(images), np.asarray(labels))]
            pictures, labels = expected(data, name)
            assert [l for _, l in got] == labels
            for (p, _), want in zip(got, pictures):
                h, w = want.shape[:2]
                side = min(h, w)
                mean = want[(h - side) // 2:(h - side) // 2 + side, (w - side) // 2:(w - side) // 2 + side].reshape(-1, 3).mean(0)
                assert np.abs(p.reshape(-1, 3).mean(0) - mean).max() < 6
            print(f"{name}, os_cache={os_cache}: {len(got)} samples, colours and labels equal")
sys.stdout.flush()
os._exit(0)  # numba complains of its own finalizers at exit
