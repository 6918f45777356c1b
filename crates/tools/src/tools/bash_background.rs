//! The `bash_background` tool: reads and stops commands that `bash` started in the background. Starts nothing.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use attache_core::ids::SessionId;
use attache_core::legible::{visible, visible_block};
use attache_core::ports::tool::{Effect, Presentation, Shown, Site, ToolKind};
use attache_core::ports::{BoxFuture, Tool, ToolOutcome, ToolPlan, ToolRuntime, ToolSpec};
use attache_core::work_state::BackgroundMark;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::arguments::{self, Visibility};
use crate::limits::BACKGROUND_WAIT_MAX_MS;
use crate::markdown::fenced;
use crate::outcome::{RunningCall, refused};
use crate::tools::bash::background::{Background, News, Process};

/// For commands that bash started with background: true: gives the output that is new since the last call,
/// stops one, or lists all.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    action: BackgroundAction,
    /// Like bg_1.
    name: Option<String>,
    /// How long `output` waits for something new or the end. Default: not at all.
    #[schemars(range(min = 1, max = BACKGROUND_WAIT_MAX_MS))]
    wait_ms: Option<u64>,
    /// Wait for the end only.
    until_end: Option<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum BackgroundAction {
    Output,
    Stop,
    List,
}

const EXAMPLE: &str = r#"{"action":"output","name":"bg_1","wait_ms":10000}"#;

/// Touches nothing beyond what was allowed when the command started, so no question is asked.
static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| {
    arguments::spec::<Input>("bash_background", ToolKind::Execute, Effect::SessionOnly, Visibility::Shown)
});

#[derive(Debug)]
pub(crate) struct BashBackground(Arc<Background>);

impl BashBackground {
    pub(crate) fn new(background: Arc<Background>) -> Self {
        Self(background)
    }

    fn title(&self, input: &Input, session: &SessionId) -> String {
        let Some(name) = &input.name else { return "Commands in the background".to_owned() };
        let verb = match input.action {
            BackgroundAction::Output => "Output of",
            BackgroundAction::Stop => "Stop",
            BackgroundAction::List => return "Commands in the background".to_owned(),
        };
        let command = self.0.find(session, name).map(|process| format!(": {}", process.command));
        visible(&format!("{verb} {name}{}", command.unwrap_or_default()))
    }

    async fn act(
        &self,
        input: &Input,
        session: &SessionId,
        cancel: &CancellationToken,
    ) -> Result<BackgroundAnswer, String> {
        let named = || {
            let name = input.name.as_deref().ok_or_else(|| missing_name(input.action))?;
            self.0.find(session, name)
        };
        match input.action {
            BackgroundAction::List => Ok(BackgroundAnswer::list(&self.0.all(session))),
            BackgroundAction::Output => {
                let process = named()?;
                // A model that waits for the end without a time wants all output until then.
                let to_the_end = input.until_end.filter(|until_end| *until_end);
                let wait = input.wait_ms.or(to_the_end.map(|_| BACKGROUND_WAIT_MAX_MS));
                if let Some(wait) = wait.map(Duration::from_millis) {
                    let waiting = async {
                        match input.until_end {
                            Some(true) => process.until_end(wait).await,
                            Some(false) | None => process.until_news(wait).await,
                        }
                    };
                    tokio::select! {
                        () = waiting => {}
                        () = cancel.cancelled() => return Err("bash_background: cancelled".to_owned()),
                    }
                }
                Ok(self.tell(session, &process))
            }
            BackgroundAction::Stop => {
                let process = named()?;
                process.stop().await;
                Ok(self.tell(session, &process))
            }
        }
    }

    /// The end of a command is told once.
    fn tell(&self, session: &SessionId, process: &Process) -> BackgroundAnswer {
        let is_over = !process.is_running();
        let told = BackgroundAnswer::news(process);
        if is_over {
            self.0.forget(session, &process.name);
        }
        told
    }
}

fn parse(input: &Value) -> Result<Input, String> {
    let input: Input = arguments::parse(&SPEC, EXAMPLE, input)?;
    let waits = [("wait_ms", input.wait_ms.is_some()), ("until_end", input.until_end == Some(true))];
    let field = waits.into_iter().find(|(_, is_given)| *is_given).map(|(field, _)| field);
    match (input.action, field) {
        (BackgroundAction::Stop | BackgroundAction::List, Some(field)) => {
            let problem = format!("field `{field}` goes with `output` only");
            Err(arguments::rejected(&SPEC, EXAMPLE, &problem))
        }
        (BackgroundAction::Output, _) | (BackgroundAction::Stop | BackgroundAction::List, None) => Ok(input),
    }
}

fn missing_name(action: BackgroundAction) -> String {
    let action = match action {
        BackgroundAction::Output => "output",
        BackgroundAction::Stop => "stop",
        BackgroundAction::List => "list",
    };
    arguments::rejected(&SPEC, EXAMPLE, &format!("field `name` is missing, which `{action}` needs"))
}

/// The answer to a call.
pub(crate) struct BackgroundAnswer {
    pub(crate) text: String,
    pub(crate) shown: Vec<Shown>,
    pub(crate) news: Option<News>,
    /// The commands that it mentions.
    pub(crate) told: Vec<BackgroundMark>,
}

impl BackgroundAnswer {
    pub(crate) fn news(process: &Process) -> Self {
        // Read before the state: an end in between is told with the next call.
        let told = vec![process.mark()];
        let news = process.news();
        let state = format!("{}: {}", process.name, news.state);
        let output = news.output.text();
        let (text, shown) = match output {
            "" => (format!("(no new output)\n[{state}]"), state),
            output => {
                let newline = if output.ends_with('\n') { "" } else { "\n" };
                (
                    format!("{output}{newline}[{state}]"),
                    format!("{}\n\n{state}", fenced(&visible_block(output), "")),
                )
            }
        };
        Self { text, shown: vec![Shown::Text { text: shown }], news: Some(news), told }
    }

    fn list(processes: &[Arc<Process>]) -> Self {
        let line = |process: &Arc<Process>| {
            format!("{} [{}] {}", process.name, process.state(), visible(&process.command))
        };
        processes.iter().for_each(|process| process.end_is_told());
        let lines: Vec<String> = processes.iter().map(line).collect();
        let text = if lines.is_empty() { "(none)".to_owned() } else { lines.join("\n") };
        let told = processes.iter().map(|process| process.mark()).collect();
        Self { shown: vec![Shown::Text { text: fenced(&text, "") }], text, news: None, told }
    }

    pub(crate) fn outcome(self, mut call: RunningCall) -> ToolOutcome {
        call.presentation.content.extend(self.shown);
        call.background = self.told;
        if let Some(news) = &self.news {
            call.truncated = news.output.is_cut();
            call.output_path = Some(news.log.clone());
        }
        call.done(self.text)
    }
}

impl Tool for BashBackground {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn plan(&self, input: &Value, site: &Site) -> BoxFuture<'_, Result<ToolPlan, String>> {
        let input = parse(input);
        let session = site.workspace.session_id.clone();
        Box::pin(async move { Ok(ToolPlan::new(Vec::new(), self.presentation(&input?, &session))) })
    }

    fn run(&self, input: Value, runtime: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            let input = match parse(&input) {
                Ok(input) => input,
                Err(text) => return refused(text),
            };
            let session = &runtime.site.workspace.session_id;
            let call = RunningCall::started(self.presentation(&input, session));
            match self.act(&input, session, &runtime.cancel).await {
                Ok(told) => told.outcome(call),
                Err(text) => call.failed(text),
            }
        })
    }

    fn news(&self, session: &SessionId) -> Option<String> {
        self.0.ends(session)
    }

    fn session_ended<'a>(&'a self, session: &'a SessionId) -> BoxFuture<'a, ()> {
        Box::pin(self.0.leave(session))
    }
}

impl BashBackground {
    fn presentation(&self, input: &Input, session: &SessionId) -> Presentation {
        let title = self.title(input, session);
        Presentation { title, kind: Some(ToolKind::Execute), ..Presentation::default() }
    }
}
