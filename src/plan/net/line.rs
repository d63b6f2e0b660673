//! A line of a model file: `3 x bottleneck width=64 stride=1`, an operation or a block with its words.
//!
//! Numbers may be sums, as in `4*width`: whole numbers, names, `+ - * /` and parentheses, without spaces.

/// One line, not yet run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its number in the file, counted from 1.
    pub number: usize,
    /// How often, as a sum.
    pub times: String,
    /// The operation or block.
    pub name: String,
    /// Words without `=`, in order.
    pub plain: Vec<String>,
    /// Words with `=`.
    pub pairs: Vec<(String, String)>,
}

/// The most lines in a block.
const LINES: usize = 5_000;
/// The most characters of a sum.
const SUM: usize = 200;

/// The lines of a text that begins in line `first` of its file; empty ones and `#` comments are left out.
///
/// # Errors
/// The line's number and a sentence.
pub fn parse(text: &str, first: usize) -> Result<Vec<Line>, (usize, String)> {
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words: Vec<&str> = line.split_whitespace().collect();
        if words.is_empty() {
            continue;
        }
        let number = first + at;
        if lines.len() == LINES {
            let why = format!("more than {LINES} lines; use blocks and repeats (`12 x block`)");
            return Err((number, why));
        }
        let mut times = "1".to_owned();
        // `add x ifsame` is no repeat: how often is a number, or a sum that begins with one.
        if let [n, "x", _, ..] = words[..]
            && n.starts_with(|c: char| c.is_ascii_digit() || c == '(')
        {
            times = n.to_owned();
            words.drain(..2);
        }
        let mut parsed =
            Line { number, times, name: words[0].to_owned(), plain: Vec::new(), pairs: Vec::new() };
        for word in &words[1..] {
            match word.split_once('=') {
                None => parsed.plain.push((*word).to_owned()),
                Some((key, value)) if !key.is_empty() && !value.is_empty() => {
                    if parsed.pairs.iter().any(|(k, _)| k == key) {
                        return Err((number, format!("`{key}` is given twice")));
                    }
                    parsed.pairs.push((key.to_owned(), value.to_owned()));
                }
                Some(_) => {
                    return Err((number, format!("`{word}` lacks a name or a value around its =")));
                }
            }
        }
        lines.push(parsed);
    }
    Ok(lines)
}

/// The value of a sum, with names looked up by `named`.
///
/// # Errors
/// A sentence: what is wrong in the sum.
pub fn sum(text: &str, named: &dyn Fn(&str) -> Option<i64>) -> Result<i64, String> {
    if text.len() > SUM {
        return Err(format!("a sum of more than {SUM} characters"));
    }
    let mut reader = Reader { text, at: 0, depth: 0, named };
    let value = reader.sum()?;
    if reader.at != text.len() {
        return Err(format!("`{text}` is no number: `{}` is left over", &text[reader.at..]));
    }
    Ok(value)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    named: &'a dyn Fn(&str) -> Option<i64>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn sum(&mut self) -> Result<i64, String> {
        let mut value = self.product()?;
        while let Some(sign @ (b'+' | b'-')) = self.peek() {
            self.at += 1;
            let other = self.product()?;
            let result = if sign == b'+' { value.checked_add(other) } else { value.checked_sub(other) };
            value = result.ok_or_else(|| self.too_large())?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<i64, String> {
        let mut value = self.part()?;
        while let Some(sign @ (b'*' | b'/')) = self.peek() {
            self.at += 1;
            let other = self.part()?;
            let result = if sign == b'*' { value.checked_mul(other) } else { value.checked_div(other) };
            value = result.ok_or_else(|| self.too_large())?;
        }
        Ok(value)
    }

    fn part(&mut self) -> Result<i64, String> {
        let rest = &self.text[self.at..];
        if rest.starts_with('(') {
            self.depth += 1;
            if self.depth > 16 {
                return Err(format!("`{}`: too many parentheses", self.text));
            }
            self.at += 1;
            let value = self.sum()?;
            if self.peek() != Some(b')') {
                return Err(format!("`{}`: a parenthesis is not closed", self.text));
            }
            self.at += 1;
            self.depth -= 1;
            return Ok(value);
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let word = &rest[..end];
        self.at += end;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return word.parse().map_err(|_| format!("`{word}` is no whole number"));
        }
        if word.is_empty() {
            return Err(format!("`{}` is no number", self.text));
        }
        (self.named)(word).ok_or_else(|| format!("nothing here is called `{word}`"))
    }

    fn too_large(&self) -> String {
        format!("`{}` is too large, or divides by nothing", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_count_a_name_and_words() {
        let lines =
            parse("# stem\nconv 64 k=7 s=2 nobias\n\n 3 x bottleneck width=64 # the first stage", 1).unwrap();
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0].name.as_str(), lines[0].plain.join(" ").as_str()), ("conv", "64 nobias"));
        assert_eq!(lines[1].times, "3");
        assert_eq!((lines[1].number, lines[1].pairs.len()), (4, 1));
        assert!(parse("conv k=", 1).is_err() && parse("conv k=1 k=2", 1).is_err());
    }

    #[test]
    fn sums_know_names_and_never_overflow() {
        let named = |name: &str| (name == "c").then_some(64);
        assert_eq!(sum("4*c+(2-1)*3", &named), Ok(259));
        assert_eq!(sum("c/4", &named), Ok(16));
        for bad in [
            "",
            "c*",
            "x",
            "1/0",
            "9999999999999999999",
            "9223372036854775807*2",
            "(((1)",
            "1 2",
            "((((((((((((((((((1))))))))))))))))))",
        ] {
            assert!(sum(bad, &named).is_err(), "{bad}");
        }
    }
}
