//! What keys and pastes come to: to whatever has them first, then to the composer, then to the conversation.

use agent_client_protocol_schema::v1::SessionInfo;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{Front, MenuRow, ScreenState, SentPlace};
use crate::screen::composer::{PastedPicture, PictureWay, Typed, Vocabulary};
use crate::screen::form::FormStep;
use crate::screen::intent::{Delivery, Intent};
use crate::screen::limits::TWICE;
use crate::screen::pager::Paged;
use crate::screen::permission::PermissionAnswer;
use crate::screen::picker::MenuPick;

impl ScreenState {
    pub(crate) fn key(&mut self, key: KeyEvent) {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('l') if control => return self.intents.push(Intent::Redraw),
            KeyCode::Char('z') if control => return self.intents.push(Intent::Suspend),
            _ => {}
        }
        match &mut self.front {
            Front::Composer => self.key_of_composer(key),
            Front::Permission { .. } => self.key_of_permission(key),
            Front::Form { .. } => self.key_of_form(key),
            Front::Menu(menu) => match menu.key(key) {
                MenuPick::Nothing => {}
                MenuPick::Away => self.close_front(),
                MenuPick::This(row) => {
                    self.close_front();
                    self.picked(row);
                }
            },
            Front::Pages(pager) => {
                if pager.key(key) == Paged::Close {
                    self.close_front();
                }
            }
        }
    }

    pub(crate) fn paste(&mut self, text: &str) {
        match &mut self.front {
            Front::Composer => {
                if let Err(refusal) = self.composer.paste(text) {
                    self.hint(refusal);
                }
            }
            Front::Permission { dialog, .. } => dialog.paste(text),
            Front::Form { dialog, .. } => dialog.paste(text),
            Front::Menu(_) | Front::Pages(_) => {}
        }
    }

    /// A picture that was pasted: by its file, or out of the clipboard.
    pub(crate) fn paste_picture(&mut self, picture: PastedPicture) {
        let Front::Composer = &self.front else { return };
        match (self.agent.takes.pictures, &picture.uri) {
            (PictureWay::Linked, None) => self.hint(format!("{} takes no pictures", self.agent.name)),
            (PictureWay::Taken | PictureWay::Linked, _) => self.composer.attach_picture(picture),
        }
    }

    /// Takes the files that were found; the user may be typing the name of one already.
    pub(crate) fn know_files(&mut self, found: Vec<Box<str>>) {
        self.composer.files.add(found);
        let own = self.own_commands();
        self.composer.look_again(Vocabulary { own: &own, commands: &self.commands });
    }

    /// Whether a search for `@` goes on by itself.
    pub(crate) fn is_searching(&self) -> bool {
        self.composer.is_searching()
    }

    /// A piece of it.
    pub(crate) fn search_on(&mut self) {
        let own = self.own_commands();
        self.composer.search_on(Vocabulary { own: &own, commands: &self.commands });
    }

    pub(crate) fn know_sessions(&mut self, sessions: Vec<SessionInfo>) {
        self.composer.sessions.set(sessions);
        let own = self.own_commands();
        self.composer.look_again(Vocabulary { own: &own, commands: &self.commands });
    }

    /// Something to read in the place of the line of facts.
    pub(crate) fn tell(&mut self, text: impl Into<String>) {
        self.hint(text);
    }

    pub(super) fn close_front(&mut self) {
        self.front = Front::Composer;
        self.open_next_question();
    }

    pub(super) fn picked(&mut self, row: MenuRow) {
        let intent = match row {
            MenuRow::Intent(intent) => intent,
            MenuRow::Session(session) => Intent::Open(session),
        };
        match self.is_working() && matches!(intent, Intent::Open(_) | Intent::Rewind(_)) {
            true => self.hint(format!("the agent is at work: {} stops it", self.theme.stopper())),
            false => self.intents.push(intent),
        }
    }

    fn key_of_permission(&mut self, key: KeyEvent) {
        let Front::Permission { question, dialog, .. } = &mut self.front else { return };
        let question = *question;
        match dialog.key(key, self.now) {
            PermissionAnswer::Nothing => return,
            PermissionAnswer::Choose(option) => {
                self.intents.push(Intent::Permit { question, option: Some(option) });
            }
            PermissionAnswer::RejectWith(option, word) => {
                self.intents.push(Intent::Permit { question, option: Some(option) });
                self.submit(word.clone(), vec![word.into()], Delivery::Steering);
            }
            PermissionAnswer::Stop => {
                self.intents.push(Intent::Permit { question, option: None });
                self.intents.push(Intent::Cancel);
            }
        }
        self.close_question();
    }

    fn key_of_form(&mut self, key: KeyEvent) {
        let Front::Form { question, dialog } = &mut self.front else { return };
        let question = *question;
        if let FormStep::Give(action) = dialog.key(key) {
            self.intents.push(Intent::Fill { question, action });
            self.close_question();
        }
    }

    fn key_of_composer(&mut self, key: KeyEvent) {
        self.hint = None;
        if self.key_of_conversation(key) {
            return;
        }
        let own = self.own_commands();
        let words = Vocabulary { own: &own, commands: &self.commands };
        match self.composer.key(key, words) {
            Typed::Taken => self.last_typed = Some(self.now),
            // After a prompt was sent, no word is half typed.
            Typed::Send => {
                self.last_typed = None;
                self.send(Delivery::Queued);
            }
            Typed::Complete => self.intents.push(Intent::Complete(self.composer.text().to_owned())),
            Typed::Other => {}
        }
    }

    /// Keys that mean something beside the text; false if this is none.
    fn key_of_conversation(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Esc => self.escape(),
            KeyCode::BackTab => self.next_mode(),
            KeyCode::Char('c') if control => self.interrupt(),
            KeyCode::Char('d') if control && self.composer.is_empty() => self.intents.push(Intent::Leave),
            KeyCode::Char('o') if control => self.show_details(),
            KeyCode::Char('g') if control => self.intents.push(Intent::Edit(self.composer.text().to_owned())),
            KeyCode::Char('s') if control => self.send(Delivery::Steering),
            KeyCode::Char('v') if control => self.intents.push(Intent::PastePicture),
            KeyCode::Char('?') if self.composer.is_empty() => self.show_keys(),
            KeyCode::Up
                if self.composer.is_empty() && self.under_way.iter().skip(1).any(|sent| !sent.gone) =>
            {
                self.take_back();
            }
            _ => return false,
        }
        true
    }

    fn escape(&mut self) {
        if self.composer.dismiss() || self.composer.leave_insert() {
            return;
        }
        let is_second = self.last_escape.is_some_and(|last| self.now.saturating_sub(last) < TWICE);
        self.last_escape = Some(self.now);
        if self.own_runs.is_running() {
            self.intents.push(Intent::StopRun);
        } else if self.is_working() {
            self.intents.push(Intent::Cancel);
            self.hint("stopping");
        } else if is_second {
            self.last_escape = None;
            self.rewind_menu();
        } else if self.agent.can_rewind && !self.past.is_empty() {
            self.hint("esc again goes back to an earlier prompt");
        }
    }

    pub(crate) fn interrupt(&mut self) {
        let is_second = self.last_interrupt.is_some_and(|last| self.now.saturating_sub(last) < TWICE);
        self.last_interrupt = Some(self.now);
        if is_second {
            self.intents.push(Intent::Leave);
        } else if !self.composer.is_empty() {
            self.composer.clear();
        } else if self.own_runs.is_running() {
            self.intents.push(Intent::StopRun);
        } else if self.is_working() {
            self.intents.push(Intent::Cancel);
            self.hint("stopping; ctrl-c again leaves");
        } else {
            self.hint("ctrl-c again leaves");
        }
    }

    fn send(&mut self, delivery: Delivery) {
        let text = self.composer.text().to_owned();
        if self.own_command(&text) {
            self.composer.clear();
            return;
        }
        if let Some(command) = text.trim_start().strip_prefix('!') {
            self.run_own(command.trim());
            return;
        }
        let Some(written) = self.composer.take(&self.directory, self.agent.takes) else { return };
        let mut blocks = self.own_runs.take_results(self.agent.takes.embeds);
        blocks.extend(written.blocks);
        self.submit(written.text, blocks, delivery);
    }

    /// What was handed in last comes back to be changed.
    fn take_back(&mut self) {
        let Some(last) = self.under_way.iter_mut().skip(1).rfind(|sent| !sent.gone) else { return };
        last.gone = true;
        let (name, blocks, place) = (last.name.clone(), std::mem::take(&mut last.blocks), last.place);
        self.composer.take_over(&blocks);
        match place {
            SentPlace::Here => self.under_way.retain(|sent| sent.name != name),
            SentPlace::Agent => self.intents.push(Intent::TakeBack(name)),
        }
    }

    /// A prompt from elsewhere: the command line, say.
    pub(crate) fn say(&mut self, text: &str) {
        self.composer.set(text);
        self.send(Delivery::Queued);
    }
}
