//! `attache init`: the settings of editors as a user keeps them, and what becomes of them.

use std::fs;
use std::path::PathBuf;

use attache_testkit::binary::Home;
use serde_json::{Value, json};

use super::{answer, failure, run};

const ZED: &str = "// my settings\n{\n  \"theme\": \"One Dark\", // dark\n  \"agent_servers\": {\n    \"goose\": { \"command\": \"goose\" }\n  },\n}\n";

/// A home whose settings of other programs are in it, too.
fn home() -> Home {
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), "on *\n  text \"hello\"\n");
    let user = home.home().join("user");
    fs::create_dir(&user).unwrap();
    home.with_variable("HOME", user.to_str().unwrap()).with_variable("XDG_CONFIG_HOME", "")
}

fn settings(home: &Home, name: &str) -> PathBuf {
    home.home().join("user").join(name)
}

fn put(home: &Home, name: &str, text: &str) -> PathBuf {
    let file = settings(home, name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, text).unwrap();
    file
}

#[tokio::test]
async fn an_entry_is_added_to_zeds_settings_and_nothing_else_changes() {
    let home = home();
    let file = put(&home, ".config/zed/settings.json", ZED);
    let refused = failure_with_change(&home, &["init", "zed"]).await;
    assert!(refused.contains("attache init zed --yes"), "{refused}");
    assert_eq!(fs::read_to_string(&file).unwrap(), ZED);

    let said = answer(&home, &["init", "zed", "--yes"]).await;
    assert!(said.contains("  +     \"attache\": {") && said.contains("Zed knows attache now"), "{said}");
    let after = fs::read_to_string(&file).unwrap();
    let program = json!(env!("CARGO_BIN_EXE_attache"));
    let entry = format!(
        "    \"goose\": {{ \"command\": \"goose\" }},\n    \"attache\": {{\n      \"type\": \"custom\",\n      \"command\": {program},\n      \"args\": [\n        \"acp\"\n      ],\n      \"env\": {{}}\n    }}\n"
    );
    assert_eq!(after, ZED.replace("    \"goose\": { \"command\": \"goose\" }\n", &entry));
    let copy = settings(&home, ".config/zed/settings.json.before-attache");
    assert_eq!(fs::read_to_string(copy).unwrap(), ZED);

    let again = answer(&home, &["init", "ZED", "--yes"]).await;
    assert!(again.contains("knows attache already"), "{again}");
    assert_eq!(fs::read_to_string(&file).unwrap(), after);
    let doctor = run(&home, &["doctor"]).await;
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    assert!(doctor.contains("ok    editors        Zed starts"), "{doctor}");
}

#[tokio::test]
async fn missing_settings_are_made_and_strange_ones_left_alone() {
    let home = home();
    answer(&home, &["init", "jetbrains", "--yes"]).await;
    let made = fs::read_to_string(settings(&home, ".jetbrains/acp.json")).unwrap();
    let made: Value = serde_json::from_str(&made).unwrap();
    assert_eq!(made["agent_servers"]["attache"]["args"], json!(["acp"]));

    for text in ["{ \"acp.agents\": [] }", "{ \"a\": }", "[1]"] {
        let file = put(&home, ".config/Code/User/settings.json", text);
        let refused = failure(&home, &["init", "vscode", "--yes"]).await;
        assert!(
            refused.contains("settings.json is left as it is") && refused.contains("--print"),
            "{refused}"
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    let doctor = String::from_utf8(run(&home, &["doctor"]).await.stdout).unwrap();
    assert!(doctor.contains("warn  editors        the settings of VS Code"), "{doctor}");
}

#[tokio::test]
async fn an_editor_without_such_a_file_gets_its_text_and_an_unknown_one_the_names() {
    let home = home();
    let emacs = answer(&home, &["init", "emacs"]).await;
    assert!(emacs.contains("agent-shell-agent-configs"), "{emacs}");
    for (editor, words) in [
        ("toad", "toad acp \"attache acp\""),
        ("marimo", "npx stdio-to-ws \"attache acp\" --port 3017"),
        ("codecompanion", "require(\"codecompanion.adapters\").extend"),
        ("avante", "command = \"attache\""),
    ] {
        let text = answer(&home, &["init", editor]).await;
        assert!(text.contains(words), "{editor}: {text}");
    }
    let printed = answer(&home, &["init", "zed", "--print"]).await;
    assert!(printed.contains("\"agent_servers\""), "{printed}");
    assert!(!settings(&home, ".config/zed/settings.json").exists());
    let unknown = failure(&home, &["init", "kate"]).await;
    assert!(unknown.contains("nothing is known of the editor `kate`; known"), "{unknown}");
    for (slip, meant) in [("zde", "zed"), ("vscoed", "vscode"), ("neovmi", "neovim")] {
        let unknown = failure(&home, &["init", slip]).await;
        assert!(unknown.contains(&format!("`{slip}` (did you mean `{meant}`?)")), "{unknown}");
    }
    let listed = answer(&home, &["init"]).await;
    assert!(listed.contains("attache init zed") && listed.contains("Neovim with avante.nvim"), "{listed}");
}

/// What would be written is shown before it is refused.
async fn failure_with_change(home: &Home, arguments: &[&str]) -> String {
    let output = run(home, arguments).await;
    assert_eq!(output.status.code(), Some(1));
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("\"attache\""), "{shown}");
    String::from_utf8(output.stderr).unwrap()
}
