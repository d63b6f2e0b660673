//! Class weights for a loss, and sampler weights for rows: which rows count, by what formula, for which index.
//!
//! | method | weight of a class with count c |
//! |---|---|
//! | balanced | n / (k c), as scikit-learn's `compute_class_weight("balanced")`: n rows, k classes that have any |
//! | inverse | 1 / c |
//! | sqrt | 1 / sqrt(c) |
//! | effective | (1 - beta) / (1 - beta^c): Cui et al., "Class-Balanced Loss Based on Effective Number of Samples", 2019 |
//!
//! All are scaled so that their mean over the counted rows is 1, which `balanced` has by itself. A cap is held after
//! that: what it takes from the rare classes the others get, so that the mean stays 1. Without scaling
//! (`--normalize none`) the formula is bare and what is above the cap becomes the cap.

pub mod emit;
pub mod order;

use std::collections::{BTreeSet, HashMap};

use crate::error::{Error, Result};
use crate::home::{Training, Which};
use crate::names::{plural, shown};
use crate::source::{Listing, are_measurements, labels_of};

/// The formula.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Method {
    /// n / (k c).
    Balanced,
    /// 1 / c.
    Inverse,
    /// 1 / sqrt(c).
    Sqrt,
    /// (1 - beta) / (1 - beta^c), beta from 0 to below 1.
    Effective(f64),
}

impl Method {
    /// As it is written on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Balanced => "balanced",
            Self::Inverse => "inverse",
            Self::Sqrt => "sqrt",
            Self::Effective(_) => "effective",
        }
    }
}

/// What counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Every image.
    Images,
    /// Every group once for each class that it has; an image without a group is one of its own.
    Groups,
}

/// What the user wants.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The formula.
    pub method: Method,
    /// What counts.
    pub count: Count,
    /// No weight above this; at least 1 where the mean is 1.
    pub cap: Option<f64>,
    /// Scale to a mean of 1 over the counted rows, which `balanced` has by itself.
    pub to_mean: bool,
}

/// One class.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Its index as torchvision counts: by code point.
    pub index: usize,
    /// Its index as timm counts: naturally.
    pub timm_index: usize,
    /// Images that count.
    pub images: u64,
    /// Groups that count.
    pub groups: u64,
    /// Its weight; 0 where nothing counts.
    pub weight: f64,
    /// Negatives by positives, for losses of several labels; 0 where nothing counts.
    pub pos_weight: f64,
}

/// Weights of classes and rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// In index order.
    pub classes: Vec<Class>,
    /// The entries that count, with their sampler weights, whose mean is 1.
    pub rows: Vec<(usize, f64)>,
    /// Which rows count, for a person.
    pub which: String,
    /// The fold that trains on them, where one was asked for.
    pub fold: Option<u8>,
    /// Some image has several labels.
    pub is_multi_label: bool,
}

/// The weights of `listing`, counting the entries that a model is trained on.
///
/// # Errors
/// No rows or no labels to count, labels that are measurements, or a cap that cannot be kept.
pub fn weigh(listing: &Listing, training: &Training, options: &Options) -> Result<Weights> {
    if are_measurements(&listing.classes) {
        let example = listing.classes.iter().find(|c| c.contains(['.', ','])).map_or("", String::as_str);
        return Err(Error::Usage(format!(
            "the labels are numbers ({} different ones, such as {}): that is regression, which has no classes to weigh; \
             prep split --stratify spreads them in bins",
            listing.classes.len(),
            shown(example)
        )));
    }
    let usable = |at: &usize| listing.entries[*at].fault.is_none() && !listing.entries[*at].label.is_empty();
    let rows: Vec<usize> = training.rows.iter().copied().filter(usable).collect();
    if rows.is_empty() {
        let part =
            training.which.part().map_or(String::new(), |part| format!(" in the part `{}`", shown(part)));
        return Err(Error::Usage(format!("there are no images with labels to count{part}")));
    }
    let tally = Tally::of(listing, &rows);
    let mut classes: Vec<Class> = listing
        .classes
        .iter()
        .zip(order::natural(&listing.classes))
        .enumerate()
        .map(|(index, (name, timm_index))| Class {
            name: name.clone(),
            index,
            timm_index,
            images: tally.images[index],
            groups: tally.groups[index],
            weight: 0.0,
            pos_weight: 0.0,
        })
        .collect();
    let all = match options.count {
        Count::Images => rows.len() as f64,
        Count::Groups if tally.is_multi_label => tally.n_groups as f64,
        Count::Groups => tally.groups.iter().sum::<u64>() as f64,
    };
    let counts: Vec<f64> = classes
        .iter()
        .map(|c| if options.count == Count::Images { c.images } else { c.groups } as f64)
        .collect();
    let weights = by_formula(&counts, all, options)?;
    for ((class, weight), count) in classes.iter_mut().zip(weights).zip(&counts) {
        class.weight = weight;
        if *count > 0.0 {
            let ratio = (all - count) / count;
            class.pos_weight = options.cap.map_or(ratio, |cap| ratio.min(cap));
        }
    }
    let all = plural(rows.len(), "usable image");
    let which = match &training.which {
        Which::Train(part) | Which::Part(part) => {
            format!("the {} of `{}`", plural(rows.len(), "image"), shown(part))
        }
        Which::Fold(fold) => format!("the {} that fold {fold} trains on", plural(rows.len(), "image")),
        Which::Folds => {
            format!("all {all}: there are folds and no parts (--fold K takes what fold K trains on)")
        }
        Which::All | Which::Every => format!("all {all}: there is no split"),
    };
    let rows = tally.sampler(listing, &rows, &classes, options.count);
    let fold = match training.which {
        Which::Fold(fold) => Some(fold),
        _ => None,
    };
    Ok(Weights { classes, rows, which, fold, is_multi_label: tally.is_multi_label })
}

fn by_formula(counts: &[f64], all: f64, options: &Options) -> Result<Vec<f64>> {
    let present = counts.iter().filter(|c| **c > 0.0).count() as f64;
    let raw = counts.iter().map(|count| match options.method {
        _ if *count == 0.0 => 0.0,
        Method::Balanced => all / (present * count),
        Method::Inverse => 1.0 / count,
        Method::Sqrt => 1.0 / count.sqrt(),
        Method::Effective(beta) => 1.0 / geometric(beta, *count as u64),
    });
    let mut weights: Vec<f64> = raw.collect();
    let is_bare = !options.to_mean || options.method == Method::Balanced && options.cap.is_none();
    if is_bare {
        if let Some(cap) = options.cap {
            weights.iter_mut().for_each(|w| *w = w.min(cap));
        }
        return Ok(weights);
    }
    scale(&mut weights, counts, options.cap)?;
    Ok(weights)
}

/// 1 + beta + … + beta^(n-1), which is (1 - beta^n) / (1 - beta) without its loss of digits near beta = 1, and by
/// multiplication alone, so that every machine has the same.
fn geometric(beta: f64, n: u64) -> f64 {
    let (mut sum, mut power) = (0.0, 1.0);
    for bit in (0..64 - n.leading_zeros()).rev() {
        sum += power * sum;
        power *= power;
        if n >> bit & 1 == 1 {
            sum += power;
            power *= beta;
        }
    }
    sum
}

/// Scales the weights so that their mean over the counts is 1 and none is above the cap.
fn scale(weights: &mut [f64], counts: &[f64], cap: Option<f64>) -> Result<()> {
    let cap = cap.unwrap_or(f64::INFINITY);
    if cap < 1.0 {
        return Err(Error::Usage(format!(
            "--cap {cap}: the mean is 1, so a cap is at least 1 (or --normalize none)"
        )));
    }
    let total: f64 = counts.iter().sum();
    // Once capped always capped: what is left only grows.
    let mut capped = vec![false; weights.len()];
    loop {
        let sum = |is: bool, value: &dyn Fn(usize) -> f64| -> f64 {
            (0..weights.len()).filter(|c| capped[*c] == is).map(value).sum()
        };
        let room = total - sum(true, &|c| counts[c] * cap);
        let mass = sum(false, &|c| counts[c] * weights[c]);
        let factor = if mass > 0.0 { room / mass } else { 0.0 };
        let over: Vec<usize> =
            (0..weights.len()).filter(|c| !capped[*c] && weights[*c] * factor > cap).collect();
        if over.is_empty() {
            for (weight, is_capped) in weights.iter_mut().zip(&capped) {
                *weight = if *is_capped { cap } else { *weight * factor };
            }
            return Ok(());
        }
        over.into_iter().for_each(|c| capped[c] = true);
    }
}

/// Counts by class.
struct Tally<'a> {
    index: HashMap<&'a str, usize>,
    images: Vec<u64>,
    groups: Vec<u64>,
    n_groups: usize,
    /// Images of each class in each group.
    in_group: HashMap<(&'a str, usize), u64>,
    is_multi_label: bool,
}

impl<'a> Tally<'a> {
    fn of(listing: &'a Listing, rows: &[usize]) -> Self {
        let index: HashMap<&str, usize> = listing.classes.iter().map(String::as_str).zip(0..).collect();
        let n = listing.classes.len();
        let mut tally = Self {
            index,
            images: vec![0; n],
            groups: vec![0; n],
            n_groups: 0,
            in_group: HashMap::new(),
            is_multi_label: false,
        };
        let mut names = BTreeSet::new();
        for row in rows {
            let entry = &listing.entries[*row];
            let mut labels = 0;
            if entry.group.is_empty() || names.insert(entry.group.as_str()) {
                tally.n_groups += 1;
            }
            for label in labels_of(&entry.label) {
                let Some(class) = tally.index.get(label).copied() else { continue };
                labels += 1;
                tally.images[class] += 1;
                let so_far = match entry.group.as_str() {
                    "" => &mut 0,
                    group => tally.in_group.entry((group, class)).or_default(),
                };
                *so_far += 1;
                tally.groups[class] += u64::from(*so_far == 1);
            }
            tally.is_multi_label |= labels > 1;
        }
        tally
    }

    /// What each row weighs for a sampler: the mean of its classes; where groups count, a group's images share its weight.
    fn sampler(
        &self,
        listing: &Listing,
        rows: &[usize],
        classes: &[Class],
        count: Count,
    ) -> Vec<(usize, f64)> {
        let weight = |row: usize| {
            let entry = &listing.entries[row];
            let of = |label: &str| {
                let class = *self.index.get(label)?;
                let shared = match (count, entry.group.as_str()) {
                    (Count::Images, _) | (_, "") => 1,
                    (Count::Groups, group) => self.in_group.get(&(group, class)).copied().unwrap_or(1),
                };
                Some(classes[class].weight / shared as f64)
            };
            let (sum, n) =
                labels_of(&entry.label).filter_map(of).fold((0.0, 0.0), |(s, n), w| (s + w, n + 1.0));
            if n > 0.0 { sum / n } else { 0.0 }
        };
        let mut weights: Vec<(usize, f64)> = rows.iter().map(|row| (*row, weight(*row))).collect();
        let mean = weights.iter().map(|(_, w)| w).sum::<f64>() / weights.len() as f64;
        if mean > 0.0 {
            weights.iter_mut().for_each(|(_, w)| *w /= mean);
        }
        weights
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(method: Method) -> Options {
        Options { method, count: Count::Images, cap: None, to_mean: true }
    }

    #[test]
    fn balanced_is_scikit_learns_formula() {
        let weights = by_formula(&[8.0, 2.0, 0.0], 10.0, &options(Method::Balanced)).unwrap();
        assert_eq!(weights, [10.0 / 16.0, 10.0 / 4.0, 0.0]);
    }

    #[test]
    fn all_others_have_mean_one_over_rows() {
        let counts = [80.0, 15.0, 5.0];
        for method in [Method::Balanced, Method::Inverse, Method::Sqrt, Method::Effective(0.999)] {
            for cap in [None, Some(3.0), Some(1.5)] {
                let weights = by_formula(&counts, 100.0, &Options { cap, ..options(method) }).unwrap();
                let mean: f64 = counts.iter().zip(&weights).map(|(c, w)| c * w).sum::<f64>() / 100.0;
                assert!((mean - 1.0).abs() < 1e-12, "{method:?} {cap:?} {mean}");
                assert!(weights.iter().all(|w| *w <= cap.unwrap_or(f64::MAX) + 1e-12));
                assert!(weights.windows(2).all(|w| w[0] <= w[1]), "{weights:?}");
            }
        }
        assert!(by_formula(&counts, 100.0, &Options { cap: Some(0.5), ..options(Method::Sqrt) }).is_err());
    }

    #[test]
    fn the_effective_number_has_its_limits() {
        // beta 0 counts every class alike; beta near 1 is the inverse.
        let even = by_formula(&[50.0, 2.0], 52.0, &options(Method::Effective(0.0))).unwrap();
        assert!((even[0] - even[1]).abs() < 1e-12, "{even:?}");
        let near = by_formula(&[50.0, 2.0], 52.0, &options(Method::Effective(1.0 - 1e-9))).unwrap();
        assert!((near[1] / near[0] - 25.0).abs() < 1e-5, "{near:?}");
    }
}
