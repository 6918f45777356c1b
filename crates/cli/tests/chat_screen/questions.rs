//! What the agent asks: permissions by each answer, a form.

use crate::stage::Stage;

const WRITE: &str = "\
on \"write it\"
  call write {\"path\":\"a.txt\",\"content\":\"new\\n\"}
  ---
  text \"After the call.\"
on \"write again\"
  call write {\"path\":\"b.txt\",\"content\":\"new\\n\"}
  ---
  text \"After the second.\"
on \"elsewhere\"
  text \"Then elsewhere.\"
";

fn asked() -> Stage {
    let stage = Stage::new(WRITE);
    stage.chat("");
    stage.say("write it");
    let screen = stage.tmux.wait_for("Reject, and say what to do instead");
    assert!(screen.contains("Make this change?") && screen.contains("1 + new"), "{screen}");
    assert!(screen.contains("Asks because"), "{screen}");
    assert_eq!(stage.workspace_file("a.txt"), None);
    stage
}

/// The number before an option on the screen.
pub(crate) fn number_of(screen: &str, option: &str) -> String {
    let line =
        screen.lines().find(|line| line.contains(option)).unwrap_or_else(|| panic!("{option}:\n{screen}"));
    line.chars().filter(char::is_ascii_digit).take(1).collect()
}

#[test]
fn allowed_once_it_runs() {
    let stage = asked();
    stage.tmux.press(&["Down", "Enter"]);
    let screen = stage.wait_for_rest("After the call.");
    assert!(screen.contains("✓ Write a.txt"), "{screen}");
    assert_eq!(stage.workspace_file("a.txt").as_deref(), Some("new\n"));
}

#[test]
fn allowed_always_it_does_not_ask_again() {
    let stage = asked();
    let screen = stage.tmux.screen();
    stage.tmux.write(&number_of(&screen, "edits"));
    stage.wait_for_rest("After the call.");
    stage.say("write again");
    stage.wait_for_rest("After the second.");
    assert_eq!(stage.workspace_file("b.txt").as_deref(), Some("new\n"));
}

#[test]
fn rejected_it_does_not_run() {
    let stage = asked();
    let screen = stage.tmux.screen();
    stage.tmux.write(&number_of(&screen, "Reject"));
    let screen = stage.wait_for_rest("After the call.");
    assert!(screen.contains("✗ Write a.txt"), "{screen}");
    assert_eq!(stage.workspace_file("a.txt"), None);
}

#[test]
fn rejected_with_a_word_the_word_is_the_next_prompt() {
    let stage = asked();
    let screen = stage.tmux.screen();
    stage.tmux.write(&number_of(&screen, "say what to do"));
    stage.tmux.wait_for("enter rejects and sends this");
    stage.say("elsewhere");
    let screen = stage.wait_for_rest("Then elsewhere.");
    assert!(screen.contains("› elsewhere"), "{screen}");
    assert_eq!(stage.workspace_file("a.txt"), None);
}

#[test]
fn escape_ends_the_turn() {
    let stage = asked();
    stage.tmux.press(&["Escape"]);
    stage.wait_for_rest("Stopped.");
    assert_eq!(stage.workspace_file("a.txt"), None);
}

#[test]
fn a_question_of_the_agent_is_a_form() {
    let stage = Stage::new(
        "on \"ask\"\n  call question {\"questions\":[{\"question\":\"Which colour?\",\"choices\":[{\"label\":\"red\"},{\"label\":\"blue\"}]}]}\n  ---\n  text \"Thank you.\"\n",
    );
    stage.chat("");
    stage.say("ask");
    stage.tmux.wait_for("2 blue");
    stage.tmux.press(&["2", "Enter"]);
    stage.wait_for_rest("Thank you.");
}

/// The form of an MCP server, in the middle of its call.
#[test]
fn a_question_of_a_server_is_a_form() {
    let stage = Stage::new("on \"ask\"\n  call srv_ask {}\n  ---\n  text \"Thank you.\"\n");
    let server = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/server.py");
    stage.home.write_config(&format!(
        "sandbox = \"off\"\n[mcp.srv]\ncommand = [\"python3\", {:?}, \"good\"]\n[[permissions]]\npermission = \"mcp:srv:*\"\n\
         action = \"allow\"\n",
        server.to_str().unwrap()
    ));
    stage.chat("");
    stage.say("ask");
    let screen = stage.tmux.wait_for("The MCP server srv asks: Which");
    assert!(screen.contains("Colour"), "{screen}");
    stage.tmux.write_line("teal");
    stage.wait_for_rest("Thank you.");
}
