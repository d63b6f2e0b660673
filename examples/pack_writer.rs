//! For `bench/pack.py`: the writer of shards alone, from pixels in memory, with both its checksums.
//!
//! `pack_writer FOLDER mds|wds SAMPLES SIDE` writes SAMPLES pictures of SIDE x SIDE and says what they took.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::path::PathBuf;

use imgprep::error::{Error, Result};
use imgprep::pack::one::Packed;
use imgprep::pack::shelf::{Kept, Shelf};
use imgprep::shards::{Form, Layout, Row, Store, sum};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, layout, samples, side] = arguments.as_slice() else {
        return Err(Error::Usage("pack_writer FOLDER mds|wds SAMPLES SIDE".into()));
    };
    let number = |text: &str| text.parse::<usize>().map_err(|_| Error::Usage(format!("{text} is no number")));
    let (folder, samples, side) = (PathBuf::from(folder), number(samples)?, number(side)? as u16);
    let layout = Layout::parse(layout).ok_or_else(|| Error::Usage("mds or wds".into()))?;
    let form = Form { layout, store: Store::Raw, fixed: Some((side, side)), shard_size: 64 << 20 };
    // Sixteen different pictures, so that they do not all lie in the fastest cache.
    let size = usize::from(side) * usize::from(side) * 3;
    let pictures: Vec<Vec<u8>> =
        (0..16).map(|k: usize| (0..size).map(|i| (i * 7 + k * 31 + i / 251) as u8).collect()).collect();
    let paths: Vec<String> = (0..samples).map(|i| format!("class/{i:06}.jpg")).collect();
    let texts = |row: u32| (paths[row as usize].as_str(), "class", "");

    let (mut number, mut first, mut in_shard) = (0, 0, 0);
    let begin = |number, memory| {
        Shelf::new(form, &texts, &folder.join(form.shard_name("train", number)), samples, memory)
    };
    let mut shelf = begin(number, Vec::new())?;
    for i in 0..samples {
        let payload = pictures[i % pictures.len()].clone();
        let packed = Packed {
            size: (side, side),
            flags: 0,
            crc32: sum::crc32(&payload),
            hash: [0; 16],
            sums: None,
            payload,
        };
        let row = Row {
            size: packed.payload.len() as u32,
            h: side,
            w: side,
            crc32: packed.crc32,
            row: i as u32,
            group: -1,
            ..Row::default()
        };
        let kept = Kept { row, hash: packed.hash };
        if shelf.is_full_for(&kept) {
            let (_, _, memory) = shelf.finish("train", first)?;
            (number, first, in_shard) = (number + 1, first + in_shard, 0);
            shelf = begin(number, memory)?;
        }
        shelf.put(kept, &packed)?;
        in_shard += 1;
    }
    let (shard, _, _) = shelf.finish("train", first)?;
    println!("{} shards, the last of {} bytes", number + 1, shard.sum.bytes);
    Ok(())
}
