//! What keys and pastes come to, and the blocks of a prompt.

use super::*;
use crate::screen::limits::PASTE_BYTES;
use crate::screen::theme::ScreenTheme;

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
    let takes = PromptTakes { embeds, pictures: PictureWay::Taken };
    let written = composer.take(std::path::Path::new("/w"), takes).unwrap();
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
fn tab_behind_a_command_asks_the_agent_how_it_goes_on() {
    let words = Vocabulary { own: &[], commands: &[] };
    let mut composer = typed("/docs:page in");
    assert_eq!(composer.key(KeyEvent::from(KeyCode::Tab), words), Typed::Complete);
    composer.offer_completed("/docs:page i", vec!["/docs:page input ".to_owned()]);
    assert_eq!(
        composer.key(KeyEvent::from(KeyCode::Tab), words),
        Typed::Complete,
        "that was for another text"
    );
    let offered = ["/docs:page install ", "/docs:page \u{1b}[31m "].map(str::to_owned);
    composer.offer_completed("/docs:page in", offered.to_vec());
    assert_eq!(composer.key(KeyEvent::from(KeyCode::Tab), words), Typed::Taken);
    assert_eq!(composer.text(), "/docs:page install ");
    assert_eq!(typed("plain words").key(KeyEvent::from(KeyCode::Tab), words), Typed::Other);
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
    let shown = composer.show(ScreenTheme::PLAIN, 40, "");
    assert_eq!(shown.lines[0].to_string(), "› a\\u{1b}[2J\\u{202e}");
}

fn shot(uri: Option<&str>) -> PastedPicture {
    let (name, mime) = ("shot.png".to_owned(), "image/png".to_owned());
    PastedPicture { name, mime, data: "AAAA".to_owned(), uri: uri.map(str::to_owned) }
}

#[test]
fn a_picture_is_a_block_in_its_place_or_a_link_or_its_name() {
    let with_picture = |uri| {
        let mut composer = typed("see ");
        composer.attach_picture(shot(uri));
        assert_eq!(composer.text(), "see [image shot.png #1]");
        composer
    };
    let taken = blocks(with_picture(None), Embeds::Texts);
    assert_eq!((&taken[1]["type"], &taken[1]["data"]), (&"image".into(), &"AAAA".into()));
    let sent = |mut composer: Composer| {
        let takes = PromptTakes { embeds: Embeds::Texts, pictures: PictureWay::Linked };
        let written = composer.take(std::path::Path::new("/w"), takes).unwrap();
        serde_json::to_value(&written.blocks).unwrap()
    };
    assert_eq!(sent(with_picture(Some("file:///w/shot.png")))[1]["uri"], "file:///w/shot.png");
    assert_eq!(sent(with_picture(None))[0]["text"], "see [image shot.png #1]");
}

#[test]
fn a_prompt_that_comes_back_has_all_that_it_held() {
    let mut composer = typed("see ");
    composer.paste(&"line\n".repeat(50)).unwrap();
    composer.attach_picture(shot(None));
    let before = blocks(composer, Embeds::Texts);
    let sent: Vec<ContentBlock> =
        before.iter().map(|block| serde_json::from_value(block.clone()).unwrap()).collect();
    let mut again = Composer::default();
    again.take_over(&sent);
    assert_eq!(again.text(), "see [text 50 lines #1][image  #2]");
    let after = blocks(again, Embeds::Texts);
    assert_eq!(after.len(), before.len());
    assert_eq!(after[1]["resource"]["text"], before[1]["resource"]["text"]);
    assert_eq!(after[2]["data"], before[2]["data"]);
}
