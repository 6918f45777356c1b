//! Asks which provider a key is for: by number or by name, on the terminal.

use std::io::{self, Write};

use anyhow::{Result, bail};
use attache_models::KeyNeed;

use crate::answer;
use crate::config::{Config, ProviderWire, nearest};

pub(super) async fn provider(config: &Config) -> Result<String> {
    let offered: Vec<&str> = config
        .providers
        .iter()
        .filter(|provider| matches!(provider.wire, ProviderWire::Http(_)))
        .filter(|provider| provider.vendor.is_none_or(|vendor| vendor.key == KeyNeed::Required))
        .map(|provider| provider.name.as_str())
        .collect();
    if !answer::is_typed() {
        bail!("which provider is the key for? Name it: attache auth login PROVIDER ({})", offered.join(", "));
    }
    let mut terminal = io::stderr();
    for (index, name) in offered.iter().enumerate() {
        writeln!(terminal, "{:3}  {name}", index + 1)?;
    }
    for _ in 0..TRIES {
        write!(terminal, "Which provider is the key for? ")?;
        let Some(line) = answer::typed_line().await? else { break };
        if let Some(name) = chosen(line.trim(), &offered) {
            return Ok(name.to_owned());
        }
        writeln!(terminal, "{}", not_offered(line.trim(), &offered))?;
    }
    bail!("no provider was chosen; nothing was stored")
}

/// How often a user may mistype the name.
const TRIES: usize = 3;

fn not_offered(typed: &str, offered: &[&str]) -> String {
    match nearest(typed, offered) {
        Some(near) => format!("That is not in the list; did you mean {near}?"),
        None => "That is not in the list: type a number or a name of it.".to_owned(),
    }
}

fn chosen<'a>(typed: &str, offered: &[&'a str]) -> Option<&'a str> {
    match typed.parse::<usize>() {
        Ok(number) => offered.get(number.checked_sub(1)?).copied(),
        Err(_) => offered.iter().copied().find(|name| *name == typed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_is_chosen_by_number_or_by_name() {
        let offered = ["anthropic", "openai"];
        assert_eq!(chosen("2", &offered), Some("openai"));
        assert_eq!(chosen("anthropic", &offered), Some("anthropic"));
        assert_eq!(not_offered("antropic", &offered), "That is not in the list; did you mean anthropic?");
        assert!(not_offered("", &offered).contains("a number or a name"));
        for nothing in ["", "0", "3", "open"] {
            assert_eq!(chosen(nothing, &offered), None, "{nothing}");
        }
    }
}
