//! The line at the bottom: mode, model, effort, approval, sandbox; context, cost, branch. Drops what matters
//! least where the terminal is narrow.

use agent_client_protocol_schema::v1::{
    SessionConfigKind, SessionConfigOption, SessionConfigOptionCategory, SessionConfigSelect,
    SessionConfigSelectOption, SessionConfigSelectOptions, SessionModeState, UsageUpdate,
};
use ratatui_core::text::Line;

use crate::screen::harmless;
use crate::screen::theme::{ScreenTheme, Tone};
use crate::screen::wrap::{columns, cut};

/// What can be chosen in the session, and what it has used.
#[derive(Debug, Default)]
pub(crate) struct SessionFacts {
    pub(crate) modes: Option<SessionModeState>,
    pub(crate) options: Vec<SessionConfigOption>,
    pub(crate) usage: Option<UsageUpdate>,
    pub(crate) branch: Option<String>,
    /// What holds commands: "full", "reduced", "none", "off".
    pub(crate) sandbox: Option<String>,
    /// The mode of the composer's keys.
    pub(crate) keys: Option<&'static str>,
}

impl SessionFacts {
    pub(crate) fn option(&self, category: &SessionConfigOptionCategory) -> Option<&SessionConfigOption> {
        self.options.iter().find(|option| option.category.as_ref() == Some(category))
    }

    /// The name of what is chosen.
    fn chosen(&self, category: &SessionConfigOptionCategory) -> Option<String> {
        let option = self.option(category)?;
        let SessionConfigKind::Select(select) = &option.kind else { return None };
        let chosen = choices(select).into_iter().find(|choice| choice.value == select.current_value);
        Some(chosen.map_or_else(|| select.current_value.0.to_string(), |choice| choice.name.clone()))
    }

    fn mode(&self) -> Option<String> {
        if let Some(mode) = self.chosen(&SessionConfigOptionCategory::Mode) {
            return Some(mode);
        }
        let modes = self.modes.as_ref()?;
        let current = modes.available_modes.iter().find(|mode| mode.id == modes.current_mode_id);
        Some(current.map_or_else(|| modes.current_mode_id.0.to_string(), |mode| mode.name.clone()))
    }

    /// How much asks, of agents that say so in an option of their own.
    fn approval(&self) -> Option<String> {
        self.chosen(&SessionConfigOptionCategory::Other("_approval".to_owned()))
    }

    /// What holds commands, in words.
    fn hold(&self) -> Option<String> {
        let hold = self.sandbox.as_deref()?;
        Some(match hold {
            "full" => "sandbox".to_owned(),
            "reduced" => "reduced sandbox".to_owned(),
            "none" | "off" => "no sandbox".to_owned(),
            other => format!("sandbox {other}"),
        })
    }

    fn effort(&self) -> Option<String> {
        self.chosen(&SessionConfigOptionCategory::ThoughtLevel)
            .filter(|effort| !effort.eq_ignore_ascii_case("default"))
    }

    fn context(&self, theme: ScreenTheme) -> Option<String> {
        let usage = self.usage.as_ref().filter(|usage| usage.size > 0)?;
        let part = (usage.used.saturating_mul(100) / usage.size).min(100);
        let full = usize::try_from(part).unwrap_or(100).div_ceil(13).min(8);
        let bar = format!("{}{}", theme.full().repeat(full), theme.empty().repeat(8 - full));
        Some(format!("{bar} {part}% of {}", thousands(usage.size)))
    }

    fn cost(&self) -> Option<String> {
        let cost = self.usage.as_ref()?.cost.as_ref()?;
        Some(match cost.currency.as_str() {
            "USD" => format!("${:.2}", cost.amount),
            other => format!("{:.2} {}", cost.amount, harmless::exact_line(other)),
        })
    }

    pub(crate) fn line(&self, theme: ScreenTheme, width: usize) -> Line<'static> {
        let dot = format!(" {} ", theme.dot());
        let clean = |text: Option<String>| text.map(|text| theme.showable(&harmless::exact_line(&text)));
        let model = self.chosen(&SessionConfigOptionCategory::Model);
        let keys = self.keys.map(str::to_owned);
        let mut left: Vec<String> = [keys, self.mode(), model, self.effort(), self.approval(), self.hold()]
            .into_iter()
            .filter_map(clean)
            .collect();
        let mut right: Vec<String> =
            [self.context(theme), self.cost(), clean(self.branch.clone())].into_iter().flatten().collect();
        let length = |parts: &[String]| columns(&parts.join(&dot));
        // The branch goes first, the mode and the model last.
        while length(&left) + length(&right) + 2 > width && right.len() + left.len() > 1 {
            match (right.len(), left.len()) {
                (2.., _) => drop(right.pop()),
                (_, 3..) => drop(left.pop()),
                (1, _) => drop(right.pop()),
                (_, _) => drop(left.remove(0)),
            }
        }
        let left = cut(&left.join(&dot), width, theme.ellipsis());
        let right = right.join(&dot);
        let blanks = width.saturating_sub(columns(&left) + columns(&right));
        let right = if right.is_empty() { right } else { format!("{}{right}", " ".repeat(blanks)) };
        Line::from(theme.span(Tone::Quiet, format!("{left}{right}")))
    }
}

pub(crate) fn choices(select: &SessionConfigSelect) -> Vec<&SessionConfigSelectOption> {
    match &select.options {
        SessionConfigSelectOptions::Ungrouped(options) => options.iter().collect(),
        SessionConfigSelectOptions::Grouped(groups) => {
            groups.iter().flat_map(|group| &group.options).collect()
        }
        _ => Vec::new(),
    }
}

fn thousands(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}k", tokens / 1_000),
        _ => format!("{}.{}M", tokens / 1_000_000, tokens % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_client_protocol_schema::v1::{Cost, SessionMode};

    fn facts() -> SessionFacts {
        let modes = SessionModeState::new("build", vec![SessionMode::new("build", "Build")]);
        let model = SessionConfigOption::select(
            "model",
            "Model",
            "a/large",
            vec![SessionConfigSelectOption::new("a/large", "Large")],
        )
        .category(SessionConfigOptionCategory::Model);
        let usage = UsageUpdate::new(50_000, 200_000).cost(Cost::new(0.125, "USD"));
        SessionFacts {
            modes: Some(modes),
            options: vec![model],
            usage: Some(usage),
            branch: Some("main".to_owned()),
            sandbox: Some("off".to_owned()),
            keys: None,
        }
    }

    #[test]
    fn a_wide_line_has_everything_and_a_narrow_one_what_matters() {
        let line = |width| facts().line(ScreenTheme::PLAIN, width).to_string();
        assert_eq!(line(70), "Build · Large · no sandbox         ━━────── 25% of 200k · $0.12 · main");
        assert_eq!(line(40), "Build · Large       ━━────── 25% of 200k");
        assert_eq!(line(20), "Build · Large");
        assert_eq!(line(6), "Large");
    }

    #[test]
    fn nothing_is_shown_of_what_is_not_known() {
        assert_eq!(SessionFacts::default().line(ScreenTheme::PLAIN, 40).to_string(), "");
    }
}
