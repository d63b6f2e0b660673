//! Near-duplicates: edits of photos are found, other photos are not. Photos are drawn here, and taken from the shared
//! corpora where they are; `examples/near_report.rs` measures the same on thousands.

use std::collections::BTreeMap;
use std::fs;

use imgprep::decode::Chroma;
use imgprep::encode::{Encoder, Encoding};
use imgprep::engine::cancel::Cancel;
use imgprep::measure::{Luma, PLANE, Print};
use imgprep::near::{self, Depth, Found, Options, Part, Tier};
use imgprep::normal::upright;
use imgprep::pixels::{Orientation, Rgb8};
use imgprep::resize::{Filter, Resizer, Window};

use crate::{env, pictures};

/// Numbers that look random and are the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as u32) % n.max(1)
    }

    fn share(&mut self, most: f64) -> f64 {
        f64::from(self.below(1 << 20)) / f64::from(1 << 20) * most
    }
}

/// A picture as photos are: light that falls off, things of many sizes before each other, texture, grain.
fn scene(seed: u32) -> Rgb8 {
    let mut random = Random(u64::from(seed) * 0x9e37_79b9 + 1);
    let (w, h) = (200 + random.below(120), 180 + random.below(120));
    let light = [random.share(1.0) - 0.5, random.share(1.0) - 0.5];
    let things: Vec<[f64; 9]> = (0..45)
        .map(|at| {
            let size = 0.4 / (1.0 + f64::from(at) / 4.0) + 0.03;
            let mut thing = [0.0; 9];
            thing.iter_mut().for_each(|value| *value = random.share(1.0));
            thing[2] = size * (0.4 + thing[2]);
            thing[3] = size * (0.4 + thing[3]);
            thing
        })
        .collect();
    let mut data = Vec::new();
    for y in 0..h {
        for x in 0..w {
            let (u, v) = (f64::from(x) / f64::from(w), f64::from(y) / f64::from(h));
            let mut colour = [0.5, 0.55, 0.6];
            for [cx, cy, rx, ry, turn, r, g, b, rough] in &things {
                let (sin, cos) = (turn * 6.0).sin_cos();
                let (dx, dy) = (u - cx, v - cy);
                let (p, q) = ((cos * dx - sin * dy) / rx, (sin * dx + cos * dy) / ry);
                if p * p + q * q < 1.0 {
                    let shade = 0.7 + 0.3 * p + 0.15 * rough * (p * 30.0).sin();
                    colour = [r * shade, g * shade, b * shade];
                }
            }
            let shine = 0.8 + light[0] * (u - 0.5) + light[1] * (v - 0.5);
            data.extend(
                colour.map(|c| (c * shine * 255.0 + f64::from(random.below(7))).clamp(0.0, 255.0) as u8),
            );
        }
    }
    Rgb8::new(w, h, data)
}

fn print_of(picture: &Rgb8) -> Option<Print> {
    Print::of(&Luma::of(picture, PLANE))
}

fn resized(picture: &Rgb8, to: (u32, u32), filter: Filter) -> Rgb8 {
    let (width, height) = (f64::from(picture.width), f64::from(picture.height));
    Resizer::default().resize(picture, Window { left: 0.0, top: 0.0, width, height }, to, filter).unwrap()
}

fn jpeg(picture: &Rgb8, quality: u8) -> Rgb8 {
    let mut bytes = Vec::new();
    Encoder::default()
        .encode(picture, Encoding::Jpeg { quality, chroma: Chroma::Yuv420 }, &mut bytes)
        .unwrap();
    pictures::whole(&bytes, "edited.jpg").0
}

/// Each pixel of the new picture from the place in the old one.
fn mapped(picture: &Rgb8, to: (u32, u32), from: impl Fn(u32, u32) -> Option<(u32, u32)>) -> Rgb8 {
    let mut data = Vec::new();
    for y in 0..to.1 {
        for x in 0..to.0 {
            let inside = from(x, y).filter(|(x, y)| *x < picture.width && *y < picture.height);
            let rgb = inside.map_or([0; 3], |(x, y)| {
                let at = (y * picture.width + x) as usize * 3;
                [picture.data[at], picture.data[at + 1], picture.data[at + 2]]
            });
            data.extend(rgb);
        }
    }
    Rgb8::new(to.0, to.1, data)
}

/// Cut by shares of the sides: left, top, right, bottom.
fn cropped(picture: &Rgb8, [left, top, right, bottom]: [f64; 4]) -> Rgb8 {
    let cut = |side: u32, share: f64| (f64::from(side) * share).round() as u32;
    let (x0, y0) = (cut(picture.width, left), cut(picture.height, top));
    let to =
        (picture.width - x0 - cut(picture.width, right), picture.height - y0 - cut(picture.height, bottom));
    mapped(picture, to, |x, y| Some((x + x0, y + y0)))
}

fn rotated(picture: &Rgb8, degrees: f64) -> Rgb8 {
    let (sin, cos) = degrees.to_radians().sin_cos();
    let (cx, cy) = (f64::from(picture.width) / 2.0, f64::from(picture.height) / 2.0);
    mapped(picture, picture.size(), |x, y| {
        let (dx, dy) = (f64::from(x) + 0.5 - cx, f64::from(y) + 0.5 - cy);
        let (x, y) = (cos * dx + sin * dy + cx, cos * dy - sin * dx + cy);
        (x >= 0.0 && y >= 0.0).then_some((x as u32, y as u32))
    })
}

fn levels(picture: &Rgb8, change: impl Fn(f64) -> f64) -> Rgb8 {
    let data = picture.data.iter().map(|v| change(f64::from(*v)).clamp(0.0, 255.0) as u8).collect();
    Rgb8::new(picture.width, picture.height, data)
}

fn colours(picture: &Rgb8, change: impl Fn([f64; 3]) -> [f64; 3]) -> Rgb8 {
    let rgb = picture.data.chunks_exact(3).map(|p| change([p[0], p[1], p[2]].map(f64::from)));
    Rgb8::new(picture.width, picture.height, rgb.flatten().map(|v| v.clamp(0.0, 255.0) as u8).collect())
}

fn blurred(picture: &Rgb8) -> Rgb8 {
    let (w, h) = picture.size();
    resized(&resized(picture, (w / 4, h / 4), Filter::Area), (w, h), Filter::Bilinear)
}

fn watermarked(picture: &Rgb8) -> Rgb8 {
    let mut out = picture.clone();
    let (w, h) = (picture.width as usize, picture.height as usize);
    for y in h * 82 / 100..h * 95 / 100 {
        for x in w * 55 / 100..w * 97 / 100 {
            for value in &mut out.data[(y * w + x) * 3..][..3] {
                *value = ((u32::from(*value) * 2 + 255 * 3) / 5) as u8;
            }
        }
    }
    out
}

/// The edited copies of a picture by the goal that they belong to.
fn edits(p: &Rgb8, random: &mut Random) -> Vec<(&'static str, Rgb8)> {
    let (w, h) = p.size();
    let noise: Vec<f64> = (0..p.data.len()).map(|_| random.share(40.0) - 20.0).collect();
    let mut noisy = p.clone();
    noisy.data.iter_mut().zip(noise).for_each(|(v, n)| *v = (f64::from(*v) + n).clamp(0.0, 255.0) as u8);
    let small = if w > h { (128, h * 128 / w) } else { (w * 128 / h, 128) };
    let near = (w * 2 / 5, h * 2 / 5);
    let mut all = vec![
        ("easy", resized(p, (w / 2, h / 2), Filter::Lanczos)),
        ("easy", resized(p, small, Filter::Bicubic)),
        ("easy", jpeg(p, 30)),
        ("easy", jpeg(p, 10)),
        ("easy", resized(p, (224, 224), Filter::Bilinear)),
        ("easy", mapped(p, near, |x, y| Some((x * w / near.0, y * h / near.1)))),
        ("easy", levels(p, |v| v * 1.3)),
        ("easy", levels(p, |v| v * 0.7)),
        ("easy", levels(p, |v| 255.0 * (v / 255.0).powf(0.6))),
        ("easy", levels(p, |v| (v - 128.0) * 1.4 + 128.0)),
        ("easy", colours(p, |[r, g, b]| [0.3 * r + 0.59 * g + 0.11 * b; 3])),
        ("easy", colours(p, |[r, g, b]| [r * 0.9 + g * 0.1, g * 0.9 + b * 0.1, b * 0.9 + r * 0.1])),
        ("easy", watermarked(p)),
        ("easy", blurred(p)),
        ("easy", noisy),
        ("rotation", rotated(p, 3.0)),
        ("rotation", rotated(p, -3.0)),
    ];
    use Orientation as O;
    for turn in [O::FlipH, O::FlipV, O::Rotate90, O::Rotate180, O::Rotate270, O::Transpose, O::Transverse] {
        all.push(("turn", upright(p.clone(), turn)));
    }
    for _ in 0..4 {
        let mut side = || random.share(0.1);
        all.push(("crop", cropped(p, [side(), side(), side(), side()])));
    }
    all
}

fn search(prints: &[Option<Print>]) -> Found {
    let options = Options { threads: 2, ..Options::default() };
    near::search(prints, &options, &Cancel::default(), &mut |_, _| ()).unwrap()
}

/// Real photos of the shared corpora, about `most` of them.
fn photos(most: usize) -> Vec<Rgb8> {
    let Some(folder) = env::shared("corpus/data/banana_ccby") else { return Vec::new() };
    let mut files: Vec<_> = ["black_sigatoka", "dead", "panama", "yellow_sigatoka"]
        .iter()
        .flat_map(|class| fs::read_dir(folder.join(class)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "jpg"))
        .collect();
    files.sort();
    assert!(files.len() > 100, "the test saw only {} photos", files.len());
    let step = files.len().div_ceil(most);
    let read = |path: &std::path::PathBuf| pictures::whole(&fs::read(path).unwrap(), "photo.jpg").0;
    files.iter().step_by(step).map(read).collect()
}

#[test]
fn edited_copies_are_found_as_often_as_promised() {
    let drawn: Vec<Rgb8> = (0..5).map(scene).collect();
    for originals in [drawn, photos(8)] {
        let mut random = Random(7);
        let mut prints: Vec<Option<Print>> = originals.iter().map(print_of).collect();
        let mut copies = Vec::new();
        for (at, original) in originals.iter().enumerate() {
            assert!(prints[at].is_some());
            for (goal, copy) in edits(original, &mut random) {
                copies.push((at, prints.len(), goal));
                prints.push(print_of(&copy));
            }
        }
        let found = search(&prints);
        assert_eq!(found.depth, Depth::Windows);
        let mut sums: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
        for (at, copy, goal) in &copies {
            let sum = sums.entry(goal).or_default();
            sum[0] += 1;
            sum[1] += usize::from(found.pairs.iter().any(|pair| (pair.a, pair.b) == (*at, *copy)));
        }
        for (goal, [all, hits]) in sums {
            let wanted = match goal {
                "easy" => 0.995,
                "turn" => 1.0,
                "crop" => 0.90,
                _ => 0.95,
            };
            let share = hits as f64 / all as f64;
            assert!(share >= wanted, "{goal}: {hits} of {all} were found");
        }
        // Copies of different originals are no pairs.
        let of = |at: usize| copies.iter().find(|c| c.1 == at).map_or(at, |c| c.0);
        let wrong: Vec<_> = found.pairs.iter().filter(|pair| of(pair.a) != of(pair.b)).collect();
        assert!(wrong.len() * 10_000 <= prints.len() * prints.len(), "{wrong:?}");
    }
}

#[test]
fn different_pictures_are_no_pairs() {
    let mut prints: Vec<Option<Print>> = (100..125).map(scene).map(|p| print_of(&p)).collect();
    prints.extend(photos(40).iter().map(print_of));
    let sure: Vec<_> = search(&prints).pairs.into_iter().filter(|pair| pair.tier == Tier::Sure).collect();
    assert!(sure.is_empty(), "{sure:?}");
}

#[test]
fn a_turned_copy_is_sure_and_says_how_it_is_turned() {
    let picture = scene(1);
    let turn = Orientation::Rotate90;
    let prints = [print_of(&picture), print_of(&upright(picture.clone(), turn)), print_of(&scene(2))];
    let found = search(&prints);
    assert_eq!(found.pairs.len(), 1);
    let pair = found.pairs[0];
    assert_eq!((pair.a, pair.b, pair.turn, pair.tier, pair.part), (0, 1, turn, Tier::Sure, None));
    assert!(pair.agreement > 0.98, "{}", pair.agreement);
    // The same between two sets, whichever comes first.
    let options = Options::default();
    let against = |a: &[Option<Print>], b: &[Option<Print>]| {
        near::against(a, b, &options, &Cancel::default(), &mut |_, _| ()).unwrap().pairs
    };
    assert_eq!(against(&prints[..1], &prints[1..])[0].turn, turn);
    assert_eq!(against(&prints[1..], &prints[..1])[0].turn, Orientation::Rotate270);
}

#[test]
fn a_crop_says_which_picture_it_is_a_part_of() {
    let picture = scene(3);
    let part = cropped(&picture, [0.08, 0.03, 0.02, 0.09]);
    let (whole, part) = (print_of(&picture), print_of(&part));
    let first = search(&[whole.clone(), part.clone()]).pairs;
    let second = search(&[part, whole]).pairs;
    assert!(matches!(first[0].part, Some(Part::OfA(_))), "{first:?}");
    assert!(matches!(second[0].part, Some(Part::OfB(_))), "{second:?}");
}

#[test]
fn flat_pictures_have_no_print() {
    for value in [0, 128, 255] {
        assert_eq!(print_of(&Rgb8::new(64, 48, vec![value; 64 * 48 * 3])), None);
    }
    assert_eq!(print_of(&Rgb8::new(1, 1, vec![10, 200, 30])), None);
    let mut random = Random(5);
    let grain = (0..64 * 48 * 3).map(|_| 100 + random.below(5) as u8).collect();
    assert_eq!(print_of(&Rgb8::new(64, 48, grain)), None);
}

#[test]
fn a_print_survives_its_bytes_and_does_not_depend_on_threads() {
    let prints: Vec<Option<Print>> = (0..6).map(scene).map(|p| print_of(&p)).collect();
    for print in prints.iter().flatten() {
        let bytes = print.to_bytes();
        assert_eq!(bytes.len(), Print::BYTES);
        assert_eq!(Print::from_bytes(&bytes).as_ref(), Some(print));
        assert_eq!(Print::from_bytes(&bytes[1..]), None);
    }
    let twice: Vec<_> = prints.iter().chain(&prints).cloned().collect();
    let one = near::search(&twice[..], &Options::default(), &Cancel::default(), &mut |_, _| ()).unwrap();
    assert_eq!(one, search(&twice));
    assert_eq!(one.pairs.len(), 6);
}

#[test]
fn the_plane_is_exact_and_turns_with_the_picture() {
    let picture = scene(9);
    let luma = Luma::of(&picture, PLANE);
    for tag in 1..=8 {
        let turn = Orientation::from_tag(tag).unwrap();
        assert_eq!(Luma::of(&upright(picture.clone(), turn), PLANE), luma.upright(turn), "{turn:?}");
    }
    let flat = Luma::of(&Rgb8::new(301, 7, vec![77; 301 * 7 * 3]), PLANE);
    assert!(flat.data.iter().all(|v| *v == 77.0));
    // More than 257 rows a cell, and fewer pixels than cells.
    let ramp: Vec<u8> = (0..40_000_u32).flat_map(|y| [(y * 256 / 40_000) as u8; 3]).collect();
    let tall = Luma::of(&Rgb8::new(1, 40_000, ramp), PLANE);
    assert!(
        tall.data
            .chunks_exact(PLANE)
            .enumerate()
            .all(|(y, row)| row.iter().all(|v| { (v - (y as f32 * 2.0 + 0.5)).abs() < 0.02 }))
    );
}

#[test]
fn stars_never_chain() {
    let (a, b, c) = (scene(20), scene(21), scene(22));
    let prints: Vec<_> = [&a, &b, &a, &c, &a, &b].into_iter().map(print_of).collect();
    let pairs = search(&prints).pairs;
    let stars = near::stars(&pairs, std::cmp::Reverse);
    let sets: Vec<(usize, Vec<usize>)> =
        stars.iter().map(|star| (star.kept, star.others.iter().map(|o| o.0).collect())).collect();
    assert_eq!(sets, [(5, vec![1]), (4, vec![0, 2])]);
    // 0-1, 1-2, 2-3: the ends of the chain need not look alike.
    let link = |a: usize| near::Pair { a, b: a + 1, ..pairs[0] };
    let chain = near::stars(&[link(0), link(1), link(2)], |at| at);
    let sets: Vec<(usize, Vec<usize>)> =
        chain.iter().map(|star| (star.kept, star.others.iter().map(|o| o.0).collect())).collect();
    assert_eq!(sets, [(0, vec![1]), (2, vec![3])]);
}

#[test]
fn larger_sets_are_searched_less_deeply_and_say_so() {
    let options = Options::default();
    assert_eq!(options.depth(5_000), Depth::Windows);
    assert_eq!(options.depth(options.windows_up_to + 1), Depth::Turned);
    assert_eq!(options.depth(options.turned_up_to + 1), Depth::Upright);
    let picture = scene(30);
    let prints =
        [print_of(&picture), print_of(&upright(picture.clone(), Orientation::FlipH)), print_of(&picture)];
    let shallow = Options { windows_up_to: 0, turned_up_to: 0, ..options };
    let found = near::search(&prints[..], &shallow, &Cancel::default(), &mut |_, _| ()).unwrap();
    assert_eq!(found.depth, Depth::Upright);
    assert_eq!(found.pairs.iter().map(|p| (p.a, p.b)).collect::<Vec<_>>(), [(0, 2)]);
}

#[test]
fn an_interrupted_search_is_an_error() {
    let cancel = Cancel::default();
    cancel.set();
    let prints = [print_of(&scene(40)), print_of(&scene(41))];
    assert!(near::search(&prints[..], &Options::default(), &cancel, &mut |_, _| ()).is_err());
}

#[test]
fn a_print_is_the_same_on_every_machine() {
    // When this fails and should, Print::VERSION grows, or caches hold prints that do not compare.
    let print = print_of(&pictures::picture(301, 203, 5)).unwrap();
    let fnv = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let hash = print.to_bytes().iter().fold(0xcbf2_9ce4_8422_2325, fnv);
    assert_eq!((Print::VERSION, hash), (2, 0x43ff_a0ae_bab1_a78f_u64));
}
