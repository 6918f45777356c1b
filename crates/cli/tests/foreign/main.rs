//! `attache import`: sessions of other agents as they lie on a user's machine, and what becomes of them. The
//! samples have the form of files that the programs of November 2026 wrote, and of their older ones.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail loudly")]

use std::path::{Path, PathBuf};
use std::process::Stdio;

use attache_testkit::binary::Home;
use rusqlite::Connection;
use serde_json::{Value, json};

mod broken;
mod programs;
mod taken;
mod user_files;

/// A home of a user who has worked with all five.
struct Moving {
    home: Home,
}

struct Said {
    code: Option<i32>,
    answer: String,
    told: String,
}

impl Moving {
    fn new() -> Self {
        let home = Home::new(env!("CARGO_BIN_EXE_attache"), "on *\n  text \"Goes on.\"\n");
        let user = home.home().join("user");
        std::fs::create_dir(&user).unwrap();
        let home = ["XDG_DATA_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"]
            .into_iter()
            .fold(home.with_variable("HOME", user.to_str().unwrap()), |home, name| {
                home.with_variable(name, "")
            });
        Self { home }
    }

    fn with_everything() -> Self {
        let moving = Self::new();
        moving.sample("claude.jsonl", ".claude/projects/-srv-shop/64b73ad4.jsonl");
        moving.sample("codex.jsonl", ".codex/sessions/2026/11/19/rollout-2026-11-19T14-36-43-01a1f43d.jsonl");
        moving.sample("gemini.jsonl", ".gemini/tmp/shop/chats/session-2026-11-19T14-38-77fc8b52.jsonl");
        moving.put(".gemini/tmp/shop/.project_root", "/srv/shop");
        moving.goose();
        moving.opencode();
        moving
    }

    fn place(&self, name: &str) -> PathBuf {
        self.home.home().join("user").join(name)
    }

    fn put(&self, name: &str, text: &str) -> PathBuf {
        let file = self.place(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, text).unwrap();
        file
    }

    fn sample(&self, sample: &str, name: &str) -> PathBuf {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign/samples").join(sample);
        self.put(name, &std::fs::read_to_string(file).unwrap())
    }

    fn goose(&self) {
        let file = self.put(".local/share/goose/sessions/sessions.db", "");
        let database = Connection::open(file).unwrap();
        database
            .execute_batch(
                "CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, description TEXT NOT NULL DEFAULT '',
                   working_dir TEXT NOT NULL, updated_at TIMESTAMP, accumulated_input_tokens INTEGER,
                   accumulated_output_tokens INTEGER);
                 CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content_json TEXT,
                   created_timestamp INTEGER, metadata_json TEXT);
                 INSERT INTO sessions VALUES
                   ('20261119_1', 'Greet', '', '/srv/shop', '2026-11-19 14:45:00', 30, 12);",
            )
            .unwrap();
        let insert = |role: &str, content: Value, metadata: &str| {
            database
                .execute(
                    "INSERT INTO messages (session_id, role, content_json, created_timestamp, metadata_json) \
                     VALUES ('20261119_1', ?1, ?2, 1795098000, ?3)",
                    [role, &content.to_string(), metadata],
                )
                .unwrap();
        };
        insert("user", json!([{"type": "text", "text": "Say hi"}]), "{}");
        let call = json!({"status": "success", "value": {"name": "developer__shell", "arguments": {"command": "echo hi"}}});
        insert("assistant", json!([{"type": "toolRequest", "id": "t1", "toolCall": call}]), "{}");
        let result = json!({"status": "success", "value": {"content": [{"type": "text", "text": "hi"}], "isError": false}});
        insert("user", json!([{"type": "toolResponse", "id": "t1", "toolResult": result}]), "{}");
        insert("user", json!([{"type": "text", "text": "hidden"}]), r#"{"userVisible":false}"#);
        insert("assistant", json!([{"type": "text", "text": "Said."}]), "{}");
    }

    fn opencode(&self) {
        let file = self.put(".local/share/opencode/opencode.db", "");
        let database = Connection::open(file).unwrap();
        database
            .execute_batch(
                "CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, title TEXT,
                   time_created INTEGER, time_updated INTEGER);
                 CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER,
                   time_updated INTEGER, data TEXT);
                 CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER,
                   time_updated INTEGER, data TEXT);
                 INSERT INTO session VALUES ('ses_1', NULL, '/srv/shop', 'Rename it', 1, 1795099033759);
                 INSERT INTO session VALUES ('ses_child', 'ses_1', '/srv/shop', 'Of a subagent', 1, 2);",
            )
            .unwrap();
        let row = |table: &str, id: &str, message: &str, data: Value| {
            let (columns, values): (&str, &[&str]) = match table {
                "message" => ("(id, session_id, data)", &[id, "ses_1"]),
                _ => ("(id, message_id, session_id, data)", &[id, message, "ses_1"]),
            };
            let marks: Vec<String> = (1..=values.len() + 1).map(|number| format!("?{number}")).collect();
            let data = data.to_string();
            let all: Vec<&str> = values.iter().copied().chain([data.as_str()]).collect();
            database
                .execute(
                    &format!("INSERT INTO {table} {columns} VALUES ({})", marks.join(", ")),
                    rusqlite::params_from_iter(all),
                )
                .unwrap();
        };
        row("message", "msg_1", "", json!({"role": "user", "time": {"created": 1_795_099_023_685_i64}}));
        row("part", "prt_1", "msg_1", json!({"type": "text", "text": "Rename sum to total"}));
        let tokens = json!({"input": 20, "output": 8, "reasoning": 4, "cache": {"read": 10, "write": 0}});
        let answer = json!({"role": "assistant", "modelID": "big", "providerID": "z", "cost": 0.25, "tokens": tokens,
            "time": {"created": 1_795_099_026_541_i64}});
        row("message", "msg_2", "", answer);
        row("part", "prt_2", "msg_2", json!({"type": "step-start"}));
        let state = json!({"status": "completed", "input": {"filePath": "/srv/shop/a.rs", "oldString": "sum", "newString": "total"},
            "output": "", "title": "a.rs"});
        row(
            "part",
            "prt_3",
            "msg_2",
            json!({"type": "tool", "tool": "edit", "callID": "c1", "state": state}),
        );
        row("part", "prt_4", "msg_2", json!({"type": "text", "text": "Renamed."}));
        row("part", "prt_5", "msg_2", json!({"type": "agent", "name": "x"}));
    }

    async fn run(&self, arguments: &[&str]) -> Said {
        let output = self.home.command().args(arguments).stdin(Stdio::null()).output().await.unwrap();
        Said {
            code: output.status.code(),
            answer: String::from_utf8(output.stdout).unwrap(),
            told: String::from_utf8(output.stderr).unwrap(),
        }
    }

    async fn import(&self, arguments: &[&str]) -> Said {
        self.run(&[&["import"], arguments].concat()).await
    }

    /// The one session of this agent, as it is stored now.
    async fn export(&self, agent: &str) -> Vec<Value> {
        let said = self.run(&["sessions", "export", &format!("ses_{agent}")]).await;
        assert_eq!(said.code, Some(0), "{}", said.told);
        said.answer.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// The data of the lines of one kind.
fn data(lines: &[Value], kind: &str) -> Vec<Value> {
    lines.iter().filter(|line| line["type"] == kind).map(|line| line["data"].clone()).collect()
}

/// Each part in one word and what is in it.
fn outline(lines: &[Value]) -> Vec<String> {
    let parts = data(lines, "part");
    let shown = |part: &Value| {
        let inner = &part["data"];
        match part["type"].as_str().unwrap() {
            kind @ ("text" | "reasoning") => format!("{kind} {}", inner["text"].as_str().unwrap()),
            "dynamic-tool" => {
                let end = inner["output"].as_str().or(inner["errorText"].as_str()).unwrap();
                format!(
                    "call {} {}: {}",
                    inner["title"].as_str().unwrap(),
                    inner["state"].as_str().unwrap(),
                    end.trim()
                )
            }
            "file" => format!("file {}", inner["mediaType"].as_str().unwrap()),
            other => other.to_owned(),
        }
    };
    parts.iter().map(shown).collect()
}
