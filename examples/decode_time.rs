#![allow(clippy::all, missing_docs)]
use imgprep::decode::{self, Codec, Contract, Limits};
use imgprep::pixels::Scale;
use std::time::Instant;
fn main() {
    let mut a = std::env::args().skip(1);
    let s: u8 = a.next().unwrap().parse().unwrap();
    let rounds: usize = a.next().unwrap().parse().unwrap();
    let files: Vec<_> = a.collect();
    let data: Vec<_> = files.iter().map(|f| std::fs::read(f).unwrap()).collect();
    let mut codec = Codec::new();
    let mut total = 0.0;
    for (f, d) in files.iter().zip(&data) {
        let o = decode::open(d, f.as_ref(), &Limits::default()).unwrap();
        let mut best = f64::MAX;
        let mut sum = 0u64;
        for _ in 0..rounds {
            let t = Instant::now();
            let p = o.pixels(Scale::eighths(s), &Contract::default(), &mut codec).unwrap();
            best = best.min(t.elapsed().as_secs_f64() * 1e3);
            sum = p.rgb.data.iter().map(|v| *v as u64).sum();
            if let Ok(dir) = std::env::var("DUMP") {
                let name = std::path::Path::new(f).file_name().unwrap().to_string_lossy().into_owned();
                let mut out = format!("P6\n{} {}\n255\n", p.rgb.width, p.rgb.height).into_bytes();
                out.extend(&p.rgb.data);
                std::fs::write(format!("{dir}/{name}.ppm"), out).unwrap();
            }
        }
        total += best;
        if rounds < 3 || files.len() < 20 { println!("{f} {best:.2} ms {:.1} MB/s sum {sum}", d.len() as f64 / best / 1e3); }
    }
    println!("mean {:.2} ms", total / files.len() as f64);
}
