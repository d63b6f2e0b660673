//! prep prepares and audits image training sets.
//!
//! The house, lowest layer first; a file uses only layers below its own (`tests/it/layers.rs` holds it to that):
//!
//! | layer | rooms |
//! |---|---|
//! | 0 ground | [`error`], [`fault`], [`names`], [`out`], [`page`], [`simd`], [`table`] |
//! | 1 pixels | [`pixels`], [`decode`], [`normal`], [`resize`], [`encode`], [`measure`] |
//! | 2 samples | [`entry`], [`source`], [`manifest`], [`home`], [`facts`], [`shards`] |
//! | 3 engine | [`engine`] |
//! | 4 looks | [`survey`], [`near`], [`thumb`] |
//! | 5 jobs | [`shrink`], [`audit`], [`split`], [`stats`], [`weights`], [`plan`], [`sheet`], [`apply`], [`show`], [`pack`], [`verify`], [`unpack`] |
//! | 6 front | [`cli`] and `main.rs` |

pub mod error;
pub mod fault;
pub mod names;
pub mod out;
pub mod page;
pub mod simd;
pub mod table;

pub mod decode;
pub mod encode;
pub mod measure;
pub mod normal;
pub mod pixels;
pub mod resize;

pub mod entry;
pub mod facts;
pub mod home;
pub mod manifest;
pub mod shards;
pub mod source;

pub mod engine;

pub mod near;
pub mod survey;
pub mod thumb;

pub mod apply;
pub mod audit;
pub mod pack;
pub mod plan;
pub mod sheet;
pub mod show;
pub mod shrink;
pub mod split;
pub mod stats;
pub mod unpack;
pub mod verify;
pub mod weights;

pub mod cli;
