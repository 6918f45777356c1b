//! The projects of this machine: which of their files need consent, what users consented to, and what that
//! means for their sessions. Also reads the user's agents, because a session has both.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use attache_core::agents::Agents;
use attache_core::hooks::HookOwner;
use attache_core::legible::visible_block;
use attache_core::ports::BoxFuture;
use attache_core::ports::projects::{
    ConsentAnswer, ConsentRequest, ProjectNotice, ProjectSettings, Projects,
};
use attache_core::trust::{Consents, Trust, TrustContent};

use crate::agents::AgentSources;
use crate::config::{Config, ConfiguredAgent, ConfiguredRule, ProjectConfig};
use crate::consents::{change_consents, read_consents};
use crate::dirs::Dirs;
use crate::foreign_agents::ForeignHost;
use crate::limits::MAX_CONSENT_BYTES;
use crate::mcp::of_project::{mistakes_of_files, servers_of_files, waiting_servers};
use crate::mcp::told;
use crate::project_files::{PROJECT_AGENTS, PROJECT_CONFIG, ProjectFiles};

mod shown;

pub(crate) use shown::shown;
use shown::told_then;

/// Says what a project's configuration changes in its sessions, and which agents they get.
#[derive(Clone, Debug)]
pub(crate) struct HostProjects {
    config: Arc<Config>,
    trust_file: PathBuf,
    agents: AgentSources,
    foreign: ForeignHost,
    /// What we asked users about in this process. A lock, because sessions open in parallel.
    asked: Arc<Mutex<Vec<(PathBuf, TrustContent)>>>,
}

impl Projects for HostProjects {
    fn settings(&self, root: &Path) -> BoxFuture<'static, ProjectSettings> {
        let (host, root) = (self.clone(), root.to_owned());
        let reading = tokio::task::spawn_blocking(move || host.settings_now(&root));
        Box::pin(async { reading.await.unwrap_or_default() })
    }

    fn consent(&self, root: &Path) -> BoxFuture<'static, Option<ConsentRequest>> {
        let (trust_file, root) = (self.trust_file.clone(), root.to_owned());
        let reading = tokio::task::spawn_blocking(move || {
            missing_consent(&trust_file, &root, AskedBefore::DoesNotCount)
        });
        Box::pin(async { reading.await.ok().flatten() })
    }

    fn consent_to_ask(&self, root: &Path) -> BoxFuture<'static, Option<ConsentRequest>> {
        let (trust_file, root, asked) = (self.trust_file.clone(), root.to_owned(), Arc::clone(&self.asked));
        let reading =
            tokio::task::spawn_blocking(move || missing_consent(&trust_file, &root, AskedBefore::IsEnough));
        Box::pin(async move {
            let request = reading.await.ok().flatten()?;
            let about = (request.project.clone(), request.content.clone());
            let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
            if asked.contains(&about) {
                return None;
            }
            asked.push(about);
            Some(request)
        })
    }

    fn decide(
        &self,
        request: ConsentRequest,
        consent: ConsentAnswer,
    ) -> BoxFuture<'static, Result<(), String>> {
        let trust_file = self.trust_file.clone();
        let keeping = tokio::task::spawn_blocking(move || {
            change_consents(&trust_file, |consents| match consent {
                ConsentAnswer::Given => {
                    let told = told_then(&request);
                    consents.give(&request.project, request.content, told);
                }
                ConsentAnswer::Declined => consents.decline(&request.project, request.content),
            })
        });
        Box::pin(async {
            match keeping.await {
                Ok(kept) => kept.map_err(|error| format!("{error:#}")),
                Err(error) => Err(error.to_string()),
            }
        })
    }
}

impl HostProjects {
    pub(crate) fn new(config: &Arc<Config>, dirs: &Dirs, foreign: &ForeignHost) -> Self {
        let (config, trust_file) = (config.clone(), dirs.trust_file.clone());
        let agents = AgentSources::new(Agents::builtin(), dirs);
        Self { config, trust_file, agents, foreign: foreign.clone(), asked: Arc::default() }
    }

    /// Adds the agents that run elsewhere; a project's agent wins over one of the same name.
    fn with_foreign(&self, agents: &Agents, found: &ProjectFiles, of_project: &[ConfiguredAgent]) -> Agents {
        let own = self.foreign.with(agents, &self.config.agents, &self.config.file);
        self.foreign.with(&own, of_project, &found.project)
    }

    /// Blocks.
    pub(crate) fn settings_now(&self, root: &Path) -> ProjectSettings {
        let found = ProjectFiles::find(root).unwrap_or_default();
        let mut settings = ProjectSettings::default();
        let mut notices = Vec::new();
        if !self.config.bad_hooks.is_empty() {
            let mistakes: Vec<String> = self.config.bad_hooks.iter().map(ToString::to_string).collect();
            notices.push(notice("Some of your hooks are left out: they have mistakes", mistakes.join("; ")));
        }
        let trusted = self.trusted(&found, &mut notices);
        let mut elsewhere = Vec::new();
        match trusted {
            Some(found) => elsewhere = self.configure(found, &mut settings, &mut notices),
            None => {
                let of_config = configured(&self.config, &found).map(|configured| configured.servers);
                settings.waiting_servers = waiting_servers(&found, of_config.unwrap_or_default());
            }
        }
        let loaded = self.agents.load(trusted);
        if !loaded.left_out.is_empty() {
            notices.push(notice("Some agents were left out", loaded.left_out.join("; ")));
        }
        if !loaded.notes.is_empty() {
            notices.push(notice("Not all that agents say is understood", loaded.notes.join("; ")));
        }
        settings.agents = Some(self.with_foreign(&loaded.agents, &found, &elsewhere));
        for ProjectNotice { title, description } in &notices {
            tracing::warn!(project = %found.project.display(), description, "{title}");
        }
        settings.notices = notices;
        settings
    }

    /// What we do not use of a project's files even if the user trusts it, each with its position. Blocks.
    pub(crate) fn mistakes(&self, found: &ProjectFiles) -> Vec<String> {
        let mut mistakes = match configured(&self.config, found) {
            Ok(configured) => configured.refused,
            Err(problem) => problem.lines().map(str::to_owned).collect(),
        };
        mistakes.extend(mistakes_of_files(found));
        // The user's own mistakes do not belong to the project.
        let own = found.project.display().to_string();
        let left_out = self.agents.load(Some(found)).left_out;
        mistakes.extend(left_out.into_iter().filter(|line| line.starts_with(&own)));
        mistakes
    }

    /// What we say about an agent that sessions here do not have, and why, as far as we know. Blocks.
    pub(crate) fn unknown_agent(&self, root: &Path, id: &str) -> String {
        let found = ProjectFiles::find(root).unwrap_or_default();
        let trusted = self.trusted(&found, &mut Vec::new());
        let loaded = self.agents.load(trusted);
        let file = format!("{id}.md");
        if let Some(problem) = loaded.left_out.iter().find(|line| line.contains(&format!("/{file}: "))) {
            return format!("skipped the agent `{id}`: {problem}");
        }
        let is_its_file =
            |path: &Path| PROJECT_AGENTS.iter().any(|directory| path == Path::new(directory).join(&file));
        if trusted.is_none() && found.files.iter().any(|(path, _)| is_its_file(path)) {
            return format!(
                "the agent `{id}` is one of this project, which are not used until you trust it: attache trust {}",
                shell_word(&found.project)
            );
        }
        let elsewhere = trusted.and_then(|found| configured(&self.config, found).ok());
        let elsewhere = elsewhere.map(|configured| configured.agents).unwrap_or_default();
        self.with_foreign(&loaded.agents, &found, &elsewhere).unknown_mode("agent", id)
    }

    /// The files, if the user consented to their content.
    fn trusted<'a>(
        &self,
        found: &'a ProjectFiles,
        notices: &mut Vec<ProjectNotice>,
    ) -> Option<&'a ProjectFiles> {
        let content = found.content();
        if !found.left_out.is_empty() {
            notices.push(notice(PARTLY_USED, found.left_out.join("; ")));
        }
        if content.is_empty() {
            return None;
        }
        let consents = read_consents(&self.trust_file).unwrap_or_else(|problem| {
            notices.push(notice("It can't be told which projects you trust", problem));
            Consents::default()
        });
        let trust = consents.judge(&found.project, &content);
        let how =
            format!("To see it and to trust it: /trust, or attache trust {}", shell_word(&found.project));
        match trust {
            // A user who declined needs no reminder.
            Trust::NotNeeded | Trust::Declined => None,
            Trust::Given => Some(found),
            Trust::NeverGiven => {
                let files: Vec<_> = content.paths().map(|path| path.display().to_string()).collect();
                notices.push(notice(
                    "The project has configuration that is not used until you trust it",
                    format!("{}. {how}", files.join(", ")),
                ));
                None
            }
            Trust::Outdated(changes) => {
                let files: Vec<_> = changes.iter().map(|change| change.path.display().to_string()).collect();
                let before = consents.servers(&found.project);
                let servers = before.map(|before| told::changes(before, &told::servers_of(found)));
                let servers: String = servers.into_iter().flatten().map(|line| format!("\n{line}")).collect();
                let what = format!("Changed since you trusted it: {}. {how}{servers}", files.join(", "));
                let title = "The project's configuration is not used until you trust it again";
                notices.push(notice(title, what));
                None
            }
        }
    }

    fn configure(
        &self,
        found: &ProjectFiles,
        settings: &mut ProjectSettings,
        notices: &mut Vec<ProjectNotice>,
    ) -> Vec<ConfiguredAgent> {
        match configured(&self.config, found) {
            Ok(configured) => {
                if !configured.refused.is_empty() {
                    notices.push(notice(PARTLY_USED, configured.refused.join("; ")));
                }
                settings.model = configured.model.map(|model| model.value);
                settings.agent = configured.agent.map(|agent| agent.value);
                settings.approval = configured.approval.map(|approval| approval.value);
                settings.max_steps = configured.max_steps.map(|steps| steps.value);
                settings.rules = configured.rules.iter().map(ConfiguredRule::rule).collect();
                let hooks = configured.hooks.iter();
                settings.hooks = hooks.map(|hook| hook.hook(HookOwner::Project)).collect();
                settings.servers = configured.servers;
                settings.servers.extend(servers_of_files(found, notices));
                configured.agents
            }
            Err(problem) => {
                notices.push(notice("The project's configuration is not used: it has mistakes", problem));
                Vec::new()
            }
        }
    }
}

const PARTLY_USED: &str = "Some of the project's configuration is not used";

fn notice(title: &str, description: String) -> ProjectNotice {
    ProjectNotice { title: title.to_owned(), description }
}

/// The configuration of a session in this directory, and one line about the project's own.
pub(crate) fn configuration_in(root: &Path, config: &Config, trust_file: &Path) -> (Config, Option<String>) {
    let unchanged = |said: Option<String>| (config.clone(), said);
    let Ok(found) = ProjectFiles::find(root) else { return unchanged(None) };
    let (file, content) = (found.project.join(PROJECT_CONFIG), found.content());
    if found.text_of(Path::new(PROJECT_CONFIG)).is_none() {
        return unchanged(None);
    }
    let file = file.display();
    match read_consents(trust_file).map(|consents| consents.is_trusted(&found.project, &content)) {
        Ok(true) => match configured(config, &found) {
            Ok(project) => (config.with_project(project), Some(file.to_string())),
            Err(problem) => unchanged(Some(format!("{file} (not used: {problem})"))),
        },
        Ok(false) => {
            let how = format!("attache trust {}", shell_word(&found.project));
            unchanged(Some(format!("{file} (not used until you trust it: {how})")))
        }
        Err(problem) => unchanged(Some(format!("{file} (not used: {problem})"))),
    }
}

fn configured(config: &Config, found: &ProjectFiles) -> Result<ProjectConfig, String> {
    let Some(bytes) = found.text_of(Path::new(PROJECT_CONFIG)) else { return Ok(ProjectConfig::default()) };
    let path = found.project.join(PROJECT_CONFIG);
    let text = std::str::from_utf8(bytes).map_err(|_| format!("{}: not valid UTF-8", path.display()))?;
    let mut configured = config.of_project(&path, text).map_err(|errors| errors.to_string())?;
    if let Some(reason) = found.unseen_script.as_ref().filter(|_| !configured.hooks.is_empty()) {
        configured.hooks.clear();
        configured.refused.push(reason.clone());
    }
    Ok(configured)
}

/// What the user has not consented to.
fn missing_consent(trust_file: &Path, root: &Path, asked: AskedBefore) -> Option<ConsentRequest> {
    let found = ProjectFiles::find(root).ok()?;
    let content = found.content();
    let consents = read_consents(trust_file).ok()?;
    let changes = match consents.judge(&found.project, &content) {
        Trust::NotNeeded | Trust::Given => return None,
        Trust::Declined if asked == AskedBefore::IsEnough => return None,
        Trust::NeverGiven | Trust::Declined => None,
        Trust::Outdated(changes) => Some(changes),
    };
    let text = visible_block(&shown(&found, changes.as_deref(), consents.servers(&found.project)));
    // Users cannot agree to what we did not show.
    if text.len() > MAX_CONSENT_BYTES {
        return None;
    }
    let fence = "`".repeat(3.max(1 + longest_run(&text, '`')));
    let text = format!("{fence}text\n{}\n{fence}", text.trim_end());
    Some(ConsentRequest { project: found.project, text, content })
}

/// Whether to ask a person again who has declined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AskedBefore {
    IsEnough,
    DoesNotCount,
}

fn longest_run(text: &str, wanted: char) -> usize {
    text.split(|character| character != wanted).map(str::len).max().unwrap_or(0)
}

/// A path in a form that can be pasted into a shell.
pub(crate) fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@%=:,".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
