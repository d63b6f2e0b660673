//! What is to be spread evenly: the classes, the values of other columns, bins of numbers, and what several columns say
//! together.

use std::collections::BTreeMap;

use super::groups::{Column, no_column, only_one};
use super::options::Options;
use super::sparse::Membership;
use crate::error::Result;
use crate::names::shown;
use crate::source::{FEW_NUMBERS, Listing, are_measurements, is_null, labels_of, number_of};

/// What a combination of columns weighs against a value of one.
const JOINT_WEIGHT: f64 = 0.5;

/// The strata of the rows.
#[derive(Debug, Clone, Default)]
pub struct Strata {
    /// Their names: classes first.
    pub names: Vec<String>,
    /// The strata of each row.
    pub membership: Membership,
    /// The weight of each stratum's deviation.
    pub weights: Vec<f64>,
    /// Must it be in every part?
    pub required: Vec<bool>,
    /// The first so many are the classes.
    pub n_classes: usize,
    /// Sentences for the person.
    pub said: Vec<String>,
}

/// One column as values of rows.
struct Values {
    names: Vec<String>,
    /// Rows with several values only for labels.
    membership: Membership,
}

/// The strata of these rows (places in the listing). Classes are always among them, without weight where nobody asked for
/// them, so that the report can tell of them.
///
/// # Errors
/// A column that is not there.
pub fn strata(listing: &Listing, rows: &[u32], options: &Options) -> Result<Strata> {
    let mut said = Vec::new();
    let mut columns: Vec<(Values, bool)> = Vec::new();
    let asked = |column: &Option<String>| match column {
        None => true,
        Some(name) => {
            matches!(Column::find(listing, name), Some(Column::Label)) || is_label_column(listing, name)
        }
    };
    let by_label = options.stratify.iter().any(asked);
    columns.push((label_values(listing, rows, by_label.then_some(options.bins), &mut said), by_label));
    let n_classes = columns[0].0.names.len();
    for name in options.stratify.iter().filter(|c| !asked(c)).flatten() {
        only_one(listing, "--stratify", name)?;
        let column = Column::find(listing, name).ok_or_else(|| no_column("--stratify", name, listing))?;
        let texts: Vec<&str> = rows.iter().map(|row| column.cell(listing, *row as usize).trim()).collect();
        let mut values = match numbers(&texts, options.bins, name, &lines(listing, rows), &mut said) {
            Some(values) => values,
            None => values(&texts),
        };
        values.names.iter_mut().for_each(|value| *value = format!("{name}={value}"));
        columns.push((values, true));
    }
    let mut strata = Strata { n_classes, said, ..Strata::default() };
    for (values, wanted) in &columns {
        strata.names.extend(values.names.iter().cloned());
        strata.weights.resize(strata.names.len(), if *wanted { 1.0 } else { 0.0 });
        strata.required.resize(strata.names.len(), *wanted);
    }
    let wanted: Vec<usize> = (0..columns.len()).filter(|c| columns[*c].1).collect();
    let joint = if wanted.len() > 1 { joint(&columns, &wanted, rows.len()) } else { Vec::new() };
    if let [(only, _)] = &mut columns[..] {
        strata.membership = std::mem::take(&mut only.membership);
        return Ok(strata);
    }
    strata.membership = merged(&columns, &joint, rows.len(), strata.names.len());
    let n_joint = joint.iter().copied().filter(|j| *j != u32::MAX).max().map_or(0, |most| most as usize + 1);
    strata.names.extend((0..n_joint).map(|at| format!("combination {}", at + 1)));
    strata.weights.resize(strata.names.len(), JOINT_WEIGHT);
    strata.required.resize(strata.names.len(), false);
    Ok(strata)
}

/// Is the column of the table the one that the labels were taken from?
fn is_label_column(listing: &Listing, name: &str) -> bool {
    let Some(Column::Table(column)) = Column::find(listing, name) else { return false };
    let Some(table) = &listing.table else { return false };
    let labelled = || listing.entries.iter().filter(|e| !e.label.is_empty() && e.row.is_some()).take(100);
    let same = labelled().filter(|e| e.row.is_some_and(|row| table.cell(row, column) == e.label)).count();
    same > 0 && same == labelled().count()
}

/// The classes; numbers with fractions are cut into bins where the labels are to be spread.
fn label_values(listing: &Listing, rows: &[u32], bins: Option<usize>, said: &mut Vec<String>) -> Values {
    if let Some(bins) = bins.filter(|_| are_measurements(&listing.classes)) {
        let texts: Vec<&str> = rows.iter().map(|row| listing.entries[*row as usize].label.as_str()).collect();
        if let Some(values) = numbers(&texts, bins, "the label", &lines(listing, rows), said) {
            return values;
        }
    }
    let mut ids: BTreeMap<&str, u32> = BTreeMap::new();
    for row in rows {
        for label in labels_of(&listing.entries[*row as usize].label) {
            if !ids.contains_key(label) {
                ids.insert(label, 0);
            }
        }
    }
    ids.values_mut().zip(0..).for_each(|(id, n)| *id = n);
    let mut membership =
        Membership { starts: Vec::with_capacity(rows.len() + 1), strata: Vec::with_capacity(rows.len()) };
    membership.starts.push(0);
    for row in rows {
        let labels = labels_of(&listing.entries[*row as usize].label);
        membership.strata.extend(labels.filter_map(|label| ids.get(label)));
        membership.starts.push(membership.strata.len() as u32);
    }
    Values { names: ids.into_keys().map(str::to_owned).collect(), membership }
}

/// One value a row; empty cells have none.
fn values(texts: &[&str]) -> Values {
    let mut ids: BTreeMap<&str, u32> = texts.iter().filter(|t| !t.is_empty()).map(|t| (*t, 0)).collect();
    ids.values_mut().zip(0..).for_each(|(id, n)| *id = n);
    let membership = singles(texts.iter().map(|text| ids.get(text).copied()));
    Values { names: ids.into_keys().map(str::to_owned).collect(), membership }
}

fn singles(of: impl Iterator<Item = Option<u32>>) -> Membership {
    let mut membership = Membership { starts: vec![0], strata: Vec::new() };
    for value in of {
        membership.strata.extend(value);
        membership.starts.push(membership.strata.len() as u32);
    }
    membership
}

/// Where each of these rows stands, for a person.
fn lines<'a>(listing: &'a Listing, rows: &'a [u32]) -> impl Fn(usize) -> String + 'a {
    move |at| {
        let entry = &listing.entries[rows[at] as usize];
        match (&listing.table, entry.row) {
            (Some(table), Some(row)) => format!("line {}", table.line(row)),
            _ => shown(&entry.path).to_string(),
        }
    }
}

/// Bins with about as many rows each, where the column is of numbers and has many of them. Up to a tenth of the cells may
/// be none: those rows are in no bin. `line` tells where a row stands.
fn numbers(
    texts: &[&str],
    bins: usize,
    name: &str,
    line: &dyn Fn(usize) -> String,
    said: &mut Vec<String>,
) -> Option<Values> {
    if bins == 0 {
        return None;
    }
    let parsed: Vec<Option<f64>> = texts.iter().map(|text| number_of(text)).collect();
    let odd = || (0..texts.len()).filter(|at| parsed[*at].is_none() && !texts[*at].trim().is_empty());
    // A word for "no value" makes nothing of a column of numbers; other words may, if they are many.
    let words = odd().filter(|at| !is_null(texts[*at])).count();
    if words * 10 > texts.len() {
        return None;
    }
    let mut sorted: Vec<f64> = parsed.iter().flatten().copied().collect();
    sorted.sort_by(f64::total_cmp);
    let mut distinct = sorted.clone();
    distinct.dedup();
    if distinct.len() <= FEW_NUMBERS {
        return None;
    }
    // A bin begins at the value of a quantile; equal values share a bin.
    let mut borders: Vec<f64> =
        (1..bins).map(|k| sorted[k * sorted.len() / bins]).filter(|b| *b > sorted[0]).collect();
    borders.dedup();
    let bin = |n: f64| borders.partition_point(|b| *b <= n);
    let mut ends: Vec<Option<(f64, f64)>> = vec![None; borders.len() + 1];
    for n in &sorted {
        let end = &mut ends[bin(*n)];
        *end = Some(end.map_or((*n, *n), |(low, _)| (low, *n)));
    }
    said.push(format!("{name} is a number: cut into {} bins of about equal size (--bins)", ends.len()));
    if let Some(first) = odd().next() {
        said.push(format!(
            "{} of {} values of {name} are numbers; {} says `{}`: what is no number is in no bin",
            sorted.len(),
            odd().count() + sorted.len(),
            line(first),
            shown(texts[first])
        ));
    }
    let names =
        ends.iter().map(|end| end.map_or(String::new(), |(low, high)| format!("{low} to {high}"))).collect();
    Some(Values { names, membership: singles(parsed.iter().map(|n| n.map(|n| bin(n) as u32))) })
}

/// The combination of each row's values, numbered in the order of the values; `u32::MAX` for rows without one.
fn joint(columns: &[(Values, bool)], wanted: &[usize], n_rows: usize) -> Vec<u32> {
    let of = |row: usize| -> Vec<u32> {
        let mut all = Vec::new();
        for column in wanted {
            all.extend_from_slice(columns[*column].0.membership.of(row));
            all.push(u32::MAX);
        }
        all
    };
    let mut ids: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
    for row in 0..n_rows {
        ids.entry(of(row)).or_default();
    }
    ids.values_mut().zip(0..).for_each(|(id, n)| *id = n);
    (0..n_rows).map(|row| ids.get(&of(row)).copied().unwrap_or(u32::MAX)).collect()
}

fn merged(columns: &[(Values, bool)], joint: &[u32], n_rows: usize, n_names: usize) -> Membership {
    let mut membership = Membership { starts: vec![0], strata: Vec::new() };
    for row in 0..n_rows {
        let mut base = 0;
        for (values, _) in columns {
            membership.strata.extend(values.membership.of(row).iter().map(|value| value + base));
            base += values.names.len() as u32;
        }
        if let Some(joint) = joint.get(row).filter(|j| **j != u32::MAX) {
            membership.strata.push(n_names as u32 + joint);
        }
        membership.starts.push(membership.strata.len() as u32);
    }
    membership
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_bins_of_equal_size() {
        let row = |at: usize| format!("row {at}");
        let texts: Vec<String> = (0..100).map(|n| format!("{}.5", n * n)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let values = numbers(&texts, 4, "age", &row, &mut Vec::new()).unwrap();
        assert_eq!(values.names.len(), 4);
        let mut counts = [0; 4];
        values.membership.strata.iter().for_each(|bin| counts[*bin as usize] += 1);
        assert_eq!(counts, [25; 4]);
        assert!(numbers(&["a", "1"], 4, "", &row, &mut Vec::new()).is_none());
        assert!(numbers(&texts, 0, "", &row, &mut Vec::new()).is_none());
        let commas: Vec<String> = texts.iter().map(|t| t.replace('.', ",")).collect();
        let mut odd: Vec<&str> = commas.iter().map(String::as_str).collect();
        odd[7] = "n/a";
        let mut said = Vec::new();
        let values = numbers(&odd, 4, "age", &row, &mut said).unwrap();
        assert_eq!((values.names.len(), values.membership.of(7).len()), (4, 0));
        assert!(said[1].contains("99 of 100 values of age are numbers; row 7 says `n/a`"), "{said:?}");
    }

    #[test]
    fn equal_numbers_share_a_bin() {
        let texts: Vec<String> = (0..200).map(|n| if n < 150 { "0".into() } else { n.to_string() }).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let values = numbers(&texts, 10, "", &|at| at.to_string(), &mut Vec::new()).unwrap();
        assert!(values.membership.strata[..150].iter().all(|bin| *bin == 0));
        assert!(values.names.len() > 2, "{:?}", values.names);
    }
}
