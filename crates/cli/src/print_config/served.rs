//! Prints `[serve]`, schedules and webhooks, with the settings in force.

use super::{ConfigPage, key, one_line};
use crate::config::{AccessLogTarget, CallerBounds, Config, ConfiguredTrigger, ServerSettings, Sourced};

impl ConfigPage {
    pub(super) fn serve(&mut self, serve: &ServerSettings) {
        self.line("\n[serve]");
        if let Some(Sourced { value, origin }) = &serve.workspaces {
            let paths = value.iter().map(|path| path.to_string_lossy().into_owned()).collect();
            self.words("workspaces", paths, origin);
        }
        for (name, words) in [("hosts", &serve.hosts), ("origins", &serve.origins)] {
            if !words.value.is_empty() {
                self.words(name, words.value.clone(), &words.origin);
            }
        }
        self.number("drain_seconds", serve.drain.value.as_secs(), &serve.drain.origin);
        self.serve_operation(serve);
    }

    pub(super) fn triggers(&mut self, config: &Config) {
        for schedule in &config.schedules {
            self.line("\n[[schedule]]");
            self.entry("name", &schedule.trigger.trigger.name, &schedule.trigger.origin);
            self.entry("cron", &schedule.times, &schedule.cron.origin);
            self.entry("prompt", &schedule.prompt.value, &schedule.prompt.origin);
            self.trigger(&schedule.trigger);
        }
        for webhook in &config.webhooks {
            self.line(&format!("\n[webhooks.{}]", key(&webhook.trigger.trigger.name)));
            self.entry("secret_env", &webhook.secret.value, &webhook.secret.origin);
            self.entry("prompt", &webhook.prompt.value, &webhook.prompt.origin);
            self.number("window_seconds", webhook.window.value.as_secs(), &webhook.window.origin);
            self.trigger(&webhook.trigger);
        }
    }

    fn trigger(&mut self, trigger: &ConfiguredTrigger) {
        let ConfiguredTrigger { trigger, origin, workspace_origin, .. } = trigger;
        if let Some(workspace) = &trigger.workspace {
            self.entry("workspace", workspace.to_string_lossy().into_owned(), workspace_origin);
        }
        if let Some(agent) = &trigger.agent {
            self.entry("agent", agent, origin);
        }
        if let Some(approval) = trigger.approval {
            self.entry("approval", approval.as_str(), origin);
        }
        if let Some(cost) = trigger.max_cost {
            self.line(&format!("max_cost = {cost:?}  # {}", one_line(&origin.to_string())));
        }
    }

    fn serve_operation(&mut self, serve: &ServerSettings) {
        self.number("idle_seconds", serve.idle.value.as_secs(), &serve.idle.origin);
        let log = match &serve.access_log.value {
            AccessLogTarget::Stderr => "stderr".to_owned(),
            AccessLogTarget::Off => "off".to_owned(),
            AccessLogTarget::File(path) => path.to_string_lossy().into_owned(),
        };
        self.entry("access_log", &log, &serve.access_log.origin);
        if !serve.proxies.value.is_empty() {
            let proxies = serve.proxies.value.iter().map(ToString::to_string).collect();
            self.words("proxies", proxies, &serve.proxies.origin);
        }
        for (name, bounds) in [("per_token", &serve.per_token), ("per_address", &serve.per_address)] {
            if *bounds == CallerBounds::default() {
                continue;
            }
            self.line(&format!("\n[serve.{name}]"));
            if let Some(Sourced { value, origin }) = &bounds.connections {
                self.number("connections", u64::from(*value), origin);
            }
            if let Some(Sourced { value, origin }) = &bounds.prompts_per_minute {
                self.number("prompts_per_minute", u64::from(*value), origin);
            }
            if let Some(Sourced { value, origin }) = &bounds.bytes_per_minute {
                self.number("bytes_per_minute", *value, origin);
            }
        }
        for token in &serve.tokens {
            self.line(&format!("\n[serve.tokens.{}]", key(&token.name)));
            self.entry("hash", token.digest.to_string(), &token.origin);
            self.entry("scope", token.scope.as_str(), &token.origin);
        }
    }
}
