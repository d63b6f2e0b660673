//! The built-in networks against what PyTorch was seen to keep.

use imgprep::plan::net::{self, builtin};
use imgprep::plan::tape::Rules;

/// A row of `tests/fixtures/activations.csv`, measured by `bench/activations.py`.
#[derive(Debug, serde::Deserialize)]
struct Measured {
    model: String,
    height: u32,
    width: u32,
    dtype: String,
    parameters: u64,
    saved_bytes_per_image: u64,
    conv_output_values_per_image: u64,
}

#[test]
fn networks_keep_what_pytorch_was_seen_to_keep() {
    let text = std::env::var("ACT").map(|p| std::fs::read_to_string(p).unwrap()).unwrap();
    let mut rows = 0;
    for row in csv::Reader::from_reader(text.as_bytes()).deserialize() {
        let row: Measured = row.unwrap();
        rows += 1;
        let (file, _, model) = builtin::find(&row.model).unwrap();
        let half = row.dtype == "bf16";
        let rules = Rules { half, cuda: false, fused_attention: true };
        let m = net::run(file, model, (row.height, row.width), rules).unwrap();
        println!("{:20} {:4} {} params {:+} conv {:+} kept {:.4}", row.model, row.height, row.dtype, m.parameters as i64 - row.parameters as i64, m.conv_values as i64 - row.conv_output_values_per_image as i64, m.kept_bytes as f64 / row.saved_bytes_per_image as f64);
    }
    assert!(rows > 10);
}
