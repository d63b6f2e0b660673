//! Writes an audit report of 5,000 images and a sheet page of 2,000, of data that never were, for the tests of the
//! pages in a browser: `page_data DIR`. Some names and labels are what an attacker would choose.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a generator of test data, not part of prep"
)]

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use imgprep::decode::Chroma;
use imgprep::encode::{Encoder, Encoding};
use imgprep::names;
use imgprep::page::audit::{
    self, Audit, Bar, Chart, Class, Finding, Foot, Head, Image, Item, Kind, Severity, Shortcut, Tile, Twins,
};
use imgprep::page::sheet::{self, Cell, Section, Sheet};
use imgprep::pixels::Rgb8;

const IMAGES: usize = 5000;
const THUMBS: usize = 2000;
/// Every one runs something where a page, a terminal or a spreadsheet takes a name for more than a name.
const HOSTILE: [&str; 6] = [
    "<img src=x onerror=window.owned=1>",
    "</script><script>window.owned=2</script>",
    "\x1b[31mred\x1b[0m\u{202e}gpj.exe",
    "=cmd|' /C calc'!A0",
    "\"><svg onload=window.owned=3>{{data}}",
    "<!--<script>, \"quoted\"; 100%0A",
];
const CLASSES: [&str; 12] = [
    "blight",
    "healthy",
    "multiple_diseases",
    "powdery_mildew",
    "rust",
    "scab",
    "葉の病気",
    "a class whose name goes on and on until nobody remembers how it began, as folders of downloads do",
    HOSTILE[0],
    HOSTILE[1],
    HOSTILE[2],
    HOSTILE[3],
];
const SPLITS: [&str; 3] = ["train", "val", "test"];

fn main() -> io::Result<()> {
    let Some(root) = std::env::args_os().nth(1).map(PathBuf::from) else {
        println!("usage: page_data DIR");
        return Ok(());
    };
    fs::create_dir_all(&root)?;
    let images: Vec<Image> = (0..IMAGES).map(image).collect();
    originals(&root, &images[..40])?;
    let small = thumbs(128, 96)?;
    let report = report(images.clone());
    let mut out = BufWriter::new(File::create(root.join("audit.html"))?);
    audit::write(&mut out, &report, &small)?;
    out.flush()?;
    let cells = thumbs(256, 192)?;
    let mut out = BufWriter::new(File::create(root.join("sheet.html"))?);
    sheet::write(&mut out, &sheets(&images[..THUMBS]), &cells)?;
    out.flush()?;
    let nothing = Audit { head: Head { dataset: "nothing".into(), ..Head::default() }, ..Audit::default() };
    audit::write(&mut File::create(root.join("audit-empty.html"))?, &nothing, [b""])?;
    sheet::write(&mut File::create(root.join("sheet-empty.html"))?, &Sheet::default(), [b""])
}

/// A number that looks like chance and is the same everywhere.
fn chance(at: usize, salt: u64) -> f32 {
    let mut x =
        (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt.wrapping_mul(0xd1b5_4a32_d192_ed03);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 40) as f32 / (1 << 24) as f32
}

/// Classes out of balance; the hostile ones among the first images, so that they are seen at once.
fn class_of(at: usize) -> usize {
    if at < CLASSES.len() { CLASSES.len() - 1 - at } else { (chance(at, 1).powi(2) * 8.0) as usize }
}

fn image(at: usize) -> Image {
    let class = CLASSES[class_of(at)];
    let name = match HOSTILE.get(at) {
        Some(hostile) => format!("{}.jpg", hostile.replace('/', "∕")),
        None => format!("IMG_{at:05}.jpg"),
    };
    let bad = at % 97 == 13;
    let side = if at.is_multiple_of(3) { (4000, 3000) } else { (1600, 1200) };
    Image {
        path: names::encode(Path::new(&format!("leaves/{}/{name}", class_of(at)))),
        label: (at % 50 != 49).then(|| class.to_owned()),
        split: Some(SPLITS[usize::from(at % 10 > 6) + usize::from(at % 10 > 8)].into()),
        group: Some(format!("plant {}", at / 3)),
        width: side.0,
        height: side.1,
        bytes: 900_000 + (chance(at, 2) * 3e6) as u64,
        format: "jpeg".into(),
        mode: if at % 41 == 7 { "gray".into() } else { "rgb".into() },
        fault: bad.then(|| "truncated: ends after 61 % of its rows".into()),
        notes: if at % 19 == 4 { vec!["turned by EXIF".into()] } else { Vec::new() },
        scores: vec![chance(at, 3), chance(at, 4) * 900.0],
        thumb: (at < THUMBS && !bad).then_some(at),
    }
}

fn items(images: &[Image], wanted: impl Fn(usize) -> bool, evidence: &str) -> Vec<Item> {
    let all = images.iter().enumerate().filter(|(at, _)| wanted(*at));
    all.map(|(at, image)| Item { path: image.path.clone(), evidence: evidence.into(), image: Some(at) })
        .collect()
}

fn finding(code: &str, severity: Severity, title: &str, texts: [&str; 2], items: Vec<Item>) -> Finding {
    Finding {
        code: code.into(),
        severity,
        title: title.into(),
        explain: texts[0].into(),
        advice: texts[1].into(),
        count: items.len() as u64,
        note: String::new(),
        items,
    }
}

fn findings(images: &[Image], sets: &[Twins]) -> Vec<Finding> {
    let in_sets = |code: &str| {
        let of: Vec<usize> = sets
            .iter()
            .filter(|s| s.codes.iter().any(|c| c == code))
            .flat_map(|s| s.members.clone())
            .collect();
        items(images, |at| of.contains(&at), "")
    };
    let cut = [
        "The file ends before its picture does. Decoders fill the rest with gray, or fail.",
        "Fetch the file again, or leave it out: prep audit photos --exclude F003",
    ];
    let conflict = [
        "The same picture stands under two labels: one of them is wrong.",
        "Look at the set, and mend the label with prep sheet --pairs duplicates",
    ];
    let leak = [
        "A picture of the training set is in another split too: the score on it is worth nothing.",
        "prep split --group-dups keeps duplicates together",
    ];
    let lost = Item {
        path: "train.csv:17".into(),
        evidence: "leaves/rust/lost.jpg is not there".into(),
        image: None,
    };
    vec![
        finding(
            "F003",
            Severity::Error,
            "truncated",
            cut,
            items(images, |at| at % 97 == 13, "61 % of its rows"),
        ),
        finding("D004", Severity::Error, "duplicates, different labels", conflict, in_sets("D004")),
        finding("D005", Severity::Error, "duplicate across splits", leak, in_sets("D005")),
        finding(
            "L001",
            Severity::Error,
            "row without file",
            ["The table names a file that is not there.", ""],
            vec![lost],
        ),
        finding(
            "D001",
            Severity::Warning,
            "same bytes",
            ["Files that are equal byte for byte.", ""],
            in_sets("D001"),
        ),
        finding(
            "M007",
            Severity::Warning,
            "EXIF turn",
            ["The camera was held upright.", "shrink turns the picture"],
            items(images, |at| at % 19 == 4, "orientation 6"),
        ),
        finding(
            "D003",
            Severity::Info,
            "near duplicate",
            ["Pictures that differ a little.", ""],
            in_sets("D003"),
        ),
        finding(
            "Q001",
            Severity::Info,
            "dark",
            ["Mean brightness below the threshold.", ""],
            items(images, |at| chance(at, 3) < 0.03, ""),
        ),
        finding(
            "M001",
            Severity::Info,
            HOSTILE[0],
            [HOSTILE[1], HOSTILE[4]],
            items(images, |at| at % 41 == 7, HOSTILE[0]),
        ),
    ]
}

fn sets(images: &[Image]) -> Vec<Twins> {
    let mut sets: Vec<Twins> = (0..300)
        .map(|at| {
            let members: Vec<usize> = match at {
                0 => (0..14).collect(),
                1 => vec![0, 9],
                _ => (0..2 + at % 4).map(|n| at * 9 + n * (1 + at % 3)).collect(),
            };
            let differ = |field: fn(&Image) -> &Option<String>| {
                members.iter().any(|m| field(&images[*m]) != field(&images[members[0]]))
            };
            let mut codes = Vec::new();
            codes.extend(differ(|i| &i.label).then(|| "D004".to_owned()));
            codes.extend(differ(|i| &i.split).then(|| "D005".to_owned()));
            codes.push(if at % 3 == 0 { "D001" } else { "D003" }.to_owned());
            let tier = if at % 3 == 0 { "same bytes" } else { "sure" };
            Twins { codes, tier: tier.into(), evidence: format!("distance {} of 256", at % 60), members }
        })
        .collect();
    sets.sort_by_key(|set| std::cmp::Reverse(set.codes.len()));
    sets
}

fn charts(images: &[Image]) -> Vec<Chart> {
    let per = |of: &dyn Fn(&Image) -> bool| images.iter().filter(|i| of(i)).count() as u64;
    let bars = CLASSES.iter().map(|class| Bar {
        label: (*class).into(),
        counts: SPLITS
            .iter()
            .map(|s| per(&|i| i.label.as_deref() == Some(class) && i.split.as_deref() == Some(s)))
            .collect(),
    });
    let bins = |salt: u64| {
        (0..20)
            .map(|b| (0..IMAGES).filter(|at| (chance(*at, salt) * 20.0) as usize == b).count() as u64)
            .collect()
    };
    let histogram =
        |title: &str, edges: Vec<f64>, counts: Vec<u64>, lines: Vec<(f64, String)>, unit: &str| Chart {
            title: title.into(),
            note: String::new(),
            kind: Kind::Histogram { edges, counts, lines, unit: unit.into() },
        };
    let tenths = |top: f64| (0..=20).map(|n| f64::from(n) * top / 20.0).collect::<Vec<_>>();
    let edges = vec![0.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0];
    let modes =
        [("rgb", 4878), ("gray", 122)].map(|(l, n)| Bar { label: l.into(), counts: vec![n] }).to_vec();
    vec![
        Chart {
            title: "Images per class".into(),
            note: String::new(),
            kind: Kind::Bars { parts: SPLITS.map(Into::into).to_vec(), bars: bars.collect() },
        },
        histogram(
            "Short edge",
            edges,
            vec![0, 0, 4, 12, 3317, 1667],
            vec![(512.0, "--short-edge 512".into())],
            "px",
        ),
        histogram(
            "Brightness",
            tenths(1.0),
            bins(3),
            vec![(0.03, "dark".into()), (0.95, "bright".into())],
            "",
        ),
        histogram("Sharpness", tenths(900.0), bins(4), vec![(120.0, "blurry".into())], ""),
        Chart {
            title: "Modes".into(),
            note: "As stored; shrink writes sRGB.".into(),
            kind: Kind::Bars { parts: vec![String::new()], bars: modes },
        },
        Chart {
            title: "Images per group".into(),
            note: "The largest groups.".into(),
            kind: Kind::Bars {
                parts: vec![String::new()],
                bars: (0..40).map(|n| Bar { label: format!("plant {n}"), counts: vec![90 - n] }).collect(),
            },
        },
    ]
}

fn tile(title: &str, count: usize, severity: Option<Severity>, codes: &[&str], note: &str) -> Tile {
    let sets = codes.iter().any(|c| c.starts_with('D'));
    let codes = codes.iter().map(|c| (*c).to_owned()).collect();
    Tile { title: title.into(), count: count as u64, note: note.into(), severity, codes, sets }
}

fn report(images: Vec<Image>) -> Audit {
    let sets = sets(&images);
    let findings = findings(&images, &sets);
    let n = |code: &str| findings.iter().find(|f| f.code == code).map_or(0, |f| f.items.len());
    let (error, warning) = (Some(Severity::Error), Some(Severity::Warning));
    let tiles = vec![
        tile("images", images.len(), None, &[], "12 classes"),
        tile("unreadable", n("F003"), error, &["F001", "F002", "F003", "F004"], ""),
        tile("label conflicts", n("D004"), error, &["D004"], "in duplicate sets"),
        tile("leaks across splits", n("D005"), error, &["D005"], ""),
        tile("exact duplicates", n("D001"), warning, &["D001", "D002"], "in 101 sets"),
        tile("near duplicates", 641, Some(Severity::Info), &["D003"], ""),
        tile("odd modes", n("M001") + n("M007"), warning, &["M001", "M007"], ""),
        tile("groups in two splits", 0, error, &["S001"], ""),
    ];
    let classes = CLASSES.iter().map(|class| {
        let of = |split: &str| {
            let here = |i: &&Image| {
                i.label.as_deref() == Some(class) && (split.is_empty() || i.split.as_deref() == Some(split))
            };
            images.iter().filter(here).count() as u64
        };
        let bad = images.iter().filter(|i| i.label.as_deref() == Some(class) && i.fault.is_some()).count();
        let weight = Some(images.len() as f64 / 12.0 / of("").max(1) as f64);
        Class {
            label: (*class).into(),
            images: of(""),
            splits: SPLITS.map(of).to_vec(),
            bad: bad as u64,
            weight,
        }
    });
    let shortcuts = vec![Shortcut {
        code: "X001".into(),
        property: "image width".into(),
        accuracy: 0.71,
        majority: 0.34,
        rules: vec!["4000 × 3000 is rust in 98 % of 812".into(), format!("1600 × 1200 is {}", HOSTILE[0])],
    }];
    Audit {
        head: head(),
        tiles,
        charts: charts(&images),
        classes: classes.collect(),
        foot: foot(),
        scores: vec!["brightness".into(), "sharpness".into()],
        findings,
        shortcuts,
        sets,
        images,
    }
}

fn head() -> Head {
    let fact = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    Head {
        dataset: "leaves".into(),
        summary: "5,000 images, 12 classes, 12.1 GB; labels: train.csv".into(),
        facts: vec![
            fact("split", "train 3,500, val 1,000, test 500"),
            fact("seed", "0"),
            fact("prep", "0.1.0"),
            fact("manifest", "4f1c09ab77e2"),
            fact("name", HOSTILE[1]),
        ],
        command: "prep audit leaves --labels train.csv --html".into(),
        key: "page-data-test".into(),
        root: Some(String::new()),
        uses: vec![
            "prep audit leaves --exclude list.txt".into(),
            "prep sheet leaves --files-from list.txt".into(),
        ],
    }
}

fn foot() -> Foot {
    let fact = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    Foot {
        splits: SPLITS.map(Into::into).to_vec(),
        definitions: vec![
            fact("dark", "mean brightness of the upright sRGB picture below 0.03"),
            fact("blurry", "variance of the Laplacian at 512 px below 120"),
            fact("near duplicate", "256-bit hashes that differ in at most 60 bits, in any of 8 orientations"),
        ],
        not_shown: vec!["Images 2,001 to 5,000 have no thumbnails (--thumbs).".into()],
    }
}

fn sheets(images: &[Image]) -> Sheet {
    let cell = |(at, image): (usize, &Image)| Cell {
        path: image.path.clone(),
        label: image.label.clone(),
        split: image.split.clone(),
        caption: vec![format!("{}×{}", image.width, image.height)],
        findings: if at % 31 == 5 {
            vec![("D004".into(), format!("also under {}", HOSTILE[0]))]
        } else {
            vec![]
        },
        width: image.width,
        height: image.height,
        format: image.format.clone(),
        fault: image.fault.clone(),
        thumb: image.thumb,
    };
    let mut sections: Vec<Section> = images
        .chunks(40)
        .enumerate()
        .map(|(at, chunk)| Section {
            title: CLASSES[(CLASSES.len() - 1) - at % CLASSES.len()].into(),
            note: format!("40 of {}, train", 400 + at),
            columns: None,
            cells: chunk.iter().enumerate().map(|(n, image)| cell((at * 40 + n, image))).collect(),
        })
        .collect();
    sections[1].columns = Some(2);
    sections[1].title = "pairs: val beside its nearest train".into();
    sections[2].cells.clear();
    sections[2].title = "an empty class".into();
    Sheet {
        title: "leaves".into(),
        summary: "40 of each class, seed 0, data 4f1c09ab77e2".into(),
        command: "prep sheet leaves --per-class 40 --format html".into(),
        key: "page-data-test".into(),
        root: Some(String::new()),
        classes: CLASSES.map(Into::into).to_vec(),
        uses: vec!["prep apply fixes.csv -n".into()],
        sections,
        cell: 224,
    }
}

/// Whole pictures for the first few images, where the page looks for them.
fn originals(root: &Path, images: &[Image]) -> io::Result<()> {
    for (at, image) in images.iter().enumerate() {
        let path = root.join(names::decode(&image.path));
        fs::create_dir_all(path.parent().unwrap_or(root))?;
        fs::write(path, picture(at, 800, 600)?)?;
    }
    Ok(())
}

/// As many thumbnails as a default report has; drawn once for ten images, for this is built without optimisation.
fn thumbs(width: u32, height: u32) -> io::Result<Vec<Vec<u8>>> {
    let drawn: Vec<Vec<u8>> =
        (0..THUMBS / 10).map(|at| picture(at, width, height)).collect::<io::Result<_>>()?;
    Ok((0..THUMBS).map(|at| drawn[at % drawn.len()].clone()).collect())
}

/// A leaf of a colour of its class on a dark ground.
fn picture(at: usize, width: u32, height: u32) -> io::Result<Vec<u8>> {
    let class = class_of(at) as f32;
    let (turn, round) = (chance(at, 5) * 3.1, 0.5 + 0.3 * chance(at, 6));
    let mut data = Vec::with_capacity((width * height * 3) as usize);
    for y in 0..height {
        for x in 0..width {
            let (u, v) = (x as f32 / width as f32 * 2.0 - 1.0, y as f32 / height as f32 * 2.0 - 1.0);
            let (a, b) = (u * turn.cos() + v * turn.sin(), v * turn.cos() - u * turn.sin());
            let rim = (a / 0.9).powi(2) + (b / round).powi(2);
            let spot = ((a * 17.0).sin() * (b * 13.0 + class).sin()).max(0.0) * class * 9.0;
            let colour = if rim < 1.0 {
                [50.0 + spot * 1.4, 150.0 - 40.0 * rim - spot * 0.4, 60.0 + 20.0 * u]
            } else {
                [96.0 - 20.0 * v, 80.0 - 16.0 * v, 62.0 - 12.0 * v]
            };
            data.extend(colour.map(|c| c.clamp(0.0, 255.0) as u8));
        }
    }
    let mut bytes = Vec::new();
    let encoding = Encoding::Jpeg { quality: 75, chroma: Chroma::Yuv420 };
    Encoder::default()
        .encode(&Rgb8::new(width, height, data), encoding, &mut bytes)
        .map_err(io::Error::other)?;
    Ok(bytes)
}
