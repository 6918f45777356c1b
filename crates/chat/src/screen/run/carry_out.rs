//! Carries out what the conversation wants, one intent at a time. What needs an answer of the agent waits for
//! it in a task of its own.

use agent_client_protocol_schema::v1::{
    ContentBlock, ElicitationAction, Meta, PromptRequest, SessionId, SessionInfo,
};
use rustix::process::{Signal, getpid, kill_process};

use super::connect::{LoopEvent, Opening, sessions_of};
use super::lines::Typing;
use super::{ChatFailure, EventLoop, HeldQuestion, external_editor};
use crate::screen::intent::{Delivery, Intent, PromptName};
use crate::screen::theme::Tone;
use attache_acp_client::{AgentAbility, AgentClient, ElicitationQuestion, SessionStart};

/// The session that takes the place of the one on the screen.
enum NextSession {
    Open(Box<SessionInfo>),
    New,
    Fork,
}

impl EventLoop<'_> {
    pub(super) async fn carry_out_all(&mut self) -> Result<(), ChatFailure> {
        for intent in self.conversation.take_intents() {
            self.carry_out(intent).await?;
        }
        Ok(())
    }

    /// The session is open: what waited for that.
    pub(super) fn wanted_again(&mut self, intents: Vec<Intent>) {
        let (Some(client), Some(session)) = (self.client.clone(), self.session.clone()) else { return };
        intents.into_iter().for_each(|intent| self.ask_agent(intent, &client, &session));
    }

    async fn carry_out(&mut self, intent: Intent) -> Result<(), ChatFailure> {
        match intent {
            Intent::Leave => self.leaves = true,
            Intent::Ring(reason) => {
                let title = self.conversation.title();
                let call = self.caller.call(reason, &title);
                self.terminal.write(&call)?;
            }
            Intent::Run(command) => self.run_own(&command),
            Intent::StopRun => self.own_run = None,
            Intent::PastePicture => self.paste_from_clipboard(),
            Intent::Redraw => {
                let (_, rows) = self.terminal.size()?;
                let cleared = self.painter.redraw(rows);
                self.terminal.write(&cleared)?;
            }
            Intent::Suspend => self.suspend().await?,
            Intent::Edit(text) => self.edit(text).await?,
            Intent::Permit { question, option } => match (self.answer(question), option) {
                (Some(HeldQuestion::Permission(question)), Some(option)) => question.choose(&option),
                (Some(HeldQuestion::Permission(question)), None) => question.cancel(),
                (Some(HeldQuestion::Form(_)) | None, _) => {}
            },
            Intent::Fill { question, action } => {
                if let Some(HeldQuestion::Form(question)) = self.answer(question) {
                    fill(question, action);
                }
            }
            intent => match (self.client.clone(), self.session.clone()) {
                (Some(client), Some(session)) if !self.is_opening && !self.must_wait(&intent) => {
                    self.ask_agent(intent, &client, &session)
                }
                _ => self.waiting.push(intent),
            },
        }
        Ok(())
    }

    fn ask_agent(&mut self, intent: Intent, client: &AgentClient, session: &SessionId) {
        let (client, session, news) = (client.clone(), session.clone(), self.news.clone());
        let directories = self.start.directories.clone();
        let tell = move |message: LoopEvent| drop(news.send(message));
        match intent {
            Intent::Prompt { name, blocks, delivery } => match self.mentions_sessions(&blocks, &client) {
                true => self.expand(name, blocks, delivery, client),
                false => self.prompt(name, blocks, delivery, &client, session),
            },
            Intent::Cancel => drop(tokio::spawn(async move {
                if let Err(failure) = client.cancel(session).await {
                    tell(LoopEvent::Failed(failure));
                }
            })),
            Intent::TakeBack(name) => drop(tokio::spawn(async move {
                if let Err(failure) = client.cancel_queued(&session, &name.0).await {
                    tell(LoopEvent::Failed(failure));
                }
            })),
            Intent::SetMode(mode) => drop(tokio::spawn(async move {
                let set = client.set_mode(session, &mode.0).await;
                tell(LoopEvent::Mode(set.map(|()| mode.0.to_string())));
            })),
            Intent::SetOption { option, value } => drop(tokio::spawn(async move {
                tell(LoopEvent::Options(client.set_config_option(session, &option.0, value).await));
            })),
            Intent::Complete(text) if client.can(AgentAbility::Extensions) => {
                drop(tokio::spawn(async move {
                    match client.complete_command(&session, &text).await {
                        Ok(completed) => tell(LoopEvent::Completed(text, completed)),
                        // An older agent does not know the question, and nobody has to hear of it.
                        Err(error) => tracing::debug!(%error, "no command can be completed"),
                    }
                }))
            }
            Intent::Complete(_) => {}
            Intent::ListSessions => drop(tokio::spawn(async move {
                tell(LoopEvent::Sessions(sessions_of(&client, &directories).await));
            })),
            Intent::Rewind(name) => drop(tokio::spawn(async move {
                let rewound = client.rewind(&session, &name.0).await.map(Box::new);
                tell(LoopEvent::Rewound(name, rewound));
            })),
            Intent::Open(info) => self.change_session(NextSession::Open(info), &client, session),
            Intent::StartNew => self.change_session(NextSession::New, &client, session),
            Intent::Fork => self.change_session(NextSession::Fork, &client, session),
            // Carried out before an agent is needed.
            Intent::Permit { .. }
            | Intent::Fill { .. }
            | Intent::Edit(_)
            | Intent::Redraw
            | Intent::Run(_)
            | Intent::StopRun
            | Intent::PastePicture
            | Intent::Suspend
            | Intent::Ring(_)
            | Intent::Leave => {}
        }
    }

    /// Nothing is sent until the other session is open.
    fn change_session(&mut self, next: NextSession, client: &AgentClient, session: SessionId) {
        let (client, news) = (client.clone(), self.news.clone());
        let mut directories = self.start.directories.clone();
        self.is_opening = true;
        match &next {
            NextSession::Open(info) => {
                let title = info.title.clone().unwrap_or_else(|| info.session_id.0.to_string());
                self.conversation.begin_session();
                self.note(Tone::Quiet, &format!("Session: {title}"));
            }
            NextSession::New => self.conversation.begin_session(),
            NextSession::Fork => {}
        }
        tokio::spawn(async move {
            let (opened, opening) = match next {
                NextSession::Open(info) => {
                    directories = SessionStart::new(info.cwd);
                    directories.additional = info.additional_directories;
                    (client.load_session(info.session_id, &directories).await, Opening::Loaded)
                }
                NextSession::Fork => (client.fork_session(session, &directories).await, Opening::Forked),
                NextSession::New => (client.new_session(&directories).await, Opening::New),
            };
            drop(news.send(LoopEvent::Opened(opened.map(Box::new), opening)));
        });
    }

    pub(super) fn prompt(
        &mut self,
        name: PromptName,
        blocks: Vec<ContentBlock>,
        delivery: Delivery,
        client: &AgentClient,
        session: SessionId,
    ) {
        let mut request = PromptRequest::new(session, blocks);
        if client.can(AgentAbility::Extensions) {
            let mut meta = Meta::from_iter([("attache/messageId".to_owned(), name.0.clone().into())]);
            if delivery == Delivery::Steering {
                meta.insert("attache/steer".to_owned(), true.into());
            }
            request = request.meta(meta);
        }
        self.was_prompted = true;
        let ticket = client.start_request(request);
        self.tickets.insert(ticket, name);
    }

    /// Stops as any program does at ctrl-z; what the shell does with the terminal meanwhile is its own
    /// business.
    async fn suspend(&mut self) -> Result<(), ChatFailure> {
        self.give_away()?;
        // Ours alone, or the shell's whole job if we are one.
        kill_process(getpid(), Signal::TSTP).map_err(std::io::Error::from)?;
        self.signals.resumed.recv().await;
        self.keys = Some(Typing::of(self.start.style));
        self.come_back()
    }

    async fn edit(&mut self, text: String) -> Result<(), ChatFailure> {
        self.give_away()?;
        let edited = external_editor::edit(text).await;
        self.keys = Some(Typing::of(self.start.style));
        self.terminal.begin()?;
        self.title.clear();
        match edited {
            Ok(text) => self.conversation.composer.set(text),
            Err(error) => self.note(Tone::Bad, &format!("The editor: {error}")),
        }
        Ok(())
    }

    fn give_away(&mut self) -> Result<(), ChatFailure> {
        // Its thread must not read keys that are meant for others.
        self.keys = None;
        let left = self.painter.leave();
        self.terminal.write(&left)?;
        self.terminal.lend()?;
        Ok(())
    }
}

fn fill(question: ElicitationQuestion, action: ElicitationAction) {
    match action {
        ElicitationAction::Accept(filled) => question.accept(filled),
        ElicitationAction::Decline => question.decline(),
        _ => question.cancel(),
    }
}
