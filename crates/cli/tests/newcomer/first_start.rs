//! `attache` alone, by somebody who has configured nothing: three questions in a terminal, then the talk.

use attache_testkit::binary::Home;
use attache_testkit::http_server::HttpServer;
use attache_testkit::tmux::Tmux;

use crate::stage::{CANARY, anthropic, chat_server, newcomer, refusing_server, run};

const READY: &str = "Say what to do.";

fn open(home: &Home) -> Tmux {
    let tmux = Tmux::open(home, (90, 30), &[]);
    tmux.write_line("clear; \"$ATTACHE\"; echo \"code $?\"");
    tmux
}

fn config(home: &Home) -> Option<String> {
    std::fs::read_to_string(home.home().join("config.toml")).ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_server_is_found_tried_and_talked_to() {
    let server = chat_server().await;
    let home = newcomer().with_variable("VLLM_BASE_URL", &format!("{}/v1", server.url()));
    let tmux = open(&home);
    let screen = tmux.wait_for("1/3");
    assert!(screen.contains("Welcome to attache"), "{screen}");
    let screen = tmux.wait_for("[1] >");
    assert!(screen.contains("1  vllm") && screen.contains("1 model"), "{screen}");
    tmux.press(&["Enter"]);
    tmux.wait_for("1  qwen3-coder");
    tmux.press(&["Enter"]);
    tmux.wait_until("the third question", |screen| {
        screen.contains("3/3") && screen.trim_end().ends_with('>')
    });
    tmux.write_line("nonsense");
    tmux.wait_for("Type a number from 1 to");
    tmux.write_line("2");
    let screen = tmux.wait_for(READY);
    assert!(screen.contains("vllm/qwen3-coder answered after"), "{screen}");
    let written = config(&home).unwrap();
    assert!(written.contains("model = \"vllm/qwen3-coder\"\napproval = \"edits\"\n"), "{written}");
    tmux.write_line("hi");
    tmux.wait_until("the answer", |screen| screen.contains("  hello") && screen.contains(READY));
    tmux.press(&["C-d"]);
    tmux.wait_for("code 0");
    // Nobody is asked twice.
    tmux.write_line("clear; \"$ATTACHE\"");
    let screen = tmux.wait_for(READY);
    assert!(!screen.contains("1/3"), "{screen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_the_environment_that_is_refused_is_said_and_nothing_is_written() {
    let server = refusing_server().await;
    let home = newcomer()
        .with_variable("ANTHROPIC_BASE_URL", &server.url())
        .with_variable("ANTHROPIC_API_KEY", CANARY);
    let tmux = open(&home);
    let screen = tmux.wait_for("[1] >");
    assert!(screen.contains("anthropic") && screen.contains("key from ANTHROPIC_API_KEY"), "{screen}");
    tmux.press(&["Enter"]);
    tmux.wait_for("2/3");
    tmux.write_line("anthropic/claude-sonnet-5");
    tmux.wait_for("3/3");
    tmux.wait_until("its rows", |screen| screen.trim_end().ends_with('>'));
    tmux.press(&["Enter"]);
    let screen = tmux.wait_for("Choose again");
    assert!(
        screen.contains("That does not work") && screen.contains("Take anthropic/claude-sonnet-5"),
        "{screen}"
    );
    assert!(!screen.contains(CANARY), "{screen}");
    tmux.press(&["Enter"]);
    tmux.wait_until("the first question again", |screen| screen.rfind("1/3") > screen.rfind("Choose again"));
    tmux.press(&["C-c"]);
    tmux.wait_until("its end", |screen| screen.contains("code 130") || screen.contains("shell>"));
    assert_eq!(config(&home), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_anything_a_key_can_be_entered_and_the_end_of_the_input_leaves() {
    let server = HttpServer::start(|request| anthropic(request, CANARY)).await;
    let home = newcomer().with_variable("ANTHROPIC_BASE_URL", &server.url());
    std::fs::write(home.home().join("other.toml"), "").unwrap();
    let tmux = open(&home);
    let screen = tmux.wait_for("[1] >");
    assert!(screen.contains("Enter a key") && screen.contains("Look again"), "{screen}");
    let number =
        screen.lines().find(|line| line.contains("Enter a key")).unwrap().trim().chars().next().unwrap();
    tmux.write_line(&number.to_string());
    tmux.wait_for("Which provider is the key for?");
    tmux.write_line("anthropic");
    tmux.wait_for("Key for anthropic:");
    tmux.write_line(CANARY);
    let screen = tmux.wait_for("2/3");
    assert!(screen.contains("anthropic accepts the key") && !screen.contains(CANARY), "{screen}");
    tmux.wait_until("its rows", |screen| screen.trim_end().ends_with('>'));
    tmux.press(&["C-d"]);
    let screen = tmux.wait_for("code 1");
    assert!(screen.contains("Nothing was written"), "{screen}");
    assert_eq!(config(&home), None);
}

/// The question before it has taken the interrupt from the system.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_leaves_at_every_question() {
    for until in ["[1] >", "Which provider is the key for?", "Key for anthropic:"] {
        let home = newcomer();
        let tmux = open(&home);
        let screen = tmux.wait_for("[1] >");
        let row = screen.lines().find(|line| line.contains("Enter a key")).unwrap();
        if until != "[1] >" {
            tmux.write_line(row.split_whitespace().next().unwrap());
            tmux.wait_for("Which provider is the key for?");
        }
        if until == "Key for anthropic:" {
            tmux.write_line("anthropic");
        }
        tmux.wait_for(until);
        tmux.press(&["C-c"]);
        let screen = tmux.wait_for("code 130");
        assert!(screen.contains("Nothing was written"), "{until}: {screen}");
        assert_eq!(config(&home), None);
    }
}

#[tokio::test]
async fn without_a_terminal_it_is_help() {
    let said = run(&newcomer(), "").await;
    assert_eq!((said.code, said.answer.as_str()), (Some(2), ""), "{}", said.all());
    assert!(said.remarks.contains("chat") && said.remarks.contains("attache demo"), "{}", said.all());
}
