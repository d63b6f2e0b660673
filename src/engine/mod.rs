//! Runs one function over all samples: threads, order, memory, panics, crashes, cancellation. Knows no job.
//!
//! [`crew`] hands items to workers and results, in item order, to one sink; [`budget`] bounds the memory of what is
//! being decoded; [`blocks`] loops over what is in memory; [`cancel`] is the flag of Ctrl-C; [`flight`] records what is in hand so that [`supervise`] can name
//! the file that killed a process; [`pipe`] is the way of one image from file to pixels.

pub mod blocks;
pub mod budget;
pub mod cancel;
pub mod crew;
pub mod flight;
pub mod gate;
pub mod pipe;
pub mod progress;
pub mod supervise;
