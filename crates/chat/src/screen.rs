//! The terminal UI: a pure core (`conversation` takes updates and keys, gives intents and lines) and a thin
//! event loop that draws inline, below what the terminal's own scrollback keeps. Speaks no protocol itself.

mod branch;
mod call;
mod composer;
mod content;
mod conversation;
mod diff;
mod drawing;
mod form;
mod harmless;
mod highlight;
mod intent;
mod limits;
mod markdown;
mod pager;
mod painter;
mod permission;
mod picker;
mod run;
mod status;
mod terminal;
mod theme;
mod transcript;
mod wrap;

pub use composer::ComposerKeys;
pub use drawing::Canvas;
pub use run::{ChatEnd, ChatFailure, ChatStart, FirstChoices, FirstSession, run};
pub use terminal::{ScreenStyle, TerminalFailure};
pub use theme::{Colours, ScreenTheme, Signs};
