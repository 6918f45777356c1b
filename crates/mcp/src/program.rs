//! What a stdio server is started with: its line, variables and directory, with everything resolved. Looks for
//! the program, starts nothing.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use attache_core::ports::mcp::{HiddenText, OAuthSettings, ServerEntry, ServerOrigin, ServerTransport};

use crate::expand::{Unresolved, expand};
use crate::limits::PROGRAM_NAMES;
use crate::pool::Variables;

/// A program with everything it is given. Never printed: its words may hold keys.
pub(crate) struct ResolvedProgram {
    pub(crate) words: Vec<OsString>,
    /// Where it runs, if not in the workspace's root.
    pub(crate) directory: Option<PathBuf>,
    /// What the entry itself gives it.
    pub(crate) variables: BTreeMap<String, String>,
}

/// A transport with its references resolved.
pub(crate) enum ResolvedServer {
    Program(ResolvedProgram),
    Http { url: String, headers: Vec<(String, String)> },
    Sse { url: String, headers: Vec<(String, String)> },
}

/// What an entry says of logging in, with its references resolved.
pub(crate) fn resolve_oauth(entry: &ServerEntry, variables: &Variables) -> Result<OAuthSettings, String> {
    let mut settings = entry.oauth.clone();
    if entry.origin == ServerOrigin::Client {
        return Ok(settings);
    }
    let lookup = |name: &str| lookup(name, &entry.origin, variables);
    let resolved = |text: &str| expand(text, lookup).map_err(|error| error.to_string());
    settings.client_id = settings.client_id.as_deref().map(resolved).transpose()?;
    let secret = settings.client_secret.as_ref().map(|secret| resolved(secret.expose())).transpose()?;
    settings.client_secret = secret.map(HiddenText::new);
    Ok(settings)
}

/// `root`: where relative names begin.
pub(crate) fn resolve(
    entry: &ServerEntry,
    root: &Path,
    variables: &Variables,
) -> Result<ResolvedServer, String> {
    let lookup = |text: &str| -> Result<String, Unresolved> {
        match entry.origin {
            // A client has done so itself: what looks like a reference is none.
            ServerOrigin::Client => Ok(text.to_owned()),
            ServerOrigin::User | ServerOrigin::Project(_) => {
                let text = text.replace("${workspaceFolder}", &root.to_string_lossy());
                expand(&text, |name| self::lookup(name, &entry.origin, variables))
            }
        }
    };
    let pairs = |pairs: &[(String, HiddenText)]| -> Result<Vec<(String, String)>, Unresolved> {
        pairs.iter().map(|(name, value)| Ok((name.clone(), lookup(value.expose())?))).collect()
    };
    if let ServerTransport::Unusable(why) = &entry.transport {
        return Err(why.clone());
    }
    let resolved = || -> Result<ResolvedServer, Unresolved> {
        Ok(match &entry.transport {
            // Said above.
            ServerTransport::Unusable(_) => ResolvedServer::Http { url: String::new(), headers: Vec::new() },
            ServerTransport::Http { url, headers } => {
                ResolvedServer::Http { url: lookup(url)?, headers: pairs(headers)? }
            }
            ServerTransport::Sse { url, headers } => {
                ResolvedServer::Sse { url: lookup(url)?, headers: pairs(headers)? }
            }
            ServerTransport::Stdio { command, arguments, environment, directory } => {
                let mut words = vec![OsString::from(lookup(command)?)];
                for argument in arguments {
                    words.push(lookup(argument)?.into());
                }
                ResolvedServer::Program(ResolvedProgram {
                    words,
                    directory: directory.as_ref().map(|directory| root.join(directory)),
                    variables: pairs(environment)?.into_iter().collect(),
                })
            }
        })
    };
    resolved().map_err(|error| error.to_string())
}

/// A variable as an entry of this origin gets it.
fn lookup(name: &str, origin: &ServerOrigin, variables: &Variables) -> Result<Option<String>, Unresolved> {
    match origin {
        ServerOrigin::Project(_) if variables.is_own_key(name) => Err(Unresolved::OwnKey(name.to_owned())),
        ServerOrigin::Project(_) | ServerOrigin::User | ServerOrigin::Client => Ok(variables.get(name)),
    }
}

impl ResolvedProgram {
    /// What is started. The sandbox does it in the workspace's root: a shell goes elsewhere first.
    pub(crate) fn line(&self) -> Vec<OsString> {
        let Some(directory) = &self.directory else { return self.words.clone() };
        let go: [OsString; 4] =
            ["/bin/sh".into(), "-c".into(), r#"cd "$0" && exec "$@""#.into(), directory.into()];
        go.into_iter().chain(self.words.iter().cloned()).collect()
    }
}

/// Whether the program can be found; else the nearest one that can. Blocks.
pub(crate) fn check_program(
    program: &ResolvedProgram,
    path: Option<&OsString>,
    root: &Path,
) -> Result<(), String> {
    let command = &program.words[0];
    let shown = command.to_string_lossy();
    if shown.is_empty() {
        return Err("it has no command".to_owned());
    }
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if shown.contains('/') {
        let base = program.directory.as_deref().unwrap_or(root);
        return match is_program(&base.join(command)) {
            true => Ok(()),
            false => Err(format!("there is no program {shown}")),
        };
    }
    let own = program.variables.get("PATH").map(OsString::from);
    let places: Vec<PathBuf> = match own.as_ref().or(path) {
        Some(path) => std::env::split_paths(path).filter(|place| place.is_absolute()).collect(),
        None => Vec::new(),
    };
    if places.iter().any(|place| is_program(&place.join(command))) {
        return Ok(());
    }
    let meant = nearest(&shown, &places).map(|name| format!(", did you mean `{name}`?")).unwrap_or_default();
    Err(format!("there is no program `{shown}` in the PATH{meant}"))
}

fn nearest(name: &str, places: &[PathBuf]) -> Option<String> {
    let entries = places.iter().filter_map(|place| place.read_dir().ok());
    let names = entries.flat_map(|entries| entries.take(PROGRAM_NAMES).flatten());
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let near = names.filter(|other| other.len().abs_diff(name.len()) <= 2);
    let distances = near.map(|other| (strsim::damerau_levenshtein(name, &other), other));
    let (distance, name) = distances.min()?;
    (distance <= 2).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use attache_core::ports::mcp::{ServerDeadlines, ServerRights, ServerSampling};

    fn entry(command: &str, origin: ServerOrigin) -> ServerEntry {
        ServerEntry {
            name: "s".to_owned(),
            origin,
            transport: ServerTransport::Stdio {
                command: command.to_owned(),
                arguments: vec!["${KEY}".to_owned()],
                environment: vec![("TOKEN".to_owned(), HiddenText::new("${KEY:-x}"))],
                directory: None,
            },
            rights: ServerRights::USUAL,
            deadlines: ServerDeadlines::default(),
            sampling: ServerSampling::Refused,
            oauth: OAuthSettings::default(),
        }
    }

    fn program(
        command: &str,
        origin: ServerOrigin,
        variables: &[(&str, &str)],
    ) -> Result<ResolvedProgram, String> {
        match resolve(&entry(command, origin), Path::new("/w"), &Variables::from_pairs(variables))? {
            ResolvedServer::Program(program) => Ok(program),
            ResolvedServer::Http { .. } | ResolvedServer::Sse { .. } => Err("no program".to_owned()),
        }
    }

    #[test]
    fn references_of_a_configuration_are_resolved_and_those_of_a_client_are_not() {
        let found =
            program("x", ServerOrigin::User, &[("KEY", "canary")]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(found.words, ["x", "canary"]);
        assert_eq!(found.variables["TOKEN"], "canary");
        let found = program("x", ServerOrigin::Client, &[]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(found.words, ["x", "${KEY}"]);
        let error = program("x", ServerOrigin::User, &[]).err().unwrap();
        assert!(error.contains("KEY is not set"), "{error}");
    }

    /// Else the author of a project's files would get them.
    #[test]
    fn a_project_gets_none_of_our_own_keys() {
        let variables = Variables::from_pairs(&[("KEY", "k")]).with_own_keys(["KEY".to_owned()].into_iter());
        let resolved = |origin| resolve(&entry("x", origin), Path::new("/w"), &variables).err();
        let project = ServerOrigin::Project(".mcp.json".into());
        assert!(resolved(project).is_some_and(|error| error.starts_with("KEY holds a key of attache's own")));
        assert_eq!(resolved(ServerOrigin::User), None);
    }

    #[test]
    fn a_program_that_is_not_there_is_named_with_the_nearest() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("npx");
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = OsString::from(place.path());
        let check = |command: &str| {
            let program =
                program(command, ServerOrigin::Client, &[]).unwrap_or_else(|error| panic!("{error}"));
            check_program(&program, Some(&path), Path::new("/w"))
        };
        assert_eq!(check("npx"), Ok(()));
        assert_eq!(check("npxx").unwrap_err(), "there is no program `npxx` in the PATH, did you mean `npx`?");
        assert_eq!(check("/nowhere/x").unwrap_err(), "there is no program /nowhere/x");
        assert_eq!(check("").unwrap_err(), "it has no command");
    }
}
