//! A running ACP agent: its process, the connection to it, and who gets what it says. One of each session, so
//! that an agent that breaks takes no other session along.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use agent_client_protocol_schema::v1::{
    ClientCapabilities, CompactionStatus, ElicitationAcceptAction, FileSystemCapabilities, Notice,
    NoticeSeverity, PromptResponse, SessionId, SessionUpdate,
};
use attache_acp_client::{
    AgentClient, AgentEnd, AgentEvents, ClientEvent, ClientFailure, Connected, ElicitationQuestion,
    Introduction, PermissionQuestion, PromptTicket, asked_of_a_person, connect, unattended_capabilities,
};
use attache_core::ids::CallId;
use attache_core::ports::delegate::{AddressOffer, Form, FormAnswer};
use attache_core::ports::foreign::{AgentNews, AgentWord};
use attache_core::ports::tool::Workspace;
use attache_rpc::json_lines;
use attache_sandbox::Confined;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::choices::AgentChoices;
use super::process::{self, AgentTree};
use super::services::Services;
use super::{AcpSettings, AgentHold, failed};
use crate::ForeignError;

/// The connection, and what stands behind it. Dropping it ends the process with all that it started.
#[derive(Clone, Debug)]
pub(super) struct Child {
    pub(super) client: AgentClient,
    pub(super) tree: Arc<AgentTree>,
    pub(super) link: Arc<ChildLink>,
}

/// What the task that takes the agent's events shares with turns. Why locks: each is held for a look only.
#[derive(Debug)]
pub(super) struct ChildLink {
    /// The session at the agent's side: what it says of others is not for us.
    session: Mutex<Option<SessionId>>,
    turn: Mutex<Option<mpsc::Sender<ChildNews>>>,
    pub(super) choices: Arc<Mutex<AgentChoices>>,
    news: Mutex<AgentNews>,
    pub(super) services: Services,
}

/// What a turn hears of its agent, in the agent's order.
#[derive(Debug)]
pub(super) enum ChildNews {
    Update(Box<SessionUpdate>),
    Permission(Box<PermissionQuestion>),
    PromptEnded { ticket: PromptTicket, answer: Result<Box<PromptResponse>, ClientFailure> },
    Gone(AgentEnd),
}

/// Whether the program is attache itself. It runs its commands in a sandbox of its own, and shows them in
/// terminals by a relay that would not reach it out of a terminal of ours.
fn holds_its_commands(command: &[String]) -> bool {
    let name = command.first().and_then(|program| Path::new(program).file_name());
    name.is_some_and(|name| name == "attache")
}

/// Everything that is offered is served: by the client of the session, or by us.
fn introduction(settings: &AcpSettings) -> Introduction {
    let files = FileSystemCapabilities::new().read_text_file(true).write_text_file(true);
    let terminal = !holds_its_commands(&settings.command);
    let capabilities: ClientCapabilities =
        unattended_capabilities().fs(files).terminal(terminal).elicitation(asked_of_a_person());
    Introduction::new("attache", settings.version, capabilities)
}

/// Starts the agent and waits for its hello.
pub(super) async fn start(
    settings: &AcpSettings,
    (root, workspace): (&Path, Option<Arc<Workspace>>),
    choices: Arc<Mutex<AgentChoices>>,
    news: AgentNews,
) -> Result<Child, ForeignError> {
    let (words, directory) =
        (settings.command.clone(), settings.directory.as_deref().unwrap_or(root).to_owned());
    let held = match (settings.hold, workspace) {
        (AgentHold::Sandbox, Some(workspace)) => Some(confined(settings, workspace).await?),
        (AgentHold::Sandbox, None) => {
            return Err(ForeignError::new("the agent is held in a sandbox, which a prompt makes"));
        }
        (AgentHold::None, _) => None,
    };
    let started = process::start(&words, &directory, &settings.environment, held);
    let (tree, (output, input)) = started.map_err(|error| {
        let program = words.first().map(String::as_str).unwrap_or_default();
        let reason = match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such program".to_owned(),
            _ => error.to_string(),
        };
        failed(settings, &ClientFailure::Start { program: program.to_owned(), reason }, &[])
    })?;
    let tree = Arc::new(tree);
    let (source, sink) = json_lines((output, input), attache_acp_client::limits::LINE_BYTES);
    let connected = connect(source, sink, Some(tree.clone()), introduction(settings)).await;
    let Connected { client, events } = connected.map_err(|failure| failed(settings, &failure, &[]))?;
    let link = Arc::new(ChildLink {
        session: Mutex::new(None),
        turn: Mutex::new(None),
        choices,
        news: Mutex::new(news),
        services: Services::new(settings.sandbox.clone()),
    });
    tokio::spawn(take_events(events, link.clone()));
    Ok(Child { client, tree, link })
}

/// Looks at the disk, so elsewhere.
async fn confined(settings: &AcpSettings, workspace: Arc<Workspace>) -> Result<Confined, ForeignError> {
    let of = settings.clone();
    let made = tokio::task::spawn_blocking(move || process::confined(&of, workspace)).await;
    let made = made.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    made.map_err(|error| {
        ForeignError::new(format!("the agent `{}` can't be held in a sandbox: {error}", settings.name))
    })
}

async fn take_events(mut events: AgentEvents, link: Arc<ChildLink>) {
    while let Some(event) = events.next().await {
        match event {
            ClientEvent::Update(news) => {
                if link.is_ours(&news.session_id)
                    && let Some(update) = news.update
                {
                    link.update(update).await;
                }
            }
            // Nobody is there whom it could be put to without a turn: dropped, it is answered as cancelled.
            ClientEvent::Permission(question) => link.hand(ChildNews::Permission(question)).await,
            ClientEvent::Elicitation(question) => {
                let services = link.services.clone();
                tokio::spawn(async move { elicit(&services, *question).await });
            }
            ClientEvent::ElicitationDone(id) => {
                if let Some(client) = link.services.client(|offers| offers.addresses) {
                    tokio::spawn(client.address_done(id.0.to_string()));
                }
            }
            ClientEvent::Call(call) => {
                let services = link.services.clone();
                tokio::spawn(async move { services.serve(*call).await });
            }
            ClientEvent::PromptEnded { ticket, answer } => {
                link.hand(ChildNews::PromptEnded { ticket, answer }).await;
            }
            ClientEvent::Skipped(why) => tracing::debug!(%why, "a message of an agent was passed over"),
            ClientEvent::Ended(end) => link.hand(ChildNews::Gone(end)).await,
        }
    }
    link.services.terminals.release_all().await;
}

impl ChildLink {
    pub(super) fn set_session(&self, session: Option<SessionId>) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session;
    }

    pub(super) fn set_turn(&self, turn: Option<mpsc::Sender<ChildNews>>) {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = turn;
    }

    pub(super) fn set_news(&self, news: AgentNews) {
        *self.news.lock().unwrap_or_else(PoisonError::into_inner) = news;
    }

    pub(super) fn tell(&self, word: AgentWord) {
        let news = self.news.lock().unwrap_or_else(PoisonError::into_inner).clone();
        news.tell(word);
    }

    /// While a session is opened its id is not known yet, and there is no other.
    fn is_ours(&self, session: &SessionId) -> bool {
        let ours = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        ours.as_ref().is_none_or(|ours| ours == session)
    }

    /// To the turn under way; without one it is dropped.
    async fn hand(&self, news: ChildNews) {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(turn) = turn
            && turn.send(news).await.is_err()
        {
            tracing::debug!("an agent went on after the end of its turn");
        }
    }

    async fn update(&self, update: SessionUpdate) {
        match update {
            SessionUpdate::CurrentModeUpdate(mode) => {
                self.change_choices(|choices| choices.took_mode(&mode.current_mode_id.0));
            }
            SessionUpdate::ConfigOptionUpdate(options) => {
                self.change_choices(|choices| choices.options = options.config_options);
            }
            SessionUpdate::AvailableCommandsUpdate(listed) => {
                let is_changed = {
                    let mut choices = self.choices.lock().unwrap_or_else(PoisonError::into_inner);
                    let before = choices.commands.clone();
                    choices.took_commands(listed.available_commands);
                    choices.commands != before
                };
                if is_changed {
                    self.tell(AgentWord::CommandsChanged);
                }
            }
            SessionUpdate::Notice(notice) => self.tell(notice_word(notice)),
            SessionUpdate::CompactionUpdate(update) => {
                // Its conversation is its own: ours stays whole, and people are told.
                let (severity, title) = match update.status {
                    CompactionStatus::Completed => ("info", "The agent has summarised its conversation"),
                    CompactionStatus::Failed => ("warning", "The agent could not summarise its conversation"),
                    _ => return,
                };
                self.tell(AgentWord::Notice { severity, title: title.to_owned(), description: None });
            }
            update => self.hand(ChildNews::Update(Box::new(update))).await,
        }
    }

    fn change_choices(&self, change: impl FnOnce(&mut AgentChoices)) {
        let is_changed = {
            let mut choices = self.choices.lock().unwrap_or_else(PoisonError::into_inner);
            let before = choices.clone();
            change(&mut choices);
            *choices != before
        };
        if is_changed {
            self.tell(AgentWord::OptionsChanged);
        }
    }
}

fn notice_word(notice: Notice) -> AgentWord {
    let severity = match notice.severity {
        NoticeSeverity::Error => "error",
        NoticeSeverity::Warning => "warning",
        _ => "info",
    };
    AgentWord::Notice { severity, title: notice.title, description: notice.description }
}

/// Puts the agent's form or address to the user of the session, where the client can.
async fn elicit(services: &Services, question: ElicitationQuestion) {
    let Ok(request) = serde_json::to_value(&question.request) else { return question.cancel() };
    let message = question.request.message.clone();
    let withdrawn = question.withdrawn();
    let asked = match request.get("mode").and_then(Value::as_str) {
        Some("form") => services.client(|offers| offers.forms).map(|client| {
            let call_id = request.get("toolCallId").and_then(Value::as_str).unwrap_or("elicitation");
            let schema = request.get("requestedSchema").cloned().unwrap_or_else(|| json!({}));
            client.fill(Form { call_id: CallId::new(call_id), message, schema })
        }),
        Some("url") => services.client(|offers| offers.addresses).map(|client| {
            let text = |key: &str| request.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            client.offer_address(AddressOffer {
                call_id: None,
                id: text("elicitationId"),
                message,
                url: text("url"),
            })
        }),
        Some(_) | None => None,
    };
    let Some(asked) = asked else { return question.cancel() };
    let answer = tokio::select! {
        answer = asked => answer,
        () = withdrawn.cancelled() => return question.cancel(),
    };
    match answer {
        Ok(FormAnswer::Filled(fields)) => {
            let content = serde_json::from_value::<ElicitationAcceptAction>(json!({ "content": fields }));
            match content {
                Ok(content) => question.accept(content),
                Err(_) => question.cancel(),
            }
        }
        Ok(FormAnswer::Declined) => question.decline(),
        Ok(FormAnswer::Dismissed) | Err(_) => question.cancel(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attache_holds_its_commands_itself_wherever_it_is_installed() {
        for (program, holds) in
            [("attache", true), ("/opt/bin/attache", true), ("goose", false), ("/w/attache/goose", false)]
        {
            assert_eq!(holds_its_commands(&[program.to_owned(), "acp".to_owned()]), holds, "{program}");
        }
        assert!(!holds_its_commands(&[]));
    }
}
