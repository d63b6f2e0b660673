//! How many rows of each stratum each group has. Most groups have one or two strata, so only those are stored.

/// The strata of each row: classes, values of other columns, bins of numbers. A row may have several or none.
#[derive(Debug, Clone, Default)]
pub struct Membership {
    /// Where the strata of each row begin in `strata`; one more than rows.
    pub starts: Vec<u32>,
    /// The strata of the rows, one row after the other.
    pub strata: Vec<u32>,
}

impl Membership {
    /// The strata of row `row`.
    pub fn of(&self, row: usize) -> &[u32] {
        &self.strata[self.starts[row] as usize..self.starts[row + 1] as usize]
    }
}

impl Membership {
    /// The same of some rows only, in this order.
    pub fn of_rows(&self, rows: &[u32]) -> Self {
        let mut some = Self { starts: vec![0], strata: Vec::new() };
        for row in rows {
            some.strata.extend_from_slice(self.of(*row as usize));
            some.starts.push(some.strata.len() as u32);
        }
        some
    }
}

/// So many rows of a stratum in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    /// The stratum.
    pub stratum: u32,
    /// Rows, at least 1.
    pub rows: u32,
}

/// The table of groups and strata. The last stratum is "every row", so that sizes are balanced like classes.
#[derive(Debug, Clone)]
pub struct Sparse {
    starts: Vec<u32>,
    cells: Vec<Cell>,
    /// Rows of each stratum.
    pub rows: Vec<u32>,
    /// Groups with rows of each stratum.
    pub groups: Vec<u32>,
}

impl Sparse {
    /// The table of rows that belong to the groups `group_of` (0 to `n_groups - 1`) and have the strata `membership`
    /// (0 to `n_strata - 1`).
    pub fn new(group_of: &[u32], n_groups: usize, membership: &Membership, n_strata: usize) -> Self {
        let (order, bounds) = by_group(group_of, n_groups);
        let mut table = Self {
            starts: Vec::with_capacity(n_groups + 1),
            cells: Vec::with_capacity(n_groups * 2),
            rows: vec![0; n_strata + 1],
            groups: vec![0; n_strata + 1],
        };
        table.starts.push(0);
        let mut strata: Vec<u32> = Vec::new();
        for group in 0..n_groups {
            let members = &order[bounds[group] as usize..bounds[group + 1] as usize];
            strata.clear();
            strata.extend(members.iter().flat_map(|row| membership.of(*row as usize)));
            strata.sort_unstable();
            for same in strata.chunk_by(|a, b| a == b) {
                table.add(Cell { stratum: same[0], rows: same.len() as u32 });
            }
            table.add(Cell { stratum: n_strata as u32, rows: members.len() as u32 });
            table.starts.push(table.cells.len() as u32);
        }
        table
    }

    fn add(&mut self, cell: Cell) {
        self.rows[cell.stratum as usize] += cell.rows;
        self.groups[cell.stratum as usize] += 1;
        self.cells.push(cell);
    }

    /// Groups.
    pub fn n_groups(&self) -> usize {
        self.starts.len() - 1
    }

    /// Strata with the last one, which is every row.
    pub fn n_strata(&self) -> usize {
        self.rows.len()
    }

    /// The strata of a group, ascending; the last is every row.
    pub fn of(&self, group: usize) -> &[Cell] {
        &self.cells[self.starts[group] as usize..self.starts[group + 1] as usize]
    }

    /// The groups of each stratum with their rows, ascending by group: `(starts, cells)` where a cell's `stratum` is the group.
    pub fn by_stratum(&self) -> (Vec<u32>, Vec<Cell>) {
        let mut starts = vec![0_u32; self.n_strata() + 1];
        for (stratum, n) in self.groups.iter().enumerate() {
            starts[stratum + 1] = starts[stratum] + n;
        }
        let mut next = starts.clone();
        let mut cells = vec![Cell { stratum: 0, rows: 0 }; self.cells.len()];
        for group in 0..self.n_groups() {
            for cell in self.of(group) {
                let at = &mut next[cell.stratum as usize];
                cells[*at as usize] = Cell { stratum: group as u32, rows: cell.rows };
                *at += 1;
            }
        }
        (starts, cells)
    }
}

/// Rows ordered by group, and where each group begins in that order.
fn by_group(group_of: &[u32], n_groups: usize) -> (Vec<u32>, Vec<u32>) {
    let mut bounds = vec![0_u32; n_groups + 1];
    for group in group_of {
        bounds[*group as usize + 1] += 1;
    }
    for group in 0..n_groups {
        bounds[group + 1] += bounds[group];
    }
    let mut next = bounds.clone();
    let mut order = vec![0_u32; group_of.len()];
    for (row, group) in group_of.iter().enumerate() {
        let at = &mut next[*group as usize];
        order[*at as usize] = row as u32;
        *at += 1;
    }
    (order, bounds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_counted_by_group_and_stratum() {
        // Row 2 has two labels, row 3 none.
        let membership = Membership { starts: vec![0, 1, 2, 4, 4], strata: vec![0, 1, 0, 1] };
        let table = Sparse::new(&[1, 0, 1, 0], 2, &membership, 2);
        let cells = |g| table.of(g).iter().map(|c| (c.stratum, c.rows)).collect::<Vec<_>>();
        assert_eq!(cells(0), [(1, 1), (2, 2)]);
        assert_eq!(cells(1), [(0, 2), (1, 1), (2, 2)]);
        assert_eq!((table.rows.as_slice(), table.groups.as_slice()), (&[2, 2, 4][..], &[1, 2, 2][..]));
        let (starts, cells) = table.by_stratum();
        assert_eq!(starts, [0, 1, 3, 5]);
        assert_eq!(cells[1], Cell { stratum: 0, rows: 1 });
    }
}
