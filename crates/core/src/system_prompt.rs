//! Assembles the system prompt: fixed sections in a fixed order, and the digest that stands on every answer.

use std::sync::Arc;

use crate::agents::Agent;
use crate::environment::Environment;
use crate::ports::tool::ToolSpec;
use crate::prompt::digest;

/// An assembled prompt and the SHA-256 (hex) of its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemPrompt {
    pub text: Arc<str>,
    pub digest: String,
}

/// Sections in order: agent prompt, environment, tool catalogue. Project instructions and the skill index have their
/// places between the first two; a section without content is left out.
pub fn assemble(agent: &Agent, environment: &Environment, tools: &[ToolSpec]) -> SystemPrompt {
    let mut text = agent.system_prompt.trim_end().to_string();
    text.push_str("\n\n# Environment\n");
    text.push_str(&environment.text());
    if !tools.is_empty() {
        text.push_str("\n# Tools\n");
        for tool in tools {
            let first_line = tool.description.lines().next().unwrap_or_default();
            text.push_str(&format!("- {}: {first_line}\n", tool.id));
        }
    }
    let digest = digest(text.as_bytes());
    SystemPrompt { text: text.into(), digest }
}

/// `2026-11-15` for a time in milliseconds since 1970, UTC.
pub fn date(now_ms: i64) -> String {
    // Days to civil date after Howard Hinnant's published method: eras of 400 years, years that start in March.
    let days = now_ms.div_euclid(86_400_000) + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_around_leap_days_and_centuries() {
        for (day, text) in
            [(0, "1970-01-01"), (11_016, "2000-02-29"), (11_017, "2000-03-01"), (20_772, "2026-11-15")]
        {
            assert_eq!(date(day * 86_400_000), text);
        }
        assert_eq!(date(-1), "1969-12-31");
    }
}
