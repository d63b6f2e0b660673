"""MosaicML Streaming reads layout mds: in order, by index, and copied from a remote with its hashes checked."""
import logging, shutil, sys, tempfile
import numpy as np
import streaming
from streaming import StreamingDataset
from packed import H, W, compare

data = sys.argv[1]
logging.disable(logging.WARNING)
print("mosaicml-streaming", streaming.__version__)
clean = getattr(streaming.base.util, "clean_stale_shared_memory", lambda: None)
for name in ("mds-raw", "mds-varied", "mds-jpeg"):
    clean()
    local = StreamingDataset(local=f"{data}/{name}/all", shuffle=False, batch_size=1)
    picture = lambda s: np.asarray(s["image"]) if name == "mds-raw" else np.asarray(s["image"].convert("RGB"))
    compare(f"{name}, ds[i]", data, name, ((picture(local[i]), local[i]["label"]) for i in range(len(local))))
    compare(f"{name}, iter(ds)", data, name, ((picture(s), s["label"]) for s in local))
    assert name != "mds-raw" or local[0]["image"].shape == (H, W, 3)
    with tempfile.TemporaryDirectory() as copy:
        clean()
        far = StreamingDataset(remote=f"{data}/{name}/all", local=copy + "/a", shuffle=False, batch_size=1, validate_hash="xxh3_64")
        compare(f"{name}, remote with validate_hash", data, name, ((picture(s), s["label"]) for s in far))
        shutil.copytree(f"{data}/{name}/all", copy + "/bad")
        shard = copy + "/bad/shard.00000.mds"
        broken = bytearray(open(shard, "rb").read())
        broken[len(broken) // 2] ^= 1
        open(shard, "wb").write(broken)
        clean()
        bad = StreamingDataset(remote=copy + "/bad", local=copy + "/b", shuffle=False, batch_size=1, validate_hash="xxh3_64", download_retry=1)
        try:
            bad[0]
        except Exception as e:  # its class differs between versions
            assert "hash" in str(e).lower() or "checksum" in str(e).lower(), repr(e)
        else:
            raise AssertionError("validate_hash let a flipped bit through")
clean()
