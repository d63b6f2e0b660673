//! A ledger line: what it is, its formula, its numbers, its bytes. MB are 10^6 and MiB 2^20, never mixed.

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// A stable name, for programs.
    pub key: &'static str,
    /// What it is, in plain words.
    pub what: String,
    /// The formula in names, as in `batch x height x width x 3 x 4`.
    pub formula: String,
    /// The formula in numbers.
    pub numbers: String,
    /// Bytes.
    pub bytes: u64,
}

impl Line {
    /// A product of named factors, the first ones counts and the last ones bytes.
    pub fn product(key: &'static str, what: impl Into<String>, factors: &[(&str, u64)]) -> Self {
        let names: Vec<&str> = factors.iter().map(|(name, _)| *name).collect();
        let numbers: Vec<String> = factors.iter().map(|(_, n)| grouped(*n)).collect();
        Self {
            key,
            what: what.into(),
            formula: names.join(" x "),
            numbers: numbers.join(" x "),
            bytes: factors.iter().fold(1_u64, |all, (_, n)| all.saturating_mul(*n)),
        }
    }

    /// The formula with its numbers and what they are, as in `64 images x 85,307,392 bytes an image`.
    pub fn told(&self) -> String {
        let (names, numbers): (Vec<_>, Vec<_>) =
            (self.formula.split(" x ").collect(), self.numbers.split(" x ").collect());
        if names.len() != numbers.len() || names.len() < 2 {
            return self.numbers.clone();
        }
        let factors: Vec<String> = numbers
            .iter()
            .zip(names)
            .map(|(n, name)| match (*n, name) {
                ("1", "bytes") => "1 byte".to_owned(),
                (_, "share") => (*n).to_owned(),
                _ => format!("{n} {name}"),
            })
            .collect();
        factors.join(" x ")
    }

    /// A sum of other lines.
    pub fn sum<'a>(
        key: &'static str,
        what: impl Into<String>,
        parts: impl IntoIterator<Item = &'a Self>,
    ) -> Self {
        let parts: Vec<&Self> = parts.into_iter().collect();
        let names: Vec<&str> = parts.iter().map(|p| p.key).collect();
        let numbers: Vec<String> = parts.iter().map(|p| grouped(p.bytes)).collect();
        Self {
            key,
            what: what.into(),
            formula: names.join(" + "),
            numbers: numbers.join(" + "),
            bytes: parts.iter().fold(0_u64, |all, p| all.saturating_add(p.bytes)),
        }
    }

    /// A figure that is no product: measured, or assumed.
    pub fn given(key: &'static str, what: impl Into<String>, how: impl Into<String>, bytes: u64) -> Self {
        Self { key, what: what.into(), formula: how.into(), numbers: grouped(bytes), bytes }
    }
}

/// 1234567 as 1,234,567.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Bytes in MB, with decimals where they say something: `7,104 MB`, `38.5 MB`, `0.60 MB`.
pub fn mb(bytes: u64) -> String {
    if bytes == u64::MAX {
        return "beyond counting".into();
    }
    let value = bytes as f64 / 1e6;
    if value >= 99.95 {
        format!("{} MB", grouped(value.round() as u64))
    } else if value >= 9.995 {
        format!("{value:.1} MB")
    } else {
        format!("{value:.2} MB")
    }
}

/// Bytes in MiB, the same way.
pub fn mib(bytes: u64) -> String {
    if bytes == u64::MAX {
        return "beyond counting".into();
    }
    let value = bytes as f64 / f64::from(1 << 20);
    if value >= 99.95 { format!("{} MiB", grouped(value.round() as u64)) } else { format!("{value:.1} MiB") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_its_formula_and_its_numbers() {
        let line = Line::product(
            "batch",
            "a batch",
            &[("batch", 32), ("side", 224), ("side", 224), ("channels", 3), ("bytes", 4)],
        );
        assert_eq!(line.bytes, 19_267_584);
        assert_eq!(line.formula, "batch x side x side x channels x bytes");
        assert_eq!(line.numbers, "32 x 224 x 224 x 3 x 4");
        let sum = Line::sum("all", "both", [&line, &line]);
        assert_eq!(sum.bytes, 2 * line.bytes);
        assert_eq!(sum.numbers, "19,267,584 + 19,267,584");
    }

    #[test]
    fn mega_and_mebi_are_two_things() {
        assert_eq!(mb(3_145_728), "3.15 MB");
        assert_eq!(mib(3_145_728), "3.0 MiB");
        assert_eq!(mb(7_104_400_000), "7,104 MB");
    }
}
