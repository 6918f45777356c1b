//! `view_image`: pictures by their content, sizes, refusals.

use std::os::unix::fs::symlink;

use attache_core::ports::ToolOutcome;
use attache_core::ports::tool::{Access, FoundPicture, ToolKind};
use serde_json::json;

use crate::trial::Trial;

const LARGEST: usize = 5_000_000;

async fn found(trial: &Trial, path: &str) -> FoundPicture {
    match trial.run("view_image", json!({ "path": path })).await {
        ToolOutcome::Picture { found, presentation } => {
            assert!(presentation.metadata.is_some());
            assert_eq!(presentation.content, [], "the picture is shown by whoever keeps it");
            found
        }
        other => panic!("no picture: {other:?}"),
    }
}

fn png(size: usize) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    bytes.resize(size, 7);
    bytes
}

#[tokio::test]
async fn the_plan_names_the_path_and_is_a_read() {
    let trial = Trial::new();
    let plan = trial.plan("view_image", json!({"path": "img/../a.png"})).await.unwrap();
    let path = trial.root.join("a.png");
    assert_eq!(plan.presentation.title, "View `a.png`");
    assert_eq!(plan.presentation.kind, Some(ToolKind::Read));
    assert_eq!(plan.presentation.locations[0].path, path);
    assert_eq!(plan.accesses, [Access::ReadPath(path)]);
}

#[tokio::test]
async fn the_content_tells_what_an_image_is_not_its_name() {
    let trial = Trial::new();
    for (name, content, mime) in [
        ("a.txt", b"\x89PNG\r\n\x1a\n....".as_slice(), "image/png"),
        ("b.png", b"\xff\xd8\xff\xe0....", "image/jpeg"),
        ("c", b"GIF89a", "image/gif"),
        ("d.jpg", b"RIFF\x04\0\0\0WEBPVP8 ", "image/webp"),
    ] {
        trial.put(name, content);
        let path = trial.root.join(name);
        assert_eq!(
            found(&trial, name).await,
            FoundPicture { path, mime, bytes: content.to_vec(), text: String::new() }
        );
    }
    trial.put("text.png", "not a picture\n");
    trial.put("scan.png", b"II*\0....");
    trial.put("empty.png", "");
    for name in ["text.png", "scan.png", "empty.png"] {
        let error = trial.failed("view_image", json!({ "path": name })).await;
        assert_eq!(
            error,
            format!("view_image: {name} is not a PNG, JPEG, GIF or WebP image; convert it with a command")
        );
    }
}

#[tokio::test]
async fn five_megabytes_are_shown_and_one_byte_more_is_not() {
    let trial = Trial::new();
    trial.put("full.png", png(LARGEST));
    assert_eq!(found(&trial, "full.png").await.bytes, png(LARGEST));
    trial.put("more.png", png(LARGEST + 1));
    let error = trial.failed("view_image", json!({"path": "more.png"})).await;
    assert!(error.ends_with("more.png has 5000001 bytes, more than the 5000000 that can be shown; scale it down with a command"), "{error}");
}

#[tokio::test]
async fn it_reaches_no_further_than_read() {
    let trial = Trial::new();
    std::fs::write(trial.base.join("outside.png"), png(20)).unwrap();
    symlink(trial.base.join("outside.png"), trial.root.join("link.png")).unwrap();
    trial.put(".ssh/id_rsa", png(20));
    trial.put("dir/a.png", png(20));
    for (path, reason) in [
        ("link.png", "outside"),
        (".ssh/id_rsa", "is not shown to agents"),
        ("dir", "is a directory"),
        ("dir/b.png", "does not exist"),
    ] {
        let error = trial.failed("view_image", json!({ "path": path })).await;
        assert!(error.starts_with("view_image: ") && error.contains(reason), "{path}: {error}");
    }
}

#[tokio::test]
async fn a_pipe_does_not_hold_the_call_up() {
    let trial = Trial::new();
    let made = std::process::Command::new("mkfifo").arg(trial.root.join("a.png")).status().unwrap();
    assert!(made.success());
    let error = trial.failed("view_image", json!({"path": "a.png"})).await;
    assert!(error.contains("is not a regular file"), "{error}");
}

#[test]
fn it_is_for_models_that_take_images_and_costs_little() {
    let trial = Trial::new();
    let needing = trial.tools.iter().filter(|tool| tool.needs_images());
    let needing: Vec<_> = needing.map(|tool| tool.spec()).collect();
    assert_eq!(needing.iter().map(|spec| &*spec.id).collect::<Vec<_>>(), ["view_image"]);
    let cost = needing[0].description.len() + needing[0].parameters.to_string().len();
    assert!(cost <= 350, "{cost} bytes");
}
