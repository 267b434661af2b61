//! Exports: sessions as Markdown, HTML, JSON and tables, written again only where something changed.

mod again;
mod homes;
mod html;
mod one;
mod tables;

use std::path::PathBuf;

use annals_testkit::Bench;

/// Exports to a directory named after the format, which must succeed.
fn export(bench: &Bench, format: &str, what: &[&str]) -> PathBuf {
    let folder = bench.folder.path().join(format!("exported-{format}"));
    let to = folder.to_str().unwrap();
    let ran = bench.run(&[&["export", "--format", format, "--to", to], what].concat());
    assert_eq!(ran.code, 0, "{format}: {}", ran.stderr);
    folder
}
