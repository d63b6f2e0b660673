//! Directories of tags (IFDs) as TIFF and EXIF have them, classic and BigTIFF. Bounds-checked: nothing that the file
//! says is trusted with a length.

/// Directories of real files have fewer than 100 entries.
const MOST_ENTRIES: u64 = 512;
/// Names of cameras have fewer than 64 bytes.
const MOST_TEXT: u64 = 64;
/// Pages are counted as far as this.
const MOST_PAGES: u32 = 10_000;

/// A TIFF structure.
#[derive(Clone, Copy)]
pub(super) struct Tags<'a> {
    bytes: &'a [u8],
    little: bool,
    big: bool,
}

/// An entry of a directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub tag: u16,
    /// The TIFF type: 1 byte, 3 short, 4 long …
    pub kind: u16,
    /// Where the value, or its offset, stands.
    pub value_at: usize,
}

impl<'a> Tags<'a> {
    /// A structure that starts with `II` or `MM`; anything after those is not looked at. (EXIF writers put odd things
    /// where TIFF has 42.)
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let little = match bytes.get(..2)? {
            b"II" => true,
            b"MM" => false,
            _ => return None,
        };
        let tags = Self { bytes, little, big: false };
        Some(Self { big: tags.u16_at(2) == Some(43), ..tags })
    }

    /// Where the first directory stands.
    pub fn first(&self) -> Option<usize> {
        let at = if self.big { self.u64_at(8)? } else { u64::from(self.u32_at(4)?) };
        usize::try_from(at).ok()
    }

    /// The entries of the directory at `ifd` as far as they can be read, and whether that is all of them.
    pub fn entries(&self, ifd: usize) -> (Vec<Entry>, bool) {
        let count = if self.big { self.u64_at(ifd) } else { self.u16_at(ifd).map(u64::from) };
        let Some(count) = count else { return (Vec::new(), false) };
        let (head, size, value) = if self.big { (8, 20, 12) } else { (2, 12, 8) };
        let mut entries = Vec::new();
        for i in 0..count.min(MOST_ENTRIES) as usize {
            let at = ifd.saturating_add(head + i * size);
            let (Some(tag), Some(kind)) = (self.u16_at(at), self.u16_at(at.saturating_add(2))) else {
                return (entries, false);
            };
            entries.push(Entry { tag, kind, value_at: at.saturating_add(value) });
        }
        (entries, count <= MOST_ENTRIES)
    }

    /// The first value of an entry: a byte, a long, or (whatever else it says) a short.
    pub fn value(&self, entry: Entry) -> Option<u32> {
        match entry.kind {
            1 => self.bytes.get(entry.value_at).map(|b| u32::from(*b)),
            4 | 9 => self.u32_at(entry.value_at),
            _ => self.u16_at(entry.value_at).map(u32::from),
        }
    }

    /// The text of an ASCII entry, as far as it can be shown: at most [`MOST_TEXT`] characters, no control characters.
    pub fn text(&self, entry: Entry) -> Option<String> {
        if entry.kind != 2 {
            return None;
        }
        let (count, inline) = if self.big {
            (self.u64_at(entry.value_at.checked_sub(8)?)?, 8)
        } else {
            (u64::from(self.u32_at(entry.value_at.checked_sub(4)?)?), 4)
        };
        let at = match (count <= inline, self.big) {
            (true, _) => entry.value_at as u64,
            (false, true) => self.u64_at(entry.value_at)?,
            (false, false) => u64::from(self.u32_at(entry.value_at)?),
        };
        let at = usize::try_from(at).ok()?;
        let bytes = self.bytes.get(at..at.checked_add(count.min(MOST_TEXT) as usize)?)?;
        let text = bytes.split(|b| *b == 0).next()?;
        let text: String = String::from_utf8_lossy(text).chars().filter(|c| !c.is_control()).collect();
        Some(text.trim().to_owned()).filter(|t| !t.is_empty())
    }

    /// The value of `tag` in the first directory.
    pub fn find(&self, tag: u16) -> Option<u32> {
        let (entries, _) = self.entries(self.first()?);
        entries.into_iter().find(|e| e.tag == tag).and_then(|e| self.value(e))
    }

    /// How many directories follow one another.
    pub fn pages(&self) -> u32 {
        let mut pages = 0;
        let mut ifd = self.first();
        while let Some(at) = ifd.filter(|at| *at != 0 && *at < self.bytes.len()) {
            pages += 1;
            if pages >= MOST_PAGES {
                break;
            }
            ifd = self.next(at);
        }
        pages
    }

    fn next(&self, ifd: usize) -> Option<usize> {
        if self.big {
            let end = usize::try_from(self.u64_at(ifd)?).ok()?.checked_mul(20)?.checked_add(8)?;
            usize::try_from(self.u64_at(ifd.checked_add(end)?)?).ok()
        } else {
            let end = usize::from(self.u16_at(ifd)?) * 12 + 2;
            self.u32_at(ifd.checked_add(end)?).map(|at| at as usize)
        }
    }

    /// The bytes of a short in this file's order.
    pub fn short(&self, value: u16) -> [u8; 2] {
        if self.little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    fn u16_at(&self, at: usize) -> Option<u16> {
        let b = *self.bytes.get(at..)?.first_chunk::<2>()?;
        Some(if self.little { u16::from_le_bytes(b) } else { u16::from_be_bytes(b) })
    }

    fn u32_at(&self, at: usize) -> Option<u32> {
        let b = *self.bytes.get(at..)?.first_chunk::<4>()?;
        Some(if self.little { u32::from_le_bytes(b) } else { u32::from_be_bytes(b) })
    }

    fn u64_at(&self, at: usize) -> Option<u64> {
        let b = *self.bytes.get(at..)?.first_chunk::<8>()?;
        Some(if self.little { u64::from_le_bytes(b) } else { u64::from_be_bytes(b) })
    }
}
