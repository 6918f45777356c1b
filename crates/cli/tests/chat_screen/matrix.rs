//! What a user does in a chat beside talking, on four terminals: each course is walked on all of them, and
//! what is seen where nothing moves is compared with reviewed screens. `UPDATE_EXPECT=1` rewrites them.

use rustix::process::{Pid, Signal, kill_process};

use crate::agents::agent_of;
use crate::questions::number_of;
use crate::screens::{holds, settled};
use crate::stage::{READY, Stage};

/// A terminal: its name, size and variables.
type Terminal = (&'static str, (u16, u16), &'static [(&'static str, &'static str)]);

const TERMINALS: [Terminal; 4] = [
    ("80x24", (80, 24), &[]),
    ("200x50", (200, 50), &[]),
    ("40x12", (40, 12), &[]),
    ("bare", (80, 24), &[("NO_COLOR", "1"), ("LC_ALL", "C"), ("LANG", "C")]),
];

/// The words of a screen, wherever its lines end.
fn words(screen: &str) -> String {
    screen.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// One course on one terminal.
struct Course {
    stage: Stage,
    terminal: Terminal,
}

impl Course {
    fn on_each(script: &str, walk: impl Fn(&Self)) {
        for terminal in TERMINALS {
            let (_, size, variables) = terminal;
            walk(&Self { stage: Stage::of_size(script, size, variables), terminal });
        }
    }

    fn seen(&self, what: &str) -> String {
        let on = self.terminal.0;
        self.stage.tmux.wait_until(&format!("{what:?} on {on}"), |screen| words(screen).contains(what))
    }

    fn at_rest(&self, what: &str) -> String {
        self.stage.tmux.wait_until(&format!("{what:?} at rest on {}", self.terminal.0), |screen| {
            words(screen).contains(what) && screen.contains(READY) && !screen.contains("esc stops")
        })
    }

    /// Compared with the reviewed screen of this stop, from the last line with these words on: how much of
    /// what is above has scrolled away already hangs on the moment.
    fn stop(&self, name: &str, from: &str, screen: &str) {
        let lines: Vec<&str> = screen.lines().collect();
        let first = lines.iter().rposition(|line| line.contains(from)).expect("the line it begins with");
        let shown = settled(&self.stage, &lines[first..].join("\n"));
        holds(&format!("{name}-{}", self.terminal.0), &shown);
    }

    fn leave(&self) {
        self.stage.tmux.press(&["C-d"]);
        self.seen("shell>");
    }
}

#[test]
fn a_turn_is_stopped_waited_behind_and_steered() {
    const SCRIPT: &str = "\
on \"slow\"
  stream 4000 \"x \" every 50ms
on \"queued\"
  text \"Queued answer.\"
on \"work\"
  call bash {\"command\":\"until [ -e go ]; do sleep 0.05; done\"}
  ---
  text \"Not steered.\"
on \"this way\"
  text \"Steered.\"
";
    Course::on_each(SCRIPT, |course| {
        let stage = &course.stage;
        stage.chat("--approval all");
        stage.say("slow");
        course.seen("x x");
        stage.tmux.press(&["Escape"]);
        course.at_rest("Stopped.");
        stage.say("slow");
        course.seen("esc stops");
        stage.say("queued");
        course.seen("waits: queued");
        stage.tmux.press(&["Escape"]);
        course.at_rest("Queued answer.");
        stage.say("work");
        course.seen("until [ -e go ]");
        stage.tmux.write("this way");
        stage.tmux.press(&["C-s"]);
        course.seen("waits: this way");
        std::fs::write(stage.home.workspace().join("go"), "").unwrap();
        let screen = course.at_rest("Steered.");
        assert!(!stage.tmux.everything().contains("Not steered."), "{screen}");
    });
}

#[test]
fn a_permission_is_given_by_each_answer() {
    let write = |name: &str| {
        format!(
            "on \"write {name}\"\n  call write {{\"path\":\"{name}.txt\",\"content\":\"new\\n\"}}\n  ---\n  text \"Ended {name}.\"\n"
        )
    };
    let script: String = ["once", "no", "word", "stop", "always", "again"].map(write).concat()
        + "on \"elsewhere\"\n  text \"Then elsewhere.\"\n";
    Course::on_each(&script, |course| {
        let stage = &course.stage;
        stage.chat("");
        let answer = |name: &str, option: &str| {
            stage.say(&format!("write {name}"));
            let screen = course.seen("Reject, and say");
            assert!(stage.workspace_file(&format!("{name}.txt")).is_none(), "{screen}");
            stage.tmux.write(&number_of(&screen, option));
        };
        answer("once", "Allow once");
        course.at_rest("Ended once.");
        answer("no", "Reject");
        let screen = course.at_rest("Ended no.");
        course.stop("rejected", "no.txt", &screen);
        answer("word", "say what to do");
        course.seen("enter rejects");
        stage.say("elsewhere");
        course.at_rest("Then elsewhere.");
        stage.say("write stop");
        course.seen("Reject, and say");
        stage.tmux.press(&["Escape"]);
        course.at_rest("Stopped.");
        answer("always", "edits");
        course.at_rest("Ended always.");
        stage.say("write again");
        course.at_rest("Ended again.");
        let written = ["once", "no", "word", "stop", "always", "again"]
            .map(|name| stage.workspace_file(&format!("{name}.txt")).is_some());
        assert_eq!(written, [true, false, false, false, true, true], "{}", course.terminal.0);
    });
}

#[test]
fn a_session_is_gone_back_in_copied_left_and_gone_on_with_by_another_model() {
    const SCRIPT: &str = "\
model second context=8000
on \"first\"
  text \"Answer one.\"
on \"second\"
  text \"Answer two.\"
on *
  text \"Something else.\"
";
    Course::on_each(SCRIPT, |course| {
        let stage = &course.stage;
        stage.chat("");
        stage.say("first");
        course.at_rest("Answer one.");
        stage.say("second");
        course.at_rest("Answer two.");
        stage.tmux.press(&["Escape"]);
        course.seen("esc again goes back");
        stage.tmux.press(&["Escape"]);
        let screen = course.seen("Go back to before");
        course.stop("rewind", "Go back to before", &screen);
        stage.tmux.press(&["Enter"]);
        course.seen("Went back;");
        stage.tmux.press(&["C-u"]);
        course.at_rest("Went back;");
        stage.say("/fork");
        course.at_rest("This is a copy;");
        stage.say("third");
        let screen = course.at_rest("Something else.");
        course.stop("copied", "third", &screen);
        course.leave();
        stage.chat("--continue");
        let screen = course.at_rest("Something else.");
        assert!(!screen.contains("Answer two."), "{screen}");
        stage.say("/model");
        course.seen("second");
        stage.tmux.write("second");
        let is_alone = |screen: &str| screen.contains("second") && !screen.contains("Scripted model");
        let screen = stage.tmux.wait_until("the one model", is_alone);
        course.stop("models", "Model  second", &screen);
        stage.tmux.press(&["Enter"]);
        stage.tmux.wait_until("the other model", |screen| {
            screen.contains(READY)
                && screen.trim_end().lines().last().is_some_and(|line| line.contains("second"))
        });
        stage.say("fourth");
        let is_second = |screen: &str| {
            screen.matches("Something else.").count() >= 1
                && screen.contains(READY)
                && !screen.contains("esc stops")
        };
        stage.tmux.wait_until("its answer", is_second);
    });
}

#[test]
fn a_resize_in_the_middle_of_an_answer_loses_no_word() {
    let word = |number: usize| format!("  delay 40ms\n  text \"word{number} \"\n");
    let numbered: String = (1..=60).map(word).collect();
    Course::on_each(&format!("on \"count\"\n{numbered}  text \"\\n\\nEnd.\"\n"), |course| {
        let (stage, (_, (columns, rows), _)) = (&course.stage, course.terminal);
        stage.chat("");
        stage.say("count");
        course.seen("word5 ");
        let (other_columns, other_rows) = if columns > 40 { (40, 12) } else { (120, 40) };
        stage.tmux.resize(other_columns, other_rows);
        let is_later = |screen: &str| (15..60).any(|number| screen.contains(&format!("word{number} ")));
        stage.tmux.wait_until("later words", is_later);
        stage.tmux.resize(columns, rows);
        course.at_rest("End.");
        let all = stage.tmux.everything();
        let lost: Vec<usize> = (1..=60)
            .filter(|number| !all.split_whitespace().any(|shown| shown == format!("word{number}")))
            .collect();
        assert!(lost.is_empty(), "{}: {lost:?} of\n{all}", course.terminal.0);
    });
}

#[test]
fn a_killed_agent_is_started_again_and_the_session_goes_on() {
    const SCRIPT: &str = "on \"one\"\n  text \"Answer one.\"\non \"two\"\n  text \"Second answer.\"\n";
    Course::on_each(SCRIPT, |course| {
        let stage = &course.stage;
        stage.chat("--agent-command \"$ATTACHE acp\"");
        stage.say("one");
        course.at_rest("Answer one.");
        // It is started again unless it ends at once.
        std::thread::sleep(std::time::Duration::from_secs(2));
        kill_process(Pid::from_raw(agent_of(stage).pid).unwrap(), Signal::KILL).unwrap();
        course.at_rest("the session goes on");
        stage.say("two");
        let screen = course.at_rest("Second answer.");
        course.stop("killed", "two", &screen);
        assert_eq!(stage.tmux.everything().matches("Answer one.").count(), 1);
    });
}
