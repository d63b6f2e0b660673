//! The times of groups, for a split that follows them.

use super::groups::{Column, no_column};
use super::{Job, Round};
use crate::error::{Error, Result};
use crate::names::shown;
use crate::source::Listing;

/// For each group of the round the rank of its latest time.
///
/// Numbers are ordered as numbers, everything else as text, which is right for ISO dates.
///
/// # Errors
/// Dates that text does not order, such as 31.12.2024.
pub(super) fn of_groups(listing: &Listing, name: &str, job: &Job<'_>, round: &Round) -> Result<Vec<usize>> {
    let column = Column::find(listing, name).ok_or_else(|| no_column("--time", name, listing))?;
    let texts: Vec<&str> =
        round.rows.iter().map(|row| column.cell(listing, job.rows[*row as usize] as usize).trim()).collect();
    let ranks = ranks(name, &texts)?;
    let mut latest = vec![0; round.groups.len()];
    for (rank, group) in ranks.iter().zip(&round.group_of) {
        let at: &mut usize = &mut latest[*group as usize];
        *at = (*at).max(*rank);
    }
    Ok(latest)
}

/// The place of each text in the order of times; equal times have one place.
fn ranks(name: &str, texts: &[&str]) -> Result<Vec<usize>> {
    let numbers: Option<Vec<f64>> =
        texts.iter().map(|t| t.parse().ok().filter(|n: &f64| n.is_finite())).collect();
    let mut order: Vec<usize> = (0..texts.len()).collect();
    match &numbers {
        Some(numbers) => order.sort_by(|a, b| numbers[*a].total_cmp(&numbers[*b])),
        None => {
            if let Some(text) = texts.iter().find(|text| !is_iso(text)) {
                let why = "is neither a number nor a date as 2024-12-31 or 2024-12-31T23:59:59";
                return Err(Error::Usage(format!("--time {}: `{}` {why}", shown(name), shown(text))));
            }
            order.sort_by_key(|at| texts[*at]);
        }
    }
    let same = |a: usize, b: usize| match &numbers {
        Some(numbers) => numbers[a] == numbers[b],
        None => texts[a] == texts[b],
    };
    let mut ranks = vec![0; texts.len()];
    for pair in 1..order.len() {
        let (before, now) = (order[pair - 1], order[pair]);
        ranks[now] = if same(before, now) { ranks[before] } else { pair };
    }
    Ok(ranks)
}

/// Does the text begin like a date whose order as text is its order in time?
fn is_iso(text: &str) -> bool {
    let digits =
        |from: usize, to: usize| text.get(from..to).is_some_and(|t| t.bytes().all(|b| b.is_ascii_digit()));
    let separated = |at: usize| matches!(text.as_bytes().get(at), Some(b'-' | b'/' | b'.' | b':'));
    digits(0, 4) && (digits(4, 8) || (text.len() == 4) || (separated(4) && digits(5, 7)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_dates_have_their_order() {
        assert_eq!(ranks("t", &["10", "9", "10"]).unwrap(), [1, 0, 1]);
        assert_eq!(ranks("t", &["2024-02-01", "2023-12-31T10:00", "2024-02-01"]).unwrap(), [1, 0, 1]);
        assert!(ranks("t", &["31.12.2024", "01.01.2025"]).is_err());
    }
}
