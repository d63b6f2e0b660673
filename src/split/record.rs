//! What an export put into its folder, and how it is known again: the next export removes and replaces only that.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Result};
use crate::names::{decode, encode};
use crate::out::Atomic;

/// How a file that prep exported is known again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Print {
    /// A text with this BLAKE3 hash, hexadecimal.
    Text(String),
    /// A symbolic link that says this.
    Symbolic(PathBuf),
    /// The image `source`, linked or copied, with so many bytes and this time of its last change in nanoseconds.
    Image {
        /// Bytes.
        bytes: u64,
        /// Nanoseconds since 1970.
        time: i128,
        /// Its path as seen from the folder of the export.
        source: PathBuf,
    },
}

/// The prints of what lies in a folder, by name as [`encode`] spells it. A name has two while one is being replaced.
#[derive(Debug, Clone, Default)]
pub struct Record(BTreeMap<String, Vec<Print>>);

impl Print {
    /// That of the image at `source`, which will be linked or copied; `seen` is its path as seen from the folder.
    ///
    /// # Errors
    /// [`Error::Read`] where it is gone.
    pub fn of_image(source: &Path, seen: PathBuf) -> Result<Self> {
        let meta = fs::metadata(source).map_err(|e| Error::read("looking at an image", source, e))?;
        Ok(Self::Image { bytes: meta.len(), time: time(&meta), source: seen })
    }

    /// Is it this that lies at `path` in `folder`? Where it is not sure, it is not.
    fn is_at(&self, folder: &Path, path: &Path) -> bool {
        let Ok(meta) = fs::symlink_metadata(path) else { return false };
        match self {
            Self::Text(hash) => {
                meta.is_file() && fs::read(path).is_ok_and(|b| blake3::hash(&b).to_hex().as_str() == hash)
            }
            Self::Symbolic(target) => fs::read_link(path).is_ok_and(|there| there == *target),
            Self::Image { bytes, time: then, source } => {
                let source = &folder.join(source);
                meta.is_file()
                    && ((meta.len(), time(&meta)) == (*bytes, *then)
                        || fs::metadata(source).is_ok_and(|s| (s.dev(), s.ino()) == (meta.dev(), meta.ino()))
                        // Some file systems keep coarse times.
                        || meta.len() == *bytes && is_same(path, source))
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Text(hash) => format!("text\t{hash}"),
            Self::Symbolic(target) => format!("link\t{}", encode(target)),
            Self::Image { bytes, time, source } => format!("image\t{bytes}\t{time}\t{}", encode(source)),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut cells = text.split('\t');
        match cells.next()? {
            "text" => Some(Self::Text(cells.next()?.to_owned())),
            "link" => Some(Self::Symbolic(decode(cells.next()?))),
            "image" => Some(Self::Image {
                bytes: cells.next()?.parse().ok()?,
                time: cells.next()?.parse().ok()?,
                source: decode(cells.next()?),
            }),
            _ => None,
        }
    }
}

fn time(meta: &Metadata) -> i128 {
    i128::from(meta.mtime()) * 1_000_000_000 + i128::from(meta.mtime_nsec())
}

fn is_same(a: &Path, b: &Path) -> bool {
    let (Ok(mut a), Ok(mut b)) = (File::open(a), File::open(b)) else { return false };
    let (mut one, mut other) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let (Ok(n), Ok(m)) = (fill(&mut a, &mut one), fill(&mut b, &mut other)) else { return false };
        if n != m || one[..n] != other[..m] {
            return false;
        }
        if n == 0 {
            return true;
        }
    }
}

fn fill(file: &mut File, buf: &mut [u8]) -> std::io::Result<usize> {
    let mut done = 0;
    while done < buf.len() {
        match file.read(&mut buf[done..])? {
            0 => break,
            n => done += n,
        }
    }
    Ok(done)
}

impl Record {
    /// The record at `path`; empty where there is none. Lines that prep did not write name nothing that may be touched.
    pub fn read(path: &Path) -> Self {
        let mut record = Self::default();
        for line in fs::read_to_string(path).unwrap_or_default().lines() {
            let (name, print) = line.split_once('\t').unwrap_or((line, ""));
            // The record lies on the user's disk: what it names must be below the folder all the same.
            if !name.is_empty() && decode(name).components().all(|part| matches!(part, Component::Normal(_)))
            {
                record.0.entry(name.to_owned()).or_default().extend(Print::parse(print));
            }
        }
        record
    }

    /// Notes a file.
    pub fn add(&mut self, name: String, print: Print) {
        let prints = self.0.entry(name).or_default();
        if !prints.contains(&print) {
            prints.push(print);
        }
    }

    /// Both.
    pub fn with(&self, other: &Self) -> Self {
        let mut both = self.clone();
        for (name, prints) in &other.0 {
            for print in prints {
                both.add(name.clone(), print.clone());
            }
        }
        both
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Is `name` noted?
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The first name where something lies in `folder` that is not as it was noted.
    pub fn first_other(&self, folder: &Path) -> Option<PathBuf> {
        self.0.iter().find_map(|(name, prints)| {
            let path = folder.join(decode(name));
            let is_there = fs::symlink_metadata(&path).is_ok();
            (is_there && !prints.iter().any(|print| print.is_at(folder, &path))).then_some(path)
        })
    }

    /// Writes it as `path`.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub fn write(&self, doing: &'static str, path: &Path) -> Result<()> {
        let mut file = Atomic::create(doing, path)?;
        for (name, prints) in &self.0 {
            for print in prints {
                writeln!(file, "{name}\t{}", print.text()).map_err(|e| Error::write(doing, path, e))?;
            }
        }
        file.commit(true)
    }
}
