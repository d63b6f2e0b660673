"""The reader below torch: DataLoader with and without workers, forked and spawned, and the snippet for the GPU (on the CPU)."""
import sys
import numpy as np
import torch
from torch.utils.data import DataLoader
import prep_cache
from prep_cache import Cache
from packed import compare


def main(data):
    print("torch", torch.__version__)
    for name in ("mds-raw", "wds-raw", "npy-raw", "mds-jpeg", "mds-varied"):
        split = Cache(f"{data}/{name}").split("all")
        compare(f"{name}, split[i]", data, name, (split[i] for i in range(len(split))))
        view = split if name.endswith("-raw") else split.at(32)
        want = [(torch.from_numpy(x.copy()), torch.from_numpy(y)) for x, y in view.loader(8, seed=2, epoch=1)]
        for workers, how in ((0, None), (2, "fork"), (2, "spawn")):
            loader = DataLoader(view, batch_sampler=view.batches(8, seed=2, epoch=1), collate_fn=prep_cache.collate, num_workers=workers, multiprocessing_context=how)
            got = list(loader)
            assert len(got) == len(want) and all(torch.equal(a, c) and torch.equal(b, d) for (a, b), (c, d) in zip(got, want)), (name, workers, how)
    cache = Cache(f"{data}/mds-raw")
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in (cache.mean_255, cache.std_255))
    total = torch.zeros(2, 3, dtype=torch.float64)
    for images, labels in cache.split("all").loader(16):
        x = torch.from_numpy(images).permute(0, 3, 1, 2).float().sub_(mean).div_(std).double()
        total += torch.stack([x.sum((0, 2, 3)), (x * x).sum((0, 2, 3))])
    n = cache.manifest["stats"]["pixels"]
    assert torch.allclose(total[0] / n, torch.zeros(3, dtype=torch.float64), atol=1e-4), total / n
    assert torch.allclose(total[1] / n, torch.ones(3, dtype=torch.float64), atol=1e-4), total / n
    print("DataLoader with 0 and 2 workers, fork and spawn: the loader's batches; normalised by the manifest: mean 0, std 1")


if __name__ == "__main__":
    main(sys.argv[1])
