//! `prep apply`: options, and what changes.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::args::{Global, Input};
use super::terminal::{Terminal, class_name, columns, near, plural, shell_word, thousands};
use super::{run, undo};
use crate::apply::{self, Action, Plan};
use crate::error::Result;
use crate::names::shown;
use crate::source::Listing;

/// The JSON document's version.
const SCHEMA: u32 = 1;
/// Changes that are shown one by one, unless -v.
const SHOWN: usize = 20;

/// Puts what was marked on a sheet into the manifest: `relabel`, `exclude` and `doubtful`, one line an image, with the
/// columns path, action, label, was, note. Files of images are never touched, all lines are applied or none, and
/// `prep undo` takes it back. -n shows what would change.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub struct Args {
    /// What was marked, as the page of `prep sheet --format html` saves it
    #[arg(value_name = "FIXES.csv", help_heading = "Arguments")]
    fixes: PathBuf,
    #[command(flatten)]
    pub input: Input,
    /// Allow labels that no image has yet
    #[arg(long)]
    new_labels: bool,
    /// The manifest to write; by default the input's own
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Runs the command and gives its exit code.
///
/// # Errors
/// What ends the run; then nothing was changed.
pub fn run(args: &Args, global: &Global, terminal: &Terminal) -> Result<u8> {
    let fixes = apply::read(&args.fixes)?;
    let (listing, home) =
        run::list_at_home(&args.input, &args.input.options(), args.out.as_deref(), terminal)?;
    let plan = apply::plan(&listing, &fixes, &args.fixes, args.new_labels)?;
    let place = shown(&near(&home.manifest)).to_string();
    let text = match global.json {
        true => document(&plan, &listing, global.dry_run),
        false => summary(&plan, &listing, terminal.verbose > 0),
    };
    terminal.result(&text)?;
    if plan.changes.is_empty() {
        terminal.say(&format!("Nothing to change in {place}"));
        return Ok(0);
    }
    let rows = plural(plan.changes.len(), "row");
    if global.dry_run {
        terminal.say(&format!("Would change {rows} of {place}"));
        return Ok(0);
    }
    let kept = apply::write(&plan, listing, &home)?;
    if let Some(sentence) = kept.renamed {
        terminal.say(&sentence);
    }
    let next = shell_word(&undo::word(&args.input.input, &home.manifest));
    let undo = match kept.undoable {
        true => format!("; prep undo {next} takes it back"),
        false => " (nothing is kept for prep undo: there is no place for it)".into(),
    };
    terminal
        .say(&format!("Changed {rows} of {place}{undo}. Shares have changed: prep split {next} --stratify"));
    Ok(0)
}

fn counts(plan: &Plan) -> [usize; 3] {
    let count = |wanted: fn(&Action) -> bool| plan.changes.iter().filter(|c| wanted(&c.action)).count();
    [
        count(|a| matches!(a, Action::Relabel(_))),
        count(|a| matches!(a, Action::Exclude)),
        count(|a| matches!(a, Action::Doubtful)),
    ]
}

fn summary(plan: &Plan, listing: &Listing, all: bool) -> String {
    let shown_rows = if all { plan.changes.len() } else { SHOWN };
    let rows: Vec<Vec<String>> = plan
        .changes
        .iter()
        .take(shown_rows)
        .map(|change| {
            let path = shown(&listing.entries[change.row].path).to_string();
            let what = match &change.action {
                Action::Relabel(label) => format!("{} → {}", class_name(&change.before), class_name(label)),
                Action::Exclude => "exclude".into(),
                Action::Doubtful => "doubtful".into(),
            };
            vec![path, what, shown(&change.note).to_string()]
        })
        .collect();
    let mut text = columns(&rows, &[false, false, false]);
    let more = plan.changes.len().saturating_sub(shown_rows);
    if more > 0 {
        text.push_str(&format!("  … {} more (-v shows all)\n", thousands(more as u64)));
    }
    let [relabel, exclude, doubtful] = counts(plan);
    text.push_str(&format!("{relabel} relabelled, {exclude} excluded, {doubtful} doubtful"));
    if plan.already > 0 {
        text.push_str(&format!(", {} as it is already", plan.already));
    }
    if !plan.new_labels.is_empty() {
        let labels: Vec<String> = plan.new_labels.iter().map(|l| class_name(l)).collect();
        text.push_str(&format!("; new: {}", labels.join(", ")));
    }
    text.push('\n');
    text
}

fn document(plan: &Plan, listing: &Listing, dry_run: bool) -> String {
    let changes: Vec<Value> = plan
        .changes
        .iter()
        .map(|change| {
            let (action, label) = match &change.action {
                Action::Relabel(label) => ("relabel", Some(label)),
                Action::Exclude => ("exclude", None),
                Action::Doubtful => ("doubtful", None),
            };
            json!({"path": listing.entries[change.row].path, "action": action, "label": label,
                "was": change.before, "note": change.note})
        })
        .collect();
    let document = json!({
        "schema": SCHEMA, "command": "apply", "dry_run": dry_run, "already": plan.already,
        "new_labels": plan.new_labels, "changes": changes,
    });
    format!("{document:#}\n")
}
