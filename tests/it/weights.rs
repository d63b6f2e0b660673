//! weights from outside: which rows count, what is printed, what is kept.

use crate::env::Env;

const TABLE: &[u8] =
    b"path,label,split,plant\na.jpg,class_10,train,P1\nb.jpg,class_10,train,P1\nc.jpg,class_10,train,P2\n\
    d.jpg,class_2,train,P3\ne.jpg,class_2,val,P4\nf.jpg,class_1,val,P5\ng.jpg,,train,P6\n";

fn classes(document: &str) -> Vec<(String, u64, u64, f64)> {
    let document: serde_json::Value = serde_json::from_str(document).unwrap();
    let class = |c: &serde_json::Value| {
        let number = |key: &str| c[key].as_u64().unwrap();
        (
            c["name"].as_str().unwrap().to_owned(),
            number("index"),
            number("images"),
            c["weight"].as_f64().unwrap(),
        )
    };
    document["classes"].as_array().unwrap().iter().map(class).collect()
}

#[test]
fn only_training_rows_count_and_every_weight_has_a_name_and_an_index() {
    let env = Env::new();
    env.write("t.csv", TABLE);
    let ran = env.ok(&["weights", "t.csv", "--no-files", "--json"]);
    // scikit-learn: 4 rows, 2 classes that have any.
    let wanted = [("class_1", 0, 0, 0.0), ("class_10", 1, 3, 4.0 / 6.0), ("class_2", 2, 1, 2.0)];
    let wanted: Vec<_> =
        wanted.iter().map(|(name, index, n, w)| ((*name).to_owned(), *index, *n, *w)).collect();
    assert_eq!(classes(&ran.stdout), wanted);
    assert!(ran.stderr.contains("weight 0: class_1"), "{}", ran.stderr);
    assert!(ran.stderr.contains("timm numbers 2 of 3 classes otherwise"), "{}", ran.stderr);
    let sidecar: serde_json::Value =
        serde_json::from_slice(&std::fs::read(env.path("t.manifest.prep.json")).unwrap()).unwrap();
    assert_eq!(sidecar["weights"]["classes"][2]["weight"], 2.0);
    assert_eq!(sidecar["weights"]["part"], "train");
    let ran = env.ok(&["weights", "t.csv", "--no-files", "--split", "val", "--json"]);
    assert_eq!(classes(&ran.stdout)[1].2, 0);
    assert_eq!(env.rows("t.manifest.csv").len(), 7, "rows outside the part are kept");
}

#[test]
fn code_is_ready_to_paste() {
    let env = Env::new();
    env.write("t.csv", TABLE);
    let emit = |what: &str| env.ok(&["weights", "t.csv", "--no-files", "--emit", what]).stdout;
    let torch = emit("torch");
    assert!(torch.contains("classes = [\"class_1\", \"class_10\", \"class_2\"]"), "{torch}");
    assert!(torch.contains("torch.tensor([0.0, 0.6666666666666666, 2.0]"), "{torch}");
    assert!(emit("keras").contains("    2: 2.0,  # \"class_2\""));
    let sklearn = emit("sklearn");
    assert!(sklearn.contains("\"class_2\": 2.0") && !sklearn.contains("class_1\":"), "{sklearn}");
    assert!(emit("csv").starts_with(
        "class,index,timm_index,images,groups,weight,pos_weight\nclass_1,0,0,0,0,0.0,0.0\nclass_10,1,2,3,3,"
    ));
}

#[test]
fn groups_can_count_and_share_their_weight() {
    let env = Env::new();
    env.write(
        "t.csv",
        b"path,label,group\na.jpg,x,g1\nb.jpg,x,g1\nc.jpg,x,g1\nd.jpg,x,g2\ne.jpg,y,g3\nf.jpg,y,\n",
    );
    let ran = env.ok(&["weights", "t.csv", "--no-files", "--count", "groups", "--json"]);
    assert!(classes(&ran.stdout).iter().all(|c| c.3 == 1.0), "two groups each: {}", ran.stdout);
    env.ok(&["weights", "t.csv", "--no-files", "--count", "groups", "--per-row", "rows.csv"]);
    let rows = env.rows("rows.csv");
    let weight = |at: usize| rows[at]["weight"].parse::<f64>().unwrap();
    assert_eq!(rows.len(), 6);
    assert!((weight(0) * 3.0 - weight(3)).abs() < 1e-12, "a group's images share its weight");
    let mean: f64 = (0..6).map(weight).sum::<f64>() / 6.0;
    assert!((mean - 1.0).abs() < 1e-12);
}

#[test]
fn several_labels_have_positive_weights() {
    let env = Env::new();
    env.write("t.csv", b"path,label\na.jpg,x|y\nb.jpg,x\nc.jpg,x|y\nd.jpg,y|z\n");
    let ran = env.ok(&["weights", "t.csv", "--no-files", "--emit", "torch"]);
    assert!(
        ran.stdout.contains("pos_weight = torch.tensor([0.3333333333333333, 0.3333333333333333, 3.0]"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_table_without_training_rows_is_refused() {
    let env = Env::new();
    env.write("t.csv", b"path,label,split\na.jpg,x,fit\nb.jpg,y,hold\n");
    assert!(env.refused(&["weights", "t.csv", "--no-files"]).contains("none is called train"));
    env.write("u.csv", b"path,comment\na.jpg,1\nb.jpg,2\n");
    assert!(env.refused(&["weights", "u.csv", "--no-files"]).contains("no labels"));
}
