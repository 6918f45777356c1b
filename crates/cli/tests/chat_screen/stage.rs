//! A home, a terminal and a chat in it.

use attache_testkit::binary::Home;
use attache_testkit::tmux::Tmux;

pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_attache");

/// What the composer says when it is empty and the agent at rest.
pub(crate) const READY: &str = "Say what to do.";

pub(crate) struct Stage {
    // First, so that its programs end before the home goes.
    pub(crate) tmux: Tmux,
    pub(crate) home: Home,
}

impl Stage {
    pub(crate) fn new(script: &str) -> Self {
        Self::of_size(script, (80, 24), &[])
    }

    pub(crate) fn of_size(script: &str, size: (u16, u16), variables: &[(&str, &str)]) -> Self {
        let home = Home::new(BINARY, script);
        home.write_config("sandbox = \"off\"\n");
        let tmux = Tmux::open(&home, size, variables);
        Self { tmux, home }
    }

    /// Starts the chat and waits until it can be typed into.
    pub(crate) fn chat(&self, arguments: &str) {
        self.tmux.write_line(&format!("clear; \"$ATTACHE\" chat {arguments}"));
        self.tmux.wait_for(READY);
    }

    pub(crate) fn say(&self, prompt: &str) {
        self.tmux.write_line(prompt);
    }

    /// The last turn has ended and its end is drawn.
    pub(crate) fn wait_for_rest(&self, words: &str) -> String {
        self.tmux.wait_until(&format!("{words:?} at rest"), |screen| {
            screen.contains(words) && screen.contains(READY) && !screen.contains("esc stops")
        })
    }

    pub(crate) fn workspace_file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.home.workspace().join(name)).ok()
    }
}
