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
    let path = "/usr/large.txt";
    assert_eq!(title(json!({"path": path})).await, "Read `/usr/large.txt`");
    assert_eq!(title(json!({"path": path, "limit": 100})).await, "Read `/usr/large.txt` (1 - 100)");
    assert_eq!(
        title(json!({"path": path, "offset": 50, "limit": 100})).await,
        "Read `/usr/large.txt` (51 - 150)"
    );
    assert_eq!(title(json!({"path": path, "offset": 200})).await, "Read `/usr/large.txt` (from line 201)");
    assert_eq!(title(json!({"path": "src/__init__.py"})).await, "Read `src/__init__.py`");
    assert_eq!(title(json!({"path": path, "offset": 0})).await, "Read `/usr/large.txt`");
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
    assert_eq!(data, "1:one\n2:two\n");
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
        "51:line 51\n52:line 52\n<file-read-info>Lines 51 - 52 of 500; go on with offset 52.</file-read-info>"
    );
    assert_eq!(shown_text(&presentation), "```\nline 51\nline 52\n```");
    assert_eq!(presentation.locations[0].line, Some(51));
    let (data, _) = trial.done("read", json!({"path": "a.txt", "offset": 499})).await;
    assert!(
        data.as_str().unwrap().ends_with("Lines 500 - 500 of 500, the end of the file.</file-read-info>")
    );
}

/// What `read` makes of a text that it shows whole.
fn lined(text: &str) -> String {
    text.lines().enumerate().map(|(index, line)| format!("{}:{line}\n", index + 1)).collect()
}

#[tokio::test]
async fn two_thousand_lines_are_a_portion() {
    let trial = Trial::with_file("a.txt", "x\n".repeat(2_001));
    for input in [json!({"path": "a.txt"}), json!({"path": "a.txt", "limit": 9_999})] {
        let (data, presentation) = trial.done("read", input).await;
        assert!(data.as_str().unwrap().starts_with(&lined(&"x\n".repeat(2_000))));
        assert!(data.as_str().unwrap().contains("Lines 1 - 2000 of 2001; go on with offset 2000"));
        assert!(presentation.metadata.unwrap().truncated);
    }
    let trial = Trial::with_file("a.txt", "x\n".repeat(2_000));
    let (data, _) = trial.done("read", json!({"path": "a.txt"})).await;
    assert_eq!(data, lined(&"x\n".repeat(2_000)));
}

#[tokio::test]
async fn fifty_kilobytes_are_a_portion_whatever_is_asked_for() {
    let line = format!("{}\n", "x".repeat(999));
    let trial = Trial::with_file("a.txt", line.repeat(300));
    for input in [json!({"path": "a.txt"}), json!({"path": "a.txt", "limit": 300})] {
        let (data, _) = trial.done("read", input).await;
        let data = data.as_str().unwrap();
        assert!(data.starts_with(&lined(&line.repeat(49))));
        assert!(data.contains("Lines 1 - 49 of 300; go on with offset 49."), "{}", &data[data.len() - 200..]);
        assert!(data.len() <= 50_000 + 200, "{}", data.len());
    }
}

#[tokio::test]
async fn one_long_line_costs_little() {
    for (long, characters) in
        [("x".repeat(200_000), 2_000), ("€".repeat(100_000), 2_000), ("é".repeat(2_001), 2_000)]
    {
        let trial = Trial::with_file("a.js", format!("{long}\nnext\n"));
        let (data, presentation) = trial.done("read", json!({"path": "a.js"})).await;
        let text = data.as_str().unwrap();
        let kept: String = long.chars().take(characters).collect();
        let expected = format!("1:{kept}… [cut: the line has {} bytes]\n2:next\n", long.len());
        assert!(text.starts_with(&expected), "{}", &text[text.len() - 300..]);
        assert!(
            text.ends_with("Lines are cut at 2000 characters; use a command for the rest.</file-read-info>")
        );
        assert!(text.len() <= kept.len() + 200);
        assert!(presentation.metadata.unwrap().truncated);
        let (data, _) = trial.done("read", json!({"path": "a.js", "offset": 1})).await;
        assert!(data.as_str().unwrap().starts_with("2:next\n"));
    }
    let trial = Trial::with_file("a.txt", "é".repeat(2_000));
    let (data, _) = trial.done("read", json!({"path": "a.txt"})).await;
    assert_eq!(data, format!("1:{}\n", "é".repeat(2_000)));
}

#[tokio::test]
async fn no_file_makes_a_result_longer_than_its_bound() {
    let wide: String = (0..400).map(|line| "😀".repeat(line * 13) + "\n").collect();
    let bytes: Vec<u8> = (0..3_000).flat_map(|line| [vec![0xe9; line % 700], vec![b'\n']].concat()).collect();
    for content in [wide.into_bytes(), bytes, vec![b'\n'; 100_000], vec![b'x'; 3_000_000]] {
        let trial = Trial::with_file("a.txt", content);
        for offset in [0, 1_000] {
            let data =
                match trial.run("read", json!({"path": "a.txt", "offset": offset, "limit": 100_000})).await {
                    attache_core::ports::ToolOutcome::Output { data, .. } => data,
                    _ => continue,
                };
            assert!(data.as_str().unwrap().len() <= 50_400, "{}", data.as_str().unwrap().len());
        }
    }
}

#[tokio::test]
async fn an_empty_file_is_called_that() {
    let trial = Trial::with_file("a.txt", "");
    let (data, presentation) = trial.done("read", json!({"path": "a.txt"})).await;
    assert_eq!(data, "<file-read-info>The file is empty.</file-read-info>");
    assert!(presentation.content.is_empty());
    let error = trial.failed("read", json!({"path": "a.txt", "offset": 1})).await;
    assert!(error.contains("the file is empty"), "{error}");
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
    assert_eq!(data, "1:hello\n");
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
        assert_eq!(data, "1:café\n2:x\n");
        let (data, _) = trial.done("read", json!({"path": "a.txt", "offset": 1})).await;
        assert!(data.as_str().unwrap().starts_with("2:x\n"), "{data}");
    }
}

#[tokio::test]
async fn what_is_not_text_is_refused_with_what_to_use() {
    for (content, expected) in [
        (b"\x89PNG\r\n\x1a\n".to_vec(), "`view_image`"),
        (b"\x7fELF\0".to_vec(), "with a command"),
        (b"ab\ncaf\xc3\xa9 caf\xe9\n".to_vec(), "in an unknown encoding (invalid at byte 12)"),
        ([vec![b'a'; 20_000], vec![0]].concat(), "binary"),
    ] {
        let trial = Trial::with_file("a", content);
        let error = trial.failed("read", json!({"path": "a"})).await;
        assert!(error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn directories_are_listed() {
    let trial = Trial::with_file("main.rs", "x");
    trial.put("src/a.rs", "");
    trial.put("id_rsa", "key");
    symlink("src", trial.root.join("link")).unwrap();
    let (data, presentation) = trial.done("read", json!({"path": "."})).await;
    assert_eq!(data, "link\nmain.rs\nsrc/\n");
    assert_eq!(shown_text(&presentation), "```\nlink\nmain.rs\nsrc/\n```");
    let (data, _) = trial.done("read", json!({"path": "link"})).await;
    assert_eq!(data, "a.rs\n");
    let (data, _) = trial.done("read", json!({"path": ".", "offset": 1, "limit": 1})).await;
    assert_eq!(data, "main.rs\n<file-read-info>Entries 2 - 2 of 3; go on with offset 2.</file-read-info>");
    std::fs::create_dir(trial.root.join("empty")).unwrap();
    let (data, _) = trial.done("read", json!({"path": "empty"})).await;
    assert_eq!(data, "<file-read-info>The directory is empty.</file-read-info>");
    for number in 0..3_000 {
        trial.put(&format!("many/{number:0>40}"), "");
    }
    let (data, presentation) = trial.done("read", json!({"path": "many"})).await;
    assert!(data.as_str().unwrap().len() < 16_200 && presentation.metadata.unwrap().truncated);
    assert!(data.as_str().unwrap().contains(" of 3000; go on with offset "), "{data}");
}

#[tokio::test]
async fn missing_files_are_told_with_what_may_have_been_meant() {
    let trial = Trial::with_file("main.rs", "x");
    trial.put("crates/tools/src/read.rs", "x");
    let error = trial.failed("read", json!({"path": "crates/tool/src/read.rs"})).await;
    assert!(
        error.ends_with("crates/tool/src/read.rs does not exist; did you mean crates/tools/src/read.rs?"),
        "{error}"
    );
    let error = trial.failed("read", json!({"path": "crate/x"})).await;
    assert!(error.ends_with("; the nearest name there is crates"), "{error}");
    let error = trial.failed("read", json!({"path": "nowhere/read.rs"})).await;
    assert!(error.ends_with("does not exist; did you mean crates/tools/src/read.rs?"), "{error}");
    trial.put(".hidden/secret.rs", "x");
    let error = trial.failed("read", json!({"path": "nowhere/secret.rs"})).await;
    assert!(error.ends_with("; the path exists up to ."), "{error}");
    for tool in ["glob", "grep"] {
        let error = trial.failed(tool, json!({"pattern": "x", "path": "crates/tols"})).await;
        assert!(error.ends_with("does not exist; nearest names there: tools"), "{error}");
        let error = trial.failed(tool, json!({"pattern": "x", "path": "crates/tols/src"})).await;
        assert!(error.contains("did you mean") && error.ends_with("crates/tools/src?"), "{error}");
    }
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
    assert!(matches!(outcome, attache_core::ports::ToolOutcome::Output { data, .. } if data == "1:s3cret\n"));
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
    assert!(data.as_str().unwrap().starts_with("2:last\n"));
    trial.done("read", json!({"path": "huge"})).await;
    assert!(peak_kilobytes() < before + 16 * 1024, "{before} → {}", peak_kilobytes());
}

#[tokio::test]
async fn a_read_takes_no_more_than_the_model_has_room_for() {
    let trial = Trial::with_file("a.txt", "0123456789\n".repeat(1_000));
    let runtime = attache_core::ports::ToolRuntime { result_bytes: 500, ..trial.runtime() };
    let outcome = trial.tool("read").run(json!({"path": "a.txt"}), runtime).await;
    let attache_core::ports::ToolOutcome::Output { data, .. } = outcome else { panic!("{outcome:?}") };
    let text = data.as_str().unwrap();
    assert!(text.len() < 700 && text.contains("of 1000; go on with offset"), "{text}");
}

/// Nobody can grant what is not there.
#[tokio::test]
async fn a_path_outside_whose_directory_is_missing_is_told_before_anybody_is_asked() {
    let trial = Trial::new();
    trial.put("src/main.rs", "fn main() {}\n");
    for (tool, more) in [("read", json!({})), ("edit", json!({"old_string": "a", "new_string": "b"}))] {
        for (path, told) in [
            (
                "/nowhere/app/src/main.rs",
                "/nowhere/app/src/main.rs does not exist; did you mean src/main.rs?",
            ),
            ("/nowhere/x.rs", "/nowhere/x.rs does not exist; the workspace is "),
        ] {
            let mut input = more.clone();
            input["path"] = json!(path);
            let error = trial.plan(tool, input).await.unwrap_err();
            assert!(error.contains(told), "{tool}: {error}");
        }
    }
    // What may be there is asked for, and so is a new file.
    for (tool, input) in [
        ("read", json!({"path": "/etc/nowhere.txt"})),
        ("write", json!({"path": "/nowhere/x.rs", "content": "x"})),
    ] {
        assert!(!trial.plan(tool, input).await.unwrap().accesses.is_empty(), "{tool}");
    }
}
