//! What one full decode of an image tells, and the cache of it.
//!
//! Facts are taken under the default pixel contract (upright, sRGB, alpha over white), so that every command may use
//! those that another one left.

mod cache;
mod store;

use serde::{Deserialize, Serialize};

use crate::decode::{Header, Mode};
use crate::fault::{Cause, Fault, Note, Status};
use crate::measure::{ImageSums, Print, Quality};

pub use cache::{Cache, Info};
pub use store::{clear, home, info, knows};

/// What is known of one image after it was read and decoded whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Bytes of the file.
    pub bytes: u64,
    /// 128 bits of the BLAKE3 of the file; none where it could not be read or is no picture.
    pub hash: Option<[u8; 16]>,
    /// What the header says; none where there is no header that can be read.
    pub header: Option<Header>,
    /// Why it is not usable, or what is missing in it.
    pub fault: Option<Fault>,
    /// What is odd about it.
    pub notes: Vec<Note>,
    /// What its pixels tell; none where it does not decode. Damaged pictures have it too.
    pub seen: Option<Seen>,
}

/// What the pixels tell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// 128 bits of a hash of the upright sRGB pixels and their size; see [`crate::measure::Pass`].
    pub pixel_hash: [u8; 16],
    /// Exact sums over all pixels.
    pub sums: ImageSums,
    /// Brightness, sharpness and so on.
    pub quality: Quality,
    /// What near-duplicates are told by; none for a flat picture.
    #[serde(with = "print_as_bytes")]
    pub print: Option<Box<Print>>,
}

/// A print as its own bytes, which are the same on every machine.
mod print_as_bytes {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use crate::measure::Print;

    pub fn serialize<S: Serializer>(print: &Option<Box<Print>>, to: S) -> Result<S::Ok, S::Error> {
        print.as_ref().map(|print| print.to_bytes()).unwrap_or_default().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Box<Print>>, D::Error> {
        let bytes = Vec::<u8>::deserialize(from)?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let print = Print::from_bytes(&bytes).ok_or_else(|| D::Error::custom("a print of another size"))?;
        Ok(Some(Box::new(print)))
    }
}

impl Facts {
    /// Facts of an image that was not or cannot be looked at.
    pub fn of_fault(bytes: u64, fault: Fault) -> Self {
        Self { bytes, hash: None, header: None, fault: Some(fault), notes: Vec::new(), seen: None }
    }

    /// What became of it.
    pub fn status(&self) -> Status {
        self.fault.as_ref().map_or(Status::Ok, Fault::status)
    }

    /// Upright width and height, where they are known.
    pub fn size(&self) -> Option<(u32, u32)> {
        self.header.as_ref().map(Header::upright_size)
    }

    /// Would the same file give the same facts again? (Not where the limits of a run or the state of the machine
    /// decided.)
    pub fn is_lasting(&self) -> bool {
        self.fault.as_ref().is_none_or(|fault| !fault.cause.is_transient() && fault.cause != Cause::TooLarge)
    }

    /// Is the picture gray, by its mode or by its pixels?
    pub fn is_gray(&self) -> bool {
        self.header.as_ref().is_some_and(|h| matches!(h.mode, Mode::L | Mode::La))
            || self.seen.as_ref().is_some_and(|s| s.sums.is_gray())
    }
}
