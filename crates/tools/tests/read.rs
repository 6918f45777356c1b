//! `read`: portions, notes, titles, refusals.

use std::os::unix::fs::symlink;
use std::path::Path;

use attache_core::ports::tool::Access;
use serde_json::json;

use crate::trial::{Alone, Trial, alone, shown_text};

fn numbered(count: usize) -> String {
    (1..=count).map(|number| format!("line {number}\n")).collect()
}

async fn title(input: serde_json::Value) -> String {
    Trial::new().plan("read", input).await.unwrap().presentation.title
}

#[tokio::test]
async fn titles_name_the_range() {
    let path = "/p/large.txt";
    assert_eq!(title(json!({"path": path})).await, "Read /p/large.txt");
    assert_eq!(title(json!({"path": path, "limit": 100})).await, "Read /p/large.txt (1 - 100)");
    assert_eq!(
        title(json!({"path": path, "offset": 50, "limit": 100})).await,
        "Read /p/large.txt (51 - 150)"
    );
    assert_eq!(title(json!({"path": path, "offset": 200})).await, "Read /p/large.txt (from line 201)");
    assert_eq!(title(json!({"path": path, "offset": 0})).await, "Read /p/large.txt");
}

#[tokio::test]
async fn the_plan_names_the_path_absolutely() {
    let trial = Trial::new();
    let plan = trial.plan("read", json!({"path": "a/../b.txt"})).await.unwrap();
    assert_eq!(plan.accesses, [Access::ReadPath(trial.root.join("b.txt"))]);
}

#[tokio::test]
async fn a_small_file_comes_whole_and_without_a_note() {
    let trial = Trial::with_file("a.txt", "one\ntwo");
    let (data, presentation) = trial.done("read", json!({"path": "a.txt"})).await;
    assert_eq!(data, "one\ntwo");
    assert_eq!(shown_text(&presentation), "```\none\ntwo\n```");
    assert_eq!(presentation.locations[0].path, trial.root.join("a.txt"));
    assert_eq!(presentation.locations[0].line, Some(1));
    assert!(!presentation.metadata.unwrap().truncated);
}

#[tokio::test]
async fn the_note_is_for_the_model_alone() {
    let trial = Trial::with_file("a.txt", numbered(500));
    let (data, presentation) = trial.done("read", json!({"path": "a.txt", "offset": 50, "limit": 2})).await;
    assert_eq!(
        data,
        "line 51\nline 52\n\n\n<file-read-info>Lines 51 - 52; there is more, go on with offset 52.</file-read-info>"
    );
    assert_eq!(shown_text(&presentation), "```\nline 51\nline 52\n```");
    assert_eq!(presentation.locations[0].line, Some(51));
    let (data, _) = trial.done("read", json!({"path": "a.txt", "offset": 499})).await;
    assert!(data.as_str().unwrap().ends_with("Lines 500 - 500, the end of the file.</file-read-info>"));
}

#[tokio::test]
async fn two_thousand_lines_are_a_portion() {
    let trial = Trial::with_file("a.txt", "x\n".repeat(2_001));
    let (data, presentation) = trial.done("read", json!({"path": "a.txt"})).await;
    assert!(data.as_str().unwrap().starts_with(&"x\n".repeat(2_000)));
    assert!(data.as_str().unwrap().contains("go on with offset 2000"));
    assert!(presentation.metadata.unwrap().truncated);
    let trial = Trial::with_file("a.txt", "x\n".repeat(2_000));
    let (data, _) = trial.done("read", json!({"path": "a.txt"})).await;
    assert_eq!(data, "x\n".repeat(2_000));
}

#[tokio::test]
async fn fifty_kilobytes_are_a_portion_of_whole_lines() {
    let line = format!("{}\n", "x".repeat(999));
    let trial = Trial::with_file("a.txt", line.repeat(60));
    let (data, _) = trial.done("read", json!({"path": "a.txt"})).await;
    let expected = line.repeat(50);
    assert!(data.as_str().unwrap().starts_with(&expected));
    assert!(
        data.as_str().unwrap()[expected.len()..]
            .starts_with("\n\n<file-read-info>Lines 1 - 50; there is more")
    );
}

#[tokio::test]
async fn a_limit_raises_the_portion_to_the_hard_cap() {
    let line = format!("{}\n", "x".repeat(999));
    let trial = Trial::with_file("a.txt", line.repeat(300));
    let (data, _) = trial.done("read", json!({"path": "a.txt", "limit": 5_000})).await;
    assert!(data.as_str().unwrap().contains("Lines 1 - 200; there is more"));
}

#[tokio::test]
async fn there_is_always_at_least_one_line() {
    let long = "é".repeat(40_000);
    let trial = Trial::with_file("a.txt", format!("{long}\nnext\n"));
    let (data, _) = trial.done("read", json!({"path": "a.txt"})).await;
    assert!(data.as_str().unwrap().starts_with(&format!("{long}\n")));
    assert!(data.as_str().unwrap().contains("go on with offset 1."));
}

#[tokio::test]
async fn a_line_beyond_the_hard_cap_is_cut_at_a_character() {
    let trial = Trial::with_file("a.txt", format!("a{}\nnext\n", "€".repeat(100_000)));
    let (data, presentation) = trial.done("read", json!({"path": "a.txt"})).await;
    let text = data.as_str().unwrap();
    assert!(text.contains("the line is longer than 200000 bytes"), "{}", &text[text.len() - 300..]);
    assert!(presentation.metadata.unwrap().truncated);
    let (data, _) = trial.done("read", json!({"path": "a.txt", "offset": 1})).await;
    assert!(data.as_str().unwrap().starts_with("next\n"));
}

#[tokio::test]
async fn an_empty_file_counts_as_one_line() {
    let trial = Trial::with_file("a.txt", "");
    let (data, presentation) = trial.done("read", json!({"path": "a.txt"})).await;
    assert_eq!(data, "");
    assert!(presentation.content.is_empty());
    let error = trial.failed("read", json!({"path": "a.txt", "offset": 1})).await;
    assert!(error.contains("the file has 1 lines"), "{error}");
}

#[tokio::test]
async fn an_offset_behind_the_end_tells_the_length() {
    let trial = Trial::with_file("a.txt", "a\nb\nc");
    let error = trial.failed("read", json!({"path": "a.txt", "offset": 3})).await;
    assert!(error.contains("the file has 3 lines"), "{error}");
}

#[tokio::test]
async fn a_fence_in_the_file_does_not_break_out() {
    let trial = Trial::with_file("a.md", "```\ncode\n```\n");
    let (_, presentation) = trial.done("read", json!({"path": "a.md"})).await;
    assert_eq!(shown_text(&presentation), "````\n```\ncode\n```\n````");
}

#[tokio::test]
async fn the_byte_order_mark_is_not_text() {
    let trial = Trial::with_file("a.txt", "\u{feff}hello\r\n");
    let (data, _) = trial.done("read", json!({"path": "a.txt"})).await;
    assert_eq!(data, "hello\r\n");
}

#[tokio::test]
async fn other_encodings_are_shown_as_text() {
    for content in [
        b"caf\xe9\r\nx\n".to_vec(),
        b"\xff\xfec\0a\0f\0\xe9\0\r\0\n\0x\0\n\0".to_vec(),
        b"\0c\0a\0f\0\xe9\0\r\0\n\0x\0\n".to_vec(),
    ] {
        let trial = Trial::with_file("a.txt", content);
        let (data, _) = trial.done("read", json!({"path": "a.txt"})).await;
        assert_eq!(data, "café\r\nx\n");
        let (data, _) = trial.done("read", json!({"path": "a.txt", "offset": 1})).await;
        assert!(data.as_str().unwrap().starts_with("x\n"), "{data}");
    }
}

#[tokio::test]
async fn what_is_not_text_is_refused_with_what_to_use() {
    for (content, expected) in [
        (b"\x89PNG\r\n\x1a\n".to_vec(), "view_image"),
        (b"\x7fELF\0".to_vec(), "view_image"),
        (b"ab\ncaf\xc3\xa9 caf\xe9\n".to_vec(), "no encoding known here (invalid at byte 12)"),
        ([vec![b'a'; 20_000], vec![0]].concat(), "binary"),
    ] {
        let trial = Trial::with_file("a", content);
        let error = trial.failed("read", json!({"path": "a"})).await;
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn directories_and_missing_files_are_told_apart() {
    let trial = Trial::with_file("main.rs", "x");
    let error = trial.failed("read", json!({"path": "."})).await;
    assert!(error.contains("is a directory"), "{error}");
    let error = trial.failed("read", json!({"path": "mian.rs"})).await;
    assert!(error.contains("does not exist; nearest names there: main.rs"), "{error}");
}

#[tokio::test]
async fn nothing_outside_is_read_unless_granted() {
    let trial = Trial::new();
    std::fs::write(trial.base.join("secret"), "s3cret").unwrap();
    symlink("../secret", trial.root.join("link")).unwrap();
    for path in ["link", "../secret"] {
        let error = trial.failed("read", json!({"path": path})).await;
        assert!(error.contains("outside") && !error.contains("s3cret"), "{error}");
    }
    let mut runtime = trial.runtime();
    runtime.site.granted = [trial.base.clone()].into();
    let outcome = trial.tool("read").run(json!({"path": "link"}), runtime).await;
    assert!(matches!(outcome, attache_core::ports::ToolOutcome::Output { data, .. } if data == "s3cret"));
}

#[tokio::test]
async fn wrong_arguments_name_the_field_and_an_example() {
    let trial = Trial::new();
    assert_eq!(
        trial.plan("read", json!({"path": "a", "limit": -1})).await.unwrap_err(),
        r#"read: field `limit` must be a positive integer, for example {"path":"src/main.rs","offset":200,"limit":100}"#
    );
    assert!(trial.failed("read", json!({"path": ""})).await.contains("`path` must not be empty"));
    assert!(trial.failed("read", json!("a.txt")).await.contains("must be an object"));
}

fn peak_kilobytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_huge_file_is_streamed() {
    if alone("read::a_huge_file_is_streamed", &[]) == Alone::Done {
        return;
    }
    let trial = Trial::new();
    let path: &Path = &trial.root.join("huge");
    let block = vec![b'x'; 1024 * 1024];
    let mut file = std::fs::File::create(path).unwrap();
    for _ in 0..128 {
        std::io::Write::write_all(&mut file, &block).unwrap();
    }
    std::io::Write::write_all(&mut file, b"\nlast\n").unwrap();
    let before = peak_kilobytes();
    let (data, _) = trial.done("read", json!({"path": "huge", "offset": 1})).await;
    assert!(data.as_str().unwrap().starts_with("last\n"));
    trial.done("read", json!({"path": "huge"})).await;
    assert!(peak_kilobytes() < before + 16 * 1024, "{before} → {}", peak_kilobytes());
}
