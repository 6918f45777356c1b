//! Plays one scenario from its first line to its last, and at the end holds every session to what it loads as.

use std::path::{Path, PathBuf};

use attache_testkit::client::TestClient;
use attache_testkit::http_server::{Answer, HttpServer};
use attache_testkit::prompts::must_be_told;
use attache_testkit::replay::{Transcript, UserMessages};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::editor::ScenarioEditor;
use crate::grammar::{Directive, HostEvent, MODEL, Saying, Scenario, Who};
use crate::host::Host;
use crate::limits::{AFTERMATH, LOOK, PATIENCE, SETTLING};
use crate::names::Names;
use crate::sent::Sent;
use crate::show::Live;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Compare,
    /// Expectations are written, not compared.
    Write,
}

/// Expectations as they should be: first line, number of lines, text.
type Written = Vec<(usize, usize, String)>;

/// What to write, and the first thing that did not hold, with its line.
pub(crate) fn play(scenario: &Scenario, mode: Mode) -> (Written, Result<(), (usize, String)>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut written = Vec::new();
    let played = runtime.block_on(async {
        let mut stage = Stage::set(scenario).await;
        for line in &scenario.lines {
            let done = match &line.directive {
                Directive::Expect { who, items } => match mode {
                    Mode::Compare => stage.compare(*who, items).await,
                    Mode::Write => {
                        written.push((line.number, line.count, stage.actual(*who).await));
                        Ok(())
                    }
                },
                Directive::ExpectSent { items } => match mode {
                    Mode::Compare => stage.compare_sent(items).await,
                    Mode::Write => {
                        written.push((line.number, line.count, stage.actually_sent().await));
                        Ok(())
                    }
                },
                other => stage.follow(other).await,
            };
            done.map_err(|reason| (line.number, reason))?;
        }
        stage.finish().await.map_err(|reason| (scenario.line, reason))
    });
    (written, played)
}

struct Stage<'a> {
    scenario: &'a Scenario,
    directory: TempDir,
    script: String,
    names: Names,
    host: Option<Host>,
    sent: Sent,
    client: ScenarioEditor,
    second: Option<ScenarioEditor>,
    /// The first client saw everything from the start, so a load must tell the same.
    saw_all: bool,
    /// Serves until the end.
    _page: Option<HttpServer>,
}

impl<'a> Stage<'a> {
    async fn set(scenario: &'a Scenario) -> Self {
        let directory = tempfile::Builder::new().prefix("scenario").tempdir().unwrap();
        let [root, outside, home] = directories(directory.path());
        for folder in [&root, &outside, &home] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let mut names = Names::new(&root, &outside, &home);
        let mut page = None;
        if let Some(text) = &scenario.options.page {
            let server = HttpServer::in_order([Answer::new(200, "text/plain", text.as_str())]).await;
            names.add_page(format!("127.0.0.1:{}", server.port()));
            page = Some(server);
        }
        let script = names.lengthen(&scenario.script);
        let sent = Sent::default();
        let mut host = Host::start(&home, &script, &scenario.options, &sent);
        let mut client = ScenarioEditor::take(host.connect(), &scenario.options).await;
        if scenario.options.knowledge {
            make_first_files(scenario, &root);
        }
        if !scenario.options.silent_start {
            let new = json!({ "cwd": root, "mcpServers": [] });
            let made = client.client.expect("session/new", new).await;
            let session = made["sessionId"].as_str().unwrap();
            client.client.wait_for_update(session, "available_commands_update").await;
            names.shorten(session);
        }
        client.skip();
        Self {
            scenario,
            directory,
            script,
            names,
            host: Some(host),
            sent,
            client,
            second: None,
            saw_all: true,
            _page: page,
        }
    }

    async fn follow(&mut self, directive: &Directive) -> Result<(), String> {
        match directive {
            Directive::Make { path, content } => self.make(path, content),
            Directive::Check { path, content } => self.check(path, content.as_deref()),
            Directive::Say { who, saying } => self.say(*who, saying).await,
            Directive::WaitFor { who, item } => {
                let item = item.clone();
                let (editor, names) = self.editor(*who).await;
                editor.wait_for(&item, names).await
            }
            Directive::Pause(duration) => {
                tokio::time::sleep(*duration).await;
                Ok(())
            }
            Directive::Host(event) => {
                self.host_event(*event).await;
                Ok(())
            }
            Directive::Model
            | Directive::Setting
            | Directive::Expect { .. }
            | Directive::ExpectSent { .. } => Ok(()),
        }
    }

    fn path(&self, path: &str) -> PathBuf {
        let path = self.names.lengthen(path);
        directories(self.directory.path())[0].join(path)
    }

    fn make(&self, path: &str, content: &str) -> Result<(), String> {
        let path = self.path(path);
        let folder = path.parent().ok_or("a file needs a folder")?;
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&path, content))
            .map_err(|e| e.to_string())
    }

    fn check(&self, path: &str, content: Option<&str>) -> Result<(), String> {
        let found = std::fs::read(self.path(path)).ok();
        let found = found.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let expected = content.map(|content| self.names.lengthen(content));
        if found == expected {
            return Ok(());
        }
        let told = |content: Option<String>| content.map_or("missing".to_owned(), |text| format!("{text:?}"));
        Err(format!("  {path} is {}, not {}", told(found), told(expected)))
    }

    async fn editor(&mut self, who: Who) -> (&mut ScenarioEditor, &mut Names) {
        let editor = match who {
            Who::Client => &mut self.client,
            Who::Second => {
                if self.second.is_none() {
                    let client = self.host.as_mut().unwrap().connect();
                    let mut editor = ScenarioEditor::take(client, &self.scenario.options).await;
                    editor.skip();
                    self.second = Some(editor);
                }
                self.second.as_mut().unwrap()
            }
        };
        (editor, &mut self.names)
    }

    async fn say(&mut self, who: Who, saying: &Saying) -> Result<(), String> {
        if let (Who::Client, Saying::Request { method, .. }) = (who, saying) {
            self.saw_all &= !matches!(method.as_str(), "session/load" | "session/resume" | "session/delete");
        }
        let (editor, names) = self.editor(who).await;
        match saying {
            Saying::Request { method, params, times } => {
                for _ in 0..*times {
                    editor.ask(method, names.lengthen_json(params), None);
                }
            }
            Saying::Prompt { params, label } => {
                editor.ask("session/prompt", names.lengthen_json(params), label.clone());
            }
            Saying::Cancel(params) => editor.client.notify("session/cancel", names.lengthen_json(params)),
            Saying::Permission(permission) => editor.reply(permission).await?,
            Saying::Line(line) => editor.send_line(&names.lengthen(line)),
            Saying::Leave => {
                let editor = self.second.take().ok_or("only the second client may leave")?;
                // What it was still owed is lost; the agent may well finish it.
                editor.client.end_input();
                editor.client.finish_cut();
            }
        }
        Ok(())
    }

    async fn host_event(&mut self, event: HostEvent) {
        let host = self.host.take().unwrap();
        match event {
            HostEvent::Restart => host.stop().await,
            HostEvent::Kill => host.kill(),
        }
        self.client.client.finish_cut();
        if let Some(second) = self.second.take() {
            second.client.finish_cut();
        }
        let home = &directories(self.directory.path())[2];
        let mut host = Host::start(home, &self.script, &self.scenario.options, &self.sent);
        self.client = ScenarioEditor::take(host.connect(), &self.scenario.options).await;
        self.client.skip();
        self.host = Some(host);
        self.saw_all = false;
    }

    /// What arrived since the last expectation, once everything that must come has come.
    async fn actual(&mut self, who: Who) -> String {
        let shown = self.scenario.options.shown.clone();
        let (editor, names) = self.editor(who).await;
        quiet(editor).await;
        tokio::time::sleep(SETTLING).await;
        let look = editor.look(names, &shown, Live::LeftOut);
        editor.tell(&look);
        let items = look.items;
        let speaker = if who == Who::Second { "second: " } else { "" };
        let items = if items.is_empty() { "nothing".to_owned() } else { items.join(" · ") };
        format!("=> {speaker}{items}")
    }

    async fn compare(&mut self, who: Who, expected: &str) -> Result<(), String> {
        let shown = self.scenario.options.shown.clone();
        let (editor, names) = self.editor(who).await;
        let expected: Vec<&str> = match expected {
            "nothing" => Vec::new(),
            items => items.split(" · ").collect(),
        };
        let was_quiet = quiet(editor).await;
        let started = tokio::time::Instant::now();
        loop {
            let look = editor.look(names, &shown, Live::LeftOut);
            if was_quiet && look.items == expected {
                editor.tell(&look);
                return Ok(());
            }
            let patience = if may_become(&look.items, &expected) { PATIENCE } else { AFTERMATH };
            if !was_quiet || started.elapsed() > patience {
                let late = if was_quiet { "" } else { "something was never answered\n" };
                return Err(format!("{late}{}", difference(&expected, &look.items)));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn actually_sent(&mut self) -> String {
        quiet(&self.client).await;
        let items = self.sent.items(&mut self.names);
        self.sent.tell();
        let items = if items.is_empty() { "nothing".to_owned() } else { items.join(" · ") };
        format!("=> {MODEL}{items}")
    }

    async fn compare_sent(&mut self, expected: &str) -> Result<(), String> {
        quiet(&self.client).await;
        let items = self.sent.items(&mut self.names);
        self.sent.tell();
        let expected: Vec<&str> =
            if expected == "nothing" { Vec::new() } else { expected.split(" · ").collect() };
        match items == expected {
            true => Ok(()),
            false => Err(difference(&expected, &items)),
        }
    }

    async fn finish(mut self) -> Result<(), String> {
        if !quiet(&self.client).await {
            return Err(format!("something was never answered; received:\n{}", self.client.recent()));
        }
        for editor in std::iter::once(&self.client).chain(&self.second) {
            let left = editor.items(&mut self.names, &[], Live::LeftOut);
            if !left.is_empty() {
                return Err(format!("received, but never expected:\n{}", difference(&[], &left)));
            }
        }
        if self.saw_all && !self.client.has_open_question() && !self.scenario.options.silent_start {
            let started = tokio::time::Instant::now();
            // A title may come after the last answer: to one side before the other.
            while let Err(reason) = self.compare_with_load().await {
                if started.elapsed() > AFTERMATH {
                    return Err(reason);
                }
                tokio::time::sleep(LOOK).await;
            }
        }
        for editor in std::iter::once(&self.client).chain(&self.second) {
            match editor.has_open_question() {
                true => editor.client.finish_cut(),
                false => editor.client.finish(),
            }
        }
        self.host.take().unwrap().stop().await;
        Ok(())
    }

    /// I7: what was shown live is what a load tells.
    async fn compare_with_load(&mut self) -> Result<(), String> {
        let root = directories(self.directory.path())[0].clone();
        let session = self.names.lengthen("ses_1");
        let shown = self.client.client.updates(&session);
        // What was rewound was shown and is not loaded; those scenarios load by themselves.
        let is_rewind = |update: &Value| {
            let said = update.to_string();
            said.contains("The conversation was rewound") || said.contains("Taken back: ")
        };
        if shown.iter().any(is_rewind) {
            return Ok(());
        }
        let reader: TestClient = self.host.as_mut().unwrap().connect();
        let editor = ScenarioEditor::take(reader, &self.scenario.options).await;
        let load = json!({ "sessionId": session, "cwd": root, "mcpServers": [] });
        let answer = editor.client.expect("session/load", load).await;
        let mut told = editor.client.updates(&session);
        // The answer tells the mode too, and alone when it is the one the session was made with.
        let mode = &answer["modes"]["currentModeId"];
        told.push(json!({ "sessionUpdate": "current_mode_update", "currentModeId": mode }));
        editor.client.finish();
        let transcript = |updates| Transcript::of(updates, UserMessages::LeftOut);
        transcript(&shown)
            .must_equal(&transcript(&told))
            .and_then(|()| must_be_told(&self.client.sent_prompts(&session), &told))
            .map_err(|reason| format!("load is not live: {reason}"))
    }
}

/// Waits until nothing more has to come; false when that never happens.
async fn quiet(editor: &ScenarioEditor) -> bool {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !editor.is_quiet() {
        if tokio::time::Instant::now() > deadline {
            return false;
        }
        tokio::time::sleep(LOOK).await;
    }
    true
}

/// Whether what is still to come can make the one the other: there is too little, or the last text may go on.
fn may_become(items: &[String], expected: &[&str]) -> bool {
    let goes_on = |(item, expected): (&String, &&str)| {
        item != expected && expected.starts_with(item.strip_suffix('"').unwrap_or(item))
    };
    items.len() < expected.len()
        || (items.len() == expected.len() && items.last().zip(expected.last()).is_some_and(goes_on))
}

/// The workspace, a place outside of it, and the host's own.
fn directories(base: &Path) -> [PathBuf; 3] {
    let base = base.canonicalize().unwrap();
    [base.join("work"), base.join("elsewhere"), base.join("home")]
}

/// A session looks for skills and commands when it begins: what a scenario begins with is there by then.
fn make_first_files(scenario: &Scenario, root: &Path) {
    for line in &scenario.lines {
        match &line.directive {
            Directive::Make { path, content } => {
                let path = root.join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, content).unwrap();
            }
            Directive::Setting => {}
            _ => break,
        }
    }
}

/// Both sides, item by item: what only the transcript has, what only the wire had, what they share.
fn difference(expected: &[&str], actual: &[String]) -> String {
    let mut lengths = vec![vec![0_usize; actual.len() + 1]; expected.len() + 1];
    for (row, wanted) in expected.iter().enumerate().rev() {
        for (column, got) in actual.iter().enumerate().rev() {
            lengths[row][column] = match wanted == got {
                true => lengths[row + 1][column + 1] + 1,
                false => lengths[row + 1][column].max(lengths[row][column + 1]),
            };
        }
    }
    let (mut row, mut column, mut told) = (0, 0, String::from("- expected, + received\n"));
    while row < expected.len() || column < actual.len() {
        let same = row < expected.len() && column < actual.len() && expected[row] == actual[column];
        if same {
            told += &format!("  {}\n", actual[column]);
            (row, column) = (row + 1, column + 1);
        } else if column == actual.len()
            || (row < expected.len() && lengths[row + 1][column] >= lengths[row][column + 1])
        {
            told += &format!("- {}\n", expected[row]);
            row += 1;
        } else {
            told += &format!("+ {}\n", actual[column]);
            column += 1;
        }
    }
    told
}
