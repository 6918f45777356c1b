//! `attache mcp add`: a command line, an address, or the JSON of other programs becomes an entry of the user's
//! file.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use attache_core::legible::legible_line;
use attache_core::ports::mcp::{
    HiddenText, OAuthSettings, ServerDeadlines, ServerEntry, ServerNetwork, ServerOrigin, ServerSampling,
    ServerTransport,
};

use super::{edit, json};
use crate::answer;
use crate::args::McpAddArgs;
use crate::projects::shell_word;

pub(super) fn run(file: &Path, args: &McpAddArgs) -> Result<ExitCode> {
    let entries = entries(args)?;
    let mut document = edit::open(file)?;
    let known = edit::names(&document);
    for entry in &entries {
        if known.contains(&entry.name) {
            bail!(
                "{} has a server `{}` already; to replace it: attache mcp remove {}",
                file.display(),
                legible_line(&entry.name),
                shell_word(Path::new(&entry.name))
            );
        }
        if let ServerTransport::Unusable(problem) = &entry.transport {
            bail!("{problem}");
        }
        edit::put(&mut document, entry);
    }
    edit::store(file, &document)?;
    for entry in &entries {
        tell_of_plain_values(entry);
        answer::write(&format!(
            "Added {} to {}. To try it: attache mcp test {}\n",
            legible_line(&entry.name),
            file.display(),
            shell_word(Path::new(&entry.name))
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn entries(args: &McpAddArgs) -> Result<Vec<ServerEntry>> {
    let network = if args.no_network { ServerNetwork::Withheld } else { ServerNetwork::UnlessOfWorkspace };
    let Some(text) = &args.json else {
        let transport = transport(args)?;
        let name = args.name.clone().unwrap_or_default();
        let (origin, deadlines, sampling, oauth) = (
            ServerOrigin::User,
            ServerDeadlines::default(),
            ServerSampling::Refused,
            OAuthSettings::default(),
        );
        return Ok(vec![ServerEntry { name, origin, transport, network, deadlines, sampling, oauth }]);
    };
    // One server alone has no name of its own.
    let wrapped = args.name.as_ref().map(|name| {
        let inner: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
        serde_json::json!({ "mcpServers": { name: inner } }).to_string()
    });
    let is_alone = |text: &&String| json::servers(text, "--json", ServerOrigin::User).is_err();
    let text = wrapped.as_ref().filter(|_| is_alone(&text)).unwrap_or(text);
    let entries = json::servers(text, "--json", ServerOrigin::User).map_err(anyhow::Error::msg)?;
    if entries.is_empty() {
        bail!("there is no server in this JSON");
    }
    Ok(entries.into_iter().map(|entry| ServerEntry { network, ..entry }).collect())
}

fn transport(args: &McpAddArgs) -> Result<ServerTransport> {
    let words: Vec<&String> = args.line.iter().skip_while(|word| *word == "--").collect();
    let [first, rest @ ..] = words.as_slice() else { bail!("a command or an address is missing") };
    let is_url = first.starts_with("http://") || first.starts_with("https://");
    if is_url {
        if !rest.is_empty() || !args.env.is_empty() {
            bail!("an address takes neither arguments nor variables");
        }
        let headers =
            args.header.iter().map(|header| pair("--header", header, ':')).collect::<Result<_>>()?;
        let url = (*first).clone();
        return Ok(match args.transport.as_deref() {
            Some("sse") => ServerTransport::Sse { url, headers },
            Some(_) | None => ServerTransport::Http { url, headers },
        });
    }
    if let Some((scheme, _)) = first.split_once("://") {
        bail!("an address must begin with http:// or https://, not {}://", legible_line(scheme));
    }
    if !args.header.is_empty() || args.transport.is_some() {
        bail!("headers and a transport belong to an address, and `{first}` is a program");
    }
    let (command, arguments) = match rest {
        // As the documentation of a server writes it, within quotes.
        [] if first.contains(char::is_whitespace) => {
            let mut words = first.split_whitespace().map(str::to_owned);
            (words.next().unwrap_or_default(), words.collect())
        }
        rest => ((*first).clone(), rest.iter().map(|word| (*word).clone()).collect()),
    };
    let environment = args.env.iter().map(|variable| pair("--env", variable, '=')).collect::<Result<_>>()?;
    Ok(ServerTransport::Stdio { command, arguments, environment, directory: None })
}

fn pair(option: &str, text: &str, between: char) -> Result<(String, HiddenText)> {
    match text.split_once(between) {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), HiddenText::new(value.trim())))
        }
        Some(_) | None => bail!("{option} takes NAME{between}VALUE, not `{}`", legible_line(text)),
    }
}

/// A key in a file is worth a word.
fn tell_of_plain_values(entry: &ServerEntry) {
    let pairs = match &entry.transport {
        ServerTransport::Stdio { environment, .. } => environment,
        ServerTransport::Http { headers, .. } | ServerTransport::Sse { headers, .. } => headers,
        ServerTransport::Unusable(_) => return,
    };
    for (name, value) in pairs.iter().filter(|(_, value)| !value.expose().contains("${")) {
        if !value.expose().is_empty() {
            answer::note(&format!(
                "attache: the value of {name} is now in your configuration as it is; ${{{name}}} would read it from the environment"
            ));
        }
    }
}
