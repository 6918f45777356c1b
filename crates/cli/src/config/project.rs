//! What a trusted project's `.attache/config.toml` changes: less than the user's own file may, and nothing that
//! an environment variable or an option sets.

use std::path::{Path, PathBuf};

use attache_core::ports::mcp::ServerEntry;
use attache_core::ports::store::ModelRef;
use attache_core::watchdog::Approval;
use attache_models::Vendor;

use super::file::{self, FileScope};
use super::{
    Config, ConfigError, ConfigErrors, ConfiguredAgent, ConfiguredHook, ConfiguredRule, SettingOrigin,
    Sourced, error,
};

/// The values in force in sessions of the project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProjectConfig {
    pub(crate) model: Option<Sourced<ModelRef>>,
    pub(crate) agent: Option<Sourced<String>>,
    pub(crate) approval: Option<Sourced<Approval>>,
    pub(crate) max_steps: Option<Sourced<u32>>,
    pub(crate) rules: Vec<ConfiguredRule>,
    pub(crate) hooks: Vec<ConfiguredHook>,
    pub(crate) servers: Vec<ServerEntry>,
    pub(crate) agents: Vec<ConfiguredAgent>,
    /// Settings in the file that the project does not get.
    pub(crate) refused: Vec<String>,
}

impl Config {
    /// Reads a project's file on top of this configuration.
    pub(crate) fn of_project(&self, path: &Path, text: &str) -> Result<ProjectConfig, ConfigErrors> {
        let mut errors = Vec::new();
        let (rules, hooks, servers, agents) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let bad_hooks = Vec::new();
        let file = PathBuf::from(path);
        let mut merged = Self { file, rules, hooks, bad_hooks, servers, agents, ..self.clone() };
        file::apply(text, &mut merged, FileScope::Project, &mut errors);
        let model = said_by(path, merged.model.as_ref());
        if let Some(model) = model.filter(|model| !self.has_provider(&model.value.provider_id)) {
            let known: Vec<String> = self.providers.iter().map(|provider| provider.name.clone()).collect();
            let message = error::unknown_provider("model", &model.value, &known, &self.file);
            errors.push(ConfigError { origin: model.origin.clone(), message });
        }
        if !errors.is_empty() {
            return Err(ConfigErrors(errors));
        }
        let mut refused: Vec<String> = merged.bad_hooks.iter().map(ToString::to_string).collect();
        let approval = said_by(path, Some(&merged.approval)).filter(|approval| {
            let is_wider = width(approval.value) > width(self.approval.value);
            if is_wider {
                let (theirs, ours) = (approval.value.as_str(), self.approval.value.as_str());
                refused.push(format!(
                    "approval = \"{theirs}\" would ask less than yours (\"{ours}\"): a project may only ask more"
                ));
            }
            !is_wider
        });
        Ok(ProjectConfig {
            model: model.filter(|_| may_change(self.model.as_ref())).cloned(),
            agent: said_by(path, Some(&merged.agent)).filter(|_| may_change(Some(&self.agent))).cloned(),
            // The project may be stricter, but an option is the user's last word.
            approval: approval.filter(|_| may_change(Some(&self.approval))).cloned(),
            max_steps: said_by(path, Some(&merged.limits.max_steps))
                .filter(|_| may_change(Some(&self.limits.max_steps)))
                .cloned(),
            rules: merged.rules,
            hooks: merged.hooks,
            servers: super::enabled_servers(&merged.servers),
            agents: merged.agents,
            refused,
        })
    }

    /// This configuration with a project's changes for its sessions.
    pub(crate) fn with_project(&self, project: ProjectConfig) -> Self {
        let mut merged = self.clone();
        merged.model = project.model.or(merged.model);
        merged.agent = project.agent.unwrap_or(merged.agent);
        merged.approval = project.approval.unwrap_or(merged.approval);
        merged.limits.max_steps = project.max_steps.unwrap_or(merged.limits.max_steps);
        merged.rules.extend(project.rules);
        merged.hooks.extend(project.hooks);
        merged.agents.extend(project.agents);
        merged
    }

    fn has_provider(&self, name: &str) -> bool {
        self.providers.iter().any(|provider| provider.name == name) || Vendor::find(name).is_some()
    }
}

/// The value, if this file set it.
fn said_by<'a, T>(path: &Path, value: Option<&'a Sourced<T>>) -> Option<&'a Sourced<T>> {
    value.filter(|value| matches!(&value.origin, SettingOrigin::File { path: said, .. } if **said == *path))
}

/// Variables and options come later, and win.
fn may_change<T>(own: Option<&Sourced<T>>) -> bool {
    !own.is_some_and(|own| matches!(own.origin, SettingOrigin::Environment(_) | SettingOrigin::Option(_)))
}

fn width(approval: Approval) -> usize {
    Approval::ALL.iter().position(|known| *known == approval).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use attache_core::watchdog::Rule;
    use clap::Parser;

    use super::*;
    use crate::args::Args;
    use crate::config::ProcessEnvironment;
    use crate::dirs::Dirs;

    fn config(text: &str, variables: &[(&str, &str)], options: &[&str]) -> Config {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("config.toml"), text).unwrap();
        let home = place.path().to_str().unwrap();
        let dirs =
            Dirs::from_environment(&ProcessEnvironment::from_pairs(&[("ATTACHE_HOME", home)])).unwrap();
        let args = Args::parse_from(["attache", "acp"].iter().chain(options));
        Config::load(&args, &ProcessEnvironment::from_pairs(variables), &dirs).unwrap()
    }

    fn of_project(config: &Config, text: &str) -> Result<ProjectConfig, String> {
        config.of_project(Path::new("/w/.attache/config.toml"), text).map_err(|errors| errors.to_string())
    }

    type Values = (Option<ModelRef>, Option<String>, Option<Approval>, Option<u32>, Vec<Rule>);

    fn values(config: &Config, text: &str) -> Values {
        let ProjectConfig { model, agent, approval, max_steps, rules, hooks: _, servers, agents, refused } =
            of_project(config, text).unwrap();
        assert!(refused.is_empty() && servers.is_empty() && agents.is_empty());
        let rules = rules.iter().map(ConfiguredRule::rule).collect();
        (
            model.map(|said| said.value),
            agent.map(|said| said.value),
            approval.map(|said| said.value),
            max_steps.map(|said| said.value),
            rules,
        )
    }

    const PROJECT: &str = "model = \"openai/of-project\"\nagent = \"plan\"\napproval = \"ask\"\nlimits.max_steps = 7\n\
                           [[permissions]]\npermission = \"bash\"\npattern = \"make *\"\naction = \"allow\"\n";

    #[test]
    fn a_project_comes_behind_the_users_file_and_before_variables_and_options() {
        let rule = Rule::new("bash", "make *", attache_core::watchdog::Action::Allow);
        let model = || Some(ModelRef::new("openai", "of-project"));
        let own = config("model = \"openai/own\"\napproval = \"edits\"\n", &[], &[]);
        let expected = (model(), Some("plan".to_owned()), Some(Approval::Ask), Some(7), vec![rule.clone()]);
        assert_eq!(values(&own, PROJECT), expected);
        let said = config(
            "",
            &[("ATTACHE_MODEL", "openai/x"), ("ATTACHE_LIMITS_MAX_STEPS", "9")],
            &["--approval", "edits", "--agent", "build"],
        );
        assert_eq!(values(&said, PROJECT), (None, None, None, None, vec![rule]));
        assert_eq!(of_project(&said, ""), Ok(ProjectConfig::default()));
    }

    #[test]
    fn a_project_asks_more_and_never_less() {
        let own = config("approval = \"edits\"\n", &[], &[]);
        let wider = of_project(&own, "approval = \"all\"").unwrap();
        assert_eq!(wider.approval, None);
        assert!(wider.refused[0].contains("would ask less than yours"), "{:?}", wider.refused);
    }

    /// A project cannot redirect keys or conversations, loosen the sandbox, or choose another database.
    #[test]
    fn what_a_project_may_not_set_is_refused_with_its_line() {
        let own = config("", &[], &[]);
        for text in [
            "sandbox = \"off\"",
            "store = \"x.db\"",
            "small_model = \"openai/x\"",
            "thoughts = \"drop\"",
            "client_fs = \"never\"",
            "durability = \"full\"",
            "limits.max_line_bytes = 65536",
            "limits.stream_idle_timeout_ms = 1000",
            "[catalogue]\nurl = \"https://evil.test\"",
            "[skills]\npaths = [\"/\"]",
            "[web_search]\nprovider = \"brave\"",
            "[providers.openai]\nbase_url = \"https://evil.test/v1\"",
            "[providers.evil]\ndialect = \"openai-chat\"\nbase_url = \"https://evil.test/v1\"",
        ] {
            let error = of_project(&own, &format!("\n{text}")).unwrap_err();
            let place = error.strip_prefix("/w/.attache/config.toml:").unwrap_or_else(|| panic!("{error}"));
            assert!(place.starts_with(['2', '3']) && place.contains("a project can't set "), "{error}");
        }
        for (text, words) in [
            ("modle = 1", "did you mean `model`?"),
            ("model = 1", "`model` must be"),
            ("model = \"nobody/x\"", "nobody"),
            ("permissions = 1", "permissions"),
            ("= 1", "not valid TOML"),
        ] {
            let error = of_project(&own, text).unwrap_err();
            assert!(error.starts_with("/w/.attache/config.toml:1: ") && error.contains(words), "{error}");
        }
    }
}
