//! What keys and pastes come to, and the blocks of a prompt.

use super::*;
use crate::screen::look::ScreenLook;

const NOTHING: Vocabulary<'static> = Vocabulary { own: &[], commands: &[] };

fn typed(text: &str) -> Composer {
    let mut composer = Composer::default();
    for character in text.chars() {
        composer.key(KeyEvent::from(KeyCode::Char(character)), NOTHING);
    }
    composer
}

fn press(composer: &mut Composer, code: KeyCode, modifiers: KeyModifiers) -> Typed {
    composer.key(KeyEvent::new(code, modifiers), NOTHING)
}

fn blocks(mut composer: Composer, embeds: Embeds) -> Vec<serde_json::Value> {
    let written = composer.take(Path::new("/w"), embeds).unwrap();
    written.blocks.iter().map(|block| serde_json::to_value(block).unwrap()).collect()
}

#[test]
fn enter_sends_and_three_other_ways_make_a_new_line() {
    let mut composer = typed("a");
    press(&mut composer, KeyCode::Enter, KeyModifiers::ALT);
    press(&mut composer, KeyCode::Char('j'), KeyModifiers::CONTROL);
    press(&mut composer, KeyCode::Char('\\'), KeyModifiers::NONE);
    assert_eq!(press(&mut composer, KeyCode::Enter, KeyModifiers::NONE), Typed::Taken);
    assert_eq!(composer.text(), "a\n\n\n");
    assert_eq!(press(&mut composer, KeyCode::Enter, KeyModifiers::NONE), Typed::Send);
}

#[test]
fn a_long_paste_is_an_attachment_in_its_place() {
    let long = "line\r\n".repeat(50);
    let mut composer = typed("see ");
    composer.paste(&long).unwrap();
    composer.paste(" here").unwrap();
    assert_eq!(composer.text(), "see [pasted 50 lines #1] here");
    let blocks = blocks(composer, Embeds::Texts);
    assert_eq!(blocks.len(), 3);
    assert_eq!(blocks[1]["resource"]["text"], "line\n".repeat(50));
    assert_eq!(blocks[2]["text"], " here");
}

#[test]
fn an_agent_without_attachments_gets_the_text() {
    let mut composer = typed("see ");
    composer.paste(&"x".repeat(PASTE_BYTES + 1)).unwrap();
    let blocks = blocks(composer, Embeds::Nothing);
    assert_eq!(blocks.len(), 1);
    assert_eq!(blocks[0]["text"].as_str().unwrap().len(), PASTE_BYTES + 5);
}

#[test]
fn a_file_that_is_known_becomes_a_link_and_an_address_does_not() {
    let mut composer = typed("fix @src/a.rs and me@src/a.rs @no.rs @\"b c.rs\"");
    composer.files.add(vec!["src/a.rs".into(), "b c.rs".into()]);
    let blocks = blocks(composer, Embeds::Texts);
    assert_eq!(blocks[1]["uri"], "file:///w/src/a.rs");
    assert_eq!(blocks[2]["text"], " and me@src/a.rs @no.rs ");
    assert_eq!(blocks[3]["uri"], "file:///w/b%20c.rs");
    assert_eq!(blocks.len(), 4);
}

#[test]
fn a_command_is_completed_and_sent_with_two_enters() {
    let commands = [AvailableCommand::new("compact", "makes room")];
    let words = Vocabulary { own: &[], commands: &commands };
    let mut composer = Composer::default();
    for character in "/comp".chars() {
        composer.key(KeyEvent::from(KeyCode::Char(character)), words);
    }
    assert_eq!(composer.key(KeyEvent::from(KeyCode::Enter), words), Typed::Taken);
    assert_eq!(composer.text(), "/compact ");
    assert_eq!(composer.key(KeyEvent::from(KeyCode::Enter), words), Typed::Send);
}

#[test]
fn a_list_that_was_put_away_stays_away() {
    let commands = [AvailableCommand::new("compact", "makes room")];
    let words = Vocabulary { own: &[], commands: &commands };
    let mut composer = Composer::default();
    composer.key(KeyEvent::from(KeyCode::Char('/')), words);
    assert!(composer.dismiss());
    assert!(!composer.dismiss());
    assert_eq!(composer.key(KeyEvent::from(KeyCode::Enter), words), Typed::Send);
}

#[test]
fn what_is_pasted_can_not_reach_the_terminal() {
    let mut composer = Composer::default();
    composer.paste("a\x1b[2J\u{202e}").unwrap();
    let shown = composer.show(ScreenLook::PLAIN, 40, "");
    assert_eq!(shown.lines[0].to_string(), "› a\\u{1b}[2J\\u{202e}");
}
