"""WebDataset and wids read layout wds; the DALI index and wids.json say where the members lie."""
import glob, io, json, os, sys, tempfile
import numpy as np
import webdataset as wds
import wids
from packed import compare, decode

data = sys.argv[1]
print("webdataset", wds.__version__, "wids", getattr(wids, "__version__", "?"))
for name in ("wds-raw", "wds-jpeg"):
    folder = f"{data}/{name}/all"
    tars = sorted(glob.glob(folder + "/*.tar"))
    assert len(tars) >= 1
    ext = "npy" if name == "wds-raw" else "jpg"
    picture = lambda b: decode(b) if ext == "jpg" else np.load(io.BytesIO(b))
    plain = wds.WebDataset(tars, shardshuffle=False)
    compare(f"{name}, webdataset", data, name, ((picture(s[ext]), int(s["cls"])) for s in plain))
    if ext == "npy":
        decoded = wds.WebDataset(tars, shardshuffle=False).decode()
        compare(f"{name}, webdataset decode()", data, name, ((s["npy"], s["cls"]) for s in decoded))
    else:
        decoded = wds.WebDataset(tars, shardshuffle=False).decode("rgb8")
        compare(f"{name}, webdataset decode()", data, name, ((s["jpg"], s["cls"]) for s in decoded))
    records = [json.loads(s["json"]) for s in wds.WebDataset(tars, shardshuffle=False)]
    assert [r["row"] for r in records] == [r["row"] for r in np.load(folder + "/rows.npy")]
    old = os.getcwd()
    os.chdir(folder)  # urls in wids.json are relative to it
    with tempfile.TemporaryDirectory() as cache:
        read = lambda v: v if isinstance(v, bytes) else v.read()
        raw = wids.ShardListDataset("wids.json", cache_dir=cache, keep=True, transformations=[])
        items = [raw[i] for i in range(len(raw))]
        compare(f"{name}, wids", data, name, ((picture(read(s["." + ext])), int(read(s[".cls"]))) for s in items))
    os.chdir(old)
    for tar in tars:  # DALI's index: version and count, then ext offset size name of each member
        lines = open(tar[:-4] + ".idx").read().splitlines()
        version, count = lines[0].split(" ")
        assert version == "v1.2" and int(count) == len(lines) - 1 > 0
        content = open(tar, "rb").read()
        for line in lines[1:]:
            words = line.split(" ")
            for kind, offset, size, member in zip(words[0::4], words[1::4], words[2::4], words[3::4]):
                at = int(offset)
                header = content[at - 512:at]
                assert header[:100].rstrip(b"\0").decode() == member and int(header[124:135], 8) == int(size) and member.endswith("." + kind)
print("every entry of the DALI indexes points behind the header of its member")
