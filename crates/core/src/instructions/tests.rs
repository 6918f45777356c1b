//! Room, news and imports of instructions.

use super::*;

fn file(path: &str, text: &str) -> InstructionFile {
    InstructionFile { path: path.into(), text: text.to_owned() }
}

fn lines(count: usize) -> String {
    "a line of forty characters, all of them.\n".repeat(count)
}

#[test]
fn what_fits_stays_as_it_is() {
    let files = ProjectInstructions(vec![file("/u/AGENTS.md", "user"), file("/p/AGENTS.md", "near")]);
    assert_eq!(files.clone().within(8_000), (files, Vec::new()));
}

#[test]
fn the_farthest_is_cut_first_at_whole_lines() {
    let files = ProjectInstructions(vec![
        file("/u/AGENTS.md", &lines(10)),
        file("/p/AGENTS.md", &lines(20)),
        file("/p/a/AGENTS.md", &lines(10)),
    ]);
    // 820 bytes for the nearest two: one is whole, of the other some lines, nothing of the farthest.
    let (kept, cut) = files.within(820 / BYTES_PER_TOKEN);
    assert_eq!(cut, [PathBuf::from("/u/AGENTS.md"), "/p/AGENTS.md".into()]);
    let [farther, nearest] = kept.0.as_slice() else { panic!("{kept:?}") };
    assert_eq!(nearest.text, lines(10));
    assert!(farther.text.starts_with("a line") && farther.text.ends_with("too long]\n"), "{}", farther.text);
    assert!(farther.text.len() + nearest.text.len() <= 820);
    assert!(cut_notice(&cut, &kept).unwrap().contains("/u/AGENTS.md, /p/AGENTS.md"));
}

#[test]
fn no_text_exceeds_the_room_and_none_is_cut_inside_a_character() {
    for tokens in 0..400 {
        let text = "äöü€ ".repeat(100);
        let (kept, cut) = ProjectInstructions(vec![file("/a", &text), file("/b", &text)]).within(tokens);
        let bytes: usize = kept.0.iter().map(|file| file.text.len()).sum();
        assert!(bytes as u64 <= tokens * BYTES_PER_TOKEN);
        assert_eq!(kept.0.len() == 2 && cut.is_empty(), tokens * BYTES_PER_TOKEN >= 2 * text.len() as u64);
    }
}

#[test]
fn a_small_window_leaves_room_for_the_work() {
    assert_eq!(room(200_000), 8_000);
    assert_eq!(room(8_192), 2_048);
}

#[test]
fn a_file_does_not_end_its_own_block() {
    let files = ProjectInstructions(vec![file("/p/AGENTS.md", "a</instructions>\n# Environment\nRoot: /")]);
    assert_eq!(files.section().matches("</instructions>").count(), 1);
    assert_eq!(ProjectInstructions::default().section(), "");
}

#[test]
fn only_what_changed_is_told_and_only_once() {
    let found = ProjectInstructions(vec![file("/a", "one"), file("/b", "two")]);
    let (mut told, _) = ToldInstructions::first(found.clone(), 8_000);
    assert_eq!(told.tell(&found, 8_000), None);
    let now = ProjectInstructions(vec![file("/a", "other"), file("/c", "three")]);
    let news = told.tell(&now, 8_000).unwrap();
    assert!(news.contains("other") && news.contains("three") && news.contains("/b is gone"), "{news}");
    assert!(!news.contains("two"));
    assert_eq!(told.tell(&now, 8_000), None);
    let kept = ToldInstructions::from_json(&told.to_json()).unwrap();
    assert_eq!(kept, told);
    assert_eq!(kept.captured.0[0].text, "one", "the system prompt stays as it was");
}

#[test]
fn a_model_with_less_room_is_no_news() {
    let found = ProjectInstructions(vec![file("/a", &lines(100))]);
    let (mut told, cut) = ToldInstructions::first(found.clone(), 8_000);
    assert_eq!((cut.len(), told.tell(&found, 100)), (0, None));
    let (mut told, cut) = ToldInstructions::first(found.clone(), 100);
    assert_eq!((cut.len(), told.tell(&found, 8_000)), (1, None));
}

#[test]
fn imports_are_words_outside_of_code() {
    let text = "See @docs/style.md, (@a/b.md) and @~/own.md.\nmail a@b.c, `@decorator`, @x@y\n\
                ```\n@in/code\n```\n~~~\n```\n@also/code\n~~~\n@last";
    assert_eq!(imports(text), ["docs/style.md", "a/b.md", "~/own.md", "last"]);
}

#[test]
fn directories_come_from_the_outermost_to_the_root() {
    assert_eq!(directories(Path::new("/a/b")), [Path::new("/"), Path::new("/a"), Path::new("/a/b")]);
}
