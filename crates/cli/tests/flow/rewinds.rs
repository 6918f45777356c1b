//! Rewinds at the binary: files go along unless the configuration turns snapshots off.

use attache_testkit::binary::Home;
use serde_json::{Value, json};

/// What a rewind of the only turn answers, and whether the file that it made is still there.
async fn rewound(config: &str) -> (Value, bool) {
    let script = "on *\n  call write {\"path\":\"made.txt\",\"content\":\"x\\n\"}\n  ---\n  text \"done\"\n";
    let home = Home::new(env!("CARGO_BIN_EXE_attache"), script);
    home.write_config(&format!("approval = \"edits\"\n{config}"));
    let agent = home.start();
    let session = agent.open_session(&home).await;
    let answer = agent.prompt(&session, "go").await.unwrap();
    let made = home.workspace().join("made.txt");
    assert!(made.exists());
    let params = json!({ "sessionId": session, "messageId": answer["_meta"]["attache/messageId"] });
    let rewound = agent.client.expect("_attache/session/rewind", params).await;
    agent.finish(&home).await;
    (rewound, made.exists())
}

#[tokio::test]
async fn files_go_along_unless_snapshots_are_off() {
    let (rewound_with, is_there) = rewound("").await;
    assert!(!is_there && rewound_with["files"]["restored"].as_array().unwrap().len() == 1, "{rewound_with}");
    let (rewound_without, is_there) = rewound("snapshots = false\n").await;
    assert!(is_there && rewound_without.get("files").is_none(), "{rewound_without}");
    assert_eq!((&rewound_with["hidden"], &rewound_without["hidden"]), (&json!(2), &json!(2)));
}
