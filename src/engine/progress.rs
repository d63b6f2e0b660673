//! How far a run is, told to whoever wants to draw it. The engine knows no terminal.

/// Totals so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Items finished.
    pub done: usize,
    /// Items in all.
    pub total: usize,
    /// Source bytes of the finished items.
    pub bytes: u64,
    /// Source bytes of all items.
    pub total_bytes: u64,
    /// Finished items that are not usable.
    pub bad: usize,
    /// Finished items that an earlier run had already done.
    pub resumed: usize,
}

/// Someone who watches. Called on the sink's thread after each item.
pub trait Watch {
    /// The state after one more item.
    fn step(&mut self, tally: &Tally);
    /// How far a long calculation is, in which no items are finished; what it does, in a few words.
    fn think(&mut self, doing: &'static str, done: u64, total: u64) {
        let _ = (doing, done, total);
    }
    /// The run has ended, well or not.
    fn end(&mut self);
}

/// Nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn step(&mut self, _: &Tally) {}
    fn end(&mut self) {}
}
