//! `glob`: which files a pattern means, what is passed by, what is cut.

use std::os::unix::fs::symlink;
use std::path::Path;

use attache_core::ports::tool::Access;
use globset::GlobBuilder;
use proptest::prelude::*;
use serde_json::json;

use crate::trial::{Trial, shown_text};

async fn lines(trial: &Trial, input: serde_json::Value) -> Vec<String> {
    let (data, presentation) = trial.done("glob", input).await;
    let data = data.as_str().unwrap();
    data[..data.len() - presentation.note_bytes].lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn files_are_listed_in_path_order_from_the_root() {
    let trial = Trial::new();
    for name in ["b.rs", "src/z.rs", "src/a/y.rs", "src.rs", ".hidden/x.rs", "note.md"] {
        trial.put(name, "");
    }
    assert_eq!(
        lines(&trial, json!({"pattern": "*.rs"})).await,
        [".hidden/x.rs", "b.rs", "src/a/y.rs", "src/z.rs", "src.rs"]
    );
    assert_eq!(lines(&trial, json!({"pattern": "*.rs", "path": "src"})).await, ["src/a/y.rs", "src/z.rs"]);
    assert_eq!(lines(&trial, json!({"pattern": "src/*.rs"})).await, ["src/z.rs"]);
    let absolute = trial.root.join("src/**/y.rs");
    assert_eq!(lines(&trial, json!({"pattern": absolute})).await, ["src/a/y.rs"]);
}

#[tokio::test]
async fn the_call_is_shown_as_a_search_with_its_files() {
    let trial = Trial::with_file("a.rs", "");
    let plan = trial.plan("glob", json!({"pattern": "*.rs", "path": "src/../."})).await.unwrap();
    assert_eq!(plan.accesses, [Access::ReadPath(trial.root.clone())]);
    assert_eq!(plan.presentation.title, "glob `\"*.rs\"` in `.`");
    let (data, presentation) = trial.done("glob", json!({"pattern": "*.rs"})).await;
    assert_eq!(data, "a.rs\n");
    assert_eq!(presentation.title, "glob `\"*.rs\"`");
    assert_eq!(shown_text(&presentation), "```\na.rs\n```");
    assert!(plan.presentation.locations.is_empty() && presentation.locations.is_empty(), "editors open each");
    assert!(!presentation.metadata.unwrap().truncated);
}

#[tokio::test]
async fn ignored_files_and_git_are_passed_by() {
    let trial = Trial::new();
    for name in [".git/HEAD", ".git/x.rs", "target/x.rs", "sub/.git", "a.rs"] {
        trial.put(name, "");
    }
    trial.put(".gitignore", "target\n");
    assert_eq!(lines(&trial, json!({"pattern": "**"})).await, [".gitignore", "a.rs"]);
}

#[tokio::test]
async fn nothing_is_an_answer() {
    let trial = Trial::with_file("a.rs", "");
    let (data, presentation) = trial.done("glob", json!({"pattern": "*.py"})).await;
    assert_eq!(data, "[no file matches]");
    assert_eq!(presentation.note_bytes, data.as_str().unwrap().len());
    assert!(presentation.content.is_empty());
}

#[tokio::test]
async fn beyond_a_thousand_the_rest_is_in_a_file() {
    let trial = Trial::new();
    for number in 0..1_234 {
        trial.put(&format!("d{}/f{number:04}", number % 7), "");
    }
    let (data, presentation) = trial.done("glob", json!({"pattern": "f*"})).await;
    let metadata = presentation.metadata.unwrap();
    let path = metadata.output_path.unwrap();
    assert!(metadata.truncated && path.starts_with(trial.base.join("scratch")));
    let data = data.as_str().unwrap();
    assert!(data.contains("\n[1000 of 1234 files; up to 20000 are in "), "{}", &data[data.len() - 200..]);
    let kept = std::fs::read_to_string(&path).unwrap();
    assert_eq!(kept.lines().count(), 1_234);
    assert!(kept.lines().is_sorted());
    assert!(data.starts_with(&kept[..7_000]));
    let path = path.to_str().unwrap();
    let (again, _) = trial.done("read", json!({"path": path, "offset": 1_233})).await;
    assert!(again.as_str().unwrap().starts_with("1234:d6/f"));
}

#[tokio::test]
async fn links_are_named_and_not_followed() {
    let trial = Trial::new();
    std::fs::create_dir(trial.base.join("outside")).unwrap();
    std::fs::write(trial.base.join("outside/secret.rs"), "").unwrap();
    symlink("../outside", trial.root.join("link.rs")).unwrap();
    symlink(".", trial.root.join("loop.rs")).unwrap();
    assert_eq!(lines(&trial, json!({"pattern": "*.rs"})).await, ["link.rs", "loop.rs"]);
    let error = trial.failed("glob", json!({"pattern": "*", "path": "link.rs"})).await;
    assert!(error.contains("lies outside the workspace"), "{error}");
}

#[tokio::test]
async fn what_is_hidden_from_agents_is_not_listed() {
    let trial = Trial::new();
    trial.put("keys/id_ed25519", "");
    trial.put("keys/id_ed25519.pub", "");
    assert_eq!(lines(&trial, json!({"pattern": "id_*"})).await, ["keys/id_ed25519.pub"]);
}

#[tokio::test]
async fn names_that_could_pass_for_two_are_told_on_one_line() {
    let trial = Trial::with_file("a\nb", "");
    assert_eq!(lines(&trial, json!({"pattern": "a*"})).await, ["a⏎b"]);
}

#[tokio::test]
async fn wrong_places_and_patterns_say_what_is_wrong() {
    let trial = Trial::with_file("main.rs", "");
    for (input, expected) in [
        (json!({"pattern": "*", "path": "mian.rs"}), "does not exist; nearest names there: main.rs"),
        (json!({"pattern": "*", "path": "main.rs"}), "is a file; `path` must be a directory"),
        (json!({"pattern": "*", "path": ".."}), "lies outside"),
        (json!({"pattern": "[a"}), "field `pattern` is not a valid glob pattern: unclosed character class"),
        (json!({"pattern": "../*.rs"}), "reaches outside of `path`"),
        (json!({"pattern": ""}), "field `pattern` must not be empty"),
        (json!({"patern": "*"}), "field `patern` (did you mean `pattern`?) is unknown"),
    ] {
        let error = trial.failed("glob", input).await;
        assert!(error.starts_with("glob: ") && error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn a_cancelled_call_ends() {
    let trial = Trial::with_file("a", "");
    trial.cancel.cancel();
    assert_eq!(trial.failed("glob", json!({"pattern": "*"})).await, "glob: cancelled");
}

fn all_files(directory: &Path, below: &Path, found: &mut Vec<String>) {
    for entry in directory.join(below).read_dir().unwrap() {
        let relative = below.join(entry.unwrap().file_name());
        match directory.join(&relative).is_dir() {
            true => all_files(directory, &relative, found),
            false => found.push(relative.to_str().unwrap().to_owned()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn the_result_is_what_a_plain_walk_finds(
        names in prop::collection::vec("([ab.]{1,2}[ab]/){0,3}[ab]{1,2}(\\.rs|\\.md)?", 1..25),
        pattern in "(\\*\\*/|[ab]\\*/|\\*/)?([ab]|\\*|\\?|\\{a,b\\}){1,3}(\\.rs)?",
    ) {
        let trial = Trial::new();
        for name in &names {
            // Names may stand in each other's way: a file where another has a directory.
            let path = trial.root.join(name);
            if std::fs::create_dir_all(path.parent().unwrap()).is_ok() && !path.is_dir() {
                std::fs::write(path, "").unwrap();
            }
        }
        let mut expected = Vec::new();
        all_files(&trial.root, Path::new(""), &mut expected);
        let whole = if pattern.contains('/') { pattern.clone() } else { format!("**/{pattern}") };
        let glob = GlobBuilder::new(&whole).literal_separator(true).build().unwrap().compile_matcher();
        expected.retain(|name| glob.is_match(name));
        expected.sort_by(|left, right| Path::new(left).cmp(Path::new(right)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let found = runtime.block_on(lines(&trial, json!({"pattern": pattern})));
        prop_assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn files_that_are_only_ignored_are_told_of() {
    let trial = Trial::new();
    trial.put(".gitignore", "target\n*.log\n");
    std::fs::create_dir(trial.root.join(".git")).unwrap();
    trial.put("target/debug/a.rlib", "");
    trial.put("target/b.rlib", "");
    trial.put("x.log", "");
    let (data, _) = trial.done("glob", json!({"pattern": "*.rlib"})).await;
    assert_eq!(
        data,
        "[no file matches; 2 ignored files do (.gitignore), such as target/b.rlib: list them with a command (find)]"
    );
    let (data, _) = trial.done("glob", json!({"pattern": "*.log"})).await;
    assert!(
        data.as_str().unwrap().contains("1 ignored file does (.gitignore), such as x.log: list it"),
        "{data}"
    );
    let (data, _) = trial.done("glob", json!({"pattern": "*.none"})).await;
    assert_eq!(data, "[no file matches]");
}

#[tokio::test]
async fn long_names_are_bounded_in_bytes_too() {
    let trial = Trial::new();
    for number in 0..900 {
        trial.put(&format!("{}/{number:0>60}", "d".repeat(60)), "");
    }
    let (data, presentation) = trial.done("glob", json!({"pattern": "*"})).await;
    assert!(data.as_str().unwrap().len() <= 32_500, "{}", data.as_str().unwrap().len());
    let kept = std::fs::read_to_string(presentation.metadata.unwrap().output_path.unwrap()).unwrap();
    assert_eq!(kept.lines().count(), 900);
}

#[tokio::test]
async fn a_pattern_that_names_a_directory_says_how_to_list_it() {
    let trial = Trial::new();
    trial.put("src/deep/a.rs", "");
    for pattern in ["src/deep", "./src/deep"] {
        let (listed, _) = trial.done("glob", json!({"pattern": pattern})).await;
        let told = "[no file matches; `src/deep` is a directory: list it with read, or all below it with `src/deep/**`]";
        assert_eq!(listed, told);
    }
    let (listed, _) = trial.done("glob", json!({"pattern": "missing"})).await;
    assert_eq!(listed, "[no file matches]");
}

/// Whatever has the name of an ignore file: it is read only if it is a small file, and nothing waits for it.
#[tokio::test]
async fn only_small_regular_files_say_what_is_ignored() {
    for name in [".gitignore", ".ignore", "src/.gitignore", "src/.ignore", ".git/info/exclude"] {
        for kind in ["/dev/zero", "secret", "pipe", "huge"] {
            let trial = Trial::new();
            for (file, content) in [("a.rs", "x"), ("src/b.rs", "x"), (".git/HEAD", "x"), (".git/info/x", "")]
            {
                trial.put(file, content);
            }
            let secret = trial.base.join("secret");
            std::fs::write(&secret, "*.rs\n").unwrap();
            let path = trial.root.join(name);
            match kind {
                "/dev/zero" => std::os::unix::fs::symlink("/dev/zero", &path).unwrap(),
                "secret" => std::os::unix::fs::symlink(&secret, &path).unwrap(),
                "pipe" => {
                    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
                    assert!(made.success());
                }
                _ => std::fs::File::create(&path).unwrap().set_len(1 << 33).unwrap(),
            }
            for tool in ["glob", "grep"] {
                let input = match tool {
                    "glob" => json!({"pattern": "*.rs"}),
                    _ => json!({"pattern": "x", "glob": "*.rs"}),
                };
                let called =
                    tokio::time::timeout(std::time::Duration::from_secs(10), trial.done(tool, input));
                let (data, _) = called.await.unwrap_or_else(|_| panic!("{tool} waits for {name} ({kind})"));
                let found = data.as_str().unwrap();
                assert!(
                    found.contains("a.rs") && found.contains("src/b.rs"),
                    "{tool} {name} {kind}: {found}"
                );
            }
        }
    }
}

/// A work tree's `.git` is a file; what its repository excludes counts there, too.
#[tokio::test]
async fn a_work_tree_has_the_excludes_of_its_repository() {
    let trial = Trial::new();
    let repository = trial.base.join("repository/.git");
    std::fs::create_dir_all(repository.join("worktrees/w")).unwrap();
    std::fs::create_dir_all(repository.join("info")).unwrap();
    std::fs::write(repository.join("info/exclude"), "excluded.rs\n").unwrap();
    std::fs::write(repository.join("worktrees/w/commondir"), "../..\n").unwrap();
    trial.put(".git", format!("gitdir: {}\n", repository.join("worktrees/w").display()));
    trial.put("excluded.rs", "x");
    trial.put("a.rs", "x");
    assert_eq!(lines(&trial, json!({"pattern": "*.rs"})).await, ["a.rs"]);
}
