//! Paths in every form that models write, and names that can't be seen, through every tool that takes a path.

use std::sync::Arc;

use attache_core::legible::{is_invisible, is_odd_blank};
use attache_core::ports::ToolOutcome;
use attache_core::ports::tool::{Access, Shown, Workspace};
use attache_core::scope::Guarded;
use attache_core::tool_names::BUILTIN_TOOLS;
use serde_json::{Value, json};

use crate::trial::Trial;

/// A call of every tool that takes a path.
fn calls(path: &str) -> Vec<(&'static str, Value)> {
    let patch = format!("*** Begin Patch\n*** Update File: {path}\n@@\n-one\n+1\n*** End Patch");
    let unified = format!("--- {path}\n+++ {path}\n@@ -1 +1 @@\n-one\n+1\n");
    vec![
        ("read", json!({"path": path})),
        ("view_image", json!({"path": path})),
        ("write", json!({"path": path, "content": "x"})),
        ("edit", json!({"path": path, "old_string": "one", "new_string": "1"})),
        ("apply_patch", json!({"patch": patch})),
        ("apply_patch", json!({"patch": unified})),
        ("glob", json!({"pattern": "*", "path": path})),
        ("grep", json!({"pattern": "one", "path": path})),
    ]
}

#[tokio::test]
async fn every_tool_understands_every_form_of_a_path() {
    let mut trial = Trial::with_file("a b.txt", "one\n");
    let home = trial.base.join("home");
    std::fs::create_dir(&home).unwrap();
    std::fs::create_dir(&trial.workspace.scratch).unwrap();
    for directory in [&home, &trial.workspace.scratch] {
        std::fs::write(directory.join("x"), "one\n").unwrap();
    }
    let guarded = Arc::new(Guarded::new(Some(home.clone()), vec![]));
    trial.workspace = Arc::new(Workspace { guarded, ..(*trial.workspace).clone() });
    let root = trial.root.to_str().unwrap();
    for (written, meant) in [
        ("a%20b.txt".to_owned(), trial.root.join("a b.txt")),
        (format!("file://{root}/a%20b.txt"), trial.root.join("a b.txt")),
        (format!("file://localhost{root}/a b.txt"), trial.root.join("a b.txt")),
        ("~/x".to_owned(), home.join("x")),
        ("$HOME/x".to_owned(), home.join("x")),
        ("${TMPDIR}/x".to_owned(), trial.workspace.scratch.join("x")),
        ("$PWD/a b.txt".to_owned(), trial.root.join("a b.txt")),
    ] {
        for (tool, input) in calls(&written) {
            let plan = trial.plan(tool, input).await.unwrap();
            let (Access::ReadPath(path) | Access::WritePath(path)) = &plan.accesses[0] else {
                panic!("no path")
            };
            assert_eq!(path, &meant, "{tool} {written}");
        }
    }
}

#[tokio::test]
async fn no_tool_takes_a_variable_for_a_name() {
    let trial = Trial::new();
    for (tool, input) in calls("$OUT/x") {
        let problem = trial.plan(tool, input).await.unwrap_err();
        assert!(problem.contains("$TMPDIR, $HOME and $PWD"), "{tool}: {problem}");
    }
}

/// Not every model is offered every tool: those for images need one that takes them, `question` needs a person,
/// `web_search` a service, and some do not exist yet.
#[tokio::test]
async fn no_text_names_a_tool_that_may_not_be_offered() {
    let trial = Trial::with_file("a.png", b"\x89PNG\r\n\x1a\n");
    trial.put("b.bin", b"\x7fELF\0");
    trial.put("c.txt", "one\none\n");
    let always = |name: &&str| {
        trial
            .tools
            .iter()
            .any(|tool| *tool.spec().id == **name && !tool.needs_images() && !tool.needs_person())
    };
    let conditional: Vec<&str> = BUILTIN_TOOLS.into_iter().filter(|name| !always(name)).collect();
    let mut said: Vec<(String, String)> = Vec::new();
    for tool in &trial.tools {
        let spec = tool.spec();
        said.push((spec.id.to_string(), format!("{} {}", spec.description, spec.parameters)));
        said.push((spec.id.to_string(), texts(trial.run(&spec.id, json!({})).await).concat()));
    }
    for path in ["a.png", "b.bin", "c.txt", "missing/x", ".", "/dev/null", "$X/y"] {
        for (tool, input) in calls(path) {
            said.push((tool.to_owned(), texts(trial.run(tool, input).await).concat()));
        }
    }
    let names_tool = |text: &str, tool: &str| {
        let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
        text.split(|letter| !is_of_name(letter)).any(|word| word == tool)
    };
    // The one that a text may name, because it says in the same breath which models have it.
    let for_images = "`view_image` shows it to models that take images";
    for (of, text) in said {
        let text = text.replace(for_images, "");
        // These are words, too.
        let other =
            conditional.iter().filter(|name| **name != of && !["task", "skill", "question"].contains(*name));
        for name in other {
            assert!(!names_tool(&text, name), "{of} names {name}: {text}");
        }
    }
}

fn texts(outcome: ToolOutcome) -> Vec<String> {
    let (text, presentation) = match outcome {
        ToolOutcome::Output { data, presentation } => (data.to_string(), Some(presentation)),
        ToolOutcome::Picture { presentation, .. } => (String::new(), Some(presentation)),
        ToolOutcome::Error { text, presentation } => (text, presentation),
    };
    let shown =
        presentation.iter().flat_map(|presentation| &presentation.content).filter_map(|shown| match shown {
            Shown::Text { text } => Some(text.clone()),
            Shown::Diff { .. } | Shown::Terminal { .. } | Shown::Image { .. } | Shown::Link { .. } => None,
        });
    let title = presentation.iter().map(|presentation| presentation.title.clone());
    shown.chain(title).chain([text]).collect()
}

/// Titles and texts show what can't be seen; the paths themselves stay what they are.
#[tokio::test]
async fn what_is_invisible_in_a_name_is_seen_everywhere() {
    let name = "a\u{202e}b\u{200b}c\x1b[2J\rd";
    let seen = |character: char| {
        matches!(character, '\n' | '\t') || is_odd_blank(character) || !is_invisible(character)
    };
    for setup in ["missing", "text", "binary", "directory", "link"] {
        let mut trial = Trial::new();
        let path = trial.root.join(name);
        match setup {
            "text" => std::fs::write(&path, "one\n").unwrap(),
            "binary" => std::fs::write(&path, b"\0\x01").unwrap(),
            "directory" => trial.put(&format!("{name}/{name}"), "one\n"),
            "link" => std::os::unix::fs::symlink("/etc", &path).unwrap(),
            _ => {}
        }
        trial.put(&format!("{name}x"), "one\n");
        for (tool, input) in calls(name).into_iter().chain(calls(&format!("{name}/{name}/{name}"))) {
            let mut told = match trial.plan(tool, input.clone()).await {
                Ok(plan) => {
                    if let Some(location) = plan.presentation.locations.first() {
                        assert!(location.path.to_str().unwrap().contains(name), "the path stays exact");
                    }
                    vec![plan.presentation.title, plan.problem.unwrap_or_default()]
                }
                Err(text) => vec![text],
            };
            told.extend(texts(trial.run(tool, input).await));
            for text in told {
                assert!(text.chars().all(seen), "{setup} {tool}: {text:?}");
            }
        }
        trial.seen = Arc::default();
    }
}
