//! The event loop of the chat: one task that takes keys, events of the agent, signals and the clock, hands them
//! to the conversation, carries out what it wants, and draws at most once a frame.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use agent_client_protocol_schema::v1::SessionId;
use crossterm::event::{Event, KeyEventKind};
use tokio::sync::mpsc;

use crate::screen::branch;
use crate::screen::composer::{Embeds, FileWalk, PictureWay, PromptHistory, PromptTakes, walk};
use crate::screen::conversation::{AgentFacts, PromptEcho, Queues, ScreenSetting, ScreenState};
use crate::screen::intent::{Intent, PromptName, QuestionNumber};
use crate::screen::limits::{EVENTS_PER_FRAME, FRAME, LOOK_FOR_KEYS, SPINNER, TYPED_LATELY};
use crate::screen::painter::Painter;
use crate::screen::terminal::{ScreenStyle, ScreenTerminal};
use crate::screen::theme::{ScreenTheme, Tone};
use attache_acp_client::{
    AgentClient, AgentEvents, ClientEvent, ClientFailure, Connected, DoorFuture, ElicitationQuestion,
    PermissionQuestion, PromptTicket,
};
use attache_rpc::ErrorObject;

mod calls;
mod carry_out;
mod connect;
mod drawn;
mod external_editor;
mod lines;
mod mentions;
mod own_command;
mod pictures;
mod signals;
mod start;

pub use start::{ChatEnd, ChatFailure, ChatStart, FirstChoices, FirstSession};

use calls::DesktopCaller;
use connect::{LoopEvent, Reopening};
use lines::{LinesPrinter, Typing};
use own_command::RunningCommand;
use signals::Signals;

/// Talks until the user leaves. The terminal is given back in any case.
pub async fn run(start: ChatStart<'_>) -> Result<ChatEnd, ChatFailure> {
    let terminal = ScreenTerminal::take(start.style)?;
    let mut chat = EventLoop::new(start, terminal)?;
    chat.connect(Reopening::First);
    chat.look_for_files();
    let ended = chat.go_on().await;
    // Live blocks go to the scrollback with the rest.
    chat.conversation.replayed();
    let drawn = chat.draw();
    if chat.start.style == ScreenStyle::Drawn {
        let left = chat.painter.leave();
        chat.terminal.write(&left)?;
    }
    drop(chat.terminal);
    if let Some(client) = chat.client {
        client.leave().await;
    }
    ended.and(drawn)?;
    Ok(ChatEnd { session: chat.session.filter(|_| chat.was_prompted).map(|id| id.0.to_string()) })
}

struct EventLoop<'d> {
    start: ChatStart<'d>,
    connecting: Option<(DoorFuture<'d>, Reopening)>,
    terminal: ScreenTerminal,
    /// Columns and rows that are drawn for.
    size: (u16, u16),
    painter: Painter,
    conversation: ScreenState,
    /// `None` while another program has the terminal.
    keys: Option<Typing>,
    began: Instant,
    drawn: Instant,
    /// When the last key or the last change of size came.
    typed: Instant,
    title: String,
    client: Option<AgentClient>,
    events: Option<AgentEvents>,
    session: Option<SessionId>,
    /// A session is on its way: whatever an agent says is of it, and nothing is sent yet.
    is_opening: bool,
    /// A load repeats updates that are on the screen already.
    is_repeating: bool,
    was_prompted: bool,
    /// Intents held until the session is open.
    waiting: Vec<Intent>,
    tickets: HashMap<PromptTicket, PromptName>,
    questions: HashMap<QuestionNumber, HeldQuestion>,
    asked: u64,
    last_start: Option<Instant>,
    news: mpsc::UnboundedSender<LoopEvent>,
    heard: mpsc::UnboundedReceiver<LoopEvent>,
    signals: Signals,
    caller: DesktopCaller,
    /// Dropped, it is killed with what it started.
    own_run: Option<RunningCommand>,
    lines: LinesPrinter,
    /// A prompt on its way whose mentions are looked up: the next ones follow it.
    is_expanding: bool,
    leaves: bool,
}

enum HeldQuestion {
    Permission(PermissionQuestion),
    Form(ElicitationQuestion),
}

/// What woke the chat.
enum Wakeup {
    Key(Option<std::io::Result<Event>>),
    Line(Option<String>),
    Agent(Option<ClientEvent>),
    Connected(Result<Box<Connected>, ClientFailure>),
    Answered(LoopEvent),
    Resumed,
    Interrupted,
    Ended,
    Time,
}

/// Until the agent has said what it is.
fn setting(start: &ChatStart<'_>, columns: u16, rows: u16) -> ScreenSetting {
    let directory = start.directories.directory.clone();
    ScreenSetting {
        theme: ScreenTheme { screen: start.style, ..start.theme },
        columns,
        rows,
        branch: branch::of(&directory),
        directory,
        agent: AgentFacts {
            name: "attache".to_owned(),
            takes: PromptTakes { embeds: Embeds::Nothing, pictures: PictureWay::Linked },
            queues: Queues::Ourselves,
            can_list: false,
            can_load: false,
            can_fork: false,
            can_rewind: false,
        },
        echo: match start.style {
            ScreenStyle::Drawn => PromptEcho::Shown,
            ScreenStyle::Lines => PromptEcho::Typed,
        },
        run: run_name(),
    }
}

impl<'d> EventLoop<'d> {
    fn new(mut start: ChatStart<'d>, terminal: ScreenTerminal) -> Result<Self, ChatFailure> {
        let (columns, rows) = terminal.size()?;
        let setting = setting(&start, columns, rows);
        let mut conversation = ScreenState::new(setting, PromptHistory::open(start.history.take()));
        conversation.composer.use_keys(start.keys);
        if let Some(prompt) = start.prompt.take() {
            conversation.say(&prompt);
        }
        let (news, heard) = mpsc::unbounded_channel();
        let now = Instant::now();
        let keys = Some(Typing::of(start.style));
        Ok(Self {
            start,
            connecting: None,
            terminal,
            size: (columns, rows),
            painter: Painter::default(),
            conversation,
            keys,
            lines: LinesPrinter::default(),
            began: now,
            drawn: now.checked_sub(FRAME).unwrap_or(now),
            typed: now,
            title: String::new(),
            client: None,
            events: None,
            session: None,
            is_opening: true,
            is_repeating: false,
            was_prompted: false,
            waiting: Vec::new(),
            tickets: HashMap::new(),
            questions: HashMap::new(),
            asked: 0,
            last_start: None,
            news,
            heard,
            signals: Signals::watch()?,
            caller: DesktopCaller::from_environment(|name| std::env::var(name).ok()),
            own_run: None,
            is_expanding: false,
            leaves: false,
        })
    }

    async fn go_on(&mut self) -> Result<(), ChatFailure> {
        let mut has_changed = true;
        while !self.leaves {
            let since = self.drawn.elapsed();
            if has_changed && since >= FRAME {
                self.draw()?;
                has_changed = false;
            }
            let pause = match (has_changed, self.conversation.is_moving()) {
                // Keys come first, and a frame that is due.
                (_, _) if self.conversation.is_searching() => Duration::ZERO,
                (true, _) => FRAME.saturating_sub(since),
                (false, true) => SPINNER,
                // Keys that come with others may lie there already without waking anybody.
                (false, false) if self.typed.elapsed() < TYPED_LATELY => LOOK_FOR_KEYS,
                (false, false) => Duration::from_secs(3600),
            };
            let woken = self.wake(pause).await;
            self.conversation.at(self.began.elapsed());
            has_changed |= !matches!(woken, Wakeup::Time) || self.conversation.is_moving();
            self.take(woken).await?;
            if self.conversation.is_searching() {
                self.conversation.search_on();
                has_changed = true;
            }
            self.carry_out_all().await?;
        }
        Ok(())
    }

    async fn wake(&mut self, pause: Duration) -> Wakeup {
        let Self { keys, events, connecting, signals, heard, .. } = self;
        let keys = async {
            match keys {
                Some(typing) => typing.next().await,
                None => std::future::pending().await,
            }
        };
        let events = async {
            match events {
                Some(events) => events.next().await,
                None => std::future::pending().await,
            }
        };
        let connecting = async {
            match connecting {
                Some((door, _)) => door.await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = signals.terminate.recv() => Wakeup::Ended,
            _ = signals.hang_up.recv() => Wakeup::Ended,
            _ = signals.interrupt.recv() => Wakeup::Interrupted,
            _ = signals.resumed.recv() => Wakeup::Resumed,
            typed = keys => typed,
            connected = connecting => Wakeup::Connected(connected.map(Box::new)),
            Some(news) = heard.recv() => Wakeup::Answered(news),
            () = tokio::time::sleep(pause) => Wakeup::Time,
            event = events => Wakeup::Agent(event),
        }
    }

    async fn take(&mut self, woken: Wakeup) -> Result<(), ChatFailure> {
        match woken {
            Wakeup::Key(Some(Ok(event))) => {
                self.typed = Instant::now();
                self.key(event)?;
            }
            // No keys can come any more.
            Wakeup::Key(Some(Err(_)) | None) | Wakeup::Line(None) | Wakeup::Ended => self.leaves = true,
            Wakeup::Line(Some(line)) => {
                self.lines.was_typed();
                self.conversation.line(&line);
            }
            Wakeup::Interrupted => match self.start.style {
                ScreenStyle::Drawn => self.leaves = true,
                ScreenStyle::Lines => self.conversation.interrupt(),
            },
            Wakeup::Agent(Some(event)) => {
                self.event(event);
                // What has come meanwhile is drawn at once with it.
                for _ in 0..EVENTS_PER_FRAME {
                    let Some(event) = self.events.as_mut().and_then(AgentEvents::try_next) else { break };
                    self.event(event);
                }
            }
            Wakeup::Agent(None) => self.events = None,
            Wakeup::Connected(connected) => {
                let reopening = self.connecting.take().map_or(Reopening::First, |(_, reopening)| reopening);
                self.connected(*connected.map_err(|failure| connect::unusable(&failure))?, reopening);
            }
            Wakeup::Answered(news) => self.hear(news)?,
            Wakeup::Resumed => self.come_back()?,
            Wakeup::Time => {}
        }
        Ok(())
    }

    fn key(&mut self, event: Event) -> Result<(), ChatFailure> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.conversation.key(key),
            Event::Paste(text) => match pictures::of_path(&text) {
                Some(picture) => self.conversation.paste_picture(picture),
                None => self.conversation.paste(&text),
            },
            Event::FocusGained => self.caller.is_looked_at(),
            Event::FocusLost => self.caller.is_left_alone(),
            Event::Resize(..) => self.resize()?,
            _ => {}
        }
        Ok(())
    }

    fn event(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Update(news) => {
                let is_ours = self.is_opening || self.session.as_ref() == Some(&news.session_id);
                if let (Some(update), true, false) = (news.update, is_ours, self.is_repeating) {
                    self.conversation.update(update);
                }
            }
            ClientEvent::Permission(question) => {
                let (number, request) = (self.next_question(), question.request.clone());
                self.watch_withdrawal(number, question.withdrawn());
                self.questions.insert(number, HeldQuestion::Permission(*question));
                self.conversation.ask_permission(number, request);
            }
            ClientEvent::Elicitation(question) => {
                let (number, request) = (self.next_question(), question.request.clone());
                self.watch_withdrawal(number, question.withdrawn());
                self.questions.insert(number, HeldQuestion::Form(*question));
                self.conversation.ask_form(number, request);
            }
            ClientEvent::ElicitationDone(_) => {}
            ClientEvent::Call(call) => {
                call.refuse(ErrorObject::method_not_found("files and terminals are not offered"));
            }
            ClientEvent::PromptEnded { ticket, answer } => {
                let Some(name) = self.tickets.remove(&ticket) else { return };
                match answer {
                    Ok(response) => self.conversation.prompt_ended(&name, Ok(&response)),
                    // Told once, with the end of the agent.
                    Err(ClientFailure::Ended(_)) => self.conversation.prompt_cut(&name),
                    Err(failure) => self.conversation.prompt_ended(&name, Err(failure.to_string())),
                }
                self.conversation.facts_mut().branch = branch::of(&self.start.directories.directory);
            }
            ClientEvent::Skipped(why) => tracing::debug!(%why, "a message of the agent was passed over"),
            ClientEvent::Ended(end) => self.agent_ended(&end),
        }
    }

    fn next_question(&mut self) -> QuestionNumber {
        self.asked += 1;
        QuestionNumber(self.asked)
    }

    fn watch_withdrawal(&self, number: QuestionNumber, withdrawn: tokio_util::sync::CancellationToken) {
        let news = self.news.clone();
        tokio::spawn(async move {
            withdrawn.cancelled().await;
            // After the end no one receives it.
            drop(news.send(LoopEvent::Withdrawn(number)));
        });
    }

    fn look_for_files(&self) {
        let news = self.news.clone();
        walk(self.start.directories.directory.clone(), move |found| {
            match news.send(LoopEvent::Files(found)) {
                Ok(()) => FileWalk::GoOn,
                Err(_) => FileWalk::Stop,
            }
        });
    }

    fn note(&mut self, role: Tone, text: &str) {
        self.conversation.note(role, text);
    }
}

/// Names of prompts differ between runs: an agent takes the same name for the same prompt.
fn run_name() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("chat-{:x}-{:x}", std::process::id(), since.as_micros())
}
