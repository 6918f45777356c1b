//! `task` as a tool: understands a call, starts the child, and waits for it or leaves it in the background.

use std::sync::{Arc, Weak};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::relay::ParentClient;
use super::run::ChildRun;
use super::start::open_child;
use crate::agents::{Agent, Agents};
use crate::arguments::left_out;
use crate::arguments::understood::{Understood, understood};
use crate::arguments::unknown::refusal;
use crate::hub::{Hub, HubError, People, SessionHandle, Shared};
use crate::ids::SessionId;
use crate::metadata::BackgroundTask;
use crate::nearest::nearest;
use crate::ports::BoxFuture;
use crate::ports::tool::{
    Effect, OutcomeMetadata, Presentation, Site, Tool, ToolKind, ToolOutcome, ToolPlan, ToolRuntime, ToolSpec,
};
use crate::session::title::short_title;
use crate::snapshot::CallSnapshot;
use crate::watchdog::Commands;
use crate::work_state::ChangesMark;

/// The description for the model; the subagents follow.
const DESCRIPTION: &str = "Gives a piece of work to a subagent and returns its last message. It knows nothing of this \
conversation: say in the prompt what it needs to know, what to do and what to report. Several that only read run at the same \
time if you call them in one step.";

/// Added if there can be a later prompt.
const IN_BACKGROUND: &str =
    " With background: true you get a session id at once, and its result with a later prompt.";

const SUBAGENTS: &str = " Subagents:";

/// The answer to such a call on a host that ends with its turn.
const NO_BACKGROUND: &str =
    "`background` is not possible here: this session ends with your turn. Call it without";

/// The name of the tool.
pub(crate) const TASK: &str = "task";

#[derive(Debug)]
pub(crate) struct TaskTool {
    /// Weak: the hub holds the sessions, which hold their tools.
    hub: Weak<Shared>,
    session: SessionId,
    agents: Agents,
    spec: ToolSpec,
    /// With the field that is accepted but not advertised.
    understood: ToolSpec,
    people: People,
}

/// The name that other agents give to the title of a task. Accepted, but not asked for, because the prompt has
/// a first line.
const TITLE: &str = "description";

const BACKGROUND: &str = "background";

/// Whether a session continues after its turn, so that a later turn can receive a result.
fn lasts(people: People) -> bool {
    match people {
        People::Present | People::Absent => true,
        People::OnlyAProgram => false,
    }
}

/// The tool for these subagents, with every field that it accepts.
pub fn spec(subagents: &[&str]) -> ToolSpec {
    ToolSpec {
        id: TASK.into(),
        description: DESCRIPTION.into(),
        parameters: Arc::new(json!({
            "type": "object",
            "properties": {
                "subagent_type": { "type": "string", "enum": subagents },
                "prompt": { "type": "string" },
                BACKGROUND: { "type": "boolean" },
                TITLE: { "type": "string" },
            },
            "required": ["subagent_type", "prompt"],
            "additionalProperties": false,
        })),
        kind: ToolKind::Other,
        // The child's own calls are judged when it makes them.
        effect: Effect::SessionOnly,
        hidden: false,
    }
}

/// The arguments of a call, understood.
struct TaskInput {
    agent: Agent,
    prompt: String,
    title: String,
    waiting: CallWaits,
}

/// What a call does while its child works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallWaits {
    UntilItEnds,
    /// It returns at once; the result comes as a message.
    NotAtAll,
}

impl TaskTool {
    /// The tool for a session with these agents; `None` if there is no agent to give work to.
    pub(crate) fn of(hub: &Arc<Shared>, session: &SessionId, agents: &Agents) -> Option<Self> {
        let known: Vec<&Agent> = agents.subagents().collect();
        if known.is_empty() {
            return None;
        }
        let listed = known.iter().map(|agent| format!("\n- {}: {}", agent.id, agent.description));
        let ids: Vec<&str> = known.iter().map(|agent| &*agent.id).collect();
        let people = hub.ports.settings.people;
        let in_background = if lasts(people) { IN_BACKGROUND } else { "" };
        let begin = [DESCRIPTION, in_background, SUBAGENTS].map(str::to_owned);
        let description = begin.into_iter().chain(listed).collect::<String>();
        let understood = spec(&ids);
        let mut parameters = (*understood.parameters).clone();
        if let Some(fields) = parameters["properties"].as_object_mut() {
            fields.remove(TITLE);
            if !lasts(people) {
                fields.remove(BACKGROUND);
            }
        }
        let spec =
            ToolSpec { description: description.into(), parameters: parameters.into(), ..understood.clone() };
        let (hub, session, agents) = (Arc::downgrade(hub), session.clone(), agents.clone());
        Some(Self { hub, session, agents, spec, understood, people })
    }

    fn read(&self, input: &Value) -> Result<TaskInput, String> {
        let Understood { arguments, unknown } = understood(&self.understood.parameters, input)?;
        let fields = arguments.as_object().ok_or("the arguments must be an object")?;
        let without = |problem: String| match unknown.is_empty() {
            true => problem,
            // An unknown field may hold the value of the missing one.
            false => format!("{problem}; {}", refusal(&unknown)),
        };
        let text = |key: &str| match fields.get(key) {
            Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
            Some(Value::String(_)) => Err(format!("`{key}` is empty")),
            Some(_) => Err(format!("`{key}` must be a string")),
            None => Err(without(format!("`{key}` is missing"))),
        };
        let known = || self.agents.subagents().map(|agent| &*agent.id).collect::<Vec<_>>().join(", ");
        let named = text("subagent_type").map_err(|problem| format!("{problem}; available: {}", known()))?;
        let prompt = text("prompt")?;
        let waiting = match fields.get(BACKGROUND) {
            None | Some(Value::Bool(false)) => CallWaits::UntilItEnds,
            Some(Value::Bool(true)) if !lasts(self.people) => return Err(NO_BACKGROUND.to_owned()),
            Some(Value::Bool(true)) => CallWaits::NotAtAll,
            Some(_) => return Err("`background` must be true or false".to_owned()),
        };
        let Some(agent) = self.agents.subagent(&named) else {
            let near = nearest(&named, self.agents.subagents().map(|agent| &*agent.id));
            let near = near.map(|near| format!("; the nearest is `{near}`")).unwrap_or_default();
            return Err(format!("there is no subagent `{named}`{near}; available: {}", known()));
        };
        let title = fields.get(TITLE).and_then(Value::as_str).and_then(short_title);
        let title = title.or_else(|| short_title(&prompt)).unwrap_or_else(|| agent.name.to_string());
        Ok(TaskInput { agent: agent.clone(), prompt, title, waiting })
    }

    fn presentation(&self, task: &TaskInput) -> Presentation {
        Presentation { title: task.title.clone(), ..self.spec.presentation() }
    }

    async fn start(&self, task: TaskInput, runtime: ToolRuntime) -> Result<ToolOutcome, HubError> {
        let gone = || HubError::Closed(self.session.clone());
        let shared = self.hub.upgrade().ok_or_else(gone)?;
        let hub = Hub::of(shared.clone());
        let parent = hub.opened(&self.session).ok_or_else(gone)?;
        let terms = parent.task_terms().await?;
        let child = open_child(&hub, &terms, &task.agent, &task.title, runtime.call_id.clone()).await?;
        if let Some(sink) = &runtime.snapshots {
            let (title, child) = (task.title.clone(), Some(child.id().clone()));
            let told = sink.record(CallSnapshot { title, child, ..CallSnapshot::default() }).await;
            told.map_err(HubError::Internal)?;
        }
        let reads = if only_reads(&task.agent, &shared) { ChildReads::Only } else { ChildReads::NotOnly };
        let waits = task.waiting == CallWaits::UntilItEnds;
        let client = ParentClient::new(&parent, child.id(), &task.agent, &task.title, terms.client.clone());
        let client = Arc::new(if waits { client.waited_for() } else { client });
        let run = ChildRun {
            call: self.presentation(&task),
            hub,
            root: terms.root,
            child,
            agent: task.agent,
            client,
            prompt: task.prompt,
            result_bytes: runtime.result_bytes,
        };
        match task.waiting {
            CallWaits::UntilItEnds => Ok(self.wait_for(run, &parent, runtime).await),
            CallWaits::NotAtAll => leave_in_background(run, &parent, task.title, reads).await,
        }
    }

    async fn wait_for(&self, run: ChildRun, parent: &SessionHandle, runtime: ToolRuntime) -> ToolOutcome {
        let slots = run.hub.task_slots();
        let aside = slots.step_aside(parent.id());
        let report = run.run(Some(runtime.progress), runtime.cancel.clone()).await;
        tokio::select! {
            biased;
            () = runtime.cancel.cancelled() => {}
            () = aside.come_back() => {}
        }
        report.outcome()
    }
}

/// Whether a child can only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChildReads {
    Only,
    NotOnly,
}

/// Stores that a result is due before anything runs, so that a crash can't lose it.
async fn leave_in_background(
    run: ChildRun,
    parent: &SessionHandle,
    title: String,
    reads: ChildReads,
) -> Result<ToolOutcome, HubError> {
    let (id, agent) = (run.child.id().clone(), run.agent.clone());
    let task = BackgroundTask { session_id: id.clone(), agent: agent.id.to_string(), title };
    let cancel = CancellationToken::new();
    parent.background_started(task, cancel.clone()).await?;
    let parent = parent.clone();
    let child = id.clone();
    tokio::spawn(async move {
        let report = run.run(None, cancel).await;
        parent.background_ended(child, report.told(), agent.when_done);
    });
    let text = format!(
        "Started in the background as {id}. Its result comes with a later prompt, not in this turn: no tool asks for it. Do \
         other work, or say what runs and end your turn."
    );
    let shown = Presentation {
        content: vec![crate::ports::tool::Shown::Text {
            text: format!("{} works in the background as {id}.", agent.name),
        }],
        // Its result comes as a message, which does not mention files.
        metadata: Some(OutcomeMetadata {
            changes: (reads == ChildReads::NotOnly).then(|| ChangesMark {
                files: Vec::new(),
                uncovered: vec![format!("{} in the background, session {id}", agent.name)],
            }),
            ..OutcomeMetadata::default()
        }),
        ..Presentation::default()
    };
    Ok(ToolOutcome::Output { data: json!(text), presentation: shown })
}

impl Tool for TaskTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// A child that only reads runs at the same time as other calls; a call that is not understood changes
    /// nothing.
    fn effect_of(&self, input: &Value) -> Effect {
        let Ok(task) = self.read(input) else { return Effect::ReadOnly };
        let Some(hub) = self.hub.upgrade() else { return Effect::ReadOnly };
        if only_reads(&task.agent, &hub) { Effect::ReadOnly } else { Effect::Mutates }
    }

    fn plan(&self, input: &Value, _site: &Site) -> BoxFuture<'_, Result<ToolPlan, String>> {
        let note = left_out(&self.understood, input);
        let planned = |task| ToolPlan { note, ..ToolPlan::new(Vec::new(), self.presentation(&task)) };
        let plan = self.read(input).map(planned);
        Box::pin(std::future::ready(plan))
    }

    /// The subagent's session reports the changes.
    fn tells_changes(&self) -> bool {
        true
    }

    fn run(&self, input: Value, runtime: ToolRuntime) -> BoxFuture<'_, ToolOutcome> {
        Box::pin(async move {
            let failed = |text: String| ToolOutcome::Error { text, presentation: None };
            let task = match self.read(&input) {
                Ok(task) => task,
                Err(text) => return failed(text),
            };
            self.start(task, runtime).await.unwrap_or_else(|error| failed(error.to_string()))
        })
    }
}

/// Whether no tool that the agent is offered changes anything.
fn only_reads(agent: &Agent, hub: &Shared) -> bool {
    // What an agent does elsewhere is unknown.
    if agent.foreign_key().is_some() {
        return false;
    }
    let mut offered = hub.ports.tools.iter().flat_map(|source| source.tools().to_vec());
    offered.all(|tool| {
        let spec = tool.spec();
        let runs_commands = spec.kind == ToolKind::Execute;
        let only_reads =
            spec.effect != Effect::Mutates || (runs_commands && agent.commands == Commands::OnlyReading);
        only_reads || !agent.is_offered(spec)
    })
}
