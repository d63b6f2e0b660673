//! A temporary folder, pictures to put into it, and the real binary run in it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use imgprep::decode::Chroma;
use imgprep::encode::{Encoder, Encoding};
use imgprep::pixels::Rgb8;

/// A folder of its own for one test.
pub struct Env {
    dir: tempfile::TempDir,
}

/// What a run of prep said.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Env {
    pub fn new() -> Self {
        Self { dir: tempfile::Builder::new().prefix("prep-test-").tempdir().unwrap() }
    }

    /// The real path of `name` in the folder.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    /// Writes a file, with the folders above it.
    pub fn write(&self, name: impl AsRef<Path>, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// A command that runs prep in the folder.
    pub fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_prep"));
        command.current_dir(self.dir.path()).args(args).env("PREP_REHEARSE", "1").env_remove("PREP_FLIGHT");
        command.env("XDG_CACHE_HOME", self.dir.path().join("cache"));
        command.env("XDG_STATE_HOME", self.dir.path().join("state"));
        command
    }

    /// Runs prep.
    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        Ran::of(&self.command(args).output().unwrap())
    }

    /// Runs prep and insists that it ends well.
    #[track_caller]
    pub fn ok<S: AsRef<OsStr>>(&self, args: &[S]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "stdout: {}\nstderr: {}", ran.stdout, ran.stderr);
        ran
    }

    /// Runs prep and insists that it refuses, with exit code 2 and a sentence.
    #[track_caller]
    pub fn refused<S: AsRef<OsStr>>(&self, args: &[S]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(2), "stdout: {}\nstderr: {}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("error:"), "{}", ran.stderr);
        ran.stderr
    }

    /// The rows of a CSV file as maps.
    pub fn rows(&self, name: impl AsRef<Path>) -> Vec<std::collections::HashMap<String, String>> {
        let mut reader = csv::Reader::from_path(self.path(name)).unwrap();
        reader.deserialize().map(Result::unwrap).collect()
    }

    /// Every file below `name` (hidden ones too) with its bytes, sorted.
    pub fn tree(&self, name: impl AsRef<Path>) -> Vec<(String, Vec<u8>)> {
        let root = self.path(name);
        let mut files = Vec::new();
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
                    files.push((name, fs::read(&path).unwrap()));
                }
            }
        }
        files.sort();
        files
    }
}

impl Ran {
    pub fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A file of the shared corpora, where they are.
pub fn shared(name: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let root = std::env::var_os("PREP_SHARED").map_or(beside, PathBuf::from);
    Some(root.join(name)).filter(|path| path.exists())
}

/// A picture that cannot be mistaken for another: four quadrants of different colour, a gradient, and a mark of `seed`.
pub fn picture(width: u32, height: u32, seed: u32) -> Rgb8 {
    let mut data = Vec::with_capacity((width * height * 3) as usize);
    for y in 0..height {
        for x in 0..width {
            let quadrant = [[200, 40, 40], [40, 180, 60], [50, 60, 200], [210, 200, 50]]
                [usize::from(y * 2 >= height) * 2 + usize::from(x * 2 >= width)];
            let wave = (((x + seed * 7) / 3) ^ (y / 5 + seed)) % 24;
            for base in quadrant {
                data.push((base + wave + (seed * 13) % 30) as u8);
            }
        }
    }
    Rgb8::new(width, height, data)
}

/// `picture` as a JPEG.
pub fn jpeg(width: u32, height: u32, seed: u32) -> Vec<u8> {
    encoded(width, height, seed, Encoding::Jpeg { quality: 90, chroma: Chroma::Yuv420 })
}

/// `picture` as a PNG.
pub fn png(width: u32, height: u32, seed: u32) -> Vec<u8> {
    encoded(width, height, seed, Encoding::Png)
}

/// Noise as a PNG: 3 bytes a pixel, whatever compresses it.
pub fn noise_png(width: u32, height: u32) -> Vec<u8> {
    let data =
        (0..width * height * 3).map(|i| (i.wrapping_mul(2_654_435_761) >> 13 ^ i.wrapping_mul(40_503)) as u8);
    let mut bytes = Vec::new();
    Encoder::default().encode(&Rgb8::new(width, height, data.collect()), Encoding::Png, &mut bytes).unwrap();
    assert!(bytes.len() > (width * height) as usize);
    bytes
}

fn encoded(width: u32, height: u32, seed: u32, encoding: Encoding) -> Vec<u8> {
    let mut bytes = Vec::new();
    Encoder::default().encode(&picture(width, height, seed), encoding, &mut bytes).unwrap();
    bytes
}
