//! `glob` and `grep` beside the program they are measured against, where both mean the same. Needs `rg`.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::trial::Trial;

fn rg(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("rg")
        .args(["--hidden", "--glob", "!.git", "--sort", "path", "--no-config", "--color", "never"])
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .output()
        .expect("ripgrep is installed");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn sample() -> Trial {
    let trial = Trial::new();
    for folder in ["src", "src/tools"] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let entries = source.read_dir().unwrap().map(|entry| entry.unwrap().path());
        for entry in entries.filter(|path| path.is_file()) {
            let name = entry.file_name().unwrap().to_str().unwrap();
            trial.put(&format!("crates/tools/{folder}/{name}"), std::fs::read(&entry).unwrap());
        }
    }
    for (name, content) in [
        (".gitignore", "*.log\n/build/\n!keep.log\nsub/*.tmp\n"),
        (".ignore", "vendor\n"),
        ("build/out.rs", "fn built() {}\n"),
        ("deep/build/out.rs", "fn built() {}\n"),
        ("a.log", "fn logged() {}\n"),
        ("keep.log", "fn kept() {}\n"),
        ("sub/x.tmp", "fn temporary() {}\n"),
        ("sub/.gitignore", "!y.tmp\nz.rs\n"),
        ("sub/y.tmp", "fn temporary() {}\n"),
        ("sub/z.rs", "fn z() {}\n"),
        ("vendor/v.rs", "fn vendored() {}\n"),
        (".config/hidden.rs", "fn hidden() {}\n"),
        ("latin1", "no fn here\n"),
        (".git/info/exclude", "excluded.rs\n"),
        (".git/HEAD", "ref: fn\n"),
        ("excluded.rs", "fn excluded() {}\n"),
    ] {
        trial.put(name, content);
    }
    trial.put("binary", b"fn\n\0\n");
    trial
}

async fn ours(trial: &Trial, tool: &str, input: Value) -> String {
    let (data, presentation) = trial.done(tool, input).await;
    let data = data.as_str().unwrap();
    data[..data.len() - presentation.note_bytes].to_owned()
}

#[tokio::test]
async fn the_same_files_are_listed() {
    let trial = sample();
    assert_eq!(ours(&trial, "glob", json!({"pattern": "**"})).await, rg(&trial.root, &["--files"]));
    for path in ["deep", "crates/tools", "vendor"] {
        assert_eq!(
            ours(&trial, "glob", json!({"pattern": "**", "path": path})).await,
            rg(&trial.root, &["--files", path]),
            "{path}"
        );
    }
}

#[tokio::test]
async fn the_same_lines_are_found() {
    let trial = sample();
    for (pattern, context) in
        [("fn finish", 0), ("^use crate::(limits|paths)", 0), ("outcome::", 2), ("fn .*\\{\\}$", 1)]
    {
        let context = context.to_string();
        let arguments =
            ["--heading", "--line-number", "--glob", "!binary", "--context", &context, "--regexp", pattern];
        let expected = rg(&trial.root, &arguments);
        let input = json!({"pattern": pattern, "context": context.parse::<u64>().unwrap()});
        assert!(expected.lines().count() > 3, "{pattern} finds too little");
        assert_eq!(ours(&trial, "grep", input).await, expected, "{pattern}");
    }
    let expected = rg(
        &trial.root,
        &["--heading", "--line-number", "--ignore-case", "SPEC\\b", "crates/tools/src/tools/bash.rs"],
    );
    let input = json!({"pattern": "SPEC\\b", "ignore_case": true, "path": "crates/tools/src/tools/bash.rs"});
    let found = ours(&trial, "grep", input).await;
    assert_eq!(found, format!("crates/tools/src/tools/bash.rs\n{expected}"));
}
