//! Label tables as people make them, and as they break them.

#![allow(clippy::unwrap_used, reason = "clippy.toml allows it in tests, but not in what tests share")]

use std::path::Path;

use imgprep::table::{Header, Table, parse};

fn csv(text: &str) -> Table {
    parse(Path::new("t.csv"), text.as_bytes().to_vec(), Header::Names).unwrap()
}

fn wrong(bytes: &[u8]) -> String {
    parse(Path::new("t.csv"), bytes.to_vec(), Header::Names).unwrap_err().to_string()
}

fn rows(table: &Table) -> Vec<Vec<&str>> {
    (0..table.len()).map(|row| table.row(row).collect()).collect()
}

#[test]
fn every_row_knows_its_line_whatever_ends_lines() {
    for end in ["\n", "\r\n", "\r"] {
        let text = ["path,label", "a.jpg,cat", "", "b.jpg,\"do", "g\"", "c.jpg,x"].join(end);
        let table = csv(&text);
        assert_eq!(table.columns, ["path", "label"]);
        let lines: Vec<u64> = (0..table.len()).map(|row| table.line(row)).collect();
        assert_eq!(lines, [2, 4, 6], "{end:?}");
        assert_eq!(table.cell(1, 1), format!("do{end}g"));
    }
}

#[test]
fn quotes_byte_order_marks_and_unknown_columns_are_kept() {
    let table = csv("\u{feff}path,\"we\"\"ird, one\",\n\"a,b;\"\"c\"\".jpg\",it's \"x\",\n");
    assert_eq!(table.columns, ["path", "we\"ird, one"]);
    assert_eq!(rows(&table), [["a,b;\"c\".jpg", "it's \"x\""]]);
    assert_eq!(table.column("PATH "), Some(0));
    assert_eq!(table.column("label"), None);
    assert_eq!(table.cell(7, 7), "");
}

#[test]
fn the_separator_is_the_one_that_parts_all_rows_alike() {
    assert_eq!(rows(&csv("id;labels\n1;a,b\n2;c,d\n")), [["1", "a,b"], ["2", "c,d"]]);
    assert_eq!(rows(&csv("id\tlabel\n1\ta, b\n")), [["1", "a, b"]]);
    assert_eq!(rows(&csv("id|label\n1|a\n")), [["1", "a"]]);
    assert_eq!(rows(&csv("id,labels\n1,a|b\n")), [["1", "a|b"]]);
    assert_eq!(rows(&csv("path, label\na.jpg, \"x, y\"\n")), [["a.jpg", "x, y"]]);
    assert_eq!(rows(&csv("path,label\na.jpg, x\n")), [["a.jpg", " x"]]);
    assert_eq!(rows(&csv("path\na.jpg\n")), [["a.jpg"]]);
}

#[test]
fn utf_16_with_a_mark_is_read_and_without_is_named() {
    let text = "path,label\nä.jpg,猫\n";
    for (mark, unit) in [(0xfeff_u16, u16::to_le_bytes as fn(u16) -> [u8; 2]), (0xfeff, u16::to_be_bytes)] {
        let bytes: Vec<u8> = std::iter::once(mark).chain(text.encode_utf16()).flat_map(unit).collect();
        let table = parse(Path::new("t.csv"), bytes.clone(), Header::Names).unwrap();
        assert_eq!(rows(&table), [["ä.jpg", "猫"]]);
        assert!(wrong(&bytes[2..]).contains("UTF-16"), "{}", wrong(&bytes[2..]));
    }
}

#[test]
fn what_cannot_be_read_says_the_line_and_what_to_do() {
    let cases: [(&[u8], &str); 10] = [
        (
            b"path,label\na.jpg,cat\nb.jpg,\"dog\nc.jpg,cow\n",
            "t.csv:3: a quote that is opened here is never closed",
        ),
        (b"path,label\na.jpg,cat\nb.jpg\n", "t.csv:3: 1 cells where the first row has 2"),
        (b"path,label\na.jpg,cat,x\n", "t.csv:2: 3 cells where the first row has 2"),
        (b"path,label\n\"a\"b.jpg,cat\n", "t.csv:2: text after a closing quote"),
        (b"path,label\na.jpg,caf\xe9\n", "t.csv:2: byte 0xE9 is not UTF-8"),
        (b"", "t.csv: the table is empty"),
        (b"\n \n", "t.csv: the table is empty"),
        (b"PK\x03\x04xxxx", "t.csv: this is a spreadsheet or ZIP archive"),
        (b"{\"path\": \"a.jpg\"}\n{\"path\": \n", "t.csv:2: not JSON"),
        (b"{\"path\": \"a.jpg\"}\n[1]\n", "t.csv:2: not an object"),
    ];
    for (bytes, why) in cases {
        let said = wrong(bytes);
        assert!(said.starts_with(why), "{said}");
    }
    let long = [b"path\n".as_slice(), &[b'x'; (1 << 20) + 1]].concat();
    assert!(wrong(&long).starts_with("t.csv:2: a cell of more than 1 MiB"));
}

#[test]
fn separators_that_spreadsheets_leave_behind_are_no_cells() {
    assert_eq!(rows(&csv("path,label,,\na.jpg,x,,\nb.jpg,y,,\n")), [["a.jpg", "x"], ["b.jpg", "y"]]);
}

#[test]
fn json_lines_become_the_same_table() {
    let text = "{\"file_name\": \"a.jpg\", \"labels\": [\"x\", \"y\"]}\n\n{\"file_name\": \"b.jpg\", \"n\": 1.5, \"box\": {\"w\": 1}, \"none\": null}\n";
    let table = parse(Path::new("metadata.jsonl"), text.as_bytes().to_vec(), Header::Names).unwrap();
    assert_eq!(table.columns, ["file_name", "labels", "n", "box", "none"]);
    assert_eq!(rows(&table), [["a.jpg", "x|y", "", "", ""], ["b.jpg", "", "1.5", "{\"w\":1}", ""]]);
    assert_eq!(table.line(1), 3);
}

#[test]
fn what_is_written_is_read_back() {
    let nasty = ["a,b", "c\"d\"", "new\nline", "cr\rcr", "", " space ", "=1+1", "é中😀", "|;\t"];
    let mut table = Table::new("x.csv", vec!["p, q".into(), "\"".into(), String::new()]);
    for (line, cells) in nasty.chunks(3).enumerate() {
        table.push(line as u64 + 1, cells.iter().copied()).unwrap();
    }
    let mut bytes = Vec::new();
    table.write(&mut bytes).unwrap();
    // The empty name at the end of the header goes: give it one to come back.
    table.columns[2] = "z".into();
    let mut named = Vec::new();
    table.write(&mut named).unwrap();
    let again = parse(Path::new("x.csv"), named, Header::Names).unwrap();
    assert_eq!(again.columns, table.columns);
    assert_eq!(rows(&again), rows(&table));
}

#[test]
fn any_bytes_are_a_table_or_an_error_and_never_a_panic() {
    let mut seed = 1_u64;
    let alphabet = b"\",;\t|\r\n a.{}[]:\xc3\xa9\xff\x00";
    let mut tables = 0;
    for _ in 0..20_000 {
        let mut bytes = Vec::new();
        for _ in 0..24 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            bytes.push(alphabet[(seed >> 33) as usize % alphabet.len()]);
        }
        tables += usize::from(parse(Path::new("t.csv"), bytes, Header::Names).is_ok());
    }
    assert!(tables > 0);
}
