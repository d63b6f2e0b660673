#!/usr/bin/env python3
"""What PyTorch keeps for backward, measured: the table that the tests hold `prep plan` to.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install torch torchvision timm
    /tmp/venv/bin/python bench/activations.py > tests/fixtures/activations.csv
    /tmp/venv/bin/python bench/activations.py --only swin_t --sizes 224x160          # to standard output
    /tmp/venv/bin/python bench/activations.py --dump vit_b_16 --sizes 160 --dtypes bf16  # every tensor that is kept

Training mode on the CPU. Saved-tensor hooks see every tensor that autograd keeps; each storage counts once;
parameters, buffers and the input are left out. The figure is the difference between two batch sizes, so bytes an
image. bf16 is autocast. The extra columns are of the same run: parameters, and values that convolutions put out.
"""

import argparse
import contextlib
import sys

import torch
import torchvision
from torch import nn

MODELS = [
    "resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "vgg16", "mobilenet_v2", "mobilenet_v3_large",
    "efficientnet_b0", "efficientnet_b1", "efficientnet_b2", "efficientnet_b3",
    "convnext_tiny", "convnext_small", "convnext_base", "vit_tiny", "vit_small", "vit_b_16", "vit_l_16",
    "swin_t", "densenet121", "unet",
]  # fmt: skip


class Twice(nn.Sequential):
    """Convolution, norm, activation, twice."""

    def __init__(self, cin, cout):
        layers = []
        for c in (cin, cout):
            layers += [nn.Conv2d(c, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True)]
        super().__init__(*layers)


class UNet(nn.Module):
    """The U-Net of 2015 as it is written today: padded, with batch norm, transposed convolutions on the way up."""

    def __init__(self, classes=2, widths=(64, 128, 256, 512, 1024)):
        super().__init__()
        self.pool = nn.MaxPool2d(2)
        self.down = nn.ModuleList([Twice(a, b) for a, b in zip((3, *widths), widths)])
        pairs = list(zip(reversed(widths[1:]), reversed(widths[:-1])))
        self.lift = nn.ModuleList([nn.ConvTranspose2d(a, b, 2, stride=2) for a, b in pairs])
        self.up = nn.ModuleList([Twice(a, b) for a, b in pairs])
        self.head = nn.Conv2d(widths[0], classes, 1)

    def forward(self, x):
        kept = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else self.pool(x))
            kept.append(x)
        kept.pop()
        for lift, block in zip(self.lift, self.up):
            x = block(torch.cat([kept.pop(), lift(x)], dim=1))
        return self.head(x)


def build(name, size):
    if name == "unet":
        return UNet()
    if name in ("vit_tiny", "vit_small"):
        import timm

        return timm.create_model(f"{name}_patch16_224", img_size=size)
    if name.startswith("vit_"):
        if size[0] != size[1]:
            raise ValueError(f"{name} takes squares")
        return getattr(torchvision.models, name)(weights=None, image_size=size[0])
    return getattr(torchvision.models, name)(weights=None)


def kept(model, size, batch, dtype):
    """Every tensor that is kept: (storage, bytes, new, shape, dtype, the function that made it)."""
    x = torch.randn(batch, 3, *size)
    ours = {t.untyped_storage().data_ptr() for t in [x, *model.parameters(), *model.buffers()]}
    rows, held, seen = [], [], set()

    def pack(tensor):
        held.append(tensor)  # or its address would be given to another
        at = tensor.untyped_storage().data_ptr()
        made_by = tensor.grad_fn.name() if tensor.grad_fn is not None else ""
        rows.append((at, tensor.untyped_storage().nbytes(), at not in ours | seen, tuple(tensor.shape),
                     str(tensor.dtype)[6:], made_by))  # fmt: skip
        seen.add(at)
        return tensor

    cast = torch.autocast("cpu", dtype=torch.bfloat16) if dtype == "bf16" else contextlib.nullcontext()
    model.train()
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), cast:
        model(x)
    return rows


def conv_values(model, size):
    count = [0]

    def hook(_, __, out):
        count[0] += out.numel()

    kinds = (nn.Conv2d, nn.ConvTranspose2d)
    hooks = [m.register_forward_hook(hook) for m in model.modules() if isinstance(m, kinds)]
    model.eval()
    with torch.no_grad():
        model(torch.randn(1, 3, *size))
    for hook in hooks:
        hook.remove()
    return count[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=MODELS)
    parser.add_argument("--sizes", nargs="*", default=["160", "224", "288"], help="SIDE or HEIGHTxWIDTH")
    parser.add_argument("--dtypes", nargs="*", default=["fp32", "bf16"])
    parser.add_argument("--batches", nargs=2, type=int, default=[3, 4], help="one and two are special to the attention of swin_t")
    parser.add_argument("--dump", help="show every tensor that this model keeps")
    args = parser.parse_args()
    torch.set_num_threads(2)
    sizes = [tuple(int(n) for n in (s.split("x") * 2)[:2]) for s in args.sizes]
    if args.dump:
        for row in kept(build(args.dump, sizes[0]), sizes[0], 1, args.dtypes[0]):
            print("new" if row[2] else "---", row[1], row[3], row[4], row[5])
        return
    print("model,height,width,dtype,parameters,saved_bytes_per_image,conv_output_values_per_image")
    for name in args.only:
        for size in sizes:
            try:
                model = build(name, size)
            except ValueError as e:
                print(e, file=sys.stderr)
                continue
            parameters = sum(p.numel() for p in model.parameters())
            values = conv_values(model, size)
            for dtype in args.dtypes:
                one, two = (sum(r[1] for r in kept(model, size, n, dtype) if r[2]) for n in args.batches)
                print(name, *size, dtype, parameters, two - one, values, sep=",", flush=True)


if __name__ == "__main__":
    main()
