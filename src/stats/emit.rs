//! Constants as code that can be pasted.

use super::Moments;

/// The library that the snippet is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emit {
    /// `torchvision.transforms.v2`.
    Torchvision,
    /// albumentations.
    Albumentations,
    /// Arguments of timm's scripts.
    Timm,
    /// A Keras layer; its values are 0-255 and its second number is the variance.
    Keras,
    /// NVIDIA DALI; its values are 0-255.
    Dali,
    /// JAX.
    Jax,
    /// A table for a configuration file.
    Toml,
}

/// The snippet.
pub fn emit(library: Emit, moments: &Moments) -> String {
    let list = |values: [f64; 3], digits: usize| {
        let words: Vec<String> = values.iter().map(|v| format!("{v:.digits$}")).collect();
        format!("[{}]", words.join(", "))
    };
    let scaled = |values: [f64; 3], factor: f64| values.map(|v| v * factor);
    let (mean, std) = (list(moments.mean, 6), list(moments.std, 6));
    let (mean255, std255) = (list(scaled(moments.mean, 255.0), 4), list(scaled(moments.std, 255.0), 4));
    match library {
        Emit::Torchvision => format!(
            "import torch\nfrom torchvision.transforms import v2\n\n\
             v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True),\n            \
             v2.Normalize(mean={mean}, std={std})])\n"
        ),
        Emit::Albumentations => {
            format!("albumentations.Normalize(mean={mean}, std={std}, max_pixel_value=255.0)\n")
        }
        Emit::Timm => {
            let words = |values: [f64; 3]| values.map(|v| format!("{v:.6}")).join(" ");
            format!("--mean {} --std {}\n", words(moments.mean), words(moments.std))
        }
        Emit::Keras => {
            let variance = list(moments.std.map(|s| (s * 255.0).powi(2)), 3);
            format!("keras.layers.Normalization(mean={mean255}, variance={variance})  # for values 0-255\n")
        }
        Emit::Dali => format!(
            "fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout=\"CHW\",\n                         \
             mean={mean255}, std={std255})  # for values 0-255\n"
        ),
        Emit::Jax => format!(
            "MEAN = jnp.array({mean})\nSTD = jnp.array({std})\nimages = (images.astype(jnp.float32) / 255.0 - MEAN) / STD\n"
        ),
        Emit::Toml => format!("[normalize]\nmean = {mean}\nstd = {std}\n"),
    }
}
