//! Every exit code, from a shell script's point of view.

use super::*;

const SCRIPT: &str = r#"
model paid price_input=1 price_output=1
on "say hi"
  text "Hi there."
on "break"
  text "I was about to"
  error permanent "the model is on fire"
on "refuse"
  text "I would rather not."
  finish content-filter
on "write"
  call write {"path":"made.txt","content":"x\n"}
  ---
  text "Tried it."
on "go on and on"
  call glob {"pattern":"*.rs"}
  ---
  call glob {"pattern":"*.md"}
  ---
  text "Done."
on "spend"
  usage input=2000000 output=1
  call glob {"pattern":"*.rs"}
  ---
  delay 60000ms
  text "Never said."
on "touch"
  call bash {"command":"touch x"}
  ---
  text "Touched."
on "fetch"
  call bash {"command":"curl http://example.org"}
  ---
  text "Fetched."
on "ask"
  call question {"questions":[{"question":"Which colour?","options":[{"label":"red"},{"label":"blue"}]}]}
  ---
  text "Guessed."
on "delegate"
  call task {"subagent_type":"explore","prompt":"touch"}
  ---
  text "Delegated."
"#;

#[tokio::test]
async fn done_is_0_and_only_the_answer_is_written() {
    let home = home(SCRIPT);
    let ran = chat(&home, &["-p", "say hi"]).await;
    assert_eq!((ran.code, ran.said.as_str(), ran.told.as_str()), (Some(0), "Hi there.\n", ""));
    assert_eq!(home.orphans(), []);
}

#[tokio::test]
async fn a_failure_is_1_with_one_clear_line_and_what_was_said() {
    let home = home(SCRIPT);
    let ran = chat(&home, &["-p", "break"]).await;
    assert_eq!((ran.code, ran.said.as_str()), (Some(1), "I was about to\n"), "{ran:?}");
    assert!(ran.told.starts_with("attache: ") && ran.told.contains("the model is on fire"), "{ran:?}");
    assert_eq!(ran.told.lines().count(), 1, "{ran:?}");
    let home = crate::home(SCRIPT);
    let ran = chat(&home, &["-p", "say hi", "--continue"]).await;
    assert_eq!((ran.code, ran.said.as_str()), (Some(1), ""), "{ran:?}");
    assert!(ran.told.contains("there is no session to continue"), "{ran:?}");
}

/// What was typed can't be right: the same code whichever option it is, and who finds out.
#[tokio::test]
async fn a_wrong_value_of_an_option_is_2_with_one_clear_line() {
    let home = home(SCRIPT);
    for (arguments, told) in [
        (&["--attach", "nope.txt"][..], "--attach nope.txt"),
        (&["--schema", "nope.json"], "--schema nope.json"),
        (&["--resume", "ses_nope"], "there is no session \"ses_nope\"; `attache sessions list` shows them"),
        (&["--cwd", "nowhere"], "nowhere"),
        (&["--trace", "no/such/place"], "can't write the trace"),
        (&["--model", "foo"], "option --model"),
        (&["--model", "p/nope"], "option --model: model `p/nope` needs a provider `p`"),
        (&["--model", "script/nope"], "there is no model `script/nope`"),
        (&["--agent", "nope"], "there is no agent `nope`"),
        (&["--allow", "bash:"], "option --allow"),
        (&["--max-cost", "1"], "`--max-cost` can't hold script/default: no price of it is known"),
    ] {
        let ran = chat(&home, &[&["-p", "say hi"], arguments].concat()).await;
        assert_eq!((ran.code, ran.said.as_str()), (Some(2), ""), "{arguments:?}: {ran:?}");
        assert!(ran.told.starts_with("attache: ") && ran.told.contains(told), "{arguments:?}: {ran:?}");
        assert_eq!(ran.told.lines().count(), 1, "{arguments:?}: {ran:?}");
    }
    let ran = chat(&home, &["-p", "say", "hi"]).await;
    assert!(ran.code == Some(2) && ran.told.contains("put all of it in quotes"), "{ran:?}");
}

#[tokio::test]
async fn wrong_usage_is_2_and_asks_no_model() {
    let home = home(SCRIPT);
    for arguments in [
        &["-p"][..],
        &["say hi"],
        &["-p", "say hi", "--output", "yaml"],
        &["-p", "say hi", "--allow", "shell:ls"],
        &["-p", "say hi", "--max-cost", "0"],
        &["-p", "say hi", "--agent-command", "'unclosed"],
        &["-p", "say hi", "--agent-command", "true", "--max-steps", "3"],
    ] {
        let ran = chat(&home, arguments).await;
        assert_eq!((ran.code, ran.said.as_str()), (Some(2), ""), "{arguments:?}: {ran:?}");
        assert!(!ran.told.is_empty(), "{arguments:?}");
    }
    assert!(!home.database().exists(), "no session was made");
}

#[tokio::test]
async fn what_the_model_refuses_or_nobody_permits_is_3() {
    let home = home(SCRIPT);
    let ran = chat(&home, &["-p", "refuse", "--output", "json"]).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert_eq!(ran.object()["stopReason"], "refusal");
    let ran = chat(&home, &["-p", "write", "--output", "json"]).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let object = ran.object();
    let denied = object["denied"].as_array().unwrap();
    assert_eq!(denied.len(), 1, "{object}");
    assert_eq!(denied[0]["tool"], "write");
    assert!(denied[0]["title"].as_str().unwrap().contains("made.txt"), "{object}");
    assert!(!denied[0]["why"].as_str().unwrap().is_empty(), "{object}");
    assert_eq!((&object["stopReason"], &object["text"]), (&json!("end_turn"), &json!("Tried it.")));
    assert_eq!(denied[0]["allow"], json!(["edit:made.txt"]), "{object}");
    assert!(ran.told.contains("denied: ") && ran.told.contains("--allow 'edit:made.txt'"), "{ran:?}");
    assert!(!home.workspace().join("made.txt").exists());
}

/// Whatever is against a call counts: a rule, a hook, a host that `all` does not grant; in a child, too.
#[tokio::test]
async fn what_a_rule_a_hook_or_the_network_denies_is_3_too() {
    let deny = "[[permissions]]\npermission = \"edit\"\npattern = \"made.txt\"\naction = \"deny\"\n";
    let hook =
        "[[hooks]]\nevent = \"before-tool\"\ncommand = \"echo not today >&2; exit 2\"\nsandbox = \"off\"\n";
    for (config, prompt, tool, why) in [
        (deny, "write", "write", "the rule `edit made.txt` of the configuration"),
        (hook, "write", "write", "not today"),
        ("", "fetch", "bash", ""),
        ("", "delegate", "bash", "only commands that read run"),
    ] {
        let home = home(SCRIPT);
        home.write_config(config);
        let ran = chat(&home, &["-p", prompt, "--approval", "all", "--output", "json"]).await;
        assert_eq!(ran.code, Some(3), "{prompt}: {ran:?}");
        let object = ran.object();
        assert_eq!(object["denied"].as_array().map(Vec::len), Some(1), "{object}");
        let denied = &object["denied"][0];
        assert_eq!(denied["tool"], tool, "{object}");
        assert!(denied["why"].as_str().unwrap().contains(why), "{object}");
        assert!(ran.told.starts_with("attache: denied"), "{ran:?}");
        assert!(!home.workspace().join("made.txt").exists());
    }
}

#[tokio::test]
async fn a_denial_names_the_rules_that_it_takes() {
    let home = home(SCRIPT);
    let ran = chat(&home, &["-p", "touch", "--allow", "bash:touch *", "--output", "json"]).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert_eq!(ran.object()["denied"][0]["allow"], json!(["edit:x"]), "{ran:?}");
    assert!(ran.told.contains("To permit it: --allow 'edit:x'"), "{ran:?}");
    let ran = chat(&home, &["-p", "touch", "--allow", "bash:touch *", "--allow", "edit:x"]).await;
    assert_eq!((ran.code, ran.told.as_str()), (Some(0), ""), "{ran:?}");
    assert!(home.workspace().join("x").exists());
    // Without a person there are no questions: the model goes on by its own judgement.
    let ran = chat(&home, &["-p", "ask"]).await;
    assert_eq!((ran.code, ran.said.as_str()), (Some(0), "Guessed.\n"), "{ran:?}");
}

#[tokio::test]
async fn what_was_permitted_beforehand_is_done() {
    let home = home(SCRIPT);
    for arguments in [["-p", "write", "--allow", "edit:made.txt"], ["-p", "write", "--approval", "edits"]] {
        let ran = chat(&home, &arguments).await;
        assert_eq!((ran.code, ran.said.as_str()), (Some(0), "Tried it.\n"), "{ran:?}");
        std::fs::remove_file(home.workspace().join("made.txt")).expect("the file was made");
    }
    // A rule holds for its run, and for what it names.
    assert_eq!(chat(&home, &["-p", "write", "--allow", "edit:other.txt"]).await.code, Some(3));
    assert_eq!(chat(&home, &["-p", "write", "--continue"]).await.code, Some(3));
}

#[tokio::test]
async fn a_limit_is_4() {
    let home = home(SCRIPT);
    let ran = chat(&home, &["-p", "go on and on", "--max-steps", "2", "--output", "json"]).await;
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert_eq!(ran.object()["stopReason"], "max_turn_requests");
    assert_eq!(chat(&home, &["-p", "go on and on", "--max-steps", "3"]).await.code, Some(0));
    let spend = ["-p", "spend", "--model", "script/paid", "--max-cost", "1.5", "--output", "json"];
    let ran = chat(&home, &spend).await;
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let object = ran.object();
    assert!(object["costUsd"].as_f64().unwrap() >= 1.5 && object["stopReason"] == "cancelled", "{object}");
    assert!(object["error"].as_str().unwrap().contains("$1.5"), "{object}");
    assert!(!ran.said.contains("Never said"), "{ran:?}");
}
