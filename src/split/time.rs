//! The times of groups, for a split that follows them.

use super::groups::{Column, no_column, only_one};
use crate::error::{Error, Result};
use crate::names::{plural, shown};
use crate::source::Listing;

/// The time of each of these rows (places in the listing) as its place in the order of times; equal times have one place.
///
/// Numbers are ordered as numbers, everything else as text, which is right for ISO dates.
///
/// # Errors
/// A column that is not there; dates that text does not order, such as 31.12.2024.
pub(super) fn of_rows(listing: &Listing, name: &str, rows: impl Iterator<Item = u32>) -> Result<Vec<usize>> {
    only_one(listing, "--time", name)?;
    let column = Column::find(listing, name).ok_or_else(|| no_column("--time", name, listing))?;
    let texts: Vec<&str> = rows.map(|row| column.cell(listing, row as usize).trim()).collect();
    ranks(name, &texts)
}

/// The latest time of each group.
pub(super) fn of_groups(times: &[usize], group_of: &[u32], n_groups: usize) -> Vec<usize> {
    let mut latest = vec![0; n_groups];
    for (time, group) in times.iter().zip(group_of) {
        let at: &mut usize = &mut latest[*group as usize];
        *at = (*at).max(*time);
    }
    latest
}

/// Where the parts do not follow each other in time: a sentence for each part with rows that are not before the first of
/// the parts after it. `part_of` is the part of each row.
pub(super) fn overlaps(times: &[usize], part_of: &[u8], names: &[String], why: &str) -> Vec<String> {
    let mut first: Vec<Option<usize>> = vec![None; names.len()];
    for (time, part) in times.iter().zip(part_of) {
        let at = &mut first[usize::from(*part)];
        *at = Some(at.map_or(*time, |before| before.min(*time)));
    }
    let mut said = Vec::new();
    for part in 0..names.len() {
        let after = (part + 1..names.len()).filter_map(|s| Some((first[s]?, s))).min();
        let Some((begins, next)) = after else { continue };
        let of =
            || times.iter().zip(part_of).filter(|(_, p)| usize::from(**p) == part).map(|(time, _)| *time);
        let later = of().filter(|time| *time > begins).count();
        let same = of().filter(|time| *time == begins).count();
        let (part, next) = (shown(&names[part]), shown(&names[next]));
        if later > 0 {
            let (images, are) = (plural(later, "image"), if later == 1 { "is" } else { "are" });
            said.push(format!("{images} of {part} {are} later than the first of {next}, because {why}"));
        }
        if same > 0 {
            let (images, have) = (plural(same, "image"), if same == 1 { "has" } else { "have" });
            said.push(format!("{images} of {part} {have} the same time as the first of {next}"));
        }
    }
    said
}

/// The place of each text in the order of times; equal times have one place.
fn ranks(name: &str, texts: &[&str]) -> Result<Vec<usize>> {
    let numbers: Option<Vec<f64>> =
        texts.iter().map(|t| t.parse().ok().filter(|n: &f64| n.is_finite())).collect();
    let mut order: Vec<usize> = (0..texts.len()).collect();
    match &numbers {
        Some(numbers) => order.sort_by(|a, b| numbers[*a].total_cmp(&numbers[*b])),
        None => {
            let number =
                texts.iter().find(|text| text.len() != 4 && !is_iso(text) && text.parse::<f64>().is_ok());
            if let (Some(number), Some(date)) = (number, texts.iter().find(|text| is_iso(text))) {
                let (name, number, date) = (shown(name), shown(number), shown(date));
                let why = "are of two kinds, a number and a date, which have no order";
                return Err(Error::Usage(format!("--time {name}: `{number}` and `{date}` {why}")));
            }
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

/// Does the text begin like a date that there is, whose order as text is its order in time?
fn is_iso(text: &str) -> bool {
    let digits =
        |from: usize, to: usize| text.get(from..to).is_some_and(|t| t.bytes().all(|b| b.is_ascii_digit()));
    let separated = |at: usize| matches!(text.as_bytes().get(at), Some(b'-' | b'/' | b'.' | b':'));
    let number = |from: usize, to: usize| text.get(from..to).and_then(|t| t.parse::<u32>().ok()).unwrap_or(0);
    if !digits(0, 4) {
        return false;
    }
    if digits(4, 8) {
        return is_day(number(0, 4), number(4, 6), number(6, 8));
    }
    if text.len() == 4 {
        return true;
    }
    let month = separated(4) && digits(5, 7) && (1..=12).contains(&number(5, 7));
    month && (!(separated(7) && digits(8, 10)) || is_day(number(0, 4), number(5, 7), number(8, 10)))
}

/// Is there such a day?
fn is_day(year: u32, month: u32, day: u32) -> bool {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=days).contains(&day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_overlap_in_time_are_told() {
        let names = ["train", "val", "test"].map(str::to_owned);
        assert!(overlaps(&[0, 1, 2, 3], &[0, 0, 1, 2], &names, "").is_empty());
        assert_eq!(
            overlaps(&[0, 2, 1, 1, 3, 3], &[0, 0, 0, 1, 1, 2], &names, "groups are whole"),
            [
                "1 image of train is later than the first of val, because groups are whole",
                "1 image of train has the same time as the first of val",
                "1 image of val has the same time as the first of test",
            ]
        );
    }

    #[test]
    fn numbers_and_dates_have_their_order() {
        assert_eq!(ranks("t", &["10", "9", "10"]).unwrap(), [1, 0, 1]);
        assert_eq!(ranks("t", &["2024-02-01", "2023-12-31T10:00", "2024-02-01"]).unwrap(), [1, 0, 1]);
        assert!(ranks("t", &["31.12.2024", "01.01.2025"]).is_err());
        for odd in [["2024-02-30", "2024-03-01"], ["2024-13-01", "2024-03-01"], ["17", "2024-03-01"]] {
            assert!(ranks("t", &odd).is_err(), "{odd:?}");
        }
        assert_eq!(ranks("t", &["2024-02-29", "2024-02"]).unwrap(), [1, 0]);
    }
}
