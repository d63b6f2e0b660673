//! `prep plan`: the ledger of bytes.

pub mod net;
pub mod tape;
