//! What a prompt is made of: words, a pipe, files.

use super::*;

const SCRIPT: &str = r#"
model vision images=true
on "why"*
  text "Because."
on "from the pipe\n"
  text "I read the pipe."
"#;

/// The smallest picture there is, one pixel.
#[rustfmt::skip]
const PIXEL: [u8; 69] = [
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52, 0x00, 0x00,
    0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00, 0x00, 0x90, 0x77, 0x53, 0xde, 0x00, 0x00, 0x00,
    0x0c, 0x49, 0x44, 0x41, 0x54, 0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0x00, 0x00, 0x03, 0x01, 0x01, 0x00, 0xc9,
    0xfe, 0x92, 0xef, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

#[tokio::test]
async fn a_pipe_is_the_prompt() {
    let home = home(SCRIPT);
    let ran = chat_with(&home, &["-p"], b"from the pipe\n").await;
    assert_eq!((ran.code, ran.said.as_str()), (Some(0), "I read the pipe.\n"), "{ran:?}");
}

#[tokio::test]
async fn a_pipe_beside_a_prompt_is_its_context() {
    let home = home(SCRIPT);
    let ran = chat_with(&home, &["-p", "why?", "--output", "json"], b"error: it broke\n").await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let stored = export(&home, ran.object()["sessionId"].as_str().unwrap()).await;
    assert!(stored.contains("stdin:") && stored.contains("error: it broke"), "{stored}");
}

#[tokio::test]
async fn files_are_what_their_content_is() {
    let home = home(SCRIPT);
    let (text, picture) = (home.workspace().join("notes.png"), home.workspace().join("picture.txt"));
    std::fs::write(&text, "these are words\n").unwrap();
    std::fs::write(&picture, PIXEL).unwrap();
    let arguments =
        ["-p", "why?", "--attach", "notes.png", "--attach", "picture.txt", "--model", "script/vision"];
    let ran = chat(&home, &[&arguments[..], &["--output", "json"]].concat()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let stored = export(&home, ran.object()["sessionId"].as_str().unwrap()).await;
    assert!(stored.contains("these are words") && stored.contains("notes.png"), "{stored}");
    assert!(stored.contains("image/png"), "{stored}");
}

#[tokio::test]
async fn a_session_works_in_the_directory_of_cwd() {
    let home = home(SCRIPT);
    let below = home.workspace().join("below");
    std::fs::create_dir(&below).unwrap();
    std::fs::write(home.workspace().join("here.txt"), "named from where it was typed\n").unwrap();
    let arguments = ["-p", "why?", "--cwd", "below", "--attach", "here.txt", "--output", "json"];
    let ran = chat(&home, &arguments).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let stored = export(&home, ran.object()["sessionId"].as_str().unwrap()).await;
    assert!(stored.contains("named from where it was typed"), "{stored}");
    let listed = home.command().args(["sessions", "list", "--json"]).output().await.unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains(below.canonicalize().unwrap().to_str().unwrap()), "{listed}");
}
