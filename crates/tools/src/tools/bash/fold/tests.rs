//! What a terminal would finally show.

use proptest::prelude::*;

use super::*;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(folded([bytes])).unwrap()
}

#[test]
fn what_programs_print_becomes_what_a_person_reads() {
    for (printed, read) in [
        ("plain\ttext\nin lines\n", "plain\ttext\nin lines\n"),
        ("\x1b[1;31merror\x1b[0m: no\x1b[K\n", "error: no\n"),
        ("a\r\nb\r\n", "a\nb\n"),
        // curl, wget, git
        ("  5%\r 50%\r100%\n", "100%\n"),
        ("remote: 10% (1/9)\rremote: 100% (9/9), done.\nnext\n", "remote: 100% (9/9), done.\nnext\n"),
        ("long line\rnew\n", "newg line\n"),
        ("long line\r\x1b[Knew\n", "new\n"),
        // npm
        ("\x1b[1G\x1b[0K⠙\x1b[1G\x1b[0K⠹\x1b[1G\x1b[0Kadded 3 packages\n", "added 3 packages\n"),
        ("spin |\x08/\x08-\x08done\n", "spin done\n"),
        // docker, cargo, jest: they rewrite lines above
        (
            "one: 1%\ntwo: 1%\n\x1b[2A\x1b[2K\rone: 9%\x1b[1B\r\x1b[2Ktwo: 9%\x1b[1B\rend\n",
            "one: 9%\ntwo: 9%\nend\n",
        ),
        ("one\ntwo\nthree\n\x1b[3A\x1b[Jfinal\n", "final\n"),
        ("one\ntwo\n\x1b[1Fnew\x1b[K\n", "one\nnew\n"),
        ("kept\n\x1b[99Anew\n", "newt\n"),
        // titles, links, pictures
        ("\x1b]0;title\x07text\n", "text\n"),
        ("\x1b]8;;https://example.com\x1b\\link\x1b]8;;\x1b\\ after\n", "link after\n"),
        ("\x1bPq#0;2\x1b\\\x1b_Gx\x1b\\after\n", "after\n"),
        // a full screen program keeps everything printed before
        ("before\x1b[2J\x1b[Hafter\n", "before\nafter\n"),
        ("a\x1b[10Cb\n", "a b\n"),
        ("\x1b(B\x1b[?25lx\x1b[?25h\x1b=\x1b7y\x1b8\n", "xy\n"),
        // a sequence without an end swallows at most a line
        ("\x1b]0;no end\nnext\n", "\nnext\n"),
        ("\x1b[31\nnext\n", "\nnext\n"),
        ("\x1b", ""),
        ("bell\x07 null\0 delete\x7f form\x0cfeed\n", "bell null delete form\x0cfeed\n"),
        ("no newline\rNO", "NO newline"),
        ("äöü\rÄ\n", "Äöü\n"),
    ] {
        assert_eq!(text(printed.as_bytes()), read, "{printed:?}");
    }
}

#[test]
fn a_progress_bar_of_megabytes_is_one_line() {
    let mut fold = OutputFold::default();
    let mut out = Vec::new();
    for percent in 0..100_000 {
        fold.push(format!("\r[{}>] {percent}", "=".repeat(percent % 60)).as_bytes(), &mut out);
    }
    fold.settle(&mut out);
    assert!(out.len() < 100, "{}", String::from_utf8_lossy(&out));
}

#[test]
fn little_is_kept_of_much() {
    let mut fold = OutputFold::default();
    let mut total = 0;
    for piece in [b"0123456789\n".repeat(100_000), vec![b'x'; 1_000_000], b"\x1b[1A\x1b[K".repeat(100_000)] {
        let mut out = Vec::new();
        fold.push(&piece, &mut out);
        total += out.len();
        assert!(fold.above.len() <= 2 * FOLDED_REACH_BYTES + FOLDED_LINE_BYTES, "{}", fold.above.len());
    }
    assert!(total > 2_000_000, "{total}");
}

/// Pieces that mean something to terminals, and some that do not.
fn printed() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => "[a-z äß€😀]{0,12}".prop_map(String::into_bytes),
        3 => prop::sample::select(vec!["\n", "\r", "\r\n", "\x08", "\t", "\x07", "\x1b"])
            .prop_map(|text| text.as_bytes().to_vec()),
        4 => ("[0-9]{0,2}(;[0-9])?", "[ABCDEFGHJKmsuP@]")
            .prop_map(|(number, order)| format!("\x1b[{number}{order}").into_bytes()),
        1 => prop::sample::select(vec!["\x1b]0;t\x07", "\x1b]8;;u\x1b\\", "\x1b(B", "\x1b[?25l", "\x1bP"])
            .prop_map(|text| text.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..8),
        1 => (1usize..3, 1usize..40_000).prop_map(|(lines, length)| {
            format!("{}\n", "y".repeat(length)).repeat(lines).into_bytes()
        }),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn it_never_grows_and_is_done_at_once(printed in printed()) {
        let once = folded([printed.as_slice()]);
        prop_assert!(once.len() <= printed.len());
        prop_assert!(!once.iter().any(|byte| *byte != b'\n' && is_control(*byte)));
        prop_assert_eq!(&folded([once.as_slice()]), &once);
    }

    #[test]
    fn plain_text_is_untouched(text in "[^\\x00-\\x08\\x0b\\x0d-\\x1f\\x7f]{0,300}") {
        prop_assert_eq!(folded([text.as_bytes()]), text.as_bytes());
    }

    #[test]
    fn pieces_of_any_size_give_the_same(printed in printed(), sizes in prop::collection::vec(1usize..50, 1..20)) {
        let (mut fold, mut out) = (OutputFold::default(), Vec::new());
        let (mut rest, mut sizes) = (printed.as_slice(), sizes.iter().cycle());
        while !rest.is_empty() {
            let (piece, more) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
            fold.push(piece, &mut out);
            rest = more;
        }
        fold.settle(&mut out);
        prop_assert_eq!(out, folded([printed.as_slice()]));
    }

    #[test]
    fn any_bytes_fold(printed in any::<Vec<u8>>()) {
        prop_assert!(folded([printed.as_slice()]).len() <= printed.len());
    }
}
