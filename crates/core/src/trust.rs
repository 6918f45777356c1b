//! Consent: what a user allowed a project to change beyond text for the model. Keyed by the project's real path
//! and by the content of its files, so that a change asks again. Pure; the caller reads the files.
//!
//! What needs consent: `.attache/config.toml`, the scripts in `.attache/hooks`, and agents in `.attache/agents`
//! and `.claude/agents`. Code that is about to use such a file has to ask `Consents::is_trusted` with the
//! content that it has read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// The files of a project that need consent, by their paths below it, each with the digest of what it holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustContent(BTreeMap<PathBuf, String>);

impl TrustContent {
    /// Whether nothing needs consent.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The paths of the files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }
}

impl FromIterator<(PathBuf, String)> for TrustContent {
    fn from_iter<I: IntoIterator<Item = (PathBuf, String)>>(files: I) -> Self {
        Self(files.into_iter().collect())
    }
}

/// The state of consent for a project's current content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Nothing needs consent.
    NotNeeded,
    /// The user consented to exactly this.
    Given,
    /// The user was never asked.
    NeverGiven,
    /// The user was asked about exactly this and declined.
    Declined,
    /// The user consented to other content.
    Outdated(Vec<TrustChange>),
}

/// How one file differs from the content that the user consented to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustChange {
    /// The file.
    pub path: PathBuf,
    /// How it differs.
    pub kind: TrustChangeKind,
}

/// How a file differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustChangeKind {
    /// It is new.
    Added,
    /// Its content changed.
    Changed,
    /// It was deleted.
    Removed,
}

/// The consents of a user, by the real paths of projects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Consents {
    given: BTreeMap<PathBuf, TrustContent>,
    /// The content that was declined last.
    declined: BTreeMap<PathBuf, TrustContent>,
    /// The servers of a project when it was trusted, by name, in order to say what has changed since.
    servers: BTreeMap<PathBuf, BTreeMap<String, String>>,
}

impl Consents {
    /// The state of consent for a project with this content.
    pub fn judge(&self, project: &Path, content: &TrustContent) -> Trust {
        if content.is_empty() {
            return Trust::NotNeeded;
        }
        match self.given.get(project) {
            Some(known) if known == content => Trust::Given,
            Some(_) | None if self.declined.get(project) == Some(content) => Trust::Declined,
            Some(known) => Trust::Outdated(changes(known, content)),
            None => Trust::NeverGiven,
        }
    }

    /// Whether the user consented to exactly this content.
    pub fn is_trusted(&self, project: &Path, content: &TrustContent) -> bool {
        self.judge(project, content) == Trust::Given
    }

    /// Records consent to this content.
    pub fn give(&mut self, project: &Path, content: TrustContent, servers: BTreeMap<String, String>) {
        self.declined.remove(project);
        self.given.insert(project.to_owned(), content);
        self.servers.remove(project);
        if !servers.is_empty() {
            self.servers.insert(project.to_owned(), servers);
        }
    }

    /// The servers in words; `None` if they were not recorded.
    pub fn servers(&self, project: &Path) -> Option<&BTreeMap<String, String>> {
        self.servers.get(project)
    }

    /// Records a refusal. Earlier consent stays, because it was for other content.
    pub fn decline(&mut self, project: &Path, content: TrustContent) {
        self.declined.insert(project.to_owned(), content);
    }

    /// Withdraws consent; returns whether there was any.
    pub fn revoke(&mut self, project: &Path) -> bool {
        self.servers.remove(project);
        self.given.remove(project).is_some()
    }

    /// Each project with what was consented to.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, &TrustContent)> {
        self.given.iter().map(|(project, content)| (project.as_path(), content))
    }

    /// The form in the file.
    pub fn to_json(&self) -> Value {
        let files = |content: &TrustContent| -> Value {
            content.0.iter().map(|(path, digest)| json!([path, digest])).collect()
        };
        let listed = |projects: &BTreeMap<PathBuf, TrustContent>| -> Value {
            let entry = |(project, content)| json!({ "project": project, "files": files(content) });
            projects.iter().map(entry).collect()
        };
        let servers: Value =
            self.servers.iter().map(|(project, told)| json!({ "project": project, "told": told })).collect();
        let (projects, declined) = (listed(&self.given), listed(&self.declined));
        json!({ "version": 1, "projects": projects, "declined": declined, "servers": servers })
    }

    /// `None` if the value is no list of consents.
    pub fn from_json(value: &Value) -> Option<Self> {
        let file = |file: &Value| Some((file.get(0)?.as_str()?.into(), file.get(1)?.as_str()?.to_owned()));
        let project = |entry: &Value| {
            let files = entry.get("files")?.as_array()?.iter().map(file).collect::<Option<TrustContent>>()?;
            Some((entry.get("project")?.as_str()?.into(), files))
        };
        let listed =
            |entries: &Value| entries.as_array()?.iter().map(project).collect::<Option<BTreeMap<_, _>>>();
        // A file of an earlier version has no declined contents.
        let declined = value.get("declined").map_or_else(|| Some(BTreeMap::new()), listed)?;
        let told = |entry: &Value| {
            let words = entry.get("told")?.as_object()?.iter();
            let words = words.map(|(name, words)| Some((name.clone(), words.as_str()?.to_owned())));
            Some((entry.get("project")?.as_str()?.into(), words.collect::<Option<BTreeMap<_, _>>>()?))
        };
        // Nor servers; those are only shown to people.
        let servers = value.get("servers").and_then(Value::as_array);
        let servers = servers.into_iter().flatten().filter_map(told).collect();
        Some(Self { given: listed(value.get("projects")?)?, declined, servers })
    }
}

fn changes(known: &TrustContent, now: &TrustContent) -> Vec<TrustChange> {
    let mut changes: Vec<TrustChange> = Vec::new();
    let mut say = |path: &PathBuf, kind| changes.push(TrustChange { path: path.clone(), kind });
    for (path, digest) in &now.0 {
        match known.0.get(path) {
            None => say(path, TrustChangeKind::Added),
            Some(known) if known != digest => say(path, TrustChangeKind::Changed),
            Some(_) => {}
        }
    }
    known
        .0
        .keys()
        .filter(|path| !now.0.contains_key(*path))
        .for_each(|path| say(path, TrustChangeKind::Removed));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(files: &[(&str, &str)]) -> TrustContent {
        files.iter().map(|(path, digest)| (PathBuf::from(path), (*digest).to_owned())).collect()
    }

    #[test]
    fn what_servers_were_is_kept_for_people() {
        let (mut consents, project) = (Consents::default(), Path::new("/w"));
        let told = BTreeMap::from([("git".to_owned(), "uvx mcp-server-git".to_owned())]);
        consents.give(project, content(&[(".mcp.json", "1")]), told.clone());
        let stored = Consents::from_json(&consents.to_json()).unwrap();
        assert_eq!((stored.servers(project), &stored), (Some(&told), &consents));
        let mut damaged = consents.to_json();
        damaged["servers"] = json!([{ "project": 5 }, "x"]);
        assert_eq!(Consents::from_json(&damaged).unwrap().servers(project), None);
        assert!(consents.revoke(project) && consents.servers(project).is_none());
    }

    #[test]
    fn consent_is_for_this_project_and_this_content() {
        let mut consents = Consents::default();
        let (project, given) = (Path::new("/w"), content(&[("a", "1"), ("b", "1")]));
        assert_eq!(consents.judge(project, &given), Trust::NeverGiven);
        assert_eq!(consents.judge(project, &content(&[])), Trust::NotNeeded);
        consents.give(project, given.clone(), BTreeMap::new());
        assert!(consents.is_trusted(project, &given));
        assert!(
            !consents.is_trusted(Path::new("/w2"), &given) && !consents.is_trusted(Path::new("/w/x"), &given)
        );
        assert!(!consents.is_trusted(project, &content(&[])), "there is nothing to follow");
        let change = |path: &str, kind| TrustChange { path: path.into(), kind };
        let now = content(&[("a", "2"), ("c", "1")]);
        let expected = vec![
            change("a", TrustChangeKind::Changed),
            change("c", TrustChangeKind::Added),
            change("b", TrustChangeKind::Removed),
        ];
        assert_eq!(consents.judge(project, &now), Trust::Outdated(expected));
        assert!(!consents.is_trusted(project, &content(&[("a", "1")])), "less is another content, too");
        consents.decline(project, now.clone());
        assert_eq!(consents.judge(project, &now), Trust::Declined);
        assert!(consents.is_trusted(project, &given), "what was trusted still is");
        consents.give(project, now.clone(), BTreeMap::new());
        assert!(consents.is_trusted(project, &now));
        consents.give(project, given.clone(), BTreeMap::new());
        assert!(matches!(consents.judge(project, &now), Trust::Outdated(_)), "and may be asked about again");
        assert!(consents.revoke(project) && !consents.revoke(project));
        assert_eq!(consents.judge(project, &given), Trust::NeverGiven);
    }

    #[test]
    fn consents_survive_being_stored_and_nonsense_is_none() {
        let mut consents = Consents::default();
        consents.give(Path::new("/w"), content(&[("a", "1")]), BTreeMap::new());
        consents.decline(Path::new("/v"), content(&[("b", "2")]));
        assert_eq!(Consents::from_json(&consents.to_json()), Some(consents));
        for wrong in [json!(null), json!({}), json!({ "projects": [{ "project": 1 }] }), json!([])] {
            assert_eq!(Consents::from_json(&wrong), None);
        }
    }
}
