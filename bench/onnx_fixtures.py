#!/usr/bin/env python3
"""Networks as torchvision's users export them, without their weights: the fixtures of tests/it/plan_onnx.rs.

    pip install torch torchvision onnx onnxscript
    python bench/onnx_fixtures.py tests/fixtures/onnx

`script` is the exporter of before PyTorch 2.9 (batch norms folded, GELU and attention written out), `export` the
default since. Weights above 1 kB lose their numbers and keep name, type and shape; notes and shapes in between go.
"""

import sys
import warnings
from pathlib import Path

import onnx
import torch
import torchvision

MADE = [
    ("resnet18", "script"), ("resnet18", "export"), ("mobilenet_v2", "script"), ("mobilenet_v2", "export"),
    ("vgg16", "export"), ("efficientnet_b0", "script"), ("mobilenet_v3_large", "export"), ("convnext_tiny", "script"),
    ("densenet121", "export"), ("vit_b_16", "export"), ("swin_t", "export"),
]  # fmt: skip


def stripped(model):
    graph = model.graph
    for field in (graph.value_info, graph.metadata_props, model.metadata_props, model.functions):
        del field[:]
    graph.doc_string = model.doc_string = ""
    for node in graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    for value in (*graph.input, *graph.output):
        del value.metadata_props[:]
    for weight in graph.initializer:
        del weight.metadata_props[:]
        if len(weight.raw_data) > 1024:
            weight.ClearField("raw_data")
            weight.data_location = onnx.TensorProto.EXTERNAL
        del weight.external_data[:]
    return model


def main():
    warnings.filterwarnings("ignore")
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name, how in MADE:
        model = getattr(torchvision.models, name)(weights=None).eval()
        x = torch.randn(1, 3, 224, 224)
        path = out / f"{name}-{how}.onnx"
        if how == "script":
            torch.onnx.export(model, x, str(path), dynamo=False, opset_version=17, input_names=["input"])
        else:
            torch.onnx.export(model, (x,), str(path), dynamo=True, external_data=True, verbose=False)
        made = stripped(onnx.load(path, load_external_data=False))
        path.with_suffix(".onnx.data").unlink(missing_ok=True)
        path.write_bytes(made.SerializeToString())
        print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
