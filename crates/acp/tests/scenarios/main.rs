//! The agent at the wire, told as transcripts: every `scenarios/*.md` is read, played and compared. What the
//! lines mean is in `scenarios/README.md`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

mod arguments;
mod editor;
mod grammar;
mod host;
mod limits;
mod names;
mod play;
mod script;
mod sent;
mod show;
mod topic;

/// One test per file, so that they run beside each other and fail by name.
macro_rules! topics {
    ($($name:ident)*) => {
        const TOPICS: &[&str] = &[$(stringify!($name)),*];
        $(#[test]
        fn $name() {
            topic::hold(stringify!($name));
        })*
    };
}

topics! {
    apply_patch
    approvals
    attachments
    bash
    bash_background
    cancel
    chunks
    clients
    command_templates
    compaction
    edit
    editor
    glob
    grep
    handshake
    hooks
    model_failures
    modes
    network
    permissions
    plan_exit
    question
    queue
    read
    requests
    restart
    rewind
    server_prompts
    sessions
    several_clients
    skill
    slash_commands
    task
    titles
    todo
    tool_calls
    view_image
    web_fetch
    web_search
    write
}

#[test]
fn every_file_is_a_topic() {
    let mut files: Vec<String> = std::fs::read_dir(topic::folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".md").map(str::to_owned))
        .collect();
    files.sort();
    let mut known: Vec<&str> = TOPICS.to_vec();
    known.push("README");
    known.sort_unstable();
    assert_eq!(files, known);
}

#[test]
fn the_example_of_the_readme_holds() {
    topic::hold("README");
}

mod of_the_runner {
    //! The runner itself must fail when it should, and say where.

    use super::grammar::scenarios;
    use super::topic::{Checked, check};

    const TURN: &str = "# t\n\n## A turn\n```text\nclient  session/prompt \"hi\"\nmodel   text \"Hello.\"\n";

    fn failure(expectation: &str) -> String {
        let text = format!("{TURN}{expectation}\n```\n");
        let Checked { mut failures, .. } = check("t.md", &scenarios("t.md", &text).unwrap());
        assert_eq!(failures.len(), 1, "{failures:?}");
        failures.remove(0)
    }

    #[test]
    fn a_right_expectation_holds() {
        let text = format!("{TURN}=> agent_message \"Hello.\" · end_turn\n```\n");
        assert_eq!(check("t.md", &scenarios("t.md", &text).unwrap()).failures, Vec::<String>::new());
    }

    #[test]
    fn a_wrong_expectation_fails_with_its_place_and_both_sides() {
        let shown = failure("=> agent_message \"Bye.\" · end_turn");
        assert!(shown.starts_with("t.md:7: A turn\n"), "{shown}");
        assert!(
            shown.contains("- agent_message \"Bye.\"\n+ agent_message \"Hello.\"\n  end_turn"),
            "{shown}"
        );
    }

    #[test]
    fn an_item_too_many_or_too_few_fails() {
        assert!(failure("=> agent_message \"Hello.\" · refusal · end_turn").contains("\n- refusal\n"));
        assert!(failure("=> end_turn").contains("\n+ agent_message \"Hello.\"\n"));
    }

    #[test]
    fn what_nobody_expected_fails_at_the_end() {
        let shown = failure("# no expectation");
        assert!(shown.contains("never expected") && shown.contains("agent_message \"Hello.\""), "{shown}");
    }

    #[test]
    fn a_wrong_file_fails() {
        let shown = failure("=> agent_message \"Hello.\" · end_turn\nfiles   a.txt is \"x\"");
        assert!(shown.starts_with("t.md:8: ") && shown.contains("a.txt is missing"), "{shown}");
    }

    #[test]
    fn an_unknown_line_is_an_error_with_its_place() {
        for (line, told) in [
            ("robot   do it", "t.md:7: there is no directive `robot`"),
            ("client  dance", "t.md:7: there is no request `dance`"),
            ("client  permission maybe", "t.md:7: there is no answer `maybe`"),
            ("with    luck", "t.md:7: there is no option `luck`"),
            ("show    everything", "t.md:7: there is nothing called `everything` to show"),
            ("host    sleeps", "t.md:7: a host does not `sleeps`"),
            ("files   a.txt hello", "t.md:7: "),
            ("client  session/prompt \"hi", "t.md:7: "),
        ] {
            let text = format!("{TURN}{line}\n=> nothing\n```\n");
            let error = scenarios("t.md", &text).unwrap_err();
            assert!(error.starts_with(told), "{line}: {error}");
        }
    }

    #[test]
    fn a_script_that_cannot_be_read_is_told_by_the_line_of_the_file() {
        let text = format!("{TURN}model   mumble\n=> nothing\n```\n");
        let error = scenarios("t.md", &text).unwrap_err();
        assert!(error.starts_with("t.md:7: "), "{error}");
    }

    #[test]
    fn one_prompt_cannot_have_two_scripts() {
        let text = format!("{TURN}client  session/prompt \"hi\"\nmodel   text \"Again.\"\n=> nothing\n```\n");
        let error = scenarios("t.md", &text).unwrap_err();
        assert!(error.starts_with("t.md:8: "), "{error}");
    }
}
