//! `attache mcp add`: turns a command line, an address, or the JSON of other programs into an entry of the
//! user's file.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use attache_core::legible::legible_line;
use attache_core::ports::mcp::{
    HiddenText, OAuthSettings, ServerDeadlines, ServerEntry, ServerOrigin, ServerRight, ServerRights,
    ServerSampling, ServerTransport,
};

use super::{edit, json};
use crate::answer;
use crate::args::McpAddArgs;
use crate::config::{open_document, store_document};
use crate::projects::shell_word;

pub(super) fn run(file: &Path, args: &McpAddArgs) -> Result<ExitCode> {
    let entries = entries(args)?;
    let mut document = open_document(file)?;
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
    store_document(file, &document)?;
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
    let network = if args.no_network { ServerRight::Withheld } else { ServerRight::UnlessOfWorkspace };
    let rights = ServerRights { network, ..ServerRights::USUAL };
    let Some(text) = &args.json else {
        let transport = transport(args)?;
        let name = args.name.clone().unwrap_or_default();
        let (origin, deadlines, sampling, oauth) = (
            ServerOrigin::User,
            ServerDeadlines::default(),
            ServerSampling::Refused,
            OAuthSettings::default(),
        );
        return Ok(vec![ServerEntry { name, origin, transport, rights, deadlines, sampling, oauth }]);
    };
    // A single server without a table has no name of its own.
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
    Ok(entries.into_iter().map(|entry| ServerEntry { rights, ..entry }).collect())
}

fn transport(args: &McpAddArgs) -> Result<ServerTransport> {
    let is_marked = args.line.first().is_some_and(|word| word == "--");
    let words: Vec<&String> = args.line.iter().skip_while(|word| *word == "--").collect();
    let [first, rest @ ..] = words.as_slice() else { bail!("a command or an address is missing") };
    if is_address(first) {
        return address(args, first);
    }
    if let Some((scheme, _)) = first.split_once("://") {
        bail!("an address must begin with http:// or https://, not {}://", legible_line(scheme));
    }
    if !args.header.is_empty() || args.transport.is_some() {
        bail!("headers and a transport belong to an address, and `{first}` is a program");
    }
    if !is_marked {
        refuse_stray_variables(args, first, rest)?;
    }
    let (command, arguments) = match rest {
        // The whole command in quotes, as server documentation writes it.
        [] if first.contains(char::is_whitespace) => {
            let mut words = first.split_whitespace().map(str::to_owned);
            (words.next().unwrap_or_default(), words.collect())
        }
        rest => ((*first).clone(), rest.iter().map(|word| (*word).clone()).collect()),
    };
    let environment = args.env.iter().map(|variable| pair("--env", variable, '=')).collect::<Result<_>>()?;
    Ok(ServerTransport::Stdio { command, arguments, environment, directory: None })
}

fn is_address(word: &str) -> bool {
    word.starts_with("http://") || word.starts_with("https://")
}

/// An address has no arguments; `with_options_first` took our own options from the words after it.
fn address(args: &McpAddArgs, url: &str) -> Result<ServerTransport> {
    if !args.env.is_empty() {
        bail!(
            "an address takes no variables: `--env` is for a program; for a header: --header 'NAME: VALUE'"
        );
    }
    if let Some(word) = args.line.iter().skip_while(|word| *word != url).nth(1) {
        bail!("an address takes no arguments; remove `{}`", legible_line(word));
    }
    let headers = args.header.iter().map(|header| pair("--header", header, ':')).collect::<Result<_>>()?;
    let url = url.to_owned();
    Ok(match args.transport.as_deref() {
        Some("sse") => ServerTransport::Sse { url, headers },
        Some(_) | None => ServerTransport::Http { url, headers },
    })
}

/// Everything after a program belongs to the program. A variable there would become an argument, and every user
/// who lists processes could see its value.
fn refuse_stray_variables(args: &McpAddArgs, program: &str, rest: &[&String]) -> Result<()> {
    let Some(at) = rest.iter().position(|word| *word == "--env" || word.starts_with("--env=")) else {
        return Ok(());
    };
    let given = match rest[at].strip_prefix("--env=") {
        Some(given) => Some(given),
        None => rest.get(at + 1).map(|word| word.as_str()),
    };
    let variable = given.and_then(|given| given.split_once('=')).map_or("NAME", |(name, _)| name);
    let (variable, name) = (legible_line(variable), args.name.clone().unwrap_or_default());
    let name = shell_word(Path::new(&name));
    bail!(
        "`--env` behind `{program}` would become an argument of it. For a variable of the server: \
         attache mcp add --env {variable}=… {name} {program} …. If it is the program's own: \
         attache mcp add {name} -- {program} … --env …",
        program = legible_line(program),
    )
}

/// Moves options after `mcp add NAME URL` to the front, because all of them are ours. Keeps the `--` that a
/// user typed. Changes nothing else.
pub(crate) fn with_options_first(mut words: Vec<OsString>) -> Vec<OsString> {
    let Some(add) = words.windows(2).position(|pair| pair[0] == "mcp" && pair[1] == "add") else {
        return words;
    };
    let behind = add + 2;
    if let Some(mark) = words[behind..].iter().position(|word| word == "--") {
        // The parser removes one `--`.
        words.insert(behind + mark, "--".into());
        return words;
    }
    let is_url = |word: &OsString| word.to_str().is_some_and(is_address);
    let Some(url) = words[behind..].iter().position(is_url).map(|at| behind + at) else { return words };
    let (_, plain) = sorted_words(&words[behind..url]);
    // An address that follows a program is the program's argument.
    if plain.len() == 1 {
        let (options, plain) = sorted_words(&words.split_off(url + 1));
        words.splice(behind..behind, options);
        words.extend(plain);
    }
    words
}

/// Separates options with their values from all other words.
fn sorted_words(words: &[OsString]) -> (Vec<OsString>, Vec<OsString>) {
    let (mut options, mut plain, mut takes_value) = (Vec::new(), Vec::new(), false);
    for word in words {
        let text = word.to_str().unwrap_or_default();
        let is_option = text.starts_with('-');
        if takes_value || is_option {
            options.push(word.clone());
        } else {
            plain.push(word.clone());
        }
        takes_value = !takes_value && is_option && VALUED.contains(&text);
    }
    (options, plain)
}

/// Options of `mcp add` that take a value.
const VALUED: [&str; 6] = ["--env", "--header", "--transport", "--json", "--config", "--store"];

fn pair(option: &str, text: &str, between: char) -> Result<(String, HiddenText)> {
    match text.split_once(between) {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), HiddenText::new(value.trim())))
        }
        Some(_) | None => bail!("{option} takes NAME{between}VALUE, not `{}`", legible_line(text)),
    }
}

/// Warns about a key written in the file.
fn tell_of_plain_values(entry: &ServerEntry) {
    for name in plain_values(entry) {
        answer::note(&format!(
            "attache: the value of {name} is now in your configuration as it is; ${{{name}}} would read it from the environment"
        ));
    }
}

/// The variables and headers of a server whose values the entry spells out.
pub(super) fn plain_values(entry: &ServerEntry) -> Vec<String> {
    let pairs = match &entry.transport {
        ServerTransport::Stdio { environment, .. } => environment,
        ServerTransport::Http { headers, .. } | ServerTransport::Sse { headers, .. } => headers,
        ServerTransport::Unusable(_) => return Vec::new(),
    };
    let is_plain = |value: &HiddenText| !value.expose().is_empty() && !value.expose().contains("${");
    pairs.iter().filter(|(_, value)| is_plain(value)).map(|(name, _)| legible_line(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_behind_an_address_are_ours_and_behind_a_program_its_own() {
        let ordered = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            let words: Vec<String> =
                with_options_first(words).into_iter().map(|word| word.into_string().unwrap()).collect();
            words.join(" ")
        };
        for (typed, read) in [
            (
                "attache mcp add docs https://a.org/mcp --header A:b --transport sse",
                "attache mcp add --header A:b --transport sse docs https://a.org/mcp",
            ),
            (
                "attache mcp add --header A:b docs https://a.org/mcp --no-network",
                "attache mcp add --no-network --header A:b docs https://a.org/mcp",
            ),
            // `mcp-remote` itself takes an address and headers.
            (
                "attache mcp add docs npx mcp-remote https://a.org/mcp --header A:b",
                "attache mcp add docs npx mcp-remote https://a.org/mcp --header A:b",
            ),
            ("attache mcp add x https://a.org more", "attache mcp add x https://a.org more"),
            ("attache mcp add x -- srv --env A=b", "attache mcp add x -- -- srv --env A=b"),
            ("attache mcp list", "attache mcp list"),
        ] {
            assert_eq!(ordered(typed), read);
        }
    }
}
