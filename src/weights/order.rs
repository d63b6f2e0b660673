//! The order of classes in timm, which sorts names naturally and without regard to case: `class_2` before `class_10`.

use std::cmp::Ordering;

/// The index that each of these names has in timm (`natural_key`: lower case, runs of digits as numbers).
pub fn natural(names: &[String]) -> Vec<usize> {
    let keys: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by(|a, b| compare(&keys[*a], &keys[*b]));
    let mut index = vec![0; names.len()];
    for (at, name) in order.into_iter().enumerate() {
        index[name] = at;
    }
    index
}

/// Text, number, text … in turn, as Python's `re.split(r"(\d+)", …)` gives them.
fn compare(mut a: &str, mut b: &str) -> Ordering {
    loop {
        let (text_a, text_b) = (run(a, false), run(b, false));
        let (number_a, number_b) = (run(&a[text_a.len()..], true), run(&b[text_b.len()..], true));
        let order = text_a.cmp(text_b).then_with(|| match (number_a, number_b) {
            ("", "") => Ordering::Equal,
            ("", _) => Ordering::Less,
            (_, "") => Ordering::Greater,
            (a, b) => by_value(a, b),
        });
        if order != Ordering::Equal || number_a.is_empty() || number_b.is_empty() {
            return order;
        }
        a = &a[text_a.len() + number_a.len()..];
        b = &b[text_b.len() + number_b.len()..];
    }
}

/// The run of digits, or of everything else, at the beginning.
fn run(text: &str, digits: bool) -> &str {
    let end = text.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(text.len());
    &text[..end]
}

fn by_value(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_are_numbers() {
        let names: Vec<String> =
            ["Zebra", "apple", "class_1", "class_10", "class_2"].map(str::to_owned).into();
        assert_eq!(natural(&names), [4, 0, 1, 3, 2]);
        let plain: Vec<String> = ["hat", "pants", "shoes"].map(str::to_owned).into();
        assert_eq!(natural(&plain), [0, 1, 2]);
        let names: Vec<String> = ["1b", "01a", "a", "a1", "10"].map(str::to_owned).into();
        assert_eq!(natural(&names), [1, 0, 3, 4, 2]);
    }
}
