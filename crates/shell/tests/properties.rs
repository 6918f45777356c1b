//! What holds of every text, command or not: the reader comes to an end, says the same again, and misses no
//! redirection.

use attache_shell::Touch;
use proptest::prelude::*;

use super::{commands, corpus, footprint, is_unclear};

/// Read twice; paths are plain ones.
fn check(text: &str) {
    let first = footprint(text);
    assert_eq!(first, footprint(text), "{text:?}");
    for touch in &first.touches {
        let path = match touch {
            Touch::Read(path) | Touch::Write(path) => path,
            Touch::Command(command) => &command.directory,
            Touch::Host(host) => {
                assert!(!host.is_empty(), "a host without a name in {text:?}");
                continue;
            }
        };
        assert!(path.is_absolute() && path.iter().all(|name| name != ".."), "{path:?} in {text:?}");
    }
}

#[test]
fn an_address_that_names_no_host_may_be_any() {
    for text in ["echo x > /dev/tcp/", "echo x > /dev/udp//80", "cat < /dev/tcp//"] {
        check(text);
        assert!(footprint(text).touches.contains(&Touch::Host("*".into())), "{text}");
    }
}

fn corpus_command() -> impl Strategy<Value = String> {
    let commands: Vec<String> = corpus::lines().into_iter().map(|line| line.command).collect();
    prop::sample::select(commands)
}

/// Pieces that mean something to a shell, so that broken lines are broken in interesting places.
fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "$(",
            ")",
            "`",
            "'",
            "\"",
            "\\",
            "\n",
            "{",
            "}",
            "${",
            "<<E",
            "\nE\n",
            "<<<",
            ">",
            "&>",
            "|",
            "&&",
            "||",
            ";",
            ";;",
            "&",
            "(",
            "((",
            "))",
            "[[",
            "]]",
            "if ",
            "; then ",
            "; fi",
            "for x in ",
            "; do ",
            "; done",
            "case x in ",
            " esac",
            "f() ",
            "$'",
            "$\"",
            "$((",
            "=",
            "+=",
            "a[0]=",
            "#",
            "~",
            "*",
            "?",
            "[",
            "!",
            "\t",
            "\r",
            "é",
            "\u{202e}",
            "$x",
            "eval ",
            "exec ",
            "time ",
            "coproc ",
            "<(",
            ">(",
            "{a,b}",
            "{1..9}",
        ])
        .prop_map(str::to_owned),
        corpus_command(),
        "[ -~]{0,8}",
    ]
}

/// The nearest place in `text` where a character begins.
fn boundary(text: &str, index: prop::sample::Index) -> usize {
    let at = index.index(text.len() + 1);
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn mutated(
    mut text: String,
    changes: &[(prop::sample::Index, prop::sample::Index, Option<String>)],
) -> String {
    for (one, other, put) in changes {
        let (one, other) = (boundary(&text, *one), boundary(&text, *other));
        match put {
            Some(fragment) => text.insert_str(one, fragment),
            // At most a few characters: a line cut in half is no longer that line.
            None => {
                let end = other.clamp(one, one.saturating_add(4).min(text.len()));
                let end = (one..=end).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(one);
                text.replace_range(one..end, "");
            }
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_to_its_end(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn any_heap_of_fragments_is_read_to_its_end(fragments in prop::collection::vec(fragment(), 0..12)) {
        check(&fragments.concat());
    }

    #[test]
    fn a_broken_line_of_the_corpus_is_read_to_its_end(
        line in corpus_command(),
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), prop::option::of(fragment())),
            1..4,
        ),
    ) {
        check(&mutated(line, &changes));
    }

    /// Redirections of a group are made before anything in it runs, whatever that is and however it ends.
    #[test]
    fn a_redirection_behind_any_group_is_seen(
        line in prop_oneof![corpus_command(), commands::command()],
        group in 0..GROUPS.len(),
        operator in prop::sample::select(WRITES),
    ) {
        let (open, close) = GROUPS[group];
        let command = format!("{open}{line}\n{close} {operator}");
        prop_assert!(writes_or_is_unclear(&command), "{:?}: {:?}", command, footprint(&command));
    }

    /// A redirection may stand before, between and behind the words of a command.
    #[test]
    fn a_redirection_between_any_words_is_seen(
        words in prop::collection::vec("[a-z]{1,5}|'[a-z ;>]{0,5}'|-[a-z]|\\$[a-z]|[a-z]\\*|\"x \\$\\(ls\\)\"", 0..5),
        at in any::<prop::sample::Index>(),
        operator in prop::sample::select(WRITES),
        frame in 0..FRAMES.len(),
    ) {
        let mut words = words;
        words.insert(at.index(words.len() + 1), operator.to_owned());
        let (before, behind) = FRAMES[frame];
        let command = format!("{before}{}{behind}", words.join(" "));
        prop_assert!(writes_or_is_unclear(&command), "{:?}: {:?}", command, footprint(&command));
    }
}

const GROUPS: [(&str, &str); 7] = [
    ("{ ", "}"),
    ("( ", ")"),
    ("if true; then ", "fi"),
    ("for i in 1 2; do ", "done"),
    ("while true; do ", "done"),
    ("case x in x) ", ";; esac"),
    ("{ { ", "}; }"),
];

const WRITES: &[&str] = &[
    "> target",
    ">target",
    ">> target",
    ">| target",
    "&> target",
    "&>> target",
    "2> target",
    "1>target",
    "<> target",
    "3>target",
    "2>&1 > target",
    "> /dev/null 2> target",
    "> 'tar'\"get\"",
    "> sub/../target",
    "> {target,target}",
];

/// What always runs, around a command.
const FRAMES: [(&str, &str); 12] = [
    ("", ""),
    ("ls; ", ""),
    ("ls && ", " || ls"),
    ("ls | ", " | cat"),
    ("(", ")"),
    ("echo $(", ")"),
    ("echo \"$(", ")\""),
    ("f() { ", "; }; f"),
    ("if ", "; then ls; fi"),
    ("cat <(", ")"),
    ("{ ", "\n} 2>&1"),
    ("! ", " &"),
];

fn writes_or_is_unclear(command: &str) -> bool {
    let footprint = footprint(command);
    let writes = footprint.touches.iter().any(|touch| match touch {
        Touch::Write(path) => path.ends_with("target"),
        Touch::Read(_) | Touch::Command(_) | Touch::Host(_) => false,
    });
    writes || is_unclear(&footprint)
}
