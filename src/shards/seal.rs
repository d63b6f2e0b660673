//! `manifest.json` as text with a seal of itself at its end.

use serde_json::Value;

/// What stands before the seal.
const BEFORE: &str = ",\n  \"seal\": \"";

fn digits(body: &[u8]) -> String {
    blake3::hash(body).to_hex()[..32].to_owned()
}

/// The text of a manifest: indented, its seal last, a final newline.
pub fn sealed(value: &Value) -> String {
    // Maps with string keys and finite numbers always become JSON.
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let body = text.strip_suffix("\n}").unwrap_or(&text);
    format!("{body}{BEFORE}{}\"\n}}\n", digits(body.as_bytes()))
}

/// Is the text as it was sealed?
pub fn holds(text: &[u8]) -> bool {
    let end = text.strip_suffix(b"\"\n}\n").filter(|rest| rest.len() > 32 + BEFORE.len());
    let Some(rest) = end else { return false };
    let (before, seal) = rest.split_at(rest.len() - 32);
    before.strip_suffix(BEFORE.as_bytes()).is_some_and(|body| digits(body).as_bytes() == seal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_holds_until_a_byte_changes() {
        let text = sealed(&serde_json::json!({"schema": 1, "b": {"c": [1, 2]}}));
        assert!(holds(text.as_bytes()), "{text}");
        assert!(serde_json::from_str::<Value>(&text).unwrap().get("seal").is_some());
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            assert!(!holds(&bytes), "{at}");
            assert!(!holds(&text.as_bytes()[..at]));
        }
    }
}
