//! The projects of this machine: which of their files need consent, what was consented to, and what follows
//! from that for their sessions.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use attache_core::ports::BoxFuture;
use attache_core::ports::projects::{ProjectNotice, ProjectSettings, Projects};
use attache_core::prompt::digest;
use attache_core::trust::{Consents, Trust, TrustContent};
use attache_sandbox::regular_file;
use serde_json::Value;

use crate::config::{Config, ProjectConfig, read_text};
use crate::limits::{MAX_TRUST_BYTES, MAX_TRUST_FILE_BYTES, TRUST_FILES};

/// A project's own configuration.
pub(crate) const PROJECT_CONFIG: &str = ".attache/config.toml";

/// Directories whose Markdown files are agents.
const PROJECT_AGENTS: [&str; 2] = [".attache/agents", ".claude/agents"];

/// The files of a project that need consent, as they were read: what is judged is what is followed.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProjectFiles {
    /// Every link followed.
    pub(crate) project: PathBuf,
    /// Paths below the project, each with its text.
    pub(crate) files: Vec<(PathBuf, Vec<u8>)>,
    /// Those that can't be used, with the reason.
    pub(crate) left_out: Vec<String>,
}

impl ProjectFiles {
    /// Blocks.
    pub(crate) fn find(root: &Path) -> io::Result<Self> {
        let mut found = Self { project: root.canonicalize()?, ..Self::default() };
        found.file(Path::new(PROJECT_CONFIG));
        for directory in PROJECT_AGENTS.map(Path::new) {
            let Ok(entries) = found.project.join(directory).read_dir() else { continue };
            let mut names: Vec<_> =
                entries.take(TRUST_FILES).flatten().map(|entry| entry.file_name()).collect();
            names.sort();
            let is_agent = |name: &PathBuf| name.extension().is_some_and(|end| end == "md");
            for name in names.into_iter().map(PathBuf::from).filter(is_agent) {
                found.file(&directory.join(name));
            }
        }
        Ok(found)
    }

    pub(crate) fn content(&self) -> TrustContent {
        self.files.iter().map(|(path, bytes)| (path.clone(), digest(bytes))).collect()
    }

    pub(crate) fn text_of(&self, path: &Path) -> Option<&[u8]> {
        self.files.iter().find(|(known, _)| known == path).map(|(_, bytes)| bytes.as_slice())
    }

    /// A file that leads out of the project is none of its own.
    fn file(&mut self, path: &Path) {
        let Ok(real) = self.project.join(path).canonicalize() else { return };
        let read = match real.starts_with(&self.project) {
            false => Err("it leads out of the project".to_owned()),
            true => match regular_file::read(&real, MAX_TRUST_FILE_BYTES) {
                Ok(bytes) if bytes.len() as u64 > MAX_TRUST_FILE_BYTES => {
                    Err(format!("it has more than {MAX_TRUST_FILE_BYTES} bytes"))
                }
                Ok(bytes) => Ok(bytes),
                Err(error) => Err(error.to_string()),
            },
        };
        match read {
            Ok(bytes) => self.files.push((path.to_owned(), bytes)),
            Err(reason) => self.left_out.push(format!("{}: {reason}", path.display())),
        }
    }
}

/// What was consented to, as it is stored. A file that can't be read is an error: it must not be replaced.
pub(crate) fn read_consents(file: &Path) -> Result<Consents, String> {
    let shown = file.display();
    let Some(text) = read_text(file, MAX_TRUST_BYTES).map_err(|problem| format!("{shown}: {problem}"))?
    else {
        return Ok(Consents::default());
    };
    let value: Option<Value> = serde_json::from_str(&text).ok();
    let consents = value.as_ref().and_then(Consents::from_json);
    consents.ok_or_else(|| format!("{shown} is damaged; delete it and trust your projects again"))
}

/// Says what a project's configuration changes in its sessions.
#[derive(Debug)]
pub(crate) struct HostProjects {
    pub(crate) config: Arc<Config>,
    pub(crate) trust_file: PathBuf,
}

impl Projects for HostProjects {
    fn settings(&self, root: &Path) -> BoxFuture<'static, ProjectSettings> {
        let (config, trust_file, root) = (self.config.clone(), self.trust_file.clone(), root.to_owned());
        let reading = tokio::task::spawn_blocking(move || settings(&config, &trust_file, &root));
        Box::pin(async { reading.await.unwrap_or_default() })
    }
}

fn settings(config: &Config, trust_file: &Path, root: &Path) -> ProjectSettings {
    let Ok(found) = ProjectFiles::find(root) else { return ProjectSettings::default() };
    let content = found.content();
    let mut settings = ProjectSettings::default();
    let mut tell = |title: &str, description: String| {
        tracing::warn!(project = %found.project.display(), description, "{title}");
        settings.notices.push(ProjectNotice { title: title.to_owned(), description });
    };
    if !found.left_out.is_empty() {
        tell("Some of the project's configuration is not used", found.left_out.join("; "));
    }
    if content.is_empty() {
        return settings;
    }
    let trust = match read_consents(trust_file) {
        Ok(consents) => consents.judge(&found.project, &content),
        Err(problem) => {
            tell("It can't be told which projects you trust", problem);
            Trust::NeverGiven
        }
    };
    let how = format!("To see it and to trust it: attache trust {}", shell_word(&found.project));
    match trust {
        Trust::NotNeeded => {}
        Trust::NeverGiven => {
            let files: Vec<_> = content.paths().map(|path| path.display().to_string()).collect();
            tell(
                "The project has configuration that is not used until you trust it",
                format!("{}. {how}", files.join(", ")),
            );
        }
        Trust::Outdated(changes) => {
            let files: Vec<_> = changes.iter().map(|change| change.path.display().to_string()).collect();
            let what = format!("Changed since you trusted it: {}. {how}", files.join(", "));
            tell("The project's configuration is not used until you trust it again", what);
        }
        Trust::Given => match configured(config, &found) {
            Ok(configured) => {
                if !configured.refused.is_empty() {
                    tell("Some of the project's configuration is not used", configured.refused.join("; "));
                }
                settings.model = configured.model;
                settings.approval = configured.approval;
                settings.max_steps = configured.max_steps;
                settings.rules = configured.rules.into();
            }
            Err(problem) => tell("The project's configuration is not used: it has mistakes", problem),
        },
    }
    settings
}

fn configured(config: &Config, found: &ProjectFiles) -> Result<ProjectConfig, String> {
    let Some(bytes) = found.text_of(Path::new(PROJECT_CONFIG)) else { return Ok(ProjectConfig::default()) };
    let path = found.project.join(PROJECT_CONFIG);
    let text = std::str::from_utf8(bytes).map_err(|_| format!("{}: not valid UTF-8", path.display()))?;
    config.of_project(&path, text).map_err(|errors| errors.to_string())
}

/// A path as it can be pasted into a shell.
pub(crate) fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@%=:,".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
