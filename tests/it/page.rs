//! The HTML pages as files; `tests/pages.sh` opens them in a browser.

use imgprep::page::audit::{self, Audit, Finding, Head, Image, Item, Severity, Twins};
use imgprep::page::sheet::{self, Cell, Section, Sheet};

const HOSTILE: &str = "</script><img src=x onerror=\"alert(1)\"><!-- {{data}}";

fn report() -> Audit {
    let image =
        Image { path: HOSTILE.into(), label: Some(HOSTILE.into()), thumb: Some(0), ..Image::default() };
    let item = Item { path: HOSTILE.into(), evidence: HOSTILE.into(), image: Some(0) };
    let finding = Finding {
        code: "F003".into(),
        severity: Severity::Error,
        title: HOSTILE.into(),
        explain: HOSTILE.into(),
        advice: HOSTILE.into(),
        count: 1,
        note: HOSTILE.into(),
        items: vec![item],
    };
    let set = Twins {
        codes: vec!["D001".into()],
        tier: HOSTILE.into(),
        evidence: HOSTILE.into(),
        members: vec![0],
    };
    let head = Head { dataset: HOSTILE.into(), command: HOSTILE.into(), ..Head::default() };
    Audit { head, findings: vec![finding], images: vec![image], sets: vec![set], ..Audit::default() }
}

fn written(audit: &Audit) -> String {
    let mut out = Vec::new();
    audit::write(&mut out, audit, [b"not even a picture"]).unwrap();
    String::from_utf8(out).unwrap()
}

/// The tags of the page, in order.
fn tags(html: &str) -> Vec<&str> {
    html.split('<')
        .skip(1)
        .map(|t| t.split(|c: char| c == '>' || c.is_whitespace()).next().unwrap())
        .collect()
}

#[test]
fn no_name_adds_a_tag_to_a_page() {
    let page = written(&report());
    let mut harmless = report();
    let json = serde_json::to_string(&harmless).unwrap();
    assert!(json.contains("onerror"), "the test is about this name");
    harmless.head.dataset = "x".into();
    harmless.head.command = "x".into();
    harmless.images[0].path = "x".into();
    let finding = &mut harmless.findings[0];
    for text in [&mut finding.title, &mut finding.explain, &mut finding.advice, &mut finding.note] {
        *text = "x".into();
    }
    finding.items[0] = Item { path: "x".into(), evidence: "x".into(), image: Some(0) };
    assert_eq!(tags(&page), tags(&written(&harmless)));
    assert!(tags(&page).len() > 100, "{}", tags(&page).len());
}

#[test]
fn a_page_lets_nothing_in_and_is_the_same_every_time() {
    let page = written(&report());
    assert_eq!(page, written(&report()));
    assert!(page.contains("default-src 'none'"));
    assert!(!page.contains("unsafe-inline") && !page.contains("http://"));
    for word in ["src=\"http", "href=\"http", "@import", "innerHTML", "eval("] {
        assert!(!page.contains(word), "{word}");
    }
    let nonce = page.split("nonce=\"").nth(1).unwrap().split('"').next().unwrap();
    assert_eq!(nonce.len(), 32);
    let mut other = report();
    other.images[0].width = 7;
    assert!(!written(&other).contains(nonce), "another page, another word");
}

#[test]
fn a_report_that_refers_to_an_image_it_does_not_hold_is_an_error() {
    let mut broken = report();
    broken.sets[0].members.push(1);
    let why = audit::write(&mut Vec::new(), &broken, [b""]).unwrap_err();
    assert!(why.to_string().contains("image 1"), "{why}");
}

#[test]
fn a_sheet_page_holds_its_cells_as_data() {
    let cell = Cell { path: HOSTILE.into(), thumb: Some(0), ..Cell::default() };
    let section = Section { title: HOSTILE.into(), cells: vec![cell], ..Section::default() };
    let sheet = Sheet { title: "leaves".into(), sections: vec![section], cell: 256, ..Sheet::default() };
    let mut out = Vec::new();
    sheet::write(&mut out, &sheet, [b"foobar"]).unwrap();
    let page = String::from_utf8(out).unwrap();
    let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!(data["sections"][0]["cells"][0]["path"], HOSTILE);
    assert!(page.contains("id=\"thumbs\">\nZm9vYmFy</script>"));
    let mut empty = Vec::new();
    sheet::write(&mut empty, &Sheet::default(), [b""]).unwrap();
    assert!(!String::from_utf8(empty).unwrap().contains("{{"));
}
