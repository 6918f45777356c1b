//! From a door to an open session, and again when the agent has died. Waits in tasks of their own: keys are
//! always taken.

use std::time::{Duration, Instant};

use agent_client_protocol_schema::v1::{
    ContentBlock, SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory, SessionId, SessionInfo,
};

use super::{ChatFailure, EventLoop, FirstSession, HeldQuestion};
use crate::screen::composer::{Embeds, PastedPicture, PictureWay, PromptTakes};
use crate::screen::conversation::{AgentFacts, OwnRunEnd, Queues};
use crate::screen::harmless;
use crate::screen::intent::{Delivery, Intent, PromptName, QuestionNumber};
use crate::screen::limits::RESTART_LEAST;
use crate::screen::theme::Tone;
use attache_acp_client::{
    AgentAbility, AgentClient, AgentEnd, AgentEvents, ClientFailure, CommandCompletion, Connected,
    OpenedSession, RewoundPrompt, SessionMatch, SessionStart, SessionState,
};

/// What tasks report.
pub(super) enum LoopEvent {
    Opened(Result<Box<OpenedSession>, ClientFailure>, Opening),
    Sessions(Result<Vec<SessionInfo>, ClientFailure>),
    Options(Result<Vec<SessionConfigOption>, ClientFailure>),
    Mode(Result<String, ClientFailure>),
    Rewound(PromptName, Result<Box<RewoundPrompt>, ClientFailure>),
    /// Sessions that can be mentioned.
    Known(Vec<SessionInfo>),
    /// How the command that was typed so far could go on.
    Completed(String, Vec<CommandCompletion>),
    State(SessionState),
    Failed(ClientFailure),
    Withdrawn(QuestionNumber),
    Files(Vec<Box<str>>),
    /// Output of a user's own command.
    Printed(String),
    Ran(String, OwnRunEnd),
    /// The clipboard was asked for a picture.
    Clipboard(Result<PastedPicture, String>),
    /// A prompt whose mentions of sessions were looked up.
    Expanded(PromptName, Vec<ContentBlock>, Delivery),
}

/// Why a connection is made.
#[derive(Clone, Debug)]
pub(super) enum Reopening {
    First,
    /// The agent has died; this was its session.
    Again(Option<SessionId>),
}

/// How a session was opened, and so what is on the screen of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    New,
    /// Its past has come as updates.
    Loaded,
    /// Its past is on the screen already.
    Resumed,
    Forked,
}

impl EventLoop<'_> {
    pub(super) fn connect(&mut self, reopening: Reopening) {
        self.last_start = Some(Instant::now());
        self.is_opening = true;
        let door = self.start.door.open(self.start.introduction.clone());
        self.connecting = Some((door, reopening));
    }

    pub(super) fn hear(&mut self, news: LoopEvent) -> Result<(), ChatFailure> {
        match news {
            LoopEvent::Opened(Ok(opened), opening) => self.opened(*opened, &opening),
            LoopEvent::Opened(Err(failure), _) => return self.not_opened(&failure),
            LoopEvent::Sessions(Ok(sessions)) => {
                let current = self.session.clone();
                let others = sessions.into_iter().filter(|one| Some(&one.session_id) != current.as_ref());
                self.conversation.offer_sessions(others.collect());
            }
            LoopEvent::Options(Ok(options)) => self.conversation.facts_mut().options = options,
            LoopEvent::Mode(Ok(mode)) => {
                if let Some(modes) = &mut self.conversation.facts_mut().modes {
                    modes.current_mode_id = mode.into();
                }
            }
            LoopEvent::Rewound(name, Ok(rewound)) => {
                let told = rewind_told(&rewound);
                self.conversation.rewound(&name, &rewound.prompt, &told);
            }
            LoopEvent::Sessions(Err(failure))
            | LoopEvent::Options(Err(failure))
            | LoopEvent::Mode(Err(failure))
            | LoopEvent::Rewound(_, Err(failure))
            | LoopEvent::Failed(failure) => self.note(Tone::Bad, &failure.to_string()),
            LoopEvent::Withdrawn(number) => {
                self.questions.remove(&number);
                self.conversation.withdraw(number);
            }
            LoopEvent::Files(found) => self.conversation.know_files(found),
            LoopEvent::Known(sessions) => self.conversation.know_sessions(sessions),
            LoopEvent::Completed(asked, completed) => {
                let texts = completed.into_iter().map(|done| done.text).collect();
                self.conversation.composer.offer_completed(&asked, texts);
            }
            LoopEvent::State(state) => self.conversation.facts_mut().sandbox = state.sandbox,
            LoopEvent::Printed(piece) => self.conversation.own_output(&piece),
            LoopEvent::Ran(end, went) => {
                self.own_run = None;
                self.conversation.own_ended(&end, went);
            }
            LoopEvent::Clipboard(Ok(picture)) => self.conversation.paste_picture(picture),
            LoopEvent::Clipboard(Err(why)) => self.conversation.tell(why),
            LoopEvent::Expanded(name, blocks, delivery) => self.expanded(name, blocks, delivery),
        }
        Ok(())
    }

    pub(super) fn connected(&mut self, connected: Connected, reopening: Reopening) {
        let Connected { client, events } = connected;
        self.conversation.meet(facts_of(&client));
        self.client = Some(client.clone());
        self.events = Some(events);
        match reopening {
            Reopening::First => self.open_first(client),
            Reopening::Again(Some(session)) => self.open_again(client, session),
            Reopening::Again(None) => self.open_first(client),
        }
    }

    fn open_first(&mut self, client: AgentClient) {
        let (wanted, directories) = (self.start.session.clone(), self.start.directories.clone());
        let news = self.news.clone();
        tokio::spawn(async move {
            let (opened, opening) = match &wanted {
                FirstSession::New | FirstSession::Asked => {
                    (client.new_session(&directories).await, Opening::New)
                }
                FirstSession::Latest => latest(&client, &directories).await,
                FirstSession::ById(start) => (by_id(&client, start).await, Opening::Loaded),
            };
            drop(news.send(LoopEvent::Opened(opened.map(Box::new), opening)));
            if wanted == FirstSession::Asked {
                drop(news.send(LoopEvent::Sessions(sessions_of(&client, &directories).await)));
            }
        });
    }

    /// What was on the screen stays there: the session goes on without its past, or the past is not shown
    /// again.
    fn open_again(&mut self, client: AgentClient, session: SessionId) {
        let directories = self.start.directories.clone();
        let news = self.news.clone();
        let resumes = client.can(AgentAbility::Resume);
        self.is_repeating = !resumes;
        tokio::spawn(async move {
            let (opened, opening) = match (resumes, client.can(AgentAbility::Load)) {
                (true, _) => (client.resume_session(session, &directories).await, Opening::Resumed),
                (false, true) => (client.load_session(session, &directories).await, Opening::Resumed),
                (false, false) => (client.new_session(&directories).await, Opening::New),
            };
            drop(news.send(LoopEvent::Opened(opened.map(Box::new), opening)));
        });
    }

    fn opened(&mut self, opened: OpenedSession, opening: &Opening) {
        // Events from before the answer are in another queue, and belong before it.
        while let Some(event) = self.events.as_mut().and_then(AgentEvents::try_next) {
            self.event(event);
        }
        let had_one = self.session.replace(opened.session_id).is_some();
        (self.is_repeating, self.is_opening) = (false, false);
        let facts = self.conversation.facts_mut();
        (facts.modes, facts.options) = (opened.modes, opened.config_options);
        match opening {
            Opening::Loaded => self.conversation.replayed(),
            Opening::Resumed => self.note(Tone::Quiet, "The agent was started again; the session goes on."),
            Opening::Forked => self.note(Tone::Quiet, "This is a copy; the session before stays as it was."),
            Opening::New if had_one => self.note(Tone::Quiet, "A new session."),
            Opening::New => {}
        }
        self.choose_first();
        self.learn();
        let waiting = std::mem::take(&mut self.waiting);
        self.wanted_again(waiting);
    }

    /// Facts for the status line and sessions for `@`, which the agent does not send by itself.
    fn learn(&self) {
        let (Some(client), Some(session)) = (self.client.clone(), self.session.clone()) else { return };
        if !client.can(AgentAbility::Extensions) {
            return;
        }
        let (directories, news) = (self.start.directories.clone(), self.news.clone());
        tokio::spawn(async move {
            match client.session_state(&session).await {
                Ok(state) => drop(news.send(LoopEvent::State(state))),
                Err(error) => tracing::debug!(%error, "the state of the session is not known"),
            }
            match sessions_of(&client, &directories).await {
                Ok(mut sessions) => {
                    sessions.retain(|one| one.session_id != session);
                    drop(news.send(LoopEvent::Known(sessions)));
                }
                Err(error) => tracing::debug!(%error, "no session can be mentioned"),
            }
        });
    }

    /// Applies the choices of the command line, once.
    fn choose_first(&mut self) {
        let choices = std::mem::take(&mut self.start.choices);
        let wanted = [
            (choices.mode, SessionConfigOptionCategory::Mode),
            (choices.model, SessionConfigOptionCategory::Model),
            (choices.approval, SessionConfigOptionCategory::Other("_approval".to_owned())),
        ];
        for (value, category) in wanted {
            let Some(value) = value else { continue };
            let option = self.conversation.facts_mut().option(&category);
            match option.map(|option| (option.id.clone(), is_chosen(option, &value))) {
                Some((_, true)) => {}
                Some((option, false)) => {
                    let value = agent_client_protocol_schema::v1::SessionConfigOptionValue::value_id(value);
                    self.wanted_again(vec![Intent::SetOption { option, value }]);
                }
                None => self.note(Tone::Warning, &format!("{value} can't be chosen with this agent")),
            }
        }
    }

    fn not_opened(&mut self, failure: &ClientFailure) -> Result<(), ChatFailure> {
        (self.is_repeating, self.is_opening) = (false, false);
        match self.session {
            // The one before is still there.
            Some(_) if !matches!(failure, ClientFailure::Ended(_)) => {
                self.note(Tone::Bad, &failure.to_string());
                Ok(())
            }
            Some(_) | None => Err(unusable(failure)),
        }
    }

    /// Starts it again, unless it does nothing but end.
    pub(super) fn agent_ended(&mut self, end: &AgentEnd) {
        self.client = None;
        self.questions.clear();
        let lived = self.last_start.map_or(Duration::ZERO, |start| start.elapsed());
        self.conversation.agent_ended(&format!("The agent ended{end}."));
        if lived < RESTART_LEAST {
            self.note(Tone::Bad, "It ended right after its start and is not started again. ctrl-d leaves.");
            return;
        }
        self.connect(Reopening::Again(self.session.clone()));
    }

    pub(super) fn answer(&mut self, number: QuestionNumber) -> Option<HeldQuestion> {
        self.questions.remove(&number)
    }
}

fn is_chosen(option: &SessionConfigOption, value: &str) -> bool {
    matches!(&option.kind, SessionConfigKind::Select(select) if *select.current_value.0 == *value)
}

fn facts_of(client: &AgentClient) -> AgentFacts {
    let extensions = client.can(AgentAbility::Extensions);
    AgentFacts {
        name: harmless::exact_line(client.agent_name()),
        takes: PromptTakes {
            embeds: if client.can(AgentAbility::EmbeddedContext) { Embeds::Texts } else { Embeds::Nothing },
            pictures: if client.can(AgentAbility::Images) { PictureWay::Taken } else { PictureWay::Linked },
        },
        queues: if extensions { Queues::Agent } else { Queues::Ourselves },
        can_list: client.can(AgentAbility::List),
        can_load: client.can(AgentAbility::Load),
        can_fork: client.can(AgentAbility::Fork),
        can_rewind: extensions,
    }
}

async fn latest(
    client: &AgentClient,
    directories: &SessionStart,
) -> (Result<OpenedSession, ClientFailure>, Opening) {
    match client.latest_session(&directories.directory).await {
        Ok(Some(session)) => (client.load_session(session.session_id, directories).await, Opening::Loaded),
        Ok(None) => (client.new_session(directories).await, Opening::New),
        Err(failure) => (Err(failure), Opening::Loaded),
    }
}

async fn by_id(client: &AgentClient, start: &str) -> Result<OpenedSession, ClientFailure> {
    match client.find_session(start).await? {
        SessionMatch::One(session) => {
            let mut directories = SessionStart::new(session.cwd);
            directories.additional = session.additional_directories;
            client.load_session(session.session_id, &directories).await
        }
        // The agent says best what is wrong with it.
        SessionMatch::None | SessionMatch::Several => {
            let directories = SessionStart::new("/");
            client.load_session(SessionId::new(start.to_owned()), &directories).await
        }
    }
}

pub(super) async fn sessions_of(
    client: &AgentClient,
    directories: &SessionStart,
) -> Result<Vec<SessionInfo>, ClientFailure> {
    client.list_sessions(Some(&directories.directory), None).await.map(|page| page.sessions)
}

/// There is nothing to talk to; on one line, as all errors.
pub(super) fn unusable(failure: &ClientFailure) -> ChatFailure {
    ChatFailure::Agent(attache_acp_client::legible::legible(&failure.to_string()))
}

fn rewind_told(rewound: &RewoundPrompt) -> String {
    let mut told = format!("Went back; {} messages are hidden.", rewound.hidden);
    let Some(files) = &rewound.files else { return told };
    let list = |key: &str, name: &str| -> Vec<String> {
        let entries = files.get(key).and_then(serde_json::Value::as_array).into_iter().flatten();
        let text = |entry: &serde_json::Value| {
            entry.as_str().or_else(|| entry.get(name)?.as_str()).map(str::to_owned)
        };
        entries.filter_map(text).collect()
    };
    let parts = [
        ("Restored", list("restored", "path")),
        ("Not restored, changed by others", list("conflicts", "path")),
        ("Can't be taken back", list("notCovered", "what")),
    ];
    for (what, names) in parts.iter().filter(|(_, names)| !names.is_empty()) {
        told += &format!("\n{what}: {}", names.join(", "));
    }
    told
}
